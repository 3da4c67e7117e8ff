"""
All ``hoodie.*`` settings that hudi_py reads: name, older names, default, type.

Names are those of Apache Hudi 1.1; the names of 0.15 are aliases. Other code uses these constants, never the names.
Source: rules/table-services A.1, B.1, D.1, E.5, F; Hudi ``HoodieCleanConfig``, ``HoodieWriteConfig``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Final, Generic, TypeVar

import attrs

from hudi_py.config.parse import (
    a_name,
    as_text,
    duration,
    flag,
    index,
    names,
    number,
    object_tag,
    one_of,
    pattern,
    share,
    whole,
)

T = TypeVar("T")


@attrs.frozen(eq=False)
class Key(Generic[T]):
    """A setting: canonical name, parser, default, and its names in older releases."""

    name: str
    parse: Callable[[str], T]
    default: T
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the canonical one first."""
        return (self.name, *self.aliases)


_NONE: Final[tuple[str, ...]] = ()


# The second name is that of Hudi's DeltaStreamer, which tables of older releases still have in their settings.
def _timed(name: str, default: str) -> Key[str]:
    return Key(f"hoodie.keygen.{name}", as_text, default, (f"hoodie.deltastreamer.keygen.{name}",))


# --- table services ---------------------------------------------------------------------------------------------
TABLE_SERVICES_ENABLED: Final = Key("hoodie.table.services.enabled", flag, True)

