"""
What each property in a table's ``hoodie.properties`` means for hudi_py: supported, harmless, or refused. Pure.

Source: rules/timeline 1.3; Hudi ``HoodieTableConfig`` of the releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Final

from hudi_py.config import keys, parse
from hudi_py.config.refused import Refused
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.config.uses import Use
from hudi_py.config.verdict import FAMILY, Kind, Verdict, is_accepted
from hudi_py.errors import UnsupportedTable

_FALSE: Final = ("false",)
_W: Final = Use.WRITE
_FILES: Final = Use.WRITE | Use.REWRITE
_BY_HUDI: Final = "write the table with Apache Hudi"
_MARKED: Final = f"rows that are marked as deleted would be stored instead of deleted; {_BY_HUDI}"
_BUCKETS: Final = (
    f"the number of its buckets differs or changes, and rows outside their bucket would be duplicates; {_BY_HUDI}"
)
_MERGERS: Final = (
    "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",  # event time
    "ce9acb64-bde0-424c-9b91-f6ebba25356d",  # commit time
    "00000000-0000-0000-0000-000000000000",  # by the payload class, which is checked separately
)

_SERVED: Final = """
    hoodie.table.name hoodie.database.name hoodie.table.type hoodie.table.version hoodie.timeline.layout.version
    hoodie.table.timeline.timezone hoodie.table.recordkey.fields hoodie.table.partition.fields hoodie.table.checksum
    hoodie.table.ordering.fields hoodie.table.precombine.field hoodie.datasource.write.hive_style_partitioning
    hoodie.datasource.write.partitionpath.urlencode hoodie.timeline.path hoodie.timeline.history.path
    hoodie.archivelog.folder hoodie.table.metadata.partitions hoodie.table.metadata.partitions.inflight
    hoodie.table.keygenerator.class hoodie.table.keygenerator.type hoodie.compaction.payload.class
    hoodie.record.merge.mode hoodie.table.create.schema hoodie.bucket.index.num.buckets hoodie.bucket.index.hash.field
    hoodie_py.gc.enabled hoodie_py.retention.policy hoodie.table.cdc.enabled
    hoodie.table.cdc.supplemental.logging.mode
"""
SERVED: Final = frozenset(_SERVED.split())
"""Properties that hudi_py reads; the code that reads one accepts or refuses its value."""

HARMLESS_PROPERTIES: Final[Mapping[str, str]] = {
    "hoodie.table.initial.version": "it is only for information",
    "hoodie.table.legacy.payload.class": "it is only for information",
    "hoodie.table.log.file.format": "there is one format",
    "hoodie.table.rt.file.format": "there is one format",
    "hoodie.partition.metafile.use.base.format": "readers look for partition metafiles of both forms",
    "hoodie.bootstrap.index.class": "it only matters with hoodie.bootstrap.base.path",
    "hoodie.bootstrap.index.type": "it only matters with hoodie.bootstrap.base.path",
    "hoodie.bootstrap.index.enable": "it only matters with hoodie.bootstrap.base.path",
    "hoodie.table.index.defs.path": "the partitions of the metadata table show which indexes exist",
    "hoodie.table.secondary.indexes.metadata": "the partitions of the metadata table show which indexes exist",
    "hoodie.table.partition_extractor_class": "values of partition columns are read from the files",
    "hoodie.keygen.*": "it only affects key generators by time, which read it",
    "hoodie.deltastreamer.keygen.*": "it only affects key generators by time, which read it",
    "hoodie.properties.*": "Apache Hudi writes it about this file itself",
}

REFUSED_PROPERTIES: Final[tuple[Refused, ...]] = (
    Refused("hoodie.table.format", ("native",), Use.ALL, "only the native format of tables is supported"),
    Refused(
        "hoodie.table.base.file.format", ("PARQUET", "HFILE"), Use.ALL,
        "only base files in Parquet are written, and others than ORC would be overlooked; use Apache Hudi",
        less={"ORC": _FILES},
    ),
    Refused("hoodie.table.ro.file.format", ("PARQUET",), Use.ALL, "only base files in Parquet are supported"),
    Refused(
        "hoodie.table.multiple.base.file.formats.enable", _FALSE, _FILES,
        f"base files of other formats may lie beside those in Parquet; {_BY_HUDI}",
    ),
    Refused(
        "hoodie.populate.meta.fields", ("true",), _FILES, f"its rows lack the meta columns that find them; {_BY_HUDI}",
    ),
    Refused(
        "hoodie.datasource.write.drop.partition.columns", _FALSE, _FILES,
        f"its files lack the partition columns, which hudi_py reads from the paths and always writes; {_BY_HUDI}",
    ),
    Refused(
        "hoodie.datasource.write.slash.separated.date.partitioning", _FALSE, _W,
        f"hudi_py would write a date as one folder of the partition path instead of three; {_BY_HUDI}",
    ),
    Refused(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", _FALSE, _W,
        f"timestamps in its keys have another form than hudi_py writes, so rows would be duplicates; {_BY_HUDI}",
    ),
    Refused(
        "hoodie.bootstrap.base.path", (), _FILES,
        f"columns of its rows may be in files that it was made from, and rewriting them is not served; {_BY_HUDI}",
    ),
    Refused(
        "hoodie.table.partial.update.mode", (), _W, f"its updates contain only some of the columns; {_BY_HUDI}",
    ),
    Refused("hoodie.record.merge.strategy.id", _MERGERS, _FILES, f"a Java class merges its rows; {_BY_HUDI}"),
    Refused("hoodie.compaction.record.merger.strategy", _MERGERS, _FILES, f"a Java class merges its rows; {_BY_HUDI}"),
    Refused("hoodie.record.merge.property.*", (), _W, _MARKED),
    Refused("hoodie.payload.delete.*", (), _W, _MARKED),
    Refused("hoodie.write.partial.update.*", (), _FILES, f"its updates contain only some of the columns; {_BY_HUDI}"),
    Refused("hoodie.index.type", parse.INDEXES, _W, f"its rows are found by another index; {_BY_HUDI}"),
    Refused("hoodie.bucket.index.*", (), _W, _BUCKETS),
    Refused("hoodie.index.bucket.engine", ("SIMPLE",), _W, _BUCKETS),
)  # fmt: skip


@lru_cache(maxsize=1024)
def property_verdict(name: str) -> Verdict | None:
    """Return the verdict about a property; None if no known release of Apache Hudi writes it."""
    if name in SERVED:
        return Verdict(kind=Kind.SERVED, rule=name)
    rules = _rules()
    if name in rules:
        return rules[name]
    # The longest family that fits is the most specific one.
    family = max(
        (rule for rule in rules if rule.endswith(FAMILY) and name.startswith(rule[:-1])), key=len, default=None
    )
    return None if family is None else rules[family]


def unknown_properties(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names that start with ``hoodie.`` but that no known release writes, sorted."""
    return tuple(sorted(name for name in properties if name.startswith("hoodie.") and property_verdict(name) is None))


