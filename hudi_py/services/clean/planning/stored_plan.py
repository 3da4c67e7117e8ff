"""
Converts the planner's result to the record stored as ``.clean.requested``, and back to file names. Pure.

Source: rules/table-services A-56, A-57, J-3; rules/timeline 4.3, 4.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from hudi_py.errors import RefusedError
from hudi_py.model.files import is_data_file, is_partition_path
from hudi_py.model.records import ActionInstant, CleanerPlan, CleanFileInfo
from hudi_py.services.clean.planning.plan import CleanPlan
from hudi_py.services.clean.planning.planned_files import PlannedFiles

Names: TypeAlias = Mapping[str, Sequence[str]]
"""Names of files by partition path."""

_SCHEME: Final = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*:(?://)?(?=/|[^/])")


def to_record(plan: CleanPlan, root: str) -> CleanerPlan:
    """
    The record of *plan* for a table at *root*; paths become absolute, as Hudi stores them.

    An empty plan is never stored: no release of Hudi can finish one (rule A-68).
    """
    assert plan.file_count > 0
    earliest = plan.earliest_to_retain
    return CleanerPlan(
        earliest_instant_to_retain=None
        if earliest is None
        else ActionInstant(earliest.requested_time, earliest.action.value, earliest.state.name),
        last_completed_commit_timestamp=plan.last_completed_commit,
        policy=plan.policy,
        version=plan.version,
        files_to_delete=_FullPaths(plan.files, root),
        partitions_to_delete=plan.partitions_to_delete,
        extra_metadata=dict(plan.extra_metadata),
    )


def is_partial(record: CleanerPlan) -> bool:
    """Whether a limit cut a stored plan short: such a plan of hudi_py names no last commit, so that the next is due."""
    return not record.last_completed_commit_timestamp


class _FullPaths(Mapping[str, tuple[CleanFileInfo, ...]]):
    """The stored form of a plan's files, created when asked for: a plan may name a million."""

    def __init__(self, files: PlannedFiles, root: str) -> None:
        self._files, self._root = files, root

    def __getitem__(self, partition_path: str) -> tuple[CleanFileInfo, ...]:
        if partition_path not in self._files:
            raise KeyError(partition_path)
        folder = f"{self._root}/{partition_path}" if partition_path else self._root
        return tuple(CleanFileInfo(f"{folder}/{name}") for name in self._files.names(partition_path))

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def planned_names(record: CleanerPlan, root: str, source: str) -> Names:
    """
    Names of the planned files of the table at *root*, by partition path.

    A plan stores absolute paths. If the table was moved or copied after planning, they point to its old location. Each
    path consists of that location, the partition and the file name, so the same files of *this* table are meant.

    Args:
        record: The stored plan.
        root: The table's location.
        source: The plan's location, for messages.

    Raises:
        RefusedError: A path has another form, or is not a data file of the table; nothing was deleted.
    """
    for partition in (*record.files_to_delete, *record.partitions_to_delete):
        _check_partition(partition, source)
    result: dict[str, tuple[str, ...]] = {}
    bases: set[str] = set()
    for partition, files in record.files_to_delete.items():
        folder = ""
        names = []
        for file in files:
            if file.is_bootstrap:
                raise RefusedError(
                    f"{source}: {file.path} is a bootstrap source file outside the table; "
                    "let Apache Hudi finish this clean"
                )
            path = file.path
            # Version 1 has bare names (rule A-57). Of the others the folder is worked out once for each partition.
            if record.version > 1 and not (folder and path.startswith(folder) and "/" not in path[len(folder) :]):
                base = _base(path, partition, source)
                bases.add(base)
                folder = f"{base}/{partition}/" if partition else f"{base}/"
            name = path[len(folder) :]
            # Whatever a plan names is deleted, so a damaged or foreign plan must not reach anything but data files.
            if not is_data_file(name):
                raise RefusedError(
                    f"{source}: {path!r} is neither a base nor a log file of {root}; nothing was deleted"
                )
            names.append(name)
        result[partition] = tuple(names)
    # A plan of one table has one base path; with several, it is damaged or not a plan of this table.
    if len({_plain(base) for base in bases}) > 1:
        raise RefusedError(
            f"{source}: the plan's files lie below several places ({', '.join(sorted(bases))}); nothing was deleted"
        )
    return result


def _check_partition(partition_path: str, source: str) -> None:
    if not is_partition_path(partition_path):
        raise RefusedError(f"{source}: {partition_path!r} is not a partition of a table; nothing was deleted")


def _base(path: str, partition: str, source: str) -> str:
    """The table's base path in the full path of a planned file."""
    folder, _, name = path.rpartition("/")
    suffix = f"/{partition}" if partition else ""
    if not name or not folder.endswith(suffix) or ".." in path.split("/"):
        raise RefusedError(f"{source}: {path!r} is not a file of partition {partition!r}; nothing was deleted")
    return folder[: len(folder) - len(suffix)]


def _plain(base: str) -> str:
    """A base path without its scheme, which differs between kinds of listings (rule A-57)."""
    return _SCHEME.sub("", base).strip("/")
