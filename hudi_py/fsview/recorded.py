"""Finds the sizes that completed commits recorded for some files, in as few commits as possible."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.expected import written_files
from hudi_py.fsview.named_logs import sizes_of_groups
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.timeline.contents import Contents

_Groups = dict[str, set[bytes]]
"""A time in file names to groups of these files, as `group_of` returns them."""


def recorded_sizes(
    contents: Contents, commits: Sequence[Instant], files: Mapping[str, Collection[str]]
) -> dict[str, dict[str, int]]:
    """
    Sizes in bytes of files, 0 if unknown; files of archived commits are left out.

    Log files may be larger than the commits recorded: rollbacks append to them.

    Args:
        contents: Reads the instants of the table's timeline.
        commits: Completed writes of the active timeline, by requested time.
        files: Partition path to names of base and log files.

    Returns:
        Partition path to names and sizes; empty if a commit was archived or rolled back since.
    """
    bases, logs = _groups_by_time(files)
    tells_slice = contents.store.config.format.log_naming.tells_slice
    all_logs = frozenset[bytes]().union(*logs.values()) if tells_slice else frozenset[bytes]()
    first = min(logs, default="")
    found: dict[str, dict[str, int]] = {}
    for instant in reversed(commits):
        time = instant.requested_time
        groups = bases.get(time, set()) | logs.get(time, set())
        # In layout 1 the name of a log file does not tell which commits wrote to it.
        if all_logs and instant.action is not Action.COMMIT:
            groups = groups | (all_logs if time >= first or _is_one_missing(commits, files, found) else set())
        if not groups:
            continue
        try:
            sizes = _sizes(contents, instant, groups)
        except NotFound:
            return {}
        for path, size in sizes.items():
            partition, _, name = path.rpartition("/")
            if name in files.get(partition, ()):
                here = found.setdefault(partition, {})
                here[name] = max(size, here.get(name, 0))
    return found


def _groups_by_time(files: Mapping[str, Collection[str]]) -> tuple[_Groups, _Groups]:
    """Groups of base and of log files."""
    bases: _Groups = {}
    logs: _Groups = {}
    for partition, names in files.items():
        for name in names:
            if name[:1] == ".":
                file_id, _, rest = name[1:].partition("_")
                logs.setdefault(rest.partition(".")[0], set()).add(join_path(partition, file_id).encode())
            else:
                file_id, _, rest = name.partition("_")
                time = rest.rpartition("_")[2].partition(".")[0]
                bases.setdefault(time, set()).add(join_path(partition, file_id).encode())
    return bases, logs


def _is_one_missing(
    commits: Sequence[Instant], files: Mapping[str, Collection[str]], found: Mapping[str, Mapping[str, int]]
) -> bool:
    """Whether a log file of a slice that began on the active timeline was not found yet."""
    start = commits[0].requested_time
    return any(
        name[:1] == "." and name.partition("_")[2] >= start and name not in found.get(partition, ())
        for partition, names in files.items()
        for name in names
    )


def _sizes(contents: Contents, instant: Instant, groups: Collection[bytes]) -> dict[str, int]:
    """Paths and sizes of the files of these groups; of others too if the commit has to be decoded."""
    quick = sizes_of_groups(contents.store.look_through(instant), instant.requested_time, groups)
    if quick is not None:
        return {path.decode(): size for path, size in quick.items()}
    try:
        metadata = contents.commit(instant)
    except CorruptMetadata as error:  # a snapshot may not need it; the check reports it
        contents.pass_over(instant, error)
        return {}
    sizes: dict[str, int] = {}
    for file in written_files(instant, metadata, contents.store.config.format.log_naming):
        sizes[file.path] = max(file.size_bytes, sizes.get(file.path, 0)) if file.is_log else file.size_bytes
    return sizes
