"""
Runs a write from the user's rows to the clean after the commit, with any engine for rows.

The steps: open or create the table (`hudi_py.write_target`), select columns, resolve the schema, begin the write, have
the engine write the data files, commit, clean, archive. Nothing here depends on Spark: `hudi_py.spark` and
`hudi_py.local` implement the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from typing import Final

import attrs
import pyarrow as pa

from hudi_py.after_commit import Served, serve_after
from hudi_py.clean_beside import CleanBeside
from hudi_py.config import keys
from hudi_py.config.bulk_insert import bulk_insert_layout
from hudi_py.config.concurrency import concurrency_of
from hudi_py.config.door import require_served
from hudi_py.config.duplicates import Duplicates, combines_inserts, duplicates_of
from hudi_py.config.expiry import expiry_config
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableType
from hudi_py.engine.base import Engine
from hudi_py.errors import (
    ConfigError,
    ConflictError,
    HudiError,
    RefusedError,
    ServiceFailed,
    UnsupportedTable,
    WriteError,
)
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.formats.schema_evolution import ResolvedSchema, resolve_schema
from hudi_py.local.rows import ArrowRows
from hudi_py.model.records import CommitMetadata
from hudi_py.rows.bound_where import bound_filters
from hudi_py.rows.column_ids import ColumnIds
from hudi_py.rows.keys import KeyGenerator
from hudi_py.rows.partition_values import partition_values_of, path_texts_of
from hudi_py.rows.precedence import MergeMode, MergeRules, merge_rules_of
from hudi_py.rows.shown_times import ShownTimes
from hudi_py.rows.stored_keys import StoredKeys
from hudi_py.rows.time_partitions import time_partitions_of
from hudi_py.rows.written import WrittenFile
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.runtime.stopwatch import Stopwatch
from hudi_py.storage.base import Storage
from hudi_py.storage.retry import Retry
from hudi_py.table_services import TableServices
from hudi_py.table_statements import Statement
from hudi_py.table_view import TableView
from hudi_py.timeline.fence import is_fenced
from hudi_py.txn.early import EarlyConflict, wait_for
from hudi_py.txn.turns import taking_rows, taking_turns
from hudi_py.write_job import job_of
from hudi_py.write_target import WRITE_USE, WriteTarget, columns_needed
from hudi_py.writing.anywhere import global_index_of
from hudi_py.writing.bulk import require_layout
from hudi_py.writing.commit_words import NO_WORDS, CommitWords, copied_settings, expiry_words
from hudi_py.writing.generated_keys import require_keys
from hudi_py.writing.incoming import IncomingRows
from hudi_py.writing.options import check_options
from hudi_py.writing.repeat import DELAYS, given_up_if_lost, repeated
from hudi_py.writing.replaced import check_replaced
from hudi_py.writing.replacing import DELETE_PARTITION, OVERWRITES, groups_to_replace
from hudi_py.writing.required import Required
from hudi_py.writing.result import WriteResult
from hudi_py.writing.rivals import BasedOn, Rivals
from hudi_py.writing.schema import schema_to_write
from hudi_py.writing.transaction import WriteTransaction, begin_write

_BY_HUDI: Final = "nothing was written; hudi_py does not do this yet, use Apache Hudi"


class WriteService:
    """
    Writes to a table. The first write creates the table if it does not exist.

    Args:
        storage: Storage of the table.
        settings: See `hudi_py.WriteClient`.
        clock: Source of instant times.
        cleaning: Returns the engine that deletes files after a commit.
        delays: Delays between the attempts of a write that loses against other writers.

    Raises:
        ConfigError: A setting is invalid or refused, or contradicts the table.
        UnsupportedTable: hudi_py does not write this kind of table.
    """

    def __init__(
        self,
        storage: Storage,
        settings: Settings,
        clock: Clock,
        cleaning: Callable[[], Engine],
        *,
        delays: Retry = DELAYS,
    ) -> None:
        require_served(settings, WRITE_USE)
        check_options(settings)
        if settings[keys.PARTITION_TTL_INLINE]:
            expiry_config(settings)  # raises for settings that contradict each other before anything is written
        self._delays = delays
        self._storage = storage
        self._settings = settings
        self._clock = clock
        self._cleaning = cleaning
        self._target = WriteTarget(storage, settings, clock)

    @property
    def settings(self) -> Settings:
        """Settings of the writes."""
        return self._settings

    def stored_schema(self) -> pa.Schema | None:
        """Return the columns of the table's rows as they are stored; None if the table has none yet."""
        table = self._target.known
        text = None if table is None else table.refresh().schema_text()
        return None if text is None else parse_record_schema(text)

    def write(self, rows: IncomingRows, operation: str, words: CommitWords = NO_WORDS) -> WriteResult:
        """
        Write *rows* in one commit, then clean and archive.

        Args:
            rows: Rows to write.
            operation: ``UPSERT``, ``INSERT``, ``BULK_INSERT``, ``DELETE``, ``INSERT_OVERWRITE`` or
                ``INSERT_OVERWRITE_TABLE``.
            words: Further entries of the commit, and the number of retries.

        Raises:
            See `hudi_py.WriteClient.upsert`.
        """
        return self._repeated(words, operation, lambda: self._write(rows, operation, words))

    def _write(self, rows: IncomingRows, operation: str, words: CommitWords) -> WriteResult:
        # Loaded afresh for each attempt: a repeated one has to see what it lost against.
        table = self._target.opened_or_created(rows, operation).refresh_timeline()
        generator = self._target.key_generator(table)
        buckets = self._target.check(table, generator)
        rules = merge_rules_of(table.config.properties)
        text = table.schema_text()
        needed = columns_needed(self._settings, operation, generator, rules)
        require_keys(self._settings, generator, operation)
        rows = rows.shaped(text, needed, keys_only=operation == "DELETE")
        schema = schema_to_write(
            text,
            rows.schema,
            table.config.name,
            keys_only=operation == "DELETE",
            placing=(*generator.key_columns, *generator.partition_fields),
            ordering=rules.batch_fields,
            may_become_text=self._settings[keys.NUMBERS_TO_TEXT],
        )
        ids = self._target.column_ids(table, text, schema)
        duplicates = duplicates_of(self._settings, operation, by_bucket=buckets is not None)
        searched = duplicates is not Duplicates.ADDED
        if searched or operation in ("UPSERT", "DELETE"):
            self._target.check_keys(table, generator, text)
        if operation == "DELETE":
            generator = _for_rows_as_read(generator, table)
        if operation == "BULK_INSERT":
            require_layout(bulk_insert_layout(self._settings), schema.schema, by_bucket=buckets is not None)
        combines = operation in ("UPSERT", "DELETE") or combines_inserts(self._settings)
        rows = rows.checked(Required.of(generator, operation, rules, schema.schema, combines=combines), generator)

        def write_files(transaction: WriteTransaction) -> list[WrittenFile]:
            job = job_of(self._settings, table, transaction, operation, schema, generator, rules, buckets, ids)
            return rows.write(attrs.evolve(job, anywhere=anywhere))

        anywhere = global_index_of(self._settings, table.config)
        looks_everywhere = anywhere is not None and (searched or operation in ("UPSERT", "DELETE"))
        # A row that would move stays away if the stored one wins: nothing of either is written then.
        may_stay_away = anywhere is not None and anywhere.moves_rows and bool(rules.stored_fields)
        based_on = BasedOn(
            schema=text,
            ids=_latest(ids),
            by_bucket=buckets is not None,
            everywhere=looks_everywhere,
            known_keys=duplicates.value if searched else "",
            by_presence=duplicates is Duplicates.DROPPED or (may_stay_away and operation == "UPSERT"),
        )
        return self._run(table, operation, schema.text, ids, schema, write_files, words, based_on)

    def change(self, statement: Statement, operation: str, words: CommitWords = NO_WORDS) -> WriteResult:
        """
        Find rows of the snapshot and write them changed, in one commit, then clean and archive.

        Args:
            statement: Finds the rows, once the write has begun.
            operation: ``DELETE`` or ``UPSERT``.
            words: As for `write`.

        Raises:
            TableNotFound: There is no table.
            As `write`.
        """
        return self._repeated(words, operation, lambda: self._change(statement, operation, words))

    def _change(self, statement: Statement, operation: str, words: CommitWords) -> WriteResult:
        table = self._target.opened().refresh()
        generator = self._target.key_generator(table, computes_paths=operation != "DELETE")
        shows_others = path_texts_of(table.config) is not None or time_partitions_of(table.config) is not None
        if operation != "DELETE" and shows_others:
            raise UnsupportedTable(  # read rows show the text of the path there, which must not be written as the value
                f"{self._storage.root} has partitions by time: rows are not updated or merged by conditions there; "
                "upsert them instead"
            )
        buckets = self._target.check(table, generator)
        text = self._schema_text(table)
        schema = resolve_schema(text, parse_record_schema(text), table.config.name)
        ids = self._target.column_ids(table, text, schema)
        statement.check(generator, schema.schema)
        # The stored keys and paths are used again, so an update never computes another key for a row that exists.
        keys_of = StoredKeys.like(generator)
        rules = MergeRules(MergeMode.COMMIT_TIME_ORDERING, ())  # a statement's rows win, whatever their ordering values

        def write_files(transaction: WriteTransaction) -> list[WrittenFile]:
            found = statement.find(table, generator, schema.schema)
            job = job_of(self._settings, table, transaction, found.operation, schema, keys_of, rules, buckets, ids)
            results = ArrowRows(found.to_write()).write(job) if found.count else []
            found.check(transaction.instant_time, results)
            return results

        values = partition_values_of(table.config, merged=table.config.table_type is TableType.MERGE_ON_READ)
        based_on = BasedOn(
            schema=text, ids=_latest(ids), by_bucket=buckets is not None, by_condition=True,
            may_hold=values.chooser(bound_filters(statement.conditions, schema.schema)), by_presence=statement.adds,
        )  # fmt: skip
        return self._run(table, operation, schema.text, ids, schema, write_files, words, based_on)

    def drop_partitions(
        self,
        paths: Collection[str],
        words: CommitWords = NO_WORDS,
        check: Callable[[], None] = lambda: None,
        *,
        is_service: bool = False,
    ) -> WriteResult:
        """
        Delete all rows of partitions in one commit, then clean and archive; the clean deletes the files later.

        Args:
            paths: Relative paths of the partitions.
            words: As for `write`.
            check: Called when the write has begun, after which it sees all others: raises if it is not to go on.
            is_service: Whether this is a service itself, which no clean nor any other service follows.

        Raises:
            ConfigError: The table has no such partition, or *paths* is a text.
            TableNotFound: There is no table.
            As `write`.
        """
        if isinstance(paths, str):  # its letters could be partitions
            raise ConfigError(f"drop_partitions takes a list of partitions: [{paths!r}]")
        return self._repeated(
            words, DELETE_PARTITION, lambda: self._drop_partitions(paths, words, check, is_service=is_service)
        )

    def _drop_partitions(
        self, paths: Collection[str], words: CommitWords, check: Callable[[], None], *, is_service: bool = False
    ) -> WriteResult:
        table = self._target.opened().refresh()
        # For its refusals alone: a drop computes no keys, but it may meet a table that hudi_py must not write.
        self._target.check(table, self._target.key_generator(table, computes_paths=False))
        absent = sorted(set(paths) - set(table.partitions()))
        # Dropped by this very write before, and deleted by a clean since.
        done = words.committed_before(table.timeline, table.contents) if absent else None
        if done is not None:
            return done
        if absent or not paths:
            what = f"has no partition {absent[0]!r}" if absent else "drops no partition, because none is named"
            raise ConfigError(f"{self._storage.root} {what}; hudi-py files shows them")
        text = self._schema_text(table)
        ids = self._target.column_ids(table, text, None)
        based_on = BasedOn(schema=text, ids=_latest(ids), dropped=paths)

        def write_no_files(_: WriteTransaction) -> list[WrittenFile]:
            check()
            return []

        return self._run(
            table, DELETE_PARTITION, text, ids, None, write_no_files, words, based_on, is_service=is_service
        )

    def _drop_expired(self, commit: str, table: TableView) -> tuple[str, ...]:
        """
        Drop the partitions that have expired, if each commit is to do that; return their paths (rule G-5).

        In a commit of its own, after which nothing else follows, as in Apache Hudi.

        Raises:
            ServiceFailed: It failed; *commit* is completed and must not be repeated.
        """
        settings = self._settings
        if not (settings[keys.PARTITION_TTL_INLINE] and settings[keys.TABLE_SERVICES_ENABLED]):
            return ()
        config = expiry_config(settings)
        if config.days <= 0 or not table.config.is_partitioned:
            return ()
        try:
            service = TableServices(table.refresh()).expiry(config)
            plan = service.plan()
            if not plan.expired:
                return ()
            words = expiry_words(plan.rule)
            self._drop_partitions(plan.expired, words, lambda: service.refuse_changed(plan.expired), is_service=True)
        except ConflictError as error:  # rows came into one of them, or another process drops them
            log.info("write.services.superseded", instant=commit, why=str(error))
            return ()
        except HudiError as error:
            raise ServiceFailed(
                f"commit {commit} is completed and its rows are visible, so do not write them again; dropping the "
                f"partitions that have expired failed: {error}",
                commit,
            ) from error
        return plan.expired

    def _repeated(self, words: CommitWords, operation: str, attempt: Callable[[], WriteResult]) -> WriteResult:
        concurrency = concurrency_of(self._settings)  # before a new table is created

        def wait(error: EarlyConflict, seconds_max: float) -> None:
            wait_for(self._storage, self._clock, self._settings, error.instant, seconds_max, self._delays.sleep)

        # Around the whole attempt, with the look at the table before it and the services behind it. Writers that look
        # for conflicts run beside each other.
        is_alone = not concurrency.is_shared and not self._storage.capabilities.is_rehearsal
        with taking_turns(self._storage.root) if is_alone else nullcontext():
            return repeated(
                attempt,
                concurrency,
                what=f"{operation.lower()} to {self._storage.root}",
                retries_max=words.retries,
                delays=self._delays,
                wait=wait,
            )

    def _schema_text(self, table: TableView) -> str:
        text = table.schema_text()
        if text is None:
            raise RefusedError(f"{self._storage.root} has no rows yet, and no commit says what columns they have")
        return text

    def _run(
        self,
        table: TableView,
        operation: str,
        schema: str,
        ids: ColumnIds | None,
        left_by: ResolvedSchema | None,
        write_files: Callable[[WriteTransaction], list[WrittenFile]],
        words: CommitWords,
        based_on: BasedOn,
        *,
        is_service: bool = False,
    ) -> WriteResult:
        """
        Begin a write, have its files written, and commit. *table* is loaded again once the write has begun.

        What follows a commit follows if it is not such a service itself.
        """
        concurrency, config = concurrency_of(self._settings), table.config
        watch = Stopwatch()
        # Before anything is written: a repeated write is usually found here and leaves no trace on the timeline.
        done = words.committed_before(table.timeline, table.contents)
        if done is not None:
            return done
        keeper = TableServices(table).metadata_table
        beside = CleanBeside(table, self._settings, self._cleaning)
        with (
            begin_write(table.contents, config, self._settings, keeper, operation) as transaction,
            given_up_if_lost(transaction, concurrency),
        ):
            # Everything that the write builds on is loaded now: commits that completed while it waited are in it.
            lists = based_on.by_condition or operation == DELETE_PARTITION or operation in OVERWRITES
            transaction.refuse_undoing((table.refresh() if lists else table.refresh_timeline()).timeline)
            transaction.refuse_overtaken(table.timeline)
            done = words.committed_before(table.timeline, table.contents)
            if done is not None:  # another process committed this key between the two looks
                transaction.abandon()
                return done
            # The rows were converted to the columns of before; with a single writer nobody can have changed them
            # since.
            if concurrency.is_shared and table.schema_text() not in (None, based_on.schema):
                transaction.abandon()
                raise ConflictError(f"{self._storage.root}: its columns were changed at this moment; write again")
            # After the second look: conflicts are judged from the timeline on which the write is really based.
            rivals = Rivals(
                concurrency=concurrency,
                contents=table.contents,
                table=config,
                before=table.timeline,
                based_on=based_on,
                words=words,
            )
            watch.lap("begin")
            try:
                with nullcontext() if is_service else beside, taking_rows(self._storage.root):
                    results = write_files(transaction)
                replaced = self._replaced(table, operation, results, based_on.dropped)
            except Exception as error:
                if not _is_of_rows(error):
                    raise
                if not isinstance(error, ConflictError) or not is_fenced(self._storage, transaction.instant_time):
                    transaction.abandon_untouched()  # unless another process closed the write
                raise
            watch.lap("write")
            if (
                not results
                and not replaced
                # A write key is recorded even if there are no rows: a repetition has to find that its version was
                # done.
                and not words.key
                and (based_on.by_condition or not self._settings[keys.ALLOW_EMPTY_COMMIT])
            ):
                transaction.abandon()
                return WriteResult(instant=None, metadata=CommitMetadata(), seconds=watch.seconds)
            # The tasks saw the sizes of the files that they merged; comparing them here costs no further request.
            check_replaced(results, table.timeline, table.contents)
            entries, history = ({}, None) if ids is None else ids.left_by(left_by, transaction.instant_time)
            metadata = transaction.commit(
                (result.stat for result in results),
                operation=operation,
                extra_metadata={**copied_settings(self._settings), "schema": schema, **entries, **based_on.entries},
                history=history,
                settle=rivals.settle,
                replaced=replaced,
                ranges={result.stat.path: result.ranges for result in results if result.stat.path and result.ranges},
                tracked={result.stat.path: result.keys for result in results if result.stat.path and result.keys},
            )
        watch.lap("commit")
        # Behind the with block: the commit is complete, and a failing service must not roll it back.
        served = Served()
        expired: tuple[str, ...] = ()
        if not is_service:
            served = serve_after(transaction.instant_time, table, self._settings, self._cleaning, beside)
            expired = self._drop_expired(transaction.instant_time, table)
        watch.lap("services")
        return WriteResult(
            instant=transaction.instant_time,
            metadata=metadata,
            cleans=served.cleans,
            compactions=served.compactions,
            indexes_dropped=tuple(sorted(keeper.dropped)),
            clusterings=served.clusterings,
            expired_partitions=expired,
            seconds=watch.seconds,
            put_onto=tuple(rivals.passed),
        )

    @staticmethod
    def _replaced(
        table: TableView, operation: str, results: list[WrittenFile], dropped: Collection[str]
    ) -> Mapping[str, tuple[str, ...]] | None:
        """Return the file groups that a write replaces; None if its operation replaces none."""
        if operation != DELETE_PARTITION and operation not in OVERWRITES:
            return None
        paths = {result.stat.partition_path or "" for result in results}.union(dropped)
        if paths and operation == "INSERT_OVERWRITE_TABLE":  # as Hudi: no rows replace nothing
            paths.update(table.partitions())
        return groups_to_replace(table.view_context, table.listing, paths)


def _for_rows_as_read(generator: KeyGenerator, table: TableView) -> KeyGenerator:
    """Return a key generator that understands rows as readers of the table show them, too."""
    texts = path_texts_of(table.config)
    return ShownTimes.of(generator, texts, table.partitions()) if texts is not None and generator.times else generator


def _is_of_rows(error: Exception) -> bool:
    """Whether an error says that rows cannot be written, or comes from the iterator of the caller that yields them."""
    refused = (ConfigError, ConflictError, RefusedError, UnsupportedTable, WriteError)
    return isinstance(error, refused) or not isinstance(error, HudiError)


def _latest(ids: ColumnIds | None) -> str | None:
    return None if ids is None else ids.latest
