"""
Answers clients of Apache Hudi as its own timeline server does: ``hoodie.filesystem.view.type=REMOTE_ONLY``.

Served is what recorded clients of Hudi 0.15.0 to 1.2.0 ask for while they write, clean, compact, cluster and read.
Anything else is refused by name, which fails the client's action before it changes anything. Each answer is read from
the table anew; a client with another timeline is refused, as Hudi's server does.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import attrs

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.files import METADATA_FOLDER, BaseFile, FileGroup, FileSlice, LogFile, join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.model.store_names import store_of
from hudi_py.timeline.timeline import WRITES

if TYPE_CHECKING:
    from hudi_py.fsview.build import PartitionView, ViewContext
    from hudi_py.storage.base import Entry
    from hudi_py.table import Table

PREFIX: Final = "/v1/hoodie/view/"
_BLOCK_BYTES: Final = 32 << 20  # what Hadoop says of a local file; no answer depends on it
_COMPACTIONS: Final = (Action.COMPACTION, Action.LOG_COMPACTION)


class Behind(Exception):
    """The client's timeline is not that of the table."""


@attrs.frozen
class Asked:
    """
    One question.

    Args:
        opened: The table, just loaded.
        root: Its location as the client names it.
        query: Parameters.
    """

    opened: Table
    root: str
    query: Mapping[str, str]

    @property
    def partition(self) -> str:
        """The partition in question; empty for a table without partitions."""
        return self.given("partition").strip("/")

    @property
    def until(self) -> str:
        """Time from which on nothing counts."""
        return self.given("maxinstant")

    def given(self, name: str) -> str:
        """Value of a parameter."""
        if name not in self.query:
            raise ConfigError(f"{name} is missing")
        return self.query[name]


def is_path(path: str) -> bool:
    """Whether an address is one of Hudi's server."""
    return path.startswith(PREFIX)


def is_posted(path: str) -> bool:
    """Whether it is posted to, although it changes nothing: it asks the server to read the table again."""
    return path.removeprefix(PREFIX) in _REFRESHING


