"""
The values that a partition column can have in a partition, by its path. Pure.

A path is made of the values of its rows, so that a condition on a partition column rules out whole partitions without
a look at their files, as in every engine that reads Hudi. Where a path may stand for several values, all of them count,
and where it may stand for unknown ones, it rules nothing out: a null, an empty value, another number of folders than
columns, a type that is written in several forms.

A row may lie in another partition than its column says: with a global index that keeps rows where they are
(``hoodie.simple.index.update.partition.path=false``, the default of the record index). Apache Hudi shows the value of
the path then; 0.15 shows the stored one where it merges log files, and yet chooses partitions by their paths.

Where a key generator may have formatted a time (``2026/11/22``), Hudi 0.15 shows the text of the path as well where it
reads base files alone (table version 6: snapshots of copy-on-write tables, and read-optimized ones), and conditions are
about that text. If it is not a value of the column, Hudi 0.15 fails; hudi_py shows the stored value.

Source: Hudi ``KeyGenUtils.getPartitionPath``, ``PartitionPathEncodeUtils``, ``BaseHoodieTableFileIndex``, 0.15.0
``HoodieSparkUtils.parsePartitionColumnValues``; fixtures ``cow_timestamp_keygen``, ``cow_custom_keygen``, ``kt_base``;
tests/interop/test_partition_values.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, ClassVar, Final
from urllib.parse import unquote

import attrs
import pyarrow as pa

from hudi_py.config.key_generators import KEY_GENERATOR_PACKAGE, KEY_GENERATOR_TYPES
from hudi_py.config.table import TableConfig
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.model.files import DEFAULT_PARTITION
from hudi_py.rows.condition import Path
from hudi_py.rows.path_columns import texts_of_path
from hudi_py.rows.predicate import UNKNOWN, Bounds, Filter
from hudi_py.rows.pruning import may_match

_PATH_COLUMN: Final = "_hoodie_partition_path"
_PLAIN: Final = frozenset({"SIMPLE", "COMPLEX"})
"""Key generators that make each folder of the text of one value, as does CUSTOM if all of its columns are SIMPLE."""
_TIMES: Final = frozenset({"TIMESTAMP", "CUSTOM"})
"""Those that may make folders of times: version 6 does not store which columns of CUSTOM are times."""
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_DAY: Final = re.compile(r"([0-9]{4})[-/]([0-9]{2})[-/]([0-9]{2})", re.ASCII)
_EPOCH: Final = date(1970, 1, 1)

assert _PATH_COLUMN in META_COLUMNS


@attrs.frozen(kw_only=True)
class PartitionValues:
    """
    Which values rows can have in the partition columns of a table.

    Args:
        fields: Names of the partition columns, in the order of the path; none where paths are not made of values.
        is_hive_style: Segments of the path begin with ``name=``.
        is_encoded: Segments of the path are URL-encoded.
        is_shown: Whether rows show the value of the path, whatever is stored.
        may_differ: Whether rows may lie in another partition than their column says. Only a record index tells that a
            table is written so; with other indexes it is a setting of the writer that the table does not have.
        holds_paths: Whether rows hold the path in ``_hoodie_partition_path``; in tables without meta columns that is
            empty or null.
    """

    fields: tuple[str, ...]
    is_hive_style: bool = False
    is_encoded: bool = False
    is_shown: bool = True
    may_differ: bool = True
    holds_paths: bool = True
    are_texts: ClassVar[bool] = False
    """Whether values are shown that a key generator made of stored ones."""

    def decides(self, condition: Filter) -> bool:
        """Whether a condition is about a column that shows the value of the path, so that stored bounds mislead."""
        return self.is_shown and any(leaf.path[0] in self.fields for leaf in condition.leaves)

    def shown(self, partition_path: str, columns: pa.Schema) -> Mapping[str, Any]:
        """Those of *columns* that show the value of the path, where that is a single one; null in the default one."""
        found = {}
        for name in self.fields if self.is_shown else ():
            at = columns.get_field_index(name)
            if at < 0:
                continue
            arrow, texts = columns.field(at).type, self._texts(name, partition_path)
            values = [value for text in texts for value in self._values(text, arrow)]
            if {text.rpartition("=")[2] for text in texts} == {DEFAULT_PARTITION}:
                values = [None]
            if len(values) == 1:
                found[name] = pa.scalar(values[0], arrow)
        return found

    def other_than_stored(self, partition_path: str, columns: pa.Schema) -> Mapping[str, Any]:
        """Those that are `shown` and may not be what the rows of that partition hold."""
        may_differ = self.may_differ or DEFAULT_PARTITION in partition_path  # in which empty values lie, too
        return self.shown(partition_path, columns) if may_differ else {}

    def chooser(self, filters: Sequence[Filter]) -> Callable[[str], bool] | None:
        """Return what says of a partition's path whether it may hold a row; None if it may for every path."""
        asked = {".".join(leaf.path) for each in filters for leaf in each.leaves}
        if not asked.intersection((*self.fields, _PATH_COLUMN)):
            return None
        known: dict[str, bool] = {}

        def may_hold(partition_path: str) -> bool:
            if partition_path not in known:  # a partition has many files
                known[partition_path] = may_match(filters, lambda path, arrow: self._of(partition_path, path, arrow))
            return known[partition_path]

        return may_hold

    def _of(self, partition_path: str, path: Path, arrow: pa.DataType) -> Sequence[Bounds]:
        """Bounds of a column in a partition; every value is within one of them."""
        name = ".".join(path)
        if path == (_PATH_COLUMN,) and self.holds_paths:
            # Not certain of old writers: `is null` opens every file.
            return [attrs.evolve(_only(partition_path), has_nulls=True)]
        if name not in self.fields:
            return [UNKNOWN]
        texts = self._texts(name, partition_path)
        if not {"", DEFAULT_PARTITION}.isdisjoint(texts):
            return [UNKNOWN]
        # Of the forms that may have been written, one that the type does not have was not.
        found = [_only(value) for text in texts for value in self._values(text, arrow)]
        return found or [UNKNOWN]

    def _values(self, text: str, arrow: pa.DataType) -> Iterator[Any]:
        """Values of a type that may be written like this in a path; none if it is not known."""
        return _values(text, arrow)

    def _texts(self, name: str, partition_path: str) -> list[str]:
        """What may have been written. Old tables do not say whether names and escapes are in their paths."""
        plain = texts_of_path(self.fields, partition_path, is_hive_style=False, is_encoded=False).get(name)
        if plain is None:
            return []
        texts = {plain.removeprefix(f"{name}=")} if self.is_hive_style else {plain, plain.removeprefix(f"{name}=")}
        decoded = {unquote(text) for text in texts}
        return sorted(decoded if self.is_encoded else texts | decoded)


