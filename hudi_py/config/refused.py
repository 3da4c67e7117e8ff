"""
Settings of Apache Hudi that hudi_py cannot serve: under which values, for what, and why. Pure.

The values beside a name ask for what hudi_py does anyway. A setting in neither of this, `harmless` and
`keys` is unknown; tests hold the three tables against the releases' own options.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from hudi_py.config import keys
from hudi_py.config.keys import Key
from hudi_py.config.uses import Use


@attrs.frozen
class Refused:
    """
    One setting that is refused.

    Args:
        name: The setting in its newest spelling; with ``*`` at its end a family.
        unless: Values that are accepted, in any case of letters; an empty value always is.
        uses: What it is refused for; nothing else looks at it.
        reason: Why, and what to do.
        same_as: The value of this setting is accepted, too.
    """

    name: str
    unless: tuple[str, ...]
    uses: Use
    reason: str
    same_as: Key[Any] | None = None


_EVENT_TIME: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_MODEL: Final = "org.apache.hudi.common.model."
_FALSE, _TRUE = ("false",), ("true",)
_W: Final = Use.WRITE
_TABLE: Final = "it is part of a table's own properties and no setting; leave it out"
_OWN_INDEX: Final = (
    "keys are looked up within their partition, in the files themselves (as by BLOOM and SIMPLE); with another index "
    "rows would go to other files, and Apache Hudi would not find them again. Write such a table with Apache Hudi"
)
_BY_HAND: Final = "leave the setting out, and run that service with Apache Hudi when the writer is done"
_CHECKS: Final = (
    "the checks that it asks for are Java classes and would not be made; leave it out if they can be missed"
)

REFUSED: Final[tuple[Refused, ...]] = (
    # --- which rows end up where ---------------------------------------------------------------------------------
    Refused("hoodie.index.type", ("BLOOM", "SIMPLE"), _W, _OWN_INDEX),
    Refused("hoodie.index.class", (), _W, _OWN_INDEX),
    Refused(
        "hoodie.metadata.global.record.level.index.enable", _FALSE, _W,
        "record indexes are not kept: rows would be missing from them",
    ),
    Refused(
        "hoodie.metadata.record.level.index.enable", _FALSE, _W,
        "record indexes are not kept: rows would be missing from them",
    ),
    Refused(
        "hoodie.populate.meta.fields", _TRUE, _W, "rows are always written with the five _hoodie_ columns",
    ),
    Refused(
        "hoodie.datasource.write.drop.partition.columns", _FALSE, _W,
        "files are always written with the partition columns",
    ),
    Refused(
        "hoodie.datasource.write.insert.drop.duplicates", _FALSE, _W,
        "insert does not look for the keys that the table holds, so it would add the rows again; use upsert, or take "
        "the rows that are there out first",
    ),
    Refused(
        "hoodie.datasource.insert.dup.policy", ("none",), _W,
        "insert does not look for the keys that the table holds, so it would add the rows again; use upsert",
    ),
    Refused(
        "hoodie.merge.allow.duplicate.on.inserts", _TRUE, _W,
        "insert does not look for the keys that the table holds; use upsert",
    ),
    Refused(
        "hoodie.combine.before.upsert", _TRUE, _W,
        "of several rows with one key an upsert always keeps the one with the largest ordering value",
    ),
    Refused(
        "hoodie.merge.data.validation.enabled", _FALSE, _W, "rows are not counted a second time after a merge",
    ),
    Refused(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", _FALSE, _W,
        "keys of timestamps are written as microseconds, as Apache Hudi does without it",
    ),
    Refused(
        "hoodie.datasource.write.slash.separated.date.partitioning", _FALSE, _W,
        "a date is one folder of a partition path, never three",
    ),
    Refused(
        "hoodie.allow.operation.metadata.field", _FALSE, _W, "the column _hoodie_operation is not written",
    ),
    # --- how rows of one key are merged --------------------------------------------------------------------------
    Refused(
        "hoodie.write.record.merge.custom.implementation.classes",
        (f"{_MODEL}HoodieAvroRecordMerger", "org.apache.hudi.HoodieSparkRecordMerger"), _W,
        "a merger is a Java class; rows are merged by hoodie.record.merge.mode",
    ),
    Refused(
        "hoodie.write.record.merge.strategy.id", (_EVENT_TIME,), _W, "rows are merged by hoodie.record.merge.mode",
    ),
    Refused(
        "hoodie.record.merge.strategy.id", (_EVENT_TIME,), _W, "rows are merged by hoodie.record.merge.mode",
    ),
    Refused(
        "hoodie.record.merge.property.*", (), _W, "rows that carry a mark of their deletion would be stored as rows",
    ),
    Refused(
        "hoodie.payload.ordering.field", (), _W,
        "rows are ordered by hoodie.table.ordering.fields; give both the same value or leave it out",
        same_as=keys.ORDERING_FIELDS,
    ),
    Refused(
        "hoodie.payload.delete.field", (), _W,
        "rows that carry a mark of their deletion would be stored as rows; use delete, or _hoodie_is_deleted",
    ),
    Refused(
        "hoodie.payload.delete.marker", (), _W,
        "rows that carry a mark of their deletion would be stored as rows; use delete, or _hoodie_is_deleted",
    ),
    Refused(
        "hoodie.payload.update.on.same.ordering.field", _TRUE, _W,
        "of two rows with the same ordering value the later one always wins",
    ),
    Refused("hoodie.table.partial.update.mode", (), _W, "rows are written as a whole, never some of their columns"),
    Refused("hoodie.write.partial.update.schema", (), _W, "rows are written as a whole, never some of their columns"),
    Refused(
        "hoodie.write.partial.update.unavailable.value", (), _W,
        "rows are written as a whole, never some of their columns",
    ),
    # --- schemas -------------------------------------------------------------------------------------------------
    Refused(
        "hoodie.schema.on.read.enable", _FALSE, _W,
        "the ids of columns that schema on read needs are not kept; write with Apache Hudi",
    ),
    Refused(
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop", _FALSE, _W,
        "a column that the rows lack stays in the table and is null in them",
    ),
    Refused("hoodie.avro.schema.external.transformation", _FALSE, _W, "rows are stored in the schema they come in"),
    Refused("hoodie.avro.schema", (), _W, "the schema is that of the rows given"),
    Refused("hoodie.write.schema", (), _W, "the schema is that of the rows given"),
    Refused("hoodie.internal.schema", (), _W, "the schema is that of the rows given"),
    # --- kinds of files and tables -------------------------------------------------------------------------------
    Refused("hoodie.table.base.file.format", ("PARQUET",), _W, "base files are written in Parquet"),
    Refused("hoodie.base.file.format", ("PARQUET",), _W, "base files are written in Parquet"),
    Refused("hoodie.table.multiple.base.file.formats.enable", _FALSE, _W, "base files are written in Parquet"),
    Refused("hoodie.table.format", ("native",), Use.ALL, "only the native format of tables is known"),
    Refused("hoodie.table.log.file.format", ("HOODIE_LOG",), _W, "log files are of one format"),
    Refused("hoodie.table.cdc.enabled", _FALSE, _W, "change files are not written, so change queries would fail"),
    Refused("hoodie.partition.metafile.use.base.format", _FALSE, _W, "partition metafiles are written as text"),
    Refused("hoodie.parquet.outputtimestamptype", ("TIMESTAMP_MICROS",), _W, "timestamps are stored as microseconds"),
    Refused("hoodie.parquet.writelegacyformat.enabled", _FALSE, _W, "decimals and lists are stored in today's form"),
    Refused(
        "hoodie.parquet.write.config.injector.class", (), _W,
        "it is a Java class that may ask for other files, such as encrypted ones",
    ),
    Refused("hoodie.storage.layout.type", ("DEFAULT",), _W, "rows are laid out by size, not by bucket"),
    Refused("hoodie.storage.layout.partitioner.class", (), _W, "rows are laid out by size, not by a Java class"),
    Refused("hoodie.archivelog.folder", ("archived", "history"), _W, "new tables have Hudi's own folders"),
    Refused("hoodie.timeline.path", ("timeline",), _W, "new tables have Hudi's own folders"),
    Refused("hoodie.timeline.history.path", ("history",), _W, "new tables have Hudi's own folders"),
    Refused(
        "hoodie.bootstrap.base.path", (), _W, "tables over files that lie elsewhere are neither created nor written",
    ),
    Refused("hoodie.table.checksum", (), _W, _TABLE),
    Refused("hoodie.table.metadata.partitions", (), _W, f"{_TABLE}; see hoodie.metadata.enable"),
    Refused("hoodie.table.metadata.partitions.inflight", (), _W, f"{_TABLE}; see hoodie.metadata.enable"),
    Refused("hoodie.table.index.defs.path", (), _W, _TABLE),
    Refused("hoodie.table.secondary.indexes.metadata", (), _W, _TABLE),
    Refused("hoodie.table.create.schema", (), _W, f"{_TABLE}: the schema is that of the first rows"),
    # --- services that a writer of Apache Hudi would run ---------------------------------------------------------
    Refused(
        "hoodie.clean.async.enabled", _FALSE, _W,
        "a writer cleans after its commit, not beside it; leave the setting out, or set hoodie.clean.automatic=false "
        "and clean in a process of its own",
    ),
    Refused(
        "hoodie.archive.async", _FALSE, _W,
        "a writer archives after its commit, not beside it; leave the setting out, or set "
        "hoodie.archive.automatic=false and archive in a process of its own",
    ),
    Refused("hoodie.clustering.inline", _FALSE, _W, f"there is no clustering yet; {_BY_HAND}"),
    Refused("hoodie.clustering.schedule.inline", _FALSE, _W, f"there is no clustering yet; {_BY_HAND}"),
    Refused("hoodie.clustering.async.enabled", _FALSE, _W, f"there is no clustering yet; {_BY_HAND}"),
    Refused("hoodie.partition.ttl.inline", _FALSE, _W, f"partitions have no time to live yet; {_BY_HAND}"),
    Refused(
        "hoodie.table.service.manager.enabled", _FALSE, _W,
        "a writer hands no services over to a manager, it runs them itself, and both would run them",
    ),
    Refused(
        "hoodie.prewrite.cleaner.policy", ("NONE",), _W,
        "a write is cleaned up after, not before; run hudi-py clean before it, or leave the setting out",
    ),
    Refused("hoodie.write.commit.callback.on", _FALSE, _W, "nobody is called after a commit"),
    Refused("hoodie.client.init.callback.classes", (), _W, "callbacks are Java classes"),
    Refused("hoodie.precommit.validators", (), _W, _CHECKS),
    Refused("hoodie.prewrite.validators", (), _W, _CHECKS),
    Refused("hoodie.errortable.enable", _FALSE, _W, "rows that do not fit are an error, there is no table for them"),
    Refused("hoodie.auto.commit", _TRUE, _W, "a write is always committed by the call that makes it"),
    Refused(
        "hoodie.datasource.write.commitmeta.key.prefix", ("_",), _W, "settings are not copied into commits",
    ),
    Refused("hoodie.write.rolling.metadata.keys", (), _W, "what earlier commits carry is not copied into new ones"),
    # --- cleaning, archival, rollback ----------------------------------------------------------------------------
    Refused(
        "hoodie.clean.trigger.strategy", ("NUM_COMMITS",), Use.CLEAN, "a clean is due by the number of commits only",
    ),
    Refused(
        "hoodie.clean.delete.bootstrap.base.file", _FALSE, Use.CLEAN,
        "files outside of the table are never deleted",
    ),
    Refused(
        "hoodie.clean.partition.filter.regex", (), Use.CLEAN,
        "a clean looks at every partition, so it would delete more than the setting allows",
    ),
    Refused(
        "hoodie.clean.partition.filter.selected", (), Use.CLEAN,
        "a clean looks at every partition, so it would delete more than the setting allows",
    ),
    Refused(
        "hoodie.clean.max.commits.to.clean", ("9223372036854775807",), Use.CLEAN,
        "a clean is limited by hoodie_py.clean.max.files, .max.partitions, .max.bytes or .max.duration",
    ),
    Refused("hoodie.write.empty.clean.interval.hours", ("-1", "0"), Use.CLEAN, "empty cleans are not written"),
    Refused("hoodie.archive.limit.instants", (), Use.ARCHIVE, "archival takes all that is due at once"),
    Refused(
        "hoodie.rollback.instant.backup.enabled", _FALSE, Use.ROLLBACK,
        "instants that are rolled back are not kept aside",
    ),
    # --- where files are looked for ------------------------------------------------------------------------------
    Refused(
        "hoodie.assume.date.partitioning", _FALSE, Use.ALL,
        "partitions are found by their metafiles, not by three levels of folders",
    ),
    Refused(
        "hoodie.metadata.dir.filter.regex", (), _W,
        "a metadata table is made of every partition; none is left out by its name",
    ),
    Refused("hoodie.metaserver.enabled", _FALSE, Use.ALL, "timelines are read from the table, not from a server"),
    # --- reading -------------------------------------------------------------------------------------------------
    Refused(
        "hoodie.datasource.query.type", ("snapshot", "read_optimized"), Use.READ,
        "the range is an argument: table.changes(start, end), or --from and --to on the command line",
    ),
    Refused("as.of.instant", (), Use.READ, "the time is an argument: as_of, or --as-of on the command line"),
    Refused(
        "hoodie.datasource.read.extract.partition.values.from.path", _FALSE, Use.READ,
        "values of partition columns are read from the files",
    ),
    Refused("hoodie.datasource.read.paths", (), Use.READ, "one table is read, the one that is named"),
)  # fmt: skip
