"""Random histories of a table, written by real Hudi; everything follows from the seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from interop_model import PARTITIONED
from real_hudi import RealHudi, RealHudiError

_SETTINGS: Final = {"hoodie.metadata.enable": False, "hoodie.clean.automatic": False}
_NOTHING_TO_DO: Final = "nothing to do"


class History:
    """
    A table that gets one random operation at a time.

    Operations: upserts of few or many partitions, inserts into new file groups, deletes, partition overwrites and
    drops, savepoints made and deleted, cleans of every policy, failed writes and rollbacks.

    Args:
        seed: Decides everything but the instants.
        hudi: Who writes.
        table: Where; must not exist.
    """

    def __init__(self, seed: int, hudi: RealHudi, table: Path) -> None:
        self.seed = seed
        self.table = table
        self.told: list[str] = []
        self._random = random.Random(seed)
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
        ]
        run = self._random.choices([one for _, one in steps], weights=[weight for weight, _ in steps])[0]
        try:
            outcome = run()
        except RealHudiError as refused:  # for instance a savepoint on a cleaned commit: part of the story
            outcome = f"refused: {refused.kind}"
        self.told.append(f"{run.__name__[1:]}: {outcome}")

    def policy(self) -> dict[str, Any]:
        """Arguments of a random clean, for both planners."""
        kind = self._random.choice(["commits", "commits", "file_versions"])
        if kind == "commits":
            return {"policy": "KEEP_LATEST_COMMITS", "commits_retained": self._random.randint(1, 4)}
        return {"policy": "KEEP_LATEST_FILE_VERSIONS", "file_versions_retained": self._random.randint(1, 3)}

    def __str__(self) -> str:
        return f"seed {self.seed}, Hudi {self._hudi.version}, {self.table}: " + " | ".join(self.told)

    # ------------------------------------------------------------------ operations
    def _write(self, operation: str, numbers: Any, **options: Any) -> str:
        self._version += 1
        batch = PARTITIONED.batch(numbers, self._version)
        self._keys = max(self._keys, *numbers) + 1 if len(numbers) else self._keys
        new = {} if self.table.exists() else PARTITIONED.create(self._hudi.table_version)
        return str(self._hudi.write(self.table, batch, operation, new | _SETTINGS | options)["requested_time"])

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
            if instant["state"] == "COMPLETED" and instant["action"] in ("commit", "replacecommit")
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
        return self._hudi.fail_write(self.table, PARTITIONED.batch(self._some(0.4), self._version), "upsert", _SETTINGS)