def bare_location(location: str) -> str:
    """Return a location without what Hudi's clients write otherwise than we do."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return os.path.abspath(location.removeprefix("file:"))
    if scheme == "file":
        return "/" + rest.strip("/")
    return f"{store_of(scheme)}://{rest.strip('/')}"


def answer(opened: Table, path: str, query: Mapping[str, str]) -> Any:
    """
    Answer a question.

    Args:
        opened: The table, just loaded.
        path: The address.
        query: Its parameters.

    Raises:
        Behind: The client's timeline is not that of the table.
        ConfigError: A parameter is missing.
        RefusedError: It is not served.
        CorruptMetadata: The timeline is damaged.
    """
    name = path.removeprefix(PREFIX)
    if name in _REFRESHING:
        return True  # nothing is kept between two questions
    if name not in _ANSWERS:
        raise RefusedError(f"{path} of Apache Hudi's timeline server is not served; leave REMOTE_ONLY out")
    if opened.config.properties.get("hoodie.bootstrap.base.path", "").strip():
        raise RefusedError("tables that were bootstrapped from other files are not served to Apache Hudi")
    asked = Asked(opened, query.get("basepath", ""), query)
    _refuse_other_timeline(opened, query)
    return list(_ANSWERS[name](asked))


def _refuse_other_timeline(opened: Table, query: Mapping[str, str]) -> None:
    theirs = query.get("timelinehash")
    if theirs is None or query.get("refreshoff") == "true":
        return
    known = _known(opened)
    text = "".join(f"{each.requested_time}_{each.action.value}_{each.state.name}" for each in known)
    if hashlib.sha256(text.encode()).hexdigest() != theirs:
        last = known[-1].requested_time if known else "none"
        raise Behind(
            f"the table has changed: its last instant is {last}, the client knows {query.get('lastinstantts')}"
        )


def _known(opened: Table) -> list[Instant]:
    """Instants that a view is made of: completed ones, and compactions in any state."""
    return [each for each in opened.timeline if each.is_completed or each.action in _COMPACTIONS]


# --- the state of a partition ------------------------------------------------------------------------------------
class _Files:
    """A partition as it is now."""

    def __init__(self, asked: Asked) -> None:
        from hudi_py.fsview.build import build_partition
        from hudi_py.fsview.listing import is_partition
        from hudi_py.fsview.loader import load_context

        opened = asked.opened
        self.root, self.partition = asked.root, asked.partition
        self._entries: dict[str, Entry] = {}
        # Only a partition: no other folder is told of. Without a look at all: a write asks for each that it touches.
        is_ours = self.partition.split("/")[0] != METADATA_FOLDER
        found = opened.storage.list(self.partition, details=True) if is_ours else []
        if is_partition(found):
            self._entries = {each.name: each for each in found if not each.is_folder}
        self.context: ViewContext = load_context(
            opened.timeline, opened.contents, for_planning=True, with_clustering=False
        )
        sizes = ((each.name, each.size_bytes) for each in self._entries.values())
        self.view: PartitionView = build_partition(self.context, self.partition, sizes)

    def groups(self, until: str | None = None) -> Iterator[FileGroup]:
        """Groups that count; those that were replaced after *until* still do."""
        yield from self.view.groups
        if until is not None:
            yield from (each for each in self.view.replaced_groups if self.replaced_at(each) > until)

    def replaced_at(self, group: FileGroup) -> str:
        return self.context.replaced[group.partition_path, group.file_id]

    def is_pending(self, file_slice: FileSlice) -> bool:
        """Whether a pending compaction writes the base file of a slice."""
        found = self.context.pending_compactions.get((file_slice.partition_path, file_slice.file_id))
        return found is not None and file_slice.base_instant_time == found.instant_time

    # --- as JSON ---
    def base_file(self, file: BaseFile) -> dict[str, Any]:
        return {
            "fileStatus": self._status(file.name),
            "fullPath": self._path(file.name),
            "fileLen": self._entries[file.name].size_bytes,
            "commitTime": file.instant_time,
            "fileId": file.file_id,
            "bootstrapBaseFile": None,
        }

    def file_slice(self, found: FileSlice) -> dict[str, Any]:
        # While a compaction writes it, a base file is none.
        base = None if found.base_file is None or self.is_pending(found) else self.base_file(found.base_file)
        return {
            "baseFile": base,
            "logFiles": [self._log_file(each) for each in reversed(found.log_files)],
            "partition": found.partition_path,
            "fileId": found.file_id,
            "baseInstant": found.base_instant_time,
        }

    def _log_file(self, file: LogFile) -> dict[str, Any]:
        status = self._status(file.name)
        return {"fileStatus": status, "path": self._path(file.name), "len": status["length"]}

    def _status(self, name: str) -> dict[str, Any]:
        entry = self._entries[name]
        root = self.root if "://" in self.root else f"file://{self.root.removeprefix('file:')}"
        return {
            "path": {"uri": root.rstrip("/") + quote("/" + join_path(self.partition, name), safe="/=:@!$&'()*+,;~")},
            "length": entry.size_bytes,
            "isdir": False,
            "blockReplication": 0,
            "blocksize": _BLOCK_BYTES,
            "modificationTime": entry.modified_ms,
        }

    def _path(self, name: str) -> str:
        root = self.root if "://" in self.root else f"file:{self.root.removeprefix('file:')}"
        return f"{root.rstrip('/')}/{join_path(self.partition, name)}"


# --- questions ---------------------------------------------------------------------------------------------------
def _base_files_until(asked: Asked) -> Iterator[Any]:
    files = _Files(asked)
    for group in files.groups(asked.until):
        yield from _first_base(files, (each for each in group.slices if each.base_instant_time <= asked.until))


def _base_file(asked: Asked) -> Iterator[Any]:
    files = _Files(asked)
    for group in files.groups():
        if group.file_id == asked.given("fileid"):
            yield from _first_base(files, group.slices)


def _first_base(files: _Files, slices: Iterable[FileSlice]) -> Iterator[Any]:
    for each in slices:
        if each.base_file is not None and not files.is_pending(each):
            yield files.base_file(each.base_file)
            return


def _slices_until(asked: Asked) -> Iterator[Any]:
    files, with_pending = _Files(asked), asked.query.get("includependingcompaction") == "true"
    for group in files.groups(asked.until):
        key = (group.partition_path, group.file_id)
        pending = files.context.pending_compactions.get(key)
        # Without them a group is left out as a whole while a compaction of it is pending.
        if pending is not None and not pending.is_log_compaction and not with_pending:
            continue
        for each in group.slices:
            if each.base_instant_time <= asked.until and (with_pending or not _is_empty(each)):
                yield files.file_slice(each)
                break


def _is_empty(file_slice: FileSlice) -> bool:
    return file_slice.base_file is None and not file_slice.log_files


def _merged_slices_until(asked: Asked) -> Iterator[Any]:
    files = _Files(asked)
    for group in files.groups(asked.until):
        slices = [each for each in group.slices if each.base_instant_time <= asked.until]
        if not slices:
            continue
        newest, *older = slices
        # Rows of a slice that a pending compaction has opened lie on the one that it compacts.
        if files.is_pending(newest) and older:
            newest = attrs.evolve(older[0], log_files=(*older[0].log_files, *newest.log_files))
        yield files.file_slice(newest)


def _newest_slices(asked: Asked) -> Iterator[Any]:
    files = _Files(asked)
    for group in files.groups():
        if group.slices:
            yield files.file_slice(group.slices[0])


def _newest_slice(asked: Asked) -> Iterator[Any]:
    return (each for each in _newest_slices(asked) if each["fileId"] == asked.given("fileid"))


def _groups(asked: Asked) -> Iterator[Any]:
    files = _Files(asked)
    yield from _group_entries(asked, files, files.groups())


def _replaced_before(asked: Asked) -> Iterator[Any]:
    files = _Files(asked)
    found = (each for each in files.view.replaced_groups if files.replaced_at(each) < asked.until)
    yield from _group_entries(asked, files, found)


def _group_entries(asked: Asked, files: _Files, groups: Iterable[FileGroup]) -> Iterator[Any]:
    writes = [each for each in _known(asked.opened) if each.action in WRITES]
    timeline: Any = {"instants": [_instant_entry(each) for each in writes]}
    for group in groups:
        yield {
            "partition": group.partition_path,
            "fileId": group.file_id,
            "slices": [files.file_slice(each) for each in group.slices],
            "timeline": timeline,
        }
        timeline = None  # said once, by the first group


def _instant_entry(instant: Instant) -> dict[str, Any]:
    return {
        "action": instant.action.value,
        "ts": instant.requested_time,
        "state": instant.state.name,
        "requestedTime": instant.requested_time,
        "completionTime": instant.completion_time,
    }


def _compactions(asked: Asked, action: Action) -> Iterator[Any]:
    from hudi_py.model.files import parse_data_file

    opened = asked.opened
    for instant in opened.timeline.pending(action):
        for each in opened.contents.compaction_plan(instant).operations:
            base = None if each.data_file_path is None else each.data_file_path.rpartition("/")[2]
            parsed = None if base is None else parse_data_file(base)
            yield {
                "baseInstant": each.base_instant_time,
                "compactionInstant": instant.requested_time,
                "dataFileInstant": None if parsed is None else parsed.instant_time,
                "deltaFiles": [name.rpartition("/")[2] for name in each.delta_file_paths],
                "baseFile": base,
                "id": each.file_id,
                "partition": each.partition_path,
                "metrics": dict(each.metrics or {}),
                "bootstrapBaseFile": each.bootstrap_file_path,
            }


def _clusterings(asked: Asked) -> Iterator[Any]:
    from hudi_py.fsview.loader import load_context

    opened = asked.opened
    context = load_context(opened.timeline, opened.contents, for_planning=True)
    pending = {each.requested_time: each for each in opened.timeline.pending(Action.CLUSTERING, Action.REPLACE_COMMIT)}
    for (partition, file_id), time in context.pending_clustering.items():
        instant = pending[time]
        yield {
            "id": file_id,
            "partition": partition,
            "instantTime": time,
            "instantState": instant.state.name,
            "instantAction": instant.action.value,
        }


_REFRESHING: Final = frozenset({"refresh/", "loadpartitions/", "loadallpartitions/"})
_ANSWERS: Final[Mapping[str, Callable[[Asked], Iterator[Any]]]] = {
    "datafile/latest/partition": _base_file,
    "datafiles/beforeoron/latest/": _base_files_until,
    "slices/beforeoron/latest/": _slices_until,
    "slices/merged/beforeoron/latest/": _merged_slices_until,
    "slices/file/latest/": _newest_slice,
    "slices/partition/latest/": _newest_slices,
    "slices/partition/latest/stateless/": _newest_slices,
    "filegroups/all/partition/": _groups,
    "filegroups/all/partition/stateless/": _groups,
    "filegroups/replaced/before/": _replaced_before,
    "compactions/pending/": lambda asked: _compactions(asked, Action.COMPACTION),
    "logcompactions/pending/": lambda asked: _compactions(asked, Action.LOG_COMPACTION),
    "clustering/pending/": _clusterings,
}
