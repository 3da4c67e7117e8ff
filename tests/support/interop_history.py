"""Random histories of a table, written by real Hudi; everything follows from the seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
from real_hudi import RealHudi, RealHudiError

from support.interop_model import PARTITIONED

_NOTHING_TO_DO: Final = "nothing to do"
_WRITES: Final = ("commit", "deltacommit", "replacecommit")


@attrs.frozen
class Kind:
    """What kind of table a history is played on."""

    is_mor: bool = False
    has_metadata: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """Of every write."""
        return {
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.is_mor else "COPY_ON_WRITE",
            "hoodie.metadata.enable": self.has_metadata,
            "hoodie.clean.automatic": False,
            "hoodie.compact.inline": False,
            "hoodie.datasource.compaction.async.enable": False,
        }

    def __str__(self) -> str:
        return f"{'MOR' if self.is_mor else 'COW'}, metadata table {'on' if self.has_metadata else 'off'}"


PLAIN: Final = Kind()


class History:
    """
    A table that gets one random operation at a time.

    Operations: upserts of few or many partitions, inserts into new file groups, deletes, partition overwrites and
    drops, savepoints made and deleted, cleans of every policy, failed writes and rollbacks, clusterings and (merge on
    read) compactions, both also only scheduled, and archivals.

    Args:
        seed: Decides everything but the instants.
        hudi: Who writes.
        table: Where; must not exist.
        kind: Of the table; left to the seed by default.
    """

    def __init__(self, seed: int, hudi: RealHudi, table: Path, kind: Kind | None = None) -> None:
        self.seed = seed
        self.table = table
        self.told: list[str] = []
        self._random = random.Random(seed)
        self.kind = kind or Kind(self._random.random() < 0.5, self._random.random() < 0.5)
        self._hudi = hudi
        self._keys = 0
        self._version = 0
        self._savepoints: list[str] = []
        self._write("upsert", range(9))
        for share in (1.0, 0.4, 0.4):  # so that there is something to clean from the first step on
            self._write("upsert", self._some(share))

    def step(self) -> None:
        """One random operation."""
        steps: list[tuple[int, Callable[[], str]]] = [
            (8, self._upsert),
            (3, self._insert),
            (2, self._delete),
            (2, self._overwrite),
            (1, self._drop_partition),
            (2, self._savepoint),
            (1, self._release),
            (3, self._clean),
            (1, self._fail),
            (1, self._cluster),
            (1, self._schedule_clustering),
            (1, self._archive),
        ]
        if self.kind.is_mor:
            steps += [(2, self._compact), (2, self._schedule_compaction)]
        run = self._random.choices([one for _, one in steps], weights=[weight for weight, _ in steps])[0]
        try:
            outcome = run()
        except RealHudiError as refused:  # for instance a savepoint on a cleaned commit: part of the story
            if "." not in refused.kind:  # no Java class: the process died or hung
                raise
            outcome = f"refused: {refused.kind}"
        self.told.append(f"{run.__name__[1:]}: {outcome}")

    def policy(self) -> dict[str, Any]:
        """Arguments of a random clean, for both planners."""
        kind = self._random.choice(["commits", "commits", "file_versions"])
        if kind == "commits":
            return {"policy": "KEEP_LATEST_COMMITS", "commits_retained": self._random.randint(1, 4)}
        return {"policy": "KEEP_LATEST_FILE_VERSIONS", "file_versions_retained": self._random.randint(1, 3)}

    def __str__(self) -> str:
        return f"seed {self.seed}, Hudi {self._hudi.version}, {self.kind}, {self.table}: " + " | ".join(self.told)

    # ------------------------------------------------------------------ operations
    def _write(self, operation: str, numbers: Any, **options: Any) -> str:
        self._version += 1
        batch = PARTITIONED.batch(numbers, self._version)
        self._keys = max(self._keys, *numbers) + 1 if len(numbers) else self._keys
        new = {} if self.table.exists() else PARTITIONED.create(self._hudi.table_version)
        settings = new | self.kind.settings | options
        return str(self._hudi.write(self.table, batch, operation, settings)["requested_time"])

    def _some(self, share: float) -> list[int]:
        return self._random.sample(range(self._keys), max(1, int(self._keys * share)))

    def _upsert(self) -> str:
        share = self._random.choice([0.1, 0.4, 1.0])
        return self._write("upsert", [*self._some(share), *([self._keys] if self._random.random() < 0.5 else [])])

    def _insert(self) -> str:
        fresh = list(range(self._keys, self._keys + self._random.randint(1, 3)))
        return self._write("insert", fresh, **{"hoodie.parquet.small.file.limit": self._random.choice([0, 104857600])})

    def _delete(self) -> str:
        return self._write("delete", self._some(0.2))

    def _overwrite(self) -> str:
        kind = self._random.choice(["insert_overwrite", "insert_overwrite", "insert_overwrite_table"])
        return f"{kind} {self._write(kind, self._some(0.3))}"

    def _drop_partition(self) -> str:
        path = self._random.choice(["eu", "us", "asia"])
        options = {"hoodie.datasource.write.partitions.to.delete": path}
        return f"{path} {self._write('delete_partition', [0], **options)}"

    def _savepoint(self) -> str:
        commits = [
            instant["requested_time"]
            for instant in self._hudi.timeline(self.table)["instants"]
            if instant["state"] == "COMPLETED" and instant["action"] in _WRITES
        ]
        chosen = self._random.choice([c for c in commits if c not in self._savepoints] or [None])
        if chosen is None:
            return _NOTHING_TO_DO
        self._hudi.savepoint(self.table, chosen)
        self._savepoints.append(chosen)
        return str(chosen)

    def _release(self) -> str:
        if not self._savepoints:
            return _NOTHING_TO_DO
        chosen = self._savepoints.pop(self._random.randrange(len(self._savepoints)))
        self._hudi.savepoint(self.table, chosen, delete=True)
        return chosen

    def _clean(self) -> str:
        arguments = self.policy()
        settings = {
            "hoodie.cleaner.policy": arguments["policy"],
            "hoodie.cleaner.commits.retained": arguments.get("commits_retained", 10),
            "hoodie.cleaner.fileversions.retained": arguments.get("file_versions_retained", 3),
        }
        return f"{arguments} deleted {len(self._hudi.clean(self.table, settings)['deleted_files'])}"

    def _fail(self) -> str:
        """A failed write stays pending until the next write rolls it back."""
        self._version += 1
        batch = PARTITIONED.batch(self._some(0.4), self._version)
        return self._hudi.fail_write(self.table, batch, "upsert", self.kind.settings)

    def _cluster(self) -> str:
        """Into new file groups, so that no pending clustering is in the way; those are carried out first."""
        fresh = [self._keys, self._keys + 1]
        options = {"hoodie.clustering.inline": True, "hoodie.clustering.inline.max.commits": 1}
        return self._write("insert", fresh, **options, **{"hoodie.parquet.small.file.limit": 0})

    def _schedule_clustering(self) -> str:
        """Until it is carried out, writes into the file groups that it names are refused."""
        options = {"hoodie.clustering.schedule.inline": True, "hoodie.clustering.inline.max.commits": 1}
        return self._write("upsert", self._some(0.4), **options)

    def _compact(self) -> str:
        options = {"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
        return self._write("upsert", self._some(0.6), **options)

    def _schedule_compaction(self) -> str:
        options = {"hoodie.compact.schedule.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
        return self._write("upsert", self._some(0.6), **options)

    def _archive(self) -> str:
        bounds = {"hoodie.keep.min.commits": 3, "hoodie.keep.max.commits": 4, "hoodie.cleaner.commits.retained": 1}
        self._hudi.archive(self.table, bounds)
        return "done"