CLEAN_AUTOMATIC: Final = Key("hoodie.clean.automatic", flag, True)
CLEAN_ASYNC: Final = Key("hoodie.clean.async.enabled", flag, False, ("hoodie.clean.async",))
"""The automatic clean runs beside the write, and the commit waits for it."""
CLEAN_POLICY: Final = Key(
    "hoodie.clean.policy",
    one_of("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"),
    "KEEP_LATEST_COMMITS",
    ("hoodie.cleaner.policy",),
)
CLEAN_COMMITS_RETAINED: Final = Key("hoodie.clean.commits.retained", whole(1), 10, ("hoodie.cleaner.commits.retained",))
CLEAN_HOURS_RETAINED: Final = Key("hoodie.clean.hours.retained", whole(1), 24, ("hoodie.cleaner.hours.retained",))
CLEAN_FILE_VERSIONS_RETAINED: Final = Key(
    "hoodie.clean.fileversions.retained", whole(1), 3, ("hoodie.cleaner.fileversions.retained",)
)
CLEAN_TRIGGER_MAX_COMMITS: Final = Key("hoodie.clean.trigger.max.commits", whole(1), 1, ("hoodie.clean.max.commits",))
CLEAN_INCREMENTAL: Final = Key("hoodie.clean.incremental.enabled", flag, True, ("hoodie.cleaner.incremental.mode",))
CLEAN_PARALLELISM: Final = Key("hoodie.clean.parallelism", whole(1), 200, ("hoodie.cleaner.parallelism",))
CLEAN_MULTIPLE: Final = Key("hoodie.clean.multiple.enabled", flag, False, ("hoodie.clean.allow.multiple",))
ALLOW_UNKNOWN: Final = Key("hoodie_py.conf.allow.unknown", flag, False)
"""Ignore unknown settings, and unknown properties of a table."""
CLEAN_AGE_RETAINED: Final[Key[timedelta | None]] = Key("hoodie_py.clean.age.retained", duration, None)
"""Like all settings of `hoodie_py`, not known to Hudi. What any retention of Hudi or any of these keeps, is kept."""
CLEAN_FLOOR: Final[Key[timedelta | None]] = Key("hoodie_py.clean.floor", duration, None)
"""Files that this span needs are kept, whatever a policy or the options of one clean ask for."""
CLEAN_CHANGES_RETAINED: Final[Key[timedelta | None]] = Key("hoodie_py.clean.changes.retained", duration, None)
"""Changes of this span can be read, however short the window of snapshots is."""
CLEAN_MAX_OLD_BYTES: Final[Key[int | None]] = Key("hoodie_py.clean.max.old.bytes", whole(1), None)
"""A window by time is shortened until the older versions that it keeps have at most this number of bytes."""
CLEAN_MIN_COMMITS: Final[Key[int | None]] = Key("hoodie_py.clean.min.commits", whole(1), None)
CLEAN_MAX_COMMITS: Final[Key[int | None]] = Key("hoodie_py.clean.max.commits", whole(1), None)
CLEAN_MIN_FILE_VERSIONS: Final[Key[int | None]] = Key("hoodie_py.clean.min.file.versions", whole(1), None)
CLEAN_KEEP_DAILY: Final = Key("hoodie_py.clean.keep.daily", whole(0), 0)
CLEAN_KEEP_WEEKLY: Final = Key("hoodie_py.clean.keep.weekly", whole(0), 0)
CLEAN_KEEP_MONTHLY: Final = Key("hoodie_py.clean.keep.monthly", whole(0), 0)
CLEAN_VERIFY: Final = Key("hoodie_py.clean.verify", flag, False)
CLEAN_BREAKERS: Final = Key("hoodie_py.clean.breakers", flag, True)
CLEAN_BREAKER_MAX_SHARE: Final = Key("hoodie_py.clean.breaker.max.share", share, 1.0)
CLEAN_MAX_FILES: Final[Key[int | None]] = Key("hoodie_py.clean.max.files", whole(1), None)
CLEAN_MAX_PARTITIONS: Final[Key[int | None]] = Key("hoodie_py.clean.max.partitions", whole(1), None)
CLEAN_MAX_BYTES: Final[Key[int | None]] = Key("hoodie_py.clean.max.bytes", whole(1), None)
CLEAN_MAX_DURATION: Final[Key[timedelta | None]] = Key("hoodie_py.clean.max.duration", duration, None)
TAGS_HOURLY: Final = Key("hoodie_py.tags.hourly", whole(0), 0)
TAGS_DAILY: Final = Key("hoodie_py.tags.daily", whole(0), 0)
TAGS_WEEKLY: Final = Key("hoodie_py.tags.weekly", whole(0), 0)
TAGS_MONTHLY: Final = Key("hoodie_py.tags.monthly", whole(0), 0)
TAGS_WATERMARK: Final[Key[str | None]] = Key("hoodie_py.tags.watermark", a_name, None)
"""The entry of a commit's extra metadata that says up to when its rows are complete; tags then go by that time."""
TAGS_WATERMARK_DELAY: Final = Key("hoodie_py.tags.watermark.delay", duration, timedelta(0))
"""Number of hours, days, weeks, months of whose last commit a tag is kept; tags are created after commits."""
LEASES_IGNORED: Final = Key("hoodie_py.leases.ignored", flag, False)
"""Delete what leases of readers need; each one that is hurt is named in the log."""
GC_ENABLED: Final = Key("hoodie_py.gc.enabled", flag, True)
"""False: no files with committed rows are deleted. Also a property of a table, where false is in force for everyone."""
CLEAN_QUARANTINE: Final = Key("hoodie_py.clean.quarantine", flag, False)
"""Files that a clean removes are moved into quarantine for ``hoodie_py.quarantine.grace``, so that it can be undone."""
ORPHANS_OLDER_THAN: Final = Key("hoodie_py.orphans.older.than", duration, timedelta(days=3))
"""Smallest age of a file that no instant knows before it is removed."""
ORPHANS_MAX_SHARE: Final = Key("hoodie_py.orphans.max.share", share, 0.5)
"""Largest share of a table's files, from 0 to 1, that one search for files of no instant may remove."""
QUARANTINE_GRACE: Final = Key("hoodie_py.quarantine.grace", duration, timedelta(days=7))
"""How long files that were taken out of a table can be put back."""
QUARANTINE_TAG: Final = Key("hoodie_py.quarantine.tag", object_tag, None)
"""A tag, ``KEY=VALUE``, of objects in quarantine: a rule of the store deletes them, not hudi_py. In S3 only."""
FAILED_WRITES_POLICY: Final = Key(
    "hoodie.clean.failed.writes.policy",
    one_of("EAGER", "LAZY", "NEVER"),
    "EAGER",
    ("hoodie.cleaner.policy.failed.writes",),
)
HOOK_COMMAND: Final = Key("hoodie_py.hook.command", as_text, "")
"""Run after commits and services; gets what has completed as JSON on standard input."""
HOOK_URL: Final = Key("hoodie_py.hook.url", as_text, "")
HOOK_FUNCTION: Final = Key("hoodie_py.hook.function", as_text, "")
"""``package.module:function`` in Python, called with a `hudi_py.Completed`."""
HOOK_AFTER: Final[Key[tuple[str, ...]]] = Key("hoodie_py.hook.after", names, ("commit", "service"))
"""Either or both."""
HOOK_TIMEOUT: Final = Key("hoodie_py.hook.timeout", duration, timedelta(seconds=30))
"""Time limit of the command, and of the call of the address."""
CALLBACK_ON: Final = Key("hoodie.write.commit.callback.on", flag, False)
CALLBACK_URL: Final = Key("hoodie.write.commit.callback.http.url", as_text, "")
CALLBACK_TIMEOUT_S: Final = Key("hoodie.write.commit.callback.http.timeout.seconds", whole(1), 30)
CALLBACK_KEY: Final = Key("hoodie.write.commit.callback.http.api.key", as_text, "hudi_write_commit_http_callback")
CALLBACK_HEADERS: Final = Key("hoodie.write.commit.callback.http.custom.headers", as_text, "")
CONCURRENCY_MODE: Final = Key(
    "hoodie.write.concurrency.mode",
    one_of("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
    "SINGLE_WRITER",
)
EARLY_CONFLICTS: Final = Key("hoodie.write.concurrency.early.conflict.detection.enable", flag, False)
"""Only with several writers."""
CONFLICT_STRATEGY: Final = Key("hoodie.write.lock.conflict.resolution.strategy", as_text, "")
"""Empty: conflicts by file groups, or by buckets in a table with a bucket index."""
ISOLATION: Final = Key(
    "hoodie_py.write.isolation", one_of("SERIALIZABLE", "WRITE_SERIALIZABLE", "SNAPSHOT"), "WRITE_SERIALIZABLE"
)
WRITE_RETRIES: Final = Key("hoodie.write.num.retries.on.conflict.failures", whole(0), 4)
"""Only with several writers. Apache Hudi's default is 0: its caller has to write again."""
WRITE_RETRY_TIMEOUT: Final = Key("hoodie_py.write.retry.timeout", duration, timedelta(minutes=30))
HEARTBEAT_INTERVAL_MS: Final = Key("hoodie.client.heartbeat.interval_in_ms", whole(1000), 60_000)
HEARTBEAT_TOLERABLE_MISSES: Final = Key("hoodie.client.heartbeat.tolerable.misses", whole(1), 2)
LOCK_PROVIDER: Final = Key("hoodie.write.lock.provider", a_name, "")
"""Empty: no lock is taken (F-2)."""
LOCK_WAIT_MS: Final = Key("hoodie.write.lock.wait_time_ms", whole(0), 60_000)
LOCK_CLIENT_RETRIES: Final = Key("hoodie.write.lock.client.num_retries", whole(0), 50)
LOCK_CLIENT_RETRY_WAIT_MS: Final = Key("hoodie.write.lock.client.wait_time_ms_between_retry", whole(0), 5000)
LOCK_VALIDITY_S: Final = Key("hoodie.write.lock.storage.validity.timeout.secs", whole(10), 300)
LOCK_RENEW_S: Final = Key(
    "hoodie.write.lock.storage.renew.interval.secs", whole(1), 30, ("hoodie.write.lock.storage.heartbeat.poll.secs",)
)
ATOMIC_CREATION_SCHEMES: Final[Key[tuple[str, ...]]] = Key("hoodie.fs.atomic_creation.support", names, _NONE)
LOCK_FILE_FOLDER: Final = Key("hoodie.write.lock.filesystem.path", as_text, "")
# Never by default, as in Hudi: the lock of a process that is only slow would be taken from it.
LOCK_FILE_EXPIRE_MINUTES: Final = Key("hoodie.write.lock.filesystem.expire", whole(0), 0)
ZOOKEEPER_URL: Final = Key("hoodie.write.lock.zookeeper.url", as_text, "")
ZOOKEEPER_PORT: Final[Key[int | None]] = Key("hoodie.write.lock.zookeeper.port", whole(1), None)
ZOOKEEPER_BASE_PATH: Final = Key("hoodie.write.lock.zookeeper.base_path", as_text, "")
ZOOKEEPER_LOCK_KEY: Final = Key("hoodie.write.lock.zookeeper.lock_key", as_text, "")
ZOOKEEPER_SESSION_TIMEOUT_MS: Final = Key("hoodie.write.lock.zookeeper.session_timeout_ms", whole(1), 60_000)
ZOOKEEPER_CONNECTION_TIMEOUT_MS: Final = Key("hoodie.write.lock.zookeeper.connection_timeout_ms", whole(1), 15_000)
DYNAMODB_TABLE: Final = Key("hoodie.write.lock.dynamodb.table", as_text, "")
DYNAMODB_PARTITION_KEY: Final = Key("hoodie.write.lock.dynamodb.partition_key", as_text, "")
DYNAMODB_REGION: Final = Key("hoodie.write.lock.dynamodb.region", as_text, "")
DYNAMODB_ENDPOINT: Final = Key("hoodie.write.lock.dynamodb.endpoint_url", as_text, "")
DYNAMODB_BILLING_MODE: Final = Key(
    "hoodie.write.lock.dynamodb.billing_mode", one_of("PAY_PER_REQUEST", "PROVISIONED"), "PAY_PER_REQUEST"
)
DYNAMODB_READ_UNITS: Final = Key("hoodie.write.lock.dynamodb.read_capacity", whole(1), 20)
DYNAMODB_WRITE_UNITS: Final = Key("hoodie.write.lock.dynamodb.write_capacity", whole(1), 10)
DYNAMODB_CREATION_TIMEOUT_MS: Final = Key("hoodie.write.lock.dynamodb.table_creation_timeout", whole(1), 600_000)

ARCHIVE_AUTOMATIC: Final = Key("hoodie.archive.automatic", flag, True)
KEEP_MAX_COMMITS: Final = Key("hoodie.keep.max.commits", whole(2), 30)
KEEP_MIN_COMMITS: Final = Key("hoodie.keep.min.commits", whole(1), 20)
ARCHIVE_BATCH: Final = Key("hoodie.commits.archival.batch", whole(1), 10)
ARCHIVE_BEYOND_SAVEPOINT: Final = Key("hoodie.archive.beyond.savepoint", flag, False)
ARCHIVE_ANEW: Final = Key("hoodie_py.archive.anew", flag, False)
"""Our own: archive although the archive of earlier commits is lost; completion times in it can never be found again."""
ARCHIVE_FAILS_ON_DAMAGE: Final = Key("hoodie.fail.on.timeline.archiving", flag, True)
"""False: a damaged commit of layout 1 is archived without its content; its bytes are saved in a separate file."""
ARCHIVE_MERGE_ENABLED: Final = Key("hoodie.archive.merge.enable", flag, False)
ARCHIVE_MERGE_FILES: Final = Key("hoodie.archive.merge.files.batch.size", whole(2), 10)
ARCHIVE_MERGE_SMALL_BYTES: Final = Key("hoodie.archive.merge.small.file.limit.bytes", whole(1), 20 * 1024 * 1024)
HISTORY_COMPACTION_BATCH: Final = Key("hoodie.timeline.compaction.batch.size", whole(2), 10)
COMPACT_TRIGGER: Final = Key(
    "hoodie.compact.inline.trigger.strategy",
    one_of("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"),
    "NUM_COMMITS",
)
COMPACT_DELTA_COMMITS_MAX: Final = Key("hoodie.compact.inline.max.delta.commits", whole(1), 5)
COMPACT_INLINE: Final = Key("hoodie.compact.inline", flag, False)
COMPACT_SCHEDULE_INLINE: Final = Key("hoodie.compact.schedule.inline", flag, False)
FAILS_WITH_SERVICES: Final = Key("hoodie.fail.writes.on.inline.table.service.exception", flag, True)
COMPACT_DELTA_SECONDS_MAX: Final = Key("hoodie.compact.inline.max.delta.seconds", whole(1), 3600)
COMPACTION_STRATEGY: Final[Key[tuple[str, ...]]] = Key(
    "hoodie.compaction.strategy",
    names,
    names("org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy"),
)
"""Names of classes of Apache Hudi; of several, each chooses among what the one before left."""
COMPACTION_TARGET_IO: Final = Key("hoodie.compaction.target.io", whole(0), 500 * 1024)
"""In megabytes (MiB)."""
COMPACTION_LOG_BYTES_MIN: Final = Key("hoodie.compaction.logfile.size.threshold", whole(0), 0)
COMPACTION_LOG_FILES_MIN: Final = Key("hoodie.compaction.logfile.num.threshold", whole(0), 0)
COMPACTION_DAYS: Final = Key("hoodie.compaction.daybased.target.partitions", whole(0), 10)
LOG_COMPACTION_INLINE: Final = Key("hoodie.log.compaction.inline", flag, False)
LOG_COMPACTION_BLOCKS_MIN: Final = Key("hoodie.log.compaction.blocks.threshold", whole(1), 5)
COMPACTION_PARTITION_REGEX: Final = Key("hoodie.compaction.partition.path.regex", pattern, "")

PARTITION_TTL_INLINE: Final = Key("hoodie.partition.ttl.inline", flag, False)
PARTITION_TTL_TYPE: Final = Key(
    "hoodie.partition.ttl.management.strategy.type", one_of("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"), "KEEP_BY_TIME"
)
PARTITION_TTL_CLASS: Final = Key("hoodie.partition.ttl.strategy.class", as_text, "")
PARTITION_TTL_DAYS: Final = Key("hoodie.partition.ttl.strategy.days.retain", int, -1)
"""0 or less: no partition expires."""
PARTITION_TTL_SELECTED: Final[Key[tuple[str, ...]]] = Key(
    "hoodie.partition.ttl.strategy.partition.selected", names, _NONE
)
PARTITION_TTL_MAX: Final = Key("hoodie.partition.ttl.strategy.max.delete.partitions", whole(1), 1000)
PARTITION_TTL_FORMAT: Final = Key("hoodie_py.partition.ttl.value.format", as_text, "")
"""Our own: partitions expire by the time in their value, of this form (``%Y-%m-%d``)."""
PARTITION_TTL_FIELD: Final = Key("hoodie_py.partition.ttl.value.field", as_text, "")
"""Our own: partition column with that time; empty for the whole path."""

# --- clustering -------------------------------------------------------------------------------------------------
_PLAN: Final = "hoodie.clustering.plan.strategy."
CLUSTERING_INLINE: Final = Key("hoodie.clustering.inline", flag, False, ("hoodie.datasource.clustering.inline.enable",))
CLUSTERING_SCHEDULE_INLINE: Final = Key("hoodie.clustering.schedule.inline", flag, False)
CLUSTERING_INLINE_COMMITS: Final = Key("hoodie.clustering.inline.max.commits", whole(1), 4)
CLUSTERING_SCHEDULE_COMMITS: Final = Key("hoodie.clustering.async.max.commits", whole(1), 4)
CLUSTERING_PLAN_CLASS: Final = Key(f"{_PLAN}class", as_text, "")
CLUSTERING_RUN_CLASS: Final = Key("hoodie.clustering.execution.strategy.class", as_text, "")
CLUSTERING_SMALL_BYTES: Final = Key(f"{_PLAN}small.file.limit", whole(0), 300 << 20)
CLUSTERING_GROUP_BYTES: Final = Key(f"{_PLAN}max.bytes.per.group", whole(1), 2 << 30)
CLUSTERING_TARGET_BYTES: Final = Key(f"{_PLAN}target.file.max.bytes", whole(1), 1 << 30)
CLUSTERING_GROUPS_MAX: Final = Key(f"{_PLAN}max.num.groups", whole(1), 30)
CLUSTERING_SINGLE_GROUP: Final = Key(f"{_PLAN}single.group.clustering.enabled", flag, True)
CLUSTERING_SORT_COLUMNS: Final[Key[tuple[str, ...]]] = Key(f"{_PLAN}sort.columns", names, _NONE)
CLUSTERING_LAYOUT: Final = Key("hoodie.layout.optimize.strategy", one_of("LINEAR", "ZORDER", "HILBERT"), "LINEAR")
CLUSTERING_PARTITIONS: Final[Key[tuple[str, ...]]] = Key(f"{_PLAN}partition.selected", names, _NONE)
CLUSTERING_PARTITION_REGEX: Final = Key(f"{_PLAN}partition.regex.pattern", pattern, "")
CLUSTERING_FILTER_MODE: Final = Key(
    "hoodie.clustering.plan.partition.filter.mode",
    one_of("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"),
    "NONE",
)
CLUSTERING_LOOKBACK: Final = Key(f"{_PLAN}daybased.lookback.partitions", whole(0), 2)
CLUSTERING_SKIP_LATEST: Final = Key(f"{_PLAN}daybased.skipfromlatest.partitions", whole(0), 0)
CLUSTERING_BEGIN: Final = Key(f"{_PLAN}cluster.begin.partition", as_text, "")
CLUSTERING_END: Final = Key(f"{_PLAN}cluster.end.partition", as_text, "")
CLUSTERING_PLANNER: Final = Key("hoodie_py.clustering.planner", one_of("HUDI", "PACKED"), "HUDI")
"""Our own: HUDI plans what Apache Hudi would; PACKED moves fewer bytes for the same number of files."""
CLUSTERING_BYTES_MAX: Final[Key[int | None]] = Key("hoodie_py.clustering.max.bytes", whole(1), None)
"""Our own: groups of one plan rewrite at most this number of bytes; the next plan has the rest."""
CLUSTERING_MEMORY_BYTES: Final = Key("hoodie_py.clustering.memory.bytes", whole(1), 256 << 20)
"""Our own: rows of a larger group are sorted by way of temporary files."""

# --- writing ----------------------------------------------------------------------------------------------------
TABLE_NAME: Final = Key("hoodie.table.name", as_text, "", ("hoodie.datasource.write.table.name",))
DATABASE_NAME: Final = Key("hoodie.database.name", as_text, "")
TABLE_TYPE: Final = Key(
    "hoodie.table.type",
    one_of("COPY_ON_WRITE", "MERGE_ON_READ"),
    "COPY_ON_WRITE",
    ("hoodie.datasource.write.table.type", "hoodie.datasource.write.storage.type"),
)
CDC_ENABLED: Final = Key("hoodie.table.cdc.enabled", flag, False)
CDC_LOGGING_MODE: Final = Key(
    "hoodie.table.cdc.supplemental.logging.mode",
    one_of("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"),
    "DATA_BEFORE_AFTER",
)
WRITE_TABLE_VERSION: Final = Key("hoodie.write.table.version", whole(0), 9, ("hoodie.table.version",))
RECORD_KEY_FIELDS: Final[Key[tuple[str, ...]]] = Key(
    "hoodie.datasource.write.recordkey.field", names, _NONE, ("hoodie.table.recordkey.fields",)
)
PARTITION_FIELDS: Final[Key[tuple[str, ...]]] = Key(
    "hoodie.datasource.write.partitionpath.field", names, _NONE, ("hoodie.table.partition.fields",)
)
ORDERING_FIELDS: Final[Key[tuple[str, ...]]] = Key(
    "hoodie.table.ordering.fields",
    names,
    _NONE,
    ("hoodie.datasource.write.precombine.field", "hoodie.table.precombine.field"),
)
HIVE_STYLE: Final = Key("hoodie.datasource.write.hive_style_partitioning", flag, False)
URL_ENCODE: Final = Key("hoodie.datasource.write.partitionpath.urlencode", flag, False)
TIMELINE_TIMEZONE: Final = Key("hoodie.table.timeline.timezone", one_of("LOCAL", "UTC"), "LOCAL")
KEY_GENERATOR_CLASS: Final = Key(
    "hoodie.datasource.write.keygenerator.class", as_text, "", ("hoodie.table.keygenerator.class",)
)
KEY_GENERATOR_TYPE: Final = Key(
    "hoodie.datasource.write.keygenerator.type", as_text, "", ("hoodie.table.keygenerator.type",)
)
TIME_TYPE: Final = _timed("timebased.timestamp.type", "")
"""Of the values that a key generator by time makes paths of: UNIX_TIMESTAMP, EPOCHMILLISECONDS, DATE_STRING ..."""
TIME_SCALAR_UNIT: Final = _timed("timebased.timestamp.scalar.time.unit", "SECONDS")
TIME_INPUT_PATTERN: Final = _timed("timebased.input.dateformat", "")
TIME_INPUT_DELIMITER: Final = _timed("timebased.input.dateformat.list.delimiter.regex", ",")
TIME_INPUT_ZONE: Final = _timed("timebased.input.timezone", "")
TIME_OUTPUT_PATTERN: Final = _timed("timebased.output.dateformat", "")
TIME_OUTPUT_ZONE: Final = _timed("timebased.output.timezone", "")
"""Empty: in Apache Hudi the zone of the machine, whatever its documentation says."""
TIME_ZONE: Final = _timed("timebased.timezone", "")
"""Of input and output; overrides the two."""
TIME_PARSER: Final = _timed("datetime.parser.class", "")
TIME_KEYS: Final = (
    TIME_TYPE, TIME_SCALAR_UNIT, TIME_INPUT_PATTERN, TIME_INPUT_DELIMITER, TIME_INPUT_ZONE, TIME_OUTPUT_PATTERN,
    TIME_OUTPUT_ZONE, TIME_ZONE, TIME_PARSER,
)  # fmt: skip
PAYLOAD_CLASS: Final = Key("hoodie.datasource.write.payload.class", as_text, "", ("hoodie.compaction.payload.class",))
MERGE_MODE: Final = Key(
    "hoodie.record.merge.mode",
    one_of("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"),
    "",
    ("hoodie.write.record.merge.mode",),
)
COMMIT_METADATA_PREFIX: Final = Key("hoodie.datasource.write.commitmeta.key.prefix", a_name, "_")
"""Settings whose names begin so are copied into ``extraMetadata`` of commits."""
COMBINE_BEFORE_INSERT: Final = Key("hoodie.combine.before.insert", flag, False)
INSERT_DROPS_DUPLICATES: Final = Key("hoodie.datasource.write.insert.drop.duplicates", flag, False)
INSERT_DUPLICATES: Final = Key("hoodie.datasource.insert.dup.policy", one_of("NONE", "DROP", "FAIL"), "NONE")
PARQUET_MAX_FILE_SIZE: Final = Key("hoodie.parquet.max.file.size", whole(1), 120 * 1024 * 1024)
PARQUET_SMALL_FILE_LIMIT: Final = Key("hoodie.parquet.small.file.limit", int, 104_857_600)
PARQUET_BLOCK_SIZE: Final = Key("hoodie.parquet.block.size", whole(1), 64 * 1024 * 1024)
"""Of a row group before it is compressed. Less than Apache Hudi's 120 MiB, because its rows are held in memory."""
PARQUET_PAGE_SIZE: Final = Key("hoodie.parquet.page.size", whole(1), 1024 * 1024)
PARQUET_DICTIONARY: Final = Key("hoodie.parquet.dictionary.enabled", flag, True)
PARQUET_COMPRESSION: Final = Key("hoodie.parquet.compression.codec", as_text, "gzip")
INDEX_TYPE: Final = Key("hoodie.index.type", index, "SIMPLE")
BLOOM_MOVES_ROWS: Final = Key("hoodie.bloom.index.update.partition.path", flag, True)
SIMPLE_MOVES_ROWS: Final = Key("hoodie.simple.index.update.partition.path", flag, True)
RECORD_INDEX_MOVES_ROWS: Final = Key("hoodie.record.index.update.partition.path", flag, False)
"""Whether a row whose key a global index finds in another partition moves to the partition that its values say."""
BUCKET_COUNT: Final = Key("hoodie.bucket.index.num.buckets", whole(1), 256)
"""Of a table with a bucket index; the same in all its writers, because nothing in the table says it."""
BUCKET_FIELDS: Final[Key[tuple[str, ...]]] = Key("hoodie.bucket.index.hash.field", names, _NONE)
"""Empty: all fields of the record key."""
BUCKET_ENGINE: Final = Key("hoodie.index.bucket.engine", one_of("SIMPLE", "CONSISTENT_HASHING"), "SIMPLE")
LOG_BLOCK_FORMAT: Final = Key("hoodie.logfile.data.block.format", one_of("AVRO", "PARQUET"), "AVRO")
RECORD_POSITIONS: Final = Key("hoodie.write.record.positions", flag, True)
"""Whether log blocks say at which rows of the base file their records are, where the index that was used knows it."""
MERGE_SMALL_FILES_MAX: Final = Key("hoodie.merge.small.file.group.candidates.limit", whole(0), 1)
BLOOM_NUM_ENTRIES: Final = Key("hoodie.index.bloom.num_entries", whole(1), 60_000)
BLOOM_FPP: Final = Key("hoodie.index.bloom.fpp", share, 1e-9)
BLOOM_TYPE: Final = Key("hoodie.bloom.index.filter.type", one_of("SIMPLE", "DYNAMIC_V0"), "DYNAMIC_V0")
BLOOM_MAX_ENTRIES: Final = Key("hoodie.bloom.index.filter.dynamic.max.entries", whole(1), 100_000)
INSERT_SPLIT_SIZE: Final = Key("hoodie.copyonwrite.insert.split.size", whole(1), 500_000)
INSERT_AUTO_SPLIT: Final = Key("hoodie.copyonwrite.insert.auto.split", flag, True)
RECORD_SIZE_ESTIMATE: Final = Key("hoodie.copyonwrite.record.size.estimate", whole(1), 1024)
RECORD_SIZE_THRESHOLD: Final = Key("hoodie.record.size.estimation.threshold", number, 1.0)
ALLOW_EMPTY_COMMIT: Final = Key("hoodie.allow.empty.commit", flag, True)
RECORD_INDEX_ENABLED: Final = Key(
    "hoodie.metadata.global.record.level.index.enable", flag, False, ("hoodie.metadata.record.index.enable",)
)
RECORD_INDEX_GROUPS_MIN: Final = Key(
    "hoodie.metadata.global.record.level.index.min.filegroup.count",
    whole(1),
    10,
    ("hoodie.metadata.record.index.min.filegroup.count",),
)
RECORD_INDEX_GROUPS_MAX: Final = Key(
    "hoodie.metadata.global.record.level.index.max.filegroup.count",
    whole(1),
    10_000,
    ("hoodie.metadata.record.index.max.filegroup.count",),
)
RECORD_INDEX_GROWTH: Final = Key("hoodie.metadata.record.index.growth.factor", number, 2.0)
RECORD_INDEX_GROUP_BYTES_MAX: Final = Key("hoodie.metadata.record.index.max.filegroup.size", whole(1), 1 << 30)
METADATA_ENABLED: Final[Key[bool | None]] = Key("hoodie.metadata.enable", flag, None)
"""None: keep the metadata table if the table has one. False: the metadata table may be deleted."""
METADATA_COMPACT_DELTA_COMMITS_MAX: Final = Key("hoodie.metadata.compact.max.delta.commits", whole(1), 10)
NEW_COMPLEX_KEY_ENCODING: Final[Key[bool | None]] = Key("hoodie.write.complex.keygen.new.encoding", flag, None)
BULK_INSERT_PARALLELISM: Final = Key("hoodie.bulkinsert.shuffle.parallelism", whole(0), 0)
BULK_INSERT_SORT_MODE: Final = Key(
    "hoodie.bulkinsert.sort.mode",
    one_of(
        "NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"
    ),
    "",
)
"""Empty: as NONE, but rows of one partition go to few tasks, so that large writes make no small files."""
BULK_INSERT_PARTITIONER: Final = Key("hoodie.bulkinsert.user.defined.partitioner.class", as_text, "")
BULK_INSERT_SORT_COLUMNS: Final[Key[tuple[str, ...]]] = Key(
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns", names, _NONE
)
BULK_INSERT_SORT_SUFFIX: Final = Key("hoodie.bulkinsert.sort.suffix.record_key", flag, False)
"""Whether rows with equal values in the sort columns are sorted by their key."""
UPSERT_PARALLELISM: Final = Key("hoodie.upsert.shuffle.parallelism", whole(0), 0)
INSERT_PARALLELISM: Final = Key("hoodie.insert.shuffle.parallelism", whole(0), 0)
DELETE_PARALLELISM: Final = Key("hoodie.delete.shuffle.parallelism", whole(0), 0)
SINGLE_PASS_BYTES: Final = Key("hoodie_py.write.single.pass.max.bytes", whole(0), 32 * 1024 * 1024)
"""Not known to Hudi. Rows larger than this, by Spark's estimate, are written in two passes; 0 for all rows."""
DRIVER_ROWS: Final = Key("hoodie_py.write.driver.max.rows", whole(0), 1000)
"""Not known to Hudi. As many rows the driver writes itself, without a task in Python; 0 leaves all to executors."""
NUMBERS_TO_TEXT: Final = Key("hoodie_py.write.numbers.to.text", flag, False)
"""Not known to Hudi. Texts for a column of numbers make it one of texts, as in Hudi; otherwise they are refused."""
MERGE_MEMORY_BYTES: Final = Key("hoodie.memory.merge.max.size", whole(1), 1 << 30)
"""Memory for the rows of a write without Spark; more rows go through temporary files."""
COMPACTION_MEMORY_BYTES: Final = Key("hoodie.memory.compaction.max.size", whole(1), 1 << 30)
"""Memory for the log records of a compaction without Spark, and of each of its tasks on Spark; more of them go through
temporary files."""
SPILL_FOLDER: Final = Key("hoodie.memory.spillable.map.path", as_text, "")
"""Folder of these files; the machine's temporary folder (``TMPDIR``) by default."""
READ_BYTES_MAX: Final = Key("hoodie_py.read.max.bytes", whole(1), 1 << 30)
"""Not known to Hudi. Larger metadata files are not read."""
READ_ARCHIVE_BYTES_MAX: Final[Key[int | None]] = Key("hoodie_py.read.archive.max.bytes", whole(0), None)
"""Our own: a larger archive is not asked for files that are missing; by default 512 for each data file."""

# Collected from the names above, so that a new setting cannot be forgotten in a second list.
ALL_KEYS: Final[tuple[Key[Any], ...]] = tuple(value for value in list(globals().values()) if isinstance(value, Key))


@cache
def _keys_by_name() -> Mapping[str, Key[Any]]:
    return {name: key for key in ALL_KEYS for name in key.names}


def key_by_name(name: str) -> Key[Any] | None:
    """Return the supported setting with this name, old or new; None if there is none."""
    return _keys_by_name().get(name)
