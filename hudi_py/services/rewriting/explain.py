"""Why a file group is in the next plan of a compaction or clustering, or is not. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from hudi_py.fsview.build import GroupKey
from hudi_py.model.files import FileSlice, parse_data_file


@attrs.frozen(kw_only=True)
class GroupExplanation:
    """
    A file group and the next plan.

    Args:
        partition_path: Its partition.
        file_id: Its file id.
        is_planned: Whether the plan has it.
        reason: Why, or why not.
        base_bytes: Size of its newest base file; 0 if it has none.
        log_files: Number of log files on it.
        log_bytes: Their size.
    """

    partition_path: str
    file_id: str
    is_planned: bool
    reason: str
    base_bytes: int
    log_files: int
    log_bytes: int


def explain_groups(
    slices: Iterable[FileSlice],
    planned: Mapping[GroupKey, str],
    left: Mapping[GroupKey, str],
    otherwise: Callable[[FileSlice], str],
) -> tuple[GroupExplanation, ...]:
    """
    Explain file groups, in the order given.

    Args:
        slices: Their latest slices, with sizes.
        planned: Groups in the plan, to what happens to them.
        left: Groups that the planner has looked at and left out, to the reason.
        otherwise: Why the planner has not looked at a group.
    """

    def explained(file_slice: FileSlice) -> GroupExplanation:
        key = (file_slice.partition_path, file_slice.file_id)
        logs = [log for log in file_slice.log_files if not log.is_cdc]
        return GroupExplanation(
            partition_path=key[0],
            file_id=key[1],
            is_planned=key in planned,
            # The planner's own reasons first, because they are the exact ones.
            reason=planned.get(key) or left.get(key) or otherwise(file_slice),
            base_bytes=0 if file_slice.base_file is None else file_slice.base_file.size_bytes or 0,
            log_files=len(logs),
            log_bytes=sum(log.size_bytes or 0 for log in logs),
        )

    return tuple(map(explained, slices))


def is_meant(target: str, file_slice: FileSlice) -> bool:
    """Whether *target* names the slice: by its partition, its file id, or the name or path of one of its files."""
    partition = file_slice.partition_path
    if target in (partition, file_slice.file_id):
        return True
    folder, _, name = target.rpartition("/")
    parsed = parse_data_file(name)
    return parsed is not None and parsed.file_id == file_slice.file_id and folder in ("", partition)