def require_table_served(table: TableConfig, settings: Settings, use: Use, source: str) -> None:
    """
    Raise if a table's properties ask for something that hudi_py does not do in an operation.

    Args:
        table: Configuration of the table.
        settings: ``hoodie_py.conf.allow.unknown`` allows unknown properties.
        use: The operation.
        source: Path or URL of the table, for the message.

    Raises:
        UnsupportedTable: Names the properties.
    """
    found = [text for _, text in refused_properties(table.properties, use)]
    if found:
        raise UnsupportedTable(f"{source}: " + "; ".join(found))
    # Reading goes on with a warning (`OpenedTable.require`): what could be wrong for such a table is a change.
    unknown = unknown_properties(table.properties)
    if unknown and use & (Use.WRITE | Use.SERVICES | Use.REWRITE) and not settings[keys.ALLOW_UNKNOWN]:
        raise UnsupportedTable(
            f"{source}: hoodie.properties has {', '.join(unknown[:3])}, which this version of hudi_py does not know, "
            "so its changes might be wrong for this table; nothing was changed. Upgrade hudi_py, or allow it with "
            f"--allow-unknown-conf ({keys.ALLOW_UNKNOWN.name}=true)"
        )


def refused_properties(properties: Mapping[str, str], use: Use) -> Iterator[tuple[str, str]]:
    """Yield the names of properties for which the operation is refused, sorted, with the messages."""
    for name in sorted(properties):
        verdict = property_verdict(name)
        rule = None if verdict is None else verdict.refused
        refused = Use(0) if rule is None else rule.uses_of(properties[name]) & use
        if rule is not None and refused and not is_accepted(rule, properties[name]):
            uses = refused.words
            yield name, f"{name}={properties[name]}, which is not supported for {uses}: {rule.reason}"


@cache
def _rules() -> Mapping[str, Verdict]:
    harmless = {name: Verdict(kind=Kind.HARMLESS, rule=name, reason=why) for name, why in HARMLESS_PROPERTIES.items()}
    refused = {
        rule.name: Verdict(kind=Kind.REFUSED, rule=rule.name, reason=rule.reason, refused=rule)
        for rule in REFUSED_PROPERTIES
    }
    return {**harmless, **refused}
