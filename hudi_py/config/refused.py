"""
Settings of Apache Hudi that hudi_py refuses: with which values, for which operations, and why. Pure.

Accepted values ask for what hudi_py does anyway. A setting that is neither here, nor in `harmless`, nor in `keys` is
unknown; tests compare these three tables with the options of Hudi's releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from hudi_py.config import keys
from hudi_py.config.keys import Key
from hudi_py.config.uses import Use


@attrs.frozen
class Refused:
    """
    A setting that is refused.

    Args:
        name: Newest name of the setting; with ``*`` at its end, a family of settings.
        unless: Values that are accepted, in upper or lower case; an empty value always is. With ``*`` at its end, all
            values that start so.
        uses: Operations for which it is refused; others ignore it.
        reason: Why, and what to do.
        same_as: The value that this other setting has is accepted, too.
        less: Values, in upper case, that are refused for fewer operations.
    """

    name: str
    unless: tuple[str, ...]
    uses: Use
    reason: str
    same_as: Key[Any] | None = None
    less: Mapping[str, Use] = attrs.field(factory=dict, hash=False)

    def uses_of(self, value: str) -> Use:
        """The operations for which this value, which is not accepted, is refused."""
        return self.less.get(value.strip().upper(), self.uses)


_EVENT_TIME: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_MODEL: Final = "org.apache.hudi.common.model."
_FALSE, _TRUE = ("false",), ("true",)
_W: Final = Use.WRITE
_REWRITES: Final = Use.WRITE | Use.REWRITE  # a writer rewrites, too, with the inline settings
_SERVING: Final = Use.WRITE | Use.SERVICES | Use.REWRITE
_TABLE: Final = "it is a property of a table and not a setting; leave it out"
_OWN_INDEX: Final = (
    "keys are looked up within their partition, in the files themselves (as with BLOOM and SIMPLE); another index "
    "would expect rows in other files, and Apache Hudi would not find them. Write such a table with Apache Hudi"
)
_REJECTING: Final = ("SparkRejectUpdateStrategy",)
_CHECKS: Final = (
    "the checks that it asks for are Java classes and would not be run; leave it out if they are not needed"
)
_MARKED: Final = "rows that are marked as deleted would be stored instead of deleted"
_OF_HUDI: Final = ("org.apache.hudi.*",)
_FOREIGN: Final = "it names a Java class that may write or merge rows in another way; write the table with Apache Hudi"
_SYNC: Final = (
    "no catalog is updated after a commit, so its readers would not see new partitions and columns; leave the setting "
    "out, and run Apache Hudi's sync tool after the writer"
)
_MDT_OUTSIDE: Final = (
    "the metadata table is compacted, cleaned and archived by its writers, so another process would do it at the same "
    "time; leave the setting out, and stop that process"
)
_WHOLE_ROWS: Final = "rows are always written with all columns"

REFUSED: Final[tuple[Refused, ...]] = (
    # --- which rows end up where ---------------------------------------------------------------------------------
    Refused("hoodie.index.class", (), _W, _OWN_INDEX),
    Refused(
        "hoodie.bucket.index.partition.expressions", (), _W,
        "every partition has hoodie.bucket.index.num.buckets buckets; rows outside their bucket would be duplicates",
    ),
    Refused(
        "hoodie.metadata.record.level.index.enable", _FALSE, _W,
        "record indexes within partitions are not maintained: rows would be missing from them",
    ),
    Refused(
        "hoodie.populate.meta.fields", _TRUE, _W, "rows are always written with the five _hoodie_ columns",
    ),
    Refused(
        "hoodie.datasource.write.drop.partition.columns", _FALSE, _W,
        "files are always written with the partition columns",
    ),
    Refused(
        "hoodie.merge.allow.duplicate.on.inserts", _TRUE, _W,
        "insert merges no rows into those of the table; use upsert, or hoodie.datasource.insert.dup.policy",
    ),
    Refused(
        "hoodie.combine.before.upsert", _TRUE, _W,
        "of several rows with the same key, an upsert always keeps the one with the largest ordering value",
    ),
    Refused(
        "hoodie.merge.data.validation.enabled", _FALSE, _W, "rows are not counted again after a merge",
    ),
    Refused(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", _FALSE, _W,
        "timestamps in keys are written as microseconds, as Apache Hudi does by default",
    ),
    Refused(
        "hoodie.datasource.write.slash.separated.date.partitioning", _FALSE, _W,
        "a date is always one folder of the partition path, never three",
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
        "hoodie.record.merge.property.*", (), _W, _MARKED,
    ),
    Refused(
        "hoodie.payload.ordering.field", (), _W,
        "rows are ordered by hoodie.table.ordering.fields; give both the same value or leave it out",
        same_as=keys.ORDERING_FIELDS,
    ),
    Refused(
        "hoodie.payload.delete.field", (), _W, f"{_MARKED}; use delete, or _hoodie_is_deleted",
    ),
    Refused(
        "hoodie.payload.delete.marker", (), _W, f"{_MARKED}; use delete, or _hoodie_is_deleted",
    ),
    Refused(
        "hoodie.payload.update.on.same.ordering.field", _TRUE, _W,
        "of two rows with the same ordering value the later one always wins",
    ),
    Refused("hoodie.write.merge.handle.class", _OF_HUDI, _W, _FOREIGN),
    Refused("hoodie.write.concat.handle.class", _OF_HUDI, _W, _FOREIGN),
    Refused("hoodie.compact.merge.handle.class", _OF_HUDI, _REWRITES, _FOREIGN),
    Refused("hoodie.table.partial.update.mode", (), _W, _WHOLE_ROWS),
    Refused("hoodie.write.partial.update.schema", (), _W, _WHOLE_ROWS),
    Refused("hoodie.write.partial.update.unavailable.value", (), _W, _WHOLE_ROWS),
    # --- schemas -------------------------------------------------------------------------------------------------
    Refused(
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop", _FALSE, _W,
        "a column that new rows do not have stays in the table, and is null in these rows",
    ),
    Refused("hoodie.avro.schema.external.transformation", _FALSE, _W, "rows are stored in the schema they have"),
    Refused("hoodie.avro.schema", (), _W, "the schema is that of the rows given"),
    Refused("hoodie.write.schema", (), _W, "the schema is that of the rows given"),
    Refused("hoodie.internal.schema", (), _W, "the schema is that of the rows given"),
    # --- compaction ----------------------------------------------------------------------------------------------
    Refused(
        "hoodie.compaction.plan.generator",
        ("org.apache.hudi.table.action.compact.plan.generators.HoodieCompactionPlanGenerator",), _REWRITES,
        "it names a Java class that plans in another way; compact with Apache Hudi to use it",
    ),
    # --- clustering: what it may take, and who wins against a write ----------------------------------------------
    Refused(
        "hoodie.clustering.updates.strategy",
        tuple(f"org.apache.hudi.client.clustering.update.strategy.{name}" for name in _REJECTING), _REWRITES,
        "an update of a file group that is being clustered is always rejected, so that neither loses rows; cancel the "
        "clustering with hudi-py cluster --cancel if the update must not wait",
    ),
    Refused(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict", _FALSE, _REWRITES,
        "a write never cancels a clustering by itself; hudi-py cluster --cancel does it",
    ),
    Refused(
        "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution", _FALSE, _REWRITES,
        "a pending write is compared by its file groups, and fails a clustering only where it has the same ones",
    ),
    Refused(
        "hoodie.clustering.enable.expirations", _FALSE, _REWRITES | Use.ROLLBACK,
        "a pending clustering does not expire by age; hudi-py cluster finishes it, or cancels it with --cancel",
    ),
    Refused(
        "hoodie.clustering.plan.strategy.earliest.commit.to.cluster", (), _REWRITES,
        "clustering does not choose by commit; choose partitions with --partition or "
        "hoodie.clustering.plan.strategy.partition.selected",
    ),
    Refused(
        "hoodie.clustering.plan.strategy.file.slices.sort.by", ("SIZE",), _REWRITES,
        "the slices of a partition are packed into groups in the order of their size",
    ),
    # --- kinds of files and tables -------------------------------------------------------------------------------
    Refused("hoodie.table.base.file.format", ("PARQUET",), _W, "base files are written in Parquet"),
    Refused("hoodie.base.file.format", ("PARQUET",), _W, "base files are written in Parquet"),
    Refused("hoodie.table.multiple.base.file.formats.enable", _FALSE, _W, "base files are written in Parquet"),
    Refused("hoodie.table.format", ("native",), Use.ALL, "only the native format of tables is supported"),
    Refused("hoodie.table.log.file.format", ("HOODIE_LOG",), _W, "log files have only one format"),
    Refused("hoodie.partition.metafile.use.base.format", _FALSE, _W, "partition metafiles are written as text"),
    Refused("hoodie.parquet.outputtimestamptype", ("TIMESTAMP_MICROS",), _W, "timestamps are stored as microseconds"),
    Refused("hoodie.parquet.writelegacyformat.enabled", _FALSE, _W, "decimals and lists have the current form"),
    Refused(
        "hoodie.parquet.write.config.injector.class", (), _W,
        "it is a Java class that may ask for a different format, such as encrypted files",
    ),
    Refused("hoodie.avro.write.support.class", _OF_HUDI, _W, _FOREIGN),
    Refused("hoodie.parquet.spark.row.write.support.class", _OF_HUDI, _W, _FOREIGN),
    Refused("hoodie.io.factory.class", _OF_HUDI, _W, _FOREIGN),
    Refused(
        "hoodie.storage.layout.type", ("DEFAULT",), _W,
        "rows are assigned to files by hoodie.index.type: by size, or with BUCKET by bucket", same_as=keys.INDEX_TYPE,
    ),
    Refused("hoodie.storage.layout.partitioner.class", (), _W, "rows are assigned to files by hoodie.index.type"),
    Refused("hoodie.archivelog.folder", ("archived", "history"), _W, "new tables have Hudi's own folders"),
    Refused("hoodie.timeline.path", ("timeline",), _W, "new tables have Hudi's own folders"),
    Refused("hoodie.timeline.history.path", ("history",), _W, "new tables have Hudi's own folders"),
    Refused(
        "hoodie.bootstrap.base.path", (), _W, "bootstrapped tables are neither created nor written",
    ),
    Refused("hoodie.table.checksum", (), _W, _TABLE),
    Refused("hoodie.table.metadata.partitions", (), _W, f"{_TABLE}; see hoodie.metadata.enable"),
    Refused("hoodie.table.metadata.partitions.inflight", (), _W, f"{_TABLE}; see hoodie.metadata.enable"),
    Refused("hoodie.table.index.defs.path", (), _W, _TABLE),
    Refused("hoodie.table.secondary.indexes.metadata", (), _W, _TABLE),
    Refused("hoodie.table.create.schema", (), _W, f"{_TABLE}: the schema is that of the first rows"),
    # --- services that a writer of Apache Hudi would run ---------------------------------------------------------
    Refused(
        "hoodie.archive.async", _FALSE, _W,
        "a writer archives after its commit, not at the same time; leave the setting out, or set "
        "hoodie.archive.automatic=false and archive in another process",
    ),
    Refused(
        "hoodie.clustering.async.enabled", _FALSE, _W,
        "a writer clusters after its commit (hoodie.clustering.inline), not at the same time; leave the setting out, "
        "or set hoodie.clustering.schedule.inline=true and run hudi-py cluster in another process",
    ),
    Refused(
        "hoodie.table.service.manager.enabled", _FALSE, _W,
        "a writer runs its services itself, so they would run twice",
    ),
    Refused(
        "hoodie.prewrite.cleaner.policy", ("NONE",), _W,
        "a writer cleans after its commit, not before; run hudi-py clean before it, or leave the setting out",
    ),
    Refused(
        "hoodie.write.commit.callback.class", ("org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback",), _W,
        "callbacks are sent by HTTP; leave the setting out, or use hoodie_py.hook.command for other ways",
    ),
    Refused("hoodie.datasource.hive_sync.enable", _FALSE, _W, _SYNC),
    Refused("hoodie.datasource.meta.sync.enable", _FALSE, _W, _SYNC),
    Refused("hoodie.metadata.table.service.manager.enabled", _FALSE, _SERVING, _MDT_OUTSIDE),
    Refused("hoodie.metadata.write.concurrency.mode", ("SINGLE_WRITER",), _SERVING, _MDT_OUTSIDE),
    Refused("hoodie.client.init.callback.classes", (), _W, "callbacks are Java classes, which are not run"),
    Refused("hoodie.precommit.validators", (), _W, _CHECKS),
    Refused("hoodie.prewrite.validators", (), _W, _CHECKS),
    Refused("hoodie.errortable.enable", _FALSE, _W, "invalid rows are an error, they are not written to a table"),
    Refused("hoodie.auto.commit", _TRUE, _W, "every call that writes also commits"),
    Refused("hoodie.write.rolling.metadata.keys", (), _W, "metadata of earlier commits is not copied into new ones"),
    # --- cleaning, archival, rollback ----------------------------------------------------------------------------
    Refused(
        "hoodie.clean.trigger.strategy", ("NUM_COMMITS",), Use.CLEAN, "a clean is due by the number of commits only",
    ),
    Refused(
        "hoodie.clean.delete.bootstrap.base.file", _FALSE, Use.CLEAN,
        "files outside the table are never deleted",
    ),
    Refused(
        "hoodie.clean.partition.filter.regex", (), Use.CLEAN,
        "a clean deletes in all partitions, so it would delete more than the setting allows",
    ),
    Refused(
        "hoodie.clean.partition.filter.selected", (), Use.CLEAN,
        "a clean deletes in all partitions, so it would delete more than the setting allows",
    ),
    Refused(
        "hoodie.clean.max.commits.to.clean", ("9223372036854775807",), Use.CLEAN,
        "limit a clean with hoodie_py.clean.max.files, .max.partitions, .max.bytes or .max.duration instead",
    ),
    Refused("hoodie.write.empty.clean.interval.hours", ("-1", "0"), Use.CLEAN, "empty cleans are not written"),
    Refused("hoodie.archive.limit.instants", (), Use.ARCHIVE, "archival archives all instants that are due at once"),
    Refused(
        "hoodie.rollback.instant.backup.enabled", _FALSE, Use.ROLLBACK,
        "no copies are kept of instants that are rolled back",
    ),
    # --- where files are looked for ------------------------------------------------------------------------------
    Refused(
        "hoodie.assume.date.partitioning", _FALSE, Use.ALL,
        "partitions are found by their metafiles, not by three levels of folders",
    ),
    Refused(
        "hoodie.metadata.dir.filter.regex", (), _W,
        "a metadata table contains all partitions; none is left out by name",
    ),
    Refused("hoodie.metaserver.enabled", _FALSE, Use.ALL, "timelines are read from the table, not from a server"),
    # --- reading -------------------------------------------------------------------------------------------------
    Refused(
        "hoodie.datasource.query.type", ("snapshot",), Use.READ,
        "what is asked is an argument: table.changes(start, end) and rows(read_optimized=True), or --from, --to and "
        "--read-optimized on the command line",
    ),
    Refused(
        "hoodie.datasource.merge.type", ("payload_combine",), Use.READ,
        "rows of log files are always merged with those of the base files; read_optimized=True leaves log files out",
    ),
    Refused("hoodie.realtime.merge.skip", _FALSE, Use.READ, "rows of log files are always merged with those before"),
    Refused(
        "hoodie.datasource.query.incremental.format", ("latest_state",), Use.READ,
        "each single change is asked for by method: table.change_log(start, end), or --cdc on the command line",
    ),
    Refused("hoodie.datasource.read.incr.path.glob", (), Use.READ, "choose partitions with a condition: where"),
    Refused("hoodie.datasource.read.incr.filters", (), Use.READ, "rows are chosen with a condition: where"),
    Refused("as.of.instant", (), Use.READ, "the time is an argument: as_of, or --as-of on the command line"),
    Refused(
        "hoodie.datasource.read.extract.partition.values.from.path", _FALSE, Use.READ,
        "values of partition columns are read from the files",
    ),
    Refused("hoodie.datasource.read.paths", (), Use.READ, "only the table that is named is read"),
)  # fmt: skip
