"""What the child process can do with a table; every public method is one operation of the protocol."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from real_hudi.canonical import canonical_rows
from real_hudi.clock import ShiftedClock, parse_instant
from real_hudi.lease import Leases
from real_hudi.session import HudiJvm, java_items, java_stream, unwrap
from real_hudi.settings import clean_settings, client_settings, table_exists, write_options

FAIL_BEFORE_COMPLETION: Final = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}
"""A check that no write passes: files and markers are there, the completed instant is not."""


class Operations:
    """
    Args:
        hudi: The running session.
        clock: The JVM's clock, None when it cannot be moved.
    """

    def __init__(self, hudi: HudiJvm, clock: ShiftedClock | None) -> None:
        self._hudi = hudi
        self._clock = clock
        self._locks: dict[str, Any] = {}
        self._leases = Leases(hudi)

    # ------------------------------------------------------------------ rows
    def write(
        self, table: str, source: str | None, operation: str, options: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Write the Parquet file *source* through the data source; returns the newest completed write."""
        exists = table_exists(table)
        settings = write_options(table, operation, options or {}, is_v1=self._hudi.is_v1)
        spark = self._hudi.spark
        frame = spark.read.format("hudi").load(table).limit(0) if source is None else spark.read.parquet(source)
        frame.write.format("hudi").options(**settings).mode("append" if exists else "overwrite").save(table)
        instants = self._instants(self._hudi.meta_client(table).getActiveTimeline().filterCompletedInstants())
        writes = [i for i in instants if i["action"] in ("commit", "deltacommit", "replacecommit")]
        return max(writes, key=lambda i: i["requested_time"])

    def write_for(
        self, table: str, sources: list[str], operation: str, options: dict[str, str], seconds: float
    ) -> dict[str, Any]:
        """Let one thread for each source write it again and again; commits, lost attempts, CPU seconds of the JVM."""
        settings = write_options(table, operation, options, is_v1=self._hudi.is_v1)
        spark = self._hudi.spark
        until_s, cpu_s = time.monotonic() + seconds, _cpu_s(self._hudi.pid)

        def run(source: str) -> tuple[int, int]:
            commits = lost = 0
            while time.monotonic() < until_s:
                writer = spark.read.parquet(source).write.format("hudi").options(**settings).mode("append")
                try:
                    writer.save(table)
                    commits += 1
                except Exception as error:
                    if "HoodieWriteConflictException" not in str(error):
                        raise
                    lost += 1
            return commits, lost

        with ThreadPoolExecutor(len(sources)) as pool:
            done = list(pool.map(run, sources))
        cpu_s = _cpu_s(self._hudi.pid) - cpu_s
        return {"commits": sum(each[0] for each in done), "lost": sum(each[1] for each in done), "cpu_s": cpu_s}

    def fail_write(self, table: str, source: str, operation: str, options: dict[str, str] | None = None) -> str:
        """Write, but fail between the data files and the completed instant; returns the pending instant."""
        try:
            self.write(table, source, operation, {**FAIL_BEFORE_COMPLETION, **(options or {})})
        except Exception:
            pending = self._hudi.meta_client(table).getActiveTimeline().filterInflightsAndRequested()
            times = [instant["requested_time"] for instant in self._instants(pending)]
            if not times:
                raise
            return str(max(times))
        raise RuntimeError(f"{table}: the write should have failed and did not")

    def read(
        self, table: str, as_of: str | None = None, metadata: bool | None = None, meta: bool = False,
        options: dict[str, str] | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Snapshot (or time travel) rows; *metadata* forces the metadata table on or off, None leaves the default."""
        reader = self._hudi.spark.read.format("hudi").options(**(options or {}))
        if as_of is not None:
            reader = reader.option("as.of.instant", as_of)
        if metadata is not None:
            reader = reader.option("hoodie.metadata.enable", str(metadata).lower())
        return canonical_rows((row.asDict(True) for row in reader.load(table).collect()), meta=meta)

    def find(self, table: str, where: str, options: dict[str, str] | None = None) -> dict[str, Any]:
        """Snapshot rows that meet an SQL condition, and how many files Spark opened for them: data skipping is on."""
        given = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true", **(options or {})}
        frame = self._hudi.spark.read.format("hudi").options(**given).load(table).where(where)
        rows = canonical_rows((row.asDict(True) for row in frame.collect()), meta=False)
        leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()  # noqa: SLF001 - there is no other way
        files = [leaves.apply(at).metrics().get("numFiles") for at in range(leaves.size())]
        return {"rows": rows, "files_read": sum(each.get().value() for each in files if each.isDefined())}

    def sql(self, statement: str, settings: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """One SQL statement, under *settings* of the session that are taken back after it; its rows."""
        spark = self._hudi.spark
        given = settings or {}
        try:
            for key, value in given.items():
                spark.conf.set(key, value)
            return canonical_rows((row.asDict(True) for row in spark.sql(statement).collect()), meta=False)
        finally:
            for key in given:
                spark.conf.unset(key)

    def validate_listing(self, table: str) -> list[dict[str, Any]]:
        """Files on which Hudi's procedure ``validate_metadata_table_files`` sees folders and metadata table differ."""
        name = f"validated_{abs(hash(table))}"
        self._hudi.spark.sql(f"create table if not exists {name} using hudi location '{table}'")
        found = self._hudi.spark.sql(f"call validate_metadata_table_files(table => '{name}')").collect()
        return [row.asDict(True) for row in found]

    # ------------------------------------------------------------------ services
    def clean(self, table: str, options: dict[str, str] | None = None) -> dict[str, Any]:
        """Run a clean; pending ones are finished first. ``metadata`` is None when there was nothing to do."""
        before = _data_files(table)
        metadata = self._with_client(table, options, lambda client: client.clean())
        return {
            "metadata": None if metadata is None else json.loads(metadata.toString()),
            "deleted_files": sorted(before - _data_files(table)),
        }

    def plan_clean(
        self, table: str, policy: str, commits_retained: int | None = None, file_versions_retained: int | None = None,
        hours_retained: int | None = None, options: dict[str, str] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What Hudi's own planner decides; writes nothing. Shape of ``hudi-py clean --dry-run --json``."""
        given = clean_settings(policy, commits_retained, file_versions_retained, hours_retained) | (options or {})
        config = self._hudi.write_config(client_settings(table, given, is_v1=self._hudi.is_v1))
        executor = self._clean_planner(config)
        needed = self._hudi.invoke_hidden(
            executor,
            "needsCleaning",
            ["org.apache.hudi.table.action.clean.CleaningTriggerStrategy"],
            [config.getCleaningTriggerStrategy()],
        )
        engine_type = "org.apache.hudi.common.engine.HoodieEngineContext"
        raw = self._hudi.invoke_hidden(executor, "requestClean", [engine_type], [self._hudi.engine])
        plan = _readable_plan(json.loads(raw.toString()), table)
        found = any(plan["files_to_delete"].values())
        return {"needs_cleaning": bool(needed), "would_schedule": bool(needed) and found, "plan": plan}

    def _clean_planner(self, config: Any) -> Any:
        factory = self._hudi.jvm.org.apache.hudi.table.action.clean.CleanPlanActionExecutor
        table, nothing = self._hudi.spark_table(config), self._hudi.option()
        if self._hudi.version.startswith(("0.", "1.0.")):
            return factory(self._hudi.engine, config, table, "99991231235959999", nothing)
        return factory(self._hudi.engine, config, table, nothing)

    def rollback(self, table: str, instant: str | None = None, options: dict[str, str] | None = None) -> bool:
        """Roll back one instant, or all failed writes."""

        def run(client: Any) -> bool:
            if instant is not None:
                return bool(client.rollback(instant))
            if self._hudi.is_v1:
                return bool(client.rollbackFailedWrites(self._hudi.meta_client(table)))
            return bool(client.rollbackFailedWrites())

        return bool(self._with_client(table, options, run))

    def savepoint(self, table: str, instant: str, delete: bool = False) -> None:
        """Create or delete a savepoint."""
        if delete:
            self._with_client(table, None, lambda client: client.deleteSavepoint(instant))
        else:
            self._with_client(table, None, lambda client: client.savepoint(instant, "interop", "by a test"))

    def restore(self, table: str, instant: str, options: dict[str, str] | None = None) -> None:
        """Restore the table to a savepoint."""
        self._with_client(table, options, lambda client: client.restoreToSavepoint(instant))

    def schedule(self, table: str, service: str, options: dict[str, str] | None = None) -> str | None:
        """Store the plan of a ``CLEAN``, ``COMPACT``, ``LOG_COMPACT`` or ``CLUSTER``; None: nothing to plan."""
        kind = getattr(self._hudi.jvm.org.apache.hudi.common.model.TableServiceType, service)
        nothing = self._hudi.option()
        time = self._with_client(table, options, lambda client: unwrap(client.scheduleTableService(nothing, kind)))
        return None if time is None else str(time)

    def carry_out(self, table: str, service: str, instant: str, options: dict[str, str] | None = None) -> None:
        """Carry out a pending ``COMPACT``, ``LOG_COMPACT`` or ``CLUSTER``."""

        def run(client: Any) -> None:
            if service == "CLUSTER":
                client.cluster(instant, True)
            elif service == "LOG_COMPACT":
                done = client.logCompact(instant)
                if not self._hudi.version.startswith(("0.", "1.0.")):  # those commit by themselves
                    client.commitLogCompaction(instant, done, self._hudi.option())
            elif self._hudi.version.startswith(("0.", "1.0.")):
                client.compact(instant)  # commits by itself
            else:
                client.compact(instant, True)

        schema = {} if service != "CLUSTER" else {"hoodie.avro.schema": self._schema_text(table)}
        self._with_client(table, {**schema, **(options or {})}, run)

    def _schema_text(self, table: str) -> str:
        """The columns of the rows, which a clustering takes from its settings."""
        resolver = self._hudi.jvm.org.apache.hudi.common.table.TableSchemaResolver(self._hudi.meta_client(table))
        has_old_name = self._hudi.version.startswith(("0.", "1.0.", "1.1."))
        return str((resolver.getTableAvroSchema if has_old_name else resolver.getTableSchema)(False).toString())

    def schedule_undo(self, table: str, instant: str, *, restore: bool = False) -> str:
        """Store the plan of a rollback (or restore) and undo nothing; returns its instant."""
        config = self._hudi.write_config(client_settings(table, {}, is_v1=self._hudi.is_v1))
        hudi_table, time = self._hudi.spark_table(config), datetime.now(timezone.utc)
        stamp = f"{time:%Y%m%d%H%M%S}{time.microsecond // 1000:03d}"
        if restore:
            hudi_table.scheduleRestore(self._hudi.engine, stamp, instant)
            return stamp
        instants = java_items(hudi_table.getActiveTimeline().getInstants())
        (target,) = (each for each in instants if self._time_of(each) == instant)
        hudi_table.scheduleRollback(self._hudi.engine, stamp, target, False, False, False)
        return stamp

    def expired_partitions(self, table: str, options: dict[str, str]) -> list[str]:
        """Partitions that its strategy of expiry (``hoodie.partition.ttl.*``) would drop now; nothing is written."""
        config = self._hudi.write_config(client_settings(table, options, is_v1=self._hudi.is_v1))
        hudi_table, time = self._hudi.spark_table(config), datetime.now(timezone.utc)
        factory = self._hudi.jvm.org.apache.hudi.table.action.ttl.strategy.HoodiePartitionTTLStrategyFactory
        stamp = f"{time:%Y%m%d%H%M%S}{time.microsecond // 1000:03d}"
        strategy = factory.createStrategy(hudi_table, config.getProps(), stamp)
        return sorted(str(path) for path in java_items(strategy.getExpiredPartitionPaths()))

    def archive(self, table: str, options: dict[str, str]) -> None:
        """Archive the timeline; *options* bring the bounds."""
        self._with_client(table, options, lambda client: client.archive())

    def lock(self, table: str, options: dict[str, str]) -> bool:
        """Take the lock of ``FileSystemBasedLockProvider`` as its class does; False when another holds it."""
        jvm = self._hudi.jvm
        properties = jvm.org.apache.hudi.common.config.TypedProperties()
        defaults = {"hoodie.base.path": table, "hoodie.write.lock.filesystem.expire": "0"}
        for key, value in (defaults | options).items():
            properties.setProperty(key, value)
        configuration = jvm.org.apache.hudi.common.config.LockConfiguration(properties)
        kind = jvm.org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider
        lock = self._locks.setdefault(table, kind(configuration, self._hudi.engine.getStorageConf()))
        return bool(lock.tryLock(1, jvm.java.util.concurrent.TimeUnit.MILLISECONDS))

    def unlock(self, table: str) -> None:
        """Give back what `lock` took."""
        self._locks.pop(table).unlock()

    def format_lease(self, expired: bool, valid_until: int, owner: str) -> str:
        """What ``StorageBasedLockProvider`` writes."""
        models = self._hudi.jvm.org.apache.hudi.client.transaction.lock.models
        content = models.StorageLockFile.toByteArray(models.StorageLockData(expired, valid_until, owner))
        return bytes(content).decode()

    def parse_lease(self, text: str) -> list[Any]:
        """What it reads: whether it is expired, until when it is valid, and whose it is."""
        jvm = self._hudi.jvm
        stream = jvm.java.io.ByteArrayInputStream(bytearray(text.encode()))
        found = jvm.org.apache.hudi.client.transaction.lock.models.StorageLockFile.createFromStream(stream, "version")
        return [found.isExpired(), found.getValidUntilMs(), found.getOwner()]

    def take_lease(self, location: str, storage_options: dict[str, str], owner: str, settings: dict[str, str]) -> bool:
        """Take the lock of ``StorageBasedLockProvider`` as its class does; False when another holds it."""
        return self._leases.take(location, storage_options, owner, settings)

    def renewals_refused(self, location: str) -> int:
        """How many renewals of its class found that the lock is another's by now."""
        return self._leases.refused(location)

    def release_lease(self, location: str) -> None:
        """Give back what `take_lease` took."""
        self._leases.release(location)

    def _with_client(self, table: str, options: dict[str, str] | None, run: Callable[[Any], Any]) -> Any:
        settings = client_settings(table, options or {}, is_v1=self._hudi.is_v1)
        client = self._hudi.write_client(self._hudi.write_config(settings))
        try:
            return run(client)
        finally:
            client.close()

    # ------------------------------------------------------------------ inspection
    def timeline(self, table: str, archived: bool = False) -> dict[str, Any]:
        """Instants as Hudi loads them, oldest first, each in its highest state."""
        client = self._hudi.meta_client(table)
        return {
            "layout_version": client.getTimelineLayoutVersion().getVersion(),
            "instants": self._instants(client.getActiveTimeline()),
            "archived": self._instants(client.getArchivedTimeline()) if archived else [],
        }

    def _instants(self, timeline: Any) -> list[dict[str, Any]]:
        return [
            {
                "requested_time": self._time_of(instant),
                "action": instant.getAction(),
                "state": instant.getState().name(),
                "completion_time": instant.getCompletionTime() if self._hudi.is_v1 else None,
            }
            for instant in java_items(timeline.getInstants())
        ]

    def _time_of(self, instant: Any) -> str:
        return str(instant.requestedTime() if self._hudi.is_v1 else instant.getTimestamp())

    def file_slices(self, table: str, use_metadata: bool = False) -> dict[str, Any]:
        """The file-system view, from a listing or from the metadata table. Shape of ``hudi-py files --json``."""
        given = {"hoodie.metadata.enable": str(use_metadata).lower()}
        config = self._hudi.write_config(client_settings(table, given, is_v1=self._hudi.is_v1))
        hudi_table = self._hudi.spark_table(config)
        manager = self._hudi.jvm.org.apache.hudi.common.table.view.FileSystemViewManager
        view = manager.createInMemoryFileSystemView(
            self._hudi.engine, hudi_table.getMetaClient(), config.getMetadataConfig()
        )
        try:
            paths = sorted(java_items(self._hudi.listing(hudi_table).getAllPartitionPaths()))
            return {"partitions": {path: _partition_view(view, path) for path in paths}}
        finally:
            view.close()

    def list_everything(self, table: str, use_metadata: bool = False) -> int:
        """List every file of every partition, through the metadata table or folder by folder; how many partitions."""
        given = {"hoodie.metadata.enable": str(use_metadata).lower()}
        config = self._hudi.write_config(client_settings(table, given, is_v1=self._hudi.is_v1))
        metadata = self._hudi.listing(self._hudi.spark_table(config))
        paths = self._hudi.jvm.java.util.ArrayList()
        for path in java_items(metadata.getAllPartitionPaths()):
            paths.add(f"{table}/{path}" if path else table)
        return int(metadata.getAllFilesInPartitions(paths).size())

    # ------------------------------------------------------------------ clock
    def set_clock(self, moment: str | None) -> bool:
        """Move the JVM's clock to an instant time (UTC); None is the real time. False: it cannot be moved here."""
        if self._clock is None:
            return False
        self._clock.set(None if moment is None else parse_instant(moment))
        self._hudi.forget_last_instant()
        return True

    def jvm_pid(self) -> int:
        """Process id of the JVM."""
        return self._hudi.pid


def operation_names() -> tuple[str, ...]:
    """Names of all operations."""
    return tuple(name for name in vars(Operations) if not name.startswith("_"))


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _data_files(table: str) -> set[str]:
    """Relative paths of everything outside ``.hoodie``, without checksum side files."""
    found = set()
    for folder, subfolders, names in os.walk(table):
        if ".hoodie" in subfolders:
            subfolders.remove(".hoodie")
        relative = Path(folder).relative_to(table)
        found |= {(relative / name).as_posix() for name in names if not name.endswith(".crc")}
    return found


def _partition_view(view: Any, path: str) -> dict[str, Any]:
    def slice_of(item: Any) -> dict[str, Any]:
        base = unwrap(item.getBaseFile())
        return {
            "base_instant": item.getBaseInstantTime(),
            "base_file": None if base is None else base.getFileName(),
            "log_files": sorted(log.getFileName() for log in java_stream(item.getLogFiles())),
        }

    def group_of(item: Any) -> dict[str, Any]:
        slices = [slice_of(one) for one in java_stream(item.getAllFileSlices())]
        return {"file_id": item.getFileGroupId().getFileId(), "slices": slices}

    groups = [group_of(group) for group in java_stream(view.getAllFileGroups(path))]
    replaced = [group.getFileGroupId().getFileId() for group in java_stream(view.getAllReplacedFileGroups(path))]
    latest = [{"file_id": s.getFileId(), **slice_of(s)} for s in java_stream(view.getLatestFileSlices(path))]
    return {
        "file_groups": sorted(groups, key=lambda group: group["file_id"]),
        "latest_slices": sorted(latest, key=lambda item: item["file_id"]),
        "latest_base_files": sorted(base.getFileName() for base in java_stream(view.getLatestBaseFiles(path))),
        "replaced_file_ids": sorted(replaced),
    }


def _readable_plan(raw: dict[str, Any], table: str) -> dict[str, Any]:
    """A ``HoodieCleanerPlan`` in the words of the public contract, paths relative to the table."""
    files = {
        partition: sorted(_relative(info["filePath"], table) for info in infos)
        for partition, infos in (raw.get("filePathsToBeDeletedPerPartition") or {}).items()
    }
    return {
        "policy": raw["policy"],
        "version": raw["version"],
        "earliest_instant_to_retain": raw["earliestInstantToRetain"],
        "last_completed_commit_timestamp": raw["lastCompletedCommitTimestamp"],
        "files_to_delete": files,
        "partitions_to_delete": sorted(raw.get("partitionsToBeDeleted") or []),
        "extra_metadata": raw.get("extraMetadata") or {},
    }


def _relative(path: str, table: str) -> str:
    plain = re.sub(r"^file:(?://)?(?=/)", "", path)
    return plain.removeprefix(table.rstrip("/") + "/")
