"""What the tags that are due keep of a clean that is planned before they are made, as in a dry run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hudi_py.model.files import BaseFile, parse_data_file
from hudi_py.model.records import SavepointMetadata
from hudi_py.services.clean.planning.planned_files import PlannedFile


def left_by(
    tags: Iterable[SavepointMetadata], planned: Mapping[str, tuple[PlannedFile, ...]]
) -> dict[str, tuple[PlannedFile, ...]]:
    """
    Return the planned files without the slices of which a tag names a file, by partition path.

    Args:
        tags: The savepoints as they would be made.
        planned: Partition path to the files of a plan, each base file before the log files of its slice (rule A-37).
    """
    kept: dict[str, set[str]] = {}
    for tag in tags:
        for path, names in tag.files.items():
            kept.setdefault(path, set()).update(names)
    found = {}
    for path, files in planned.items():
        here = kept.get(path, set())
        slices = _slices(files) if here else [list(files)]
        left = [file for each in slices if here.isdisjoint(map(_name, each)) for file in each]
        if left:
            found[path] = tuple(left)
    return found


def _slices(files: Iterable[PlannedFile]) -> Iterator[list[PlannedFile]]:
    """The files of each slice: a base file with the log files of its group that follow, or log files alone."""
    current: list[PlannedFile] = []
    group = None
    for file in files:
        parsed = parse_data_file(_name(file))
        file_id = None if parsed is None else parsed.file_id
        if current and (isinstance(parsed, BaseFile) or file_id != group):
            yield current
            current = []
        current.append(file)
        group = file_id
    if current:
        yield current


def _name(file: PlannedFile) -> str:
    return file.path.rpartition("/")[2]
