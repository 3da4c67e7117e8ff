"""
Settings of Apache Hudi that hudi_py can ignore, by the reason why that is harmless. Pure.

Harmless means that the value changes neither rows, nor which files are deleted, nor anything that other writers rely
on. A name with ``*`` at its end is a family: all settings that start with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HARMLESS: Final[Mapping[str, str]] = {
    "it is for Apache Hudi's streamer, which reads sources; here rows are given as they are": """
        hoodie.streamer.* hoodie.deltastreamer.* hoodie.kafka.* hoodie.schemaprovider.* hoodie.ingestion.*""",
    "catalogs are updated by Apache Hudi's own sync tools; run these separately": """
        hoodie.datasource.hive_sync.* hoodie.datasource.meta.sync.* hoodie.datasource.meta_sync.* hoodie.meta.sync.*
        hoodie.meta_sync.* hoodie.datasource.partition_extractor_class hoodie.table.partition_extractor_class
        hoodie.aws.* hoodie.gcp.* hoodie.glue.* hoodie.datahub.* hoodie.meta.sync.client.tool.class
        hoodie.datasource.adb.* hoodie.spark.polaris.catalog.class""",
    "no metrics are sent; results and the log hold the numbers": """
        hoodie.metrics.* hoodie.metricscompaction.log.blocks.on hoodie.metadata.metrics.enable""",
    "a table whose columns have ids keeps them in any case; only ALTER TABLE of Apache Hudi gives a table such ids": """
        hoodie.schema.on.read.enable""",
    "there is no timeline server: every process lists the files that it needs": """
        hoodie.embed.timeline.* hoodie.filesystem.* hoodie.instant_state.* hoodie.markers.*""",
    "markers are always written as files, which all readers of markers understand": "hoodie.write.markers.type",
    "it says in which memory and by which tasks Apache Hudi compacts, not what": """
        hoodie.compact.* hoodie.compaction.* hoodie.memory.*
        hoodie.datasource.compaction.async.enable hoodie.datasource.write.streaming.disable.compaction
        hoodie.optimized.log.blocks.scan.enable""",
    "it is about the metadata table, whose log files become part of base files only": "hoodie.log.compaction.enable",
    "log blocks are smaller than the maximum that Apache Hudi has by default": "hoodie.logfile.*",
    "positions in log files are used where Apache Hudi uses them by default": "hoodie.merge.use.record.positions",
    "it concerns how Apache Hudi reads and merges log files, not what is in them": """
        hoodie.is.update.record.for.mor hoodie.support.payload hoodie.payload.record.schema""",
    "it says by which tasks Apache Hudi clusters and samples, not which files and rows": """
        hoodie.clustering.* hoodie.layout.optimize.*""",
    "the number of buckets of a partition never changes with the engine SIMPLE, the only one that is served": """
        hoodie.bucket.index.m* hoodie.bucket.index.split.threshold hoodie.bucket.index.remote.partitioner.enable""",
    "it only affects hoodie.bucket.index.partition.expressions, which is refused": """
        hoodie.bucket.index.partition.rule.type""",
    "it only affects an index that hoodie.index.type has to name, which is refused": """
        hoodie.index.hbase.* hoodie.hbase.index.*""",
    "it only affects the speed of Apache Hudi's key look-up, not which keys are found": """
        hoodie.bloom.index.* hoodie.simple.index.* hoodie.record.index.*
        hoodie.global.index.* hoodie.global.simple.index.*""",
    "it describes indexes that SQL creates; writes do not maintain them": """
        hoodie.expression.index.* hoodie.index.name hoodie.datasource.write.secondarykey.column""",
    "statistics, Bloom filters and record indexes that a table has are kept, other indexes are dropped; of "
    "missing ones only the record index is made, with its own setting": """
        hoodie.metadata.index.* hoodie.metadata.bloom.filter.*""",
    "it only affects size and speed of the metadata table, not its content": """
        hoodie.metadata.* _hoodie.metadata.ignore.spurious.deletes hoodie.file.listing.parallelism""",
    "it affects the waiting time inside a lock provider, or a lock whose provider is refused": """
        hoodie.write.lock.*""",
    "conflicts with completed writes are found when a write completes, those with running ones on request by their "
    "markers before each file, and the lock is taken as it is set": """
        hoodie.write.concurrency.* hoodie.auto.adjust.lock.configs
        hoodie.rollback.avoid.duplicate.plan hoodie.write.application.id _.hoodie.allow.multi.write.on.same.instant""",
    "it affects size, order or speed of writing inside a file, not its rows": """
        hoodie.parquet.* hoodie.record.size.estimator.* _hoodie.record.size.estimator.max.commits
        hoodie.write.buffer.* hoodie.write.executor.* hoodie.vector.columns hoodie.write.status.storage.level
        hoodie.write.tagged.record.storage.level hoodie.finalize.write.parallelism
        hoodie.datasource.write.row.writer.enable
        hoodie.common.* hoodie.rollback.parallelism hoodie.archive.delete.parallelism hoodie.schema.cache.enable
        hoodie.timeline.compaction.target.file.max.bytes hoodie.timeline.manifest.retained.versions
        hoodie.clean.optimize.using.local.engine.context hoodie.release.resource.on.completion.enable
        hoodie.fileid.prefix.provider.class
        hoodie.cdc.file.group.iterator.memory.spill.bytes""",
    "every plan of a compaction or clustering looks into all partitions": "hoodie.table.services.incremental.enabled",
    "files of that format are not written": """
        hoodie.orc.* hoodie.hfile.* hoodie.lance.* _hoodie.hfile.use.native.reader""",
    "tables are not bootstrapped: hoodie.bootstrap.base.path is refused": "hoodie.bootstrap.*",
    "it names a class that counts what Apache Hudi's own writer did, and hudi_py has its own": """
        hoodie.writestatus.class hoodie.write.merge.handle.fallback hoodie.parquet.flink.*""",
    "it only affects Apache Hudi's Spark SQL statements": """
        hoodie.spark.sql.* hoodie.sql.* hoodie.datasource.overwrite.mode hoodie.internal.sql.merge.into.writes
        hoodie.static.overwrite.partition.paths""",
    "it only affects Spark structured streaming with Apache Hudi": """
        hoodie.datasource.write.streaming.* hoodie.datasource.streaming.startOffset
        hoodie.internal.spark.streaming.batch.id hoodie.datasource.read.streaming.table.version""",
    "Apache Hudi sets it for itself": """
        hoodie.internal.write.schema.canonicalize hoodie.schema.internal.querySchema hoodie.tablePath
        hoodie.valid.commits.list hoodie.instant.time hoodie.query.as.ro.table hoodie.read.columns.set
        hoodie.sensitive.config.keys hoodie.table.initial.version hoodie.table.legacy.payload.class""",
    "it affects how Apache Hudi's queries find and open files, not which rows they return": """
        hoodie.datasource.read.file.index.* hoodie.file.index.* hoodie.fileIndex.dataSkippingFailureMode
        hoodie.file.group.reader.enabled hoodie.enable.data.skipping hoodie.bucket.index.query.pruning
        hoodie.datasource.read.use.new.parquet.file.format hoodie.datasource.read.create.filesystem.relation
        hoodie.datasource.read.table.valued.function.* hoodie.datasource.read.partition.value.extractor.enabled
        hoodie.read.blob.inline.mode""",
    "it only matters to incremental queries, which hoodie.datasource.query.type asks for, and that is refused": """
        hoodie.datasource.read.begin.instanttime hoodie.datasource.read.end.instanttime hoodie.datasource.read.incr.*
        hoodie.datasource.read.schema.use.end.instanttime hoodie.read.timeline.holes.resolution.policy
        hoodie.incremental.use.database""",
    "the operation is the method that is called; hudi_py.write and hudi-py write take it where they are given none": """
        hoodie.datasource.write.operation hoodie.datasource.write.partitions.to.delete""",
    "the table is where the call says, and its URL names the storage": "hoodie.base.path hoodie.storage.class",
    "Apache Hudi sets it for itself while it writes": """
        hoodie.bulkinsert.are.partitioner.records.sorted hoodie.bulkinsert.overwrite.operation.type
        hoodie.bulkinsert.schema.ddl""",
    "deleting a key twice is deleting it once": "hoodie.combine.before.delete",
    "rollbacks list the files and look at the markers, whatever the value": "hoodie.rollback.using.markers",
    "it only matters to backups of rolled back instants, which are refused": "hoodie.rollback.instant.backup.dir",
    "archival always stops at the commits whose files cleaning still keeps": """
        hoodie.archive.block.on.latest.clean.ectr""",
    "tables are never upgraded by a write: they keep the version they have": """
        hoodie.write.auto.upgrade hoodie.timeline.layout.version""",
    "columns that new rows do not have stay in the table, and are null in these rows": """
        hoodie.datasource.write.reconcile.schema hoodie.write.set.null.for.missing.columns""",
    "rows are always checked against the table's schema": "hoodie.avro.schema.validate",
    "the encoding of keys is always checked against stored keys": "hoodie.write.complex.keygen.validation.enable",
    "the largest event time of a commit is stored for information only": """
        hoodie.payload.event.time.field hoodie.write.track.event.time.watermark""",
    "if a service fails after a commit, the commit stays valid; a failed write is never committed": """
        hoodie.write.can.ignore.post.commit.failures hoodie.write.ignore.failed
        hoodie.fail.job.on.duplicate.data.file.detection hoodie.block.writes.on.speculative.execution""",
    "rows with an empty partition value go to the same partition as with Apache Hudi": """
        hoodie.skip.default.partition.validation""",
    "it is for storages that list new files late; the supported ones list them at once": """
        hoodie.consistency.* hoodie.optimistic.consistency.* _hoodie.optimistic.consistency.guard.enable""",
    "times of instants never go back, whatever the value": """
        hoodie.time.generator.* _hoodie.time.generator.reuse.enable""",
    "it only has an effect if the feature is switched on, which is refused": """
        hoodie.errortable.* hoodie.metaserver.* hoodie.table.service.manager.*
        hoodie.precommit.validators.* hoodie.write.rolling.metadata.timeline.lookback.commits""",
}

ELSEWHERE: Final = (
    "hoodie.streamer.",
    "hoodie.deltastreamer.",
    "hoodie.kafka.",
    "hoodie.schemaprovider.",
    "hoodie.ingestion.",
    "hoodie.aws.",
    "hoodie.gcp.",
    "hoodie.glue.",
    "hoodie.datahub.",
    "hoodie.datasource.adb.",
    "hoodie.record.merge.property.",
)
"""
Prefixes of settings that no list can contain: those of tools outside the Spark bundle, and names chosen by users. A
misspelled name below them passes, so no setting that is served may be among them but those that `SERVED_THERE` lists.
"""

SERVED_THERE: Final = ("hoodie.deltastreamer.keygen.",)
"""Prefixes below those of `ELSEWHERE` whose settings all writers read: they are in the list."""
