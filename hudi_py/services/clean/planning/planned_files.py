"""
The files of a plan, by partition. Pure.

A plan may name a million files. An object for each would take as much memory as the rest of a clean, and Python's
garbage collector would visit them again and again. So the names of each partition are kept in one string, and objects
are created when those of one partition are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from hudi_py.model.files import join_path
from hudi_py.services.clean.retention.policy import Condemned, Reason, Verdict

T = TypeVar("T")


class PlannedFile(NamedTuple):
    """One file to delete. ``path`` is relative to the table."""

    path: str
    reason: Reason
    size_bytes: int | None = None
    is_bootstrap_base_file: bool = False


class _Planned(NamedTuple):
    """The files of one partition, as columns; a single reason or size stands for all files if they are equal."""

    text: str  # the names, joined by the one character that no name contains
    file_count: int
    reasons: tuple[Reason, ...]
    sizes: tuple[int | None, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.text.split("/"))


class PlannedFiles(Mapping[str, "tuple[PlannedFile, ...]"]):
    """Partition path to files, in the order in which Hudi lists them (rule A-37)."""

    def __init__(self, files: Mapping[str, Iterable[PlannedFile]] | None = None) -> None:
        self._partitions: dict[str, _Planned] = {}
        for partition, planned in (files or {}).items():
            rows = [(file.path.rpartition("/")[2], file.reason, file.size_bytes) for file in planned]
            self._add(partition, rows)

    def add(self, partition_path: str, condemned: Iterable[Verdict]) -> None:
        """Add the files of the *condemned* slices of one partition, if there are any."""
        rows: list[tuple[str, Reason, int | None]] = []
        for verdict in condemned:
            file_slice, reason = verdict.file_slice, verdict.reason
            base = file_slice.base_file
            if base is not None:
                rows.append((base.name, reason, base.size_bytes))
            if file_slice.log_files:  # newest first, as Hudi names them (rule A-37)
                rows += [(log.name, reason, log.size_bytes) for log in reversed(file_slice.log_files)]
        self._add(partition_path, rows)

    def add_names(self, partition_path: str, condemned: Condemned) -> None:
        """Add the condemned files of one partition, if there are any."""
        if condemned.names:
            self._keep(partition_path, condemned.names, (condemned.reason,), condemned.sizes)

    def _add(self, partition_path: str, rows: list[tuple[str, Reason, int | None]]) -> None:
        if rows:
            names, reasons, sizes = zip(*rows, strict=True)
            self._keep(partition_path, names, _folded(reasons), sizes)

    def _keep(
        self, path: str, names: tuple[str, ...], reasons: tuple[Reason, ...], sizes: tuple[int | None, ...]
    ) -> None:
        self._partitions[path] = _Planned("/".join(names), len(names), reasons, _folded(sizes))

    def names(self, partition_path: str) -> tuple[str, ...]:
        """Names of the planned files of one partition, without creating objects."""
        planned = self._partitions.get(partition_path)
        return () if planned is None else planned.names

    @property
    def count(self) -> int:
        """Number of files in all partitions."""
        return sum(planned.file_count for planned in self._partitions.values())

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all files; None if a size is unknown."""
        total = 0
        for planned in self._partitions.values():
            for size in planned.sizes:
                if size is None:
                    return None
                total += size * (planned.file_count if len(planned.sizes) == 1 else 1)
        return total

    def sizes_by_partition(
        self, sizes: Callable[[str, Sequence[str]], Mapping[str, int]]
    ) -> dict[str, tuple[int, int]]:
        """
        Return the number of files and their bytes by partition path.

        Args:
            sizes: Returns sizes in bytes by name, from the path of a partition and names of files in it; called if the
                plan has no sizes. Those of all other files are not needed, and on a local disk each one costs a
                request. A file that it leaves out counts as 0.
        """
        found = {}
        for path, planned in self._partitions.items():
            known: Iterable[int | None] = _unfolded(planned.sizes, planned.file_count)
            if None in planned.sizes:
                known = sizes(path, planned.names).values()
            found[path] = (planned.file_count, sum(max(size or 0, 0) for size in known))
        return found

    def __getitem__(self, partition_path: str) -> tuple[PlannedFile, ...]:
        planned = self._partitions[partition_path]
        names, count = planned.names, planned.file_count
        return tuple(
            PlannedFile(join_path(partition_path, name), reason, size)
            for name, reason, size in zip(
                names, _unfolded(planned.reasons, count), _unfolded(planned.sizes, count), strict=True
            )
        )

    def __contains__(self, partition_path: object) -> bool:
        return partition_path in self._partitions  # Mapping's own would create all objects of the partition

    def __iter__(self) -> Iterator[str]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __repr__(self) -> str:
        return f"<{self.count} files in {len(self)} partitions>"


def _folded(values: tuple[T, ...]) -> tuple[T, ...]:
    # Mostly equal: one reason for a whole partition, and no sizes at all.
    return values[:1] if values.count(values[0]) == len(values) else values


def _unfolded(values: tuple[T, ...], count: int) -> tuple[T, ...]:
    return values * count if len(values) == 1 else values
