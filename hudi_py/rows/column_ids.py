"""
The columns of a table with schema on read, as a write finds and leaves them: every commit carries their ids on.

Source: rules/timeline 6.1a; Hudi ``BaseHoodieWriteClient.saveInternalSchema``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.column_history import HISTORY_FOLDER, MovedColumns, is_history_of, parse_columns, parse_history
from hudi_py.formats.column_versions import next_version
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.formats.record_schema import parse_record_schema, with_meta_fields
from hudi_py.formats.schema_evolution import ResolvedSchema
from hudi_py.model.change_logging import logging_mode
from hudi_py.model.moved import StoredNames
from hudi_py.timeline.column_folder import read_history
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.row_schema import IDS_ENTRY, column_ids, moved_columns
from hudi_py.timeline.timeline import Timeline

_CONVERTED: Final = frozenset(
    (was, now)
    for was, wider in (
        ("int", ("long", "float", "double", "string")),
        ("long", ("float", "double", "string")),
        ("float", ("double", "string")),
        ("double", ("string",)),
    )
    for now in wider
)
"""Changes of types after which the values of older files are those that Apache Hudi reads, see `stored_values`."""


@attrs.frozen(kw_only=True)
class ColumnIds:
    """
    The columns of a table with schema on read.

    Args:
        latest: JSON of the columns with their ids.
        history: JSON of all versions of them.
        moved: Where the columns of older files are; None if all have kept their names.
        has_other_types: Whether columns of older files have other types.
        source: The table's location, for messages.
    """

    latest: str
    history: bytes
    moved: MovedColumns | None
    has_other_types: bool
    source: str

    @property
    def outdates_statistics(self) -> bool:
        """Whether statistics of older files describe columns under other names, or values of other types."""
        return self.moved is not None or self.has_other_types

    def left_by(self, schema: ResolvedSchema | None, time: str) -> tuple[Mapping[str, str], bytes]:
        """
        Return the entries of a commit with these columns, and the history that it leaves in the folder.

        Args:
            schema: The columns of the commit; None for those of before.
            time: Its requested time.

        Raises:
            UnsupportedTable: A new column has a type whose form in Hudi's releases differs, or the change is inside of
                a column.
        """
        if schema is None or not (schema.added or schema.promoted):
            return {IDS_ENTRY: self.latest}, self.history
        inside = next((name for name in (*schema.added, *schema.promoted) if "." in name), None)
        if inside is not None:
            raise UnsupportedTable(
                f"{self.source} uses schema on read, where hudi_py changes no fields inside of columns, and "
                f"{inside} is new or has a wider type in the rows; do it with ALTER TABLE of Apache Hudi first, then "
                "write"
            )
        latest, history = next_version(
            self.latest,
            self.history,
            schema.schema,
            added=schema.added,
            promoted=schema.promoted,
            version=int(time),
            source=self.source,
        )
        # As Hudi derives it from the columns with ids, of which the meta columns are the first.
        return {IDS_ENTRY: latest, "schema": with_meta_fields(schema.text)}, history


def ids_to_keep(
    contents: Contents,
    timeline: Timeline,
    config: TableConfig,
    text: Callable[[], str | None],
    as_of: str | None = None,
) -> ColumnIds | None:
    """
    Return the columns that a write or rewrite has to carry on; None for a table without schema on read.

    Args:
        contents: Contents of the timeline.
        timeline: The table's timeline.
        config: Its configuration.
        text: Returns the Avro schema of its rows; called only with schema on read.
        as_of: The time of a rewrite that was planned earlier; None for now.

    Raises:
        UnsupportedTable: Values of older files, or the ids, cannot be carried on; nothing was changed.
        CorruptMetadata: The history of the columns is damaged.
    """
    latest = column_ids(contents, timeline, as_of)
    if latest is None:
        return None
    source = contents.store.storage.root
    ids = ColumnIds(
        latest=latest,
        history=read_history(contents.store.storage, timeline),
        moved=moved_columns(contents, timeline, as_of),
        has_other_types=False,
        source=source,
    )
    today = parse_columns(latest, source)
    changes = {pair for each in parse_history(ids.history, source) for pair in _type_changes(each, today)}
    ids = attrs.evolve(ids, has_other_types=bool(changes))
    for reason in _reasons(ids, config, text(), changes):
        raise UnsupportedTable(
            f"{source} uses schema on read, and {reason}; nothing was written, do it with Apache Hudi and "
            "hoodie.schema.on.read.enable=true"
        )
    return ids


def _reasons(
    ids: ColumnIds, config: TableConfig, text: str | None, changes: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """Why the columns cannot be carried on."""
    today, versions = parse_columns(ids.latest, ids.source), parse_history(ids.history, ids.source)
    names = [field["name"] for field in today["fields"] if field["name"] not in META_COLUMNS]
    numbers = [int(each["version_id"]) for each in versions]
    if not is_history_of(versions, today):
        yield f"no completed commit has left the history of its columns in {HISTORY_FOLDER}"
        return
    if text is None or parse_record_schema(text).names != names:
        raise CorruptMetadata(
            f"{ids.source}: the newest commit has other columns in its Avro schema than in {IDS_ENTRY}; nothing was "
            "written"
        )
    if logging_mode(config.properties, ids.source) is not None:
        yield "change data capture would log rows under the names of columns of today"
    for was, now in sorted(set(changes) - _CONVERTED):
        yield f"a column of type {was} is {now} today"
    if ids.moved is None:
        return
    if min(numbers) > 0:
        yield f"the history in {HISTORY_FOLDER} does not say which columns its first files have"
    fixed = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
    for name in sorted(_moved_of(fixed, ids.moved, names)):
        yield f"{name}, by which rows are found or ordered, was renamed or dropped"


def _moved_of(fixed: Iterable[str], moved: MovedColumns, names: Iterable[str]) -> set[str]:
    """Which of the columns were not always called what they are called today."""
    files = [each for each in (*moved.by_commit.values(), *(found for _, found in moved.versions)) if each is not None]
    roots = {name.partition(".")[0] for name in fixed}
    known = {*names, *(stored for each in files for stored in each.names)}
    return {root for root in roots & known if root not in names or any(_is_moved(root, each) for each in files)}


def _is_moved(root: str, moved: StoredNames) -> bool:
    return moved.names.get(root) != root or root in moved.inside


def _type_changes(stored: Any, today: Any) -> Iterator[tuple[str, str]]:
    """Types of the columns then and now, where they differ."""
    if isinstance(stored, str) or isinstance(today, str) or stored["type"] != today["type"]:
        was, now = (each if isinstance(each, str) else str(each["type"]) for each in (stored, today))
        if was != now:
            yield was, now
        return
    if stored["type"] == "array":
        yield from _type_changes(stored["element"], today["element"])
    elif stored["type"] == "map":
        yield from _type_changes(stored["value"], today["value"])
    else:
        now_by_id = {field["id"]: field["type"] for field in today["fields"]}
        for field in stored["fields"]:
            if field["id"] in now_by_id:
                yield from _type_changes(field["type"], now_by_id[field["id"]])


def outdates_statistics(contents: Contents, timeline: Timeline) -> bool:
    """Whether the statistics of older files describe columns under other names, or values of other types."""
    latest = column_ids(contents, timeline)
    if latest is None:
        return False
    source = contents.store.storage.root
    today, versions = (
        parse_columns(latest, source),
        parse_history(read_history(contents.store.storage, timeline), source),
    )
    changes = any(True for each in versions for _ in _type_changes(each, today))
    return changes or moved_columns(contents, timeline) is not None