@attrs.frozen(kw_only=True)
class PathTexts(PartitionValues):
    """Values of columns that show the text of the path, which a key generator may have made of another value."""

    are_texts: ClassVar[bool] = True

    def _texts(self, name: str, partition_path: str) -> list[str]:
        found = texts_of_path(self.fields, partition_path, is_hive_style=self.is_hive_style, is_encoded=self.is_encoded)
        return [found[name]] if name in found else []

    def _values(self, text: str, arrow: pa.DataType) -> Iterator[Any]:
        value = shown_value(text, arrow)
        return iter(() if value is None else (value.as_py(),))


def partition_values_of(table: TableConfig, *, merged: bool) -> PartitionValues:
    """
    What the paths of a table tell; nothing where a key generator makes paths of times that are shown as stored, or is
    not one of Hudi's.

    Args:
        merged: Whether log files may be merged.
    """
    if not merged and (texts := path_texts_of(table)) is not None:
        return texts
    return PartitionValues(
        fields=table.partition_fields if _is_plain(table) else (),
        is_hive_style=table.hive_style,
        is_encoded=table.url_encode,
        is_shown=not (merged and table.format.shows_time_paths),
        may_differ="record_index" in (*table.metadata_partitions, *table.metadata_partitions_inflight),
        holds_paths=table.populate_meta_fields,
    )


def path_texts_of(table: TableConfig) -> PathTexts | None:
    """What base files alone show of partitions that may be formatted times; None where they show what is stored."""
    if not table.format.shows_time_paths or key_generator_of(table) not in _TIMES:
        return None
    return PathTexts(
        fields=table.partition_fields,
        is_hive_style=table.hive_style,
        is_encoded=table.url_encode,
        holds_paths=table.populate_meta_fields,
    )


def shown_value(text: str, kind: pa.DataType) -> Any:
    """The text of a path converted to the type of its column; None if it is not a valid value."""
    if text == DEFAULT_PARTITION:
        return pa.scalar(None, kind)
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowException:
        return None


def key_generator_of(table: TableConfig) -> str | None:
    """The type of a table's key generator; None if it is not one of Hudi's."""
    kind = table.properties.get("hoodie.table.keygenerator.type", "").upper().removesuffix("_AVRO")
    name = table.properties.get("hoodie.table.keygenerator.class", "").removeprefix(KEY_GENERATOR_PACKAGE)
    return kind or KEY_GENERATOR_TYPES.get(name)


def _is_plain(table: TableConfig) -> bool:
    generator, kinds = key_generator_of(table), table.properties.get("hoodie.table.partition.fields", "")
    # Without kinds in version 6.
    is_simple = generator == "CUSTOM" and all(each.strip().endswith(":SIMPLE") for each in kinds.split(","))
    return is_simple or generator in _PLAIN


def with_values(batch: pa.RecordBatch, values: Mapping[str, Any], columns: pa.Schema) -> pa.RecordBatch:
    """Return all *columns* of a batch that may lack those with one value."""
    count = batch.num_rows
    arrays: list[Any] = [
        pa.repeat(values[field.name], count) if field.name in values else batch.column(field.name) for field in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _only(value: Any) -> Bounds:
    return Bounds(minimum=value, maximum=value, has_nulls=False)


def _values(text: str, arrow: pa.DataType) -> Iterator[Any]:
    """Values of a type that are written like this in a path; none if it is not known."""
    day = _DAY.fullmatch(text)
    if pa.types.is_string(arrow):
        yield text
        if day is not None:  # Hudi may write a date with slashes (hoodie.datasource.write.slash.separated...)
            yield from {"-".join(day.groups())} - {text}
    elif pa.types.is_boolean(arrow) and text in ("true", "false"):
        yield text == "true"
    elif pa.types.is_signed_integer(arrow) and _WHOLE.fullmatch(text):
        yield int(text)
    elif pa.types.is_date(arrow):
        yield from _dates(text, day)


def _dates(text: str, day: re.Match[str] | None) -> Iterator[date]:
    """As a day, or as the number of days since 1970."""
    try:
        if day is not None:
            yield date(*map(int, day.groups()))
        elif _WHOLE.fullmatch(text):
            yield _EPOCH + timedelta(days=int(text))
    except (ValueError, OverflowError):
        return
