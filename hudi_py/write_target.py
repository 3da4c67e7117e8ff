"""
The table that a write goes to: opened or created, and checked before anything is written.

Most checks compare settings with properties and cost nothing. Two read data files, because no property says what the
table's other writers did: the form of single-column keys, and the paths of partitions by time.
"""

from __future__ import annotations

from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.duplicates import combines_inserts
from hudi_py.config.key_generators import key_generator_asked_for
from hudi_py.config.new_table import new_table_properties
from hudi_py.config.settings import Settings
from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError, TableNotFound
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.formats.schema_evolution import ResolvedSchema
from hudi_py.rows.bucket_index import BucketIndex, bucket_index_of
from hudi_py.rows.column_ids import ColumnIds, ids_to_keep
from hudi_py.rows.keys import KeyGenerator, KeyGeneratorKind, key_generator_of
from hudi_py.rows.path_lengths import PathLengths
from hudi_py.rows.precedence import MergeRules, merge_rules_of, refuse_types_without_order
from hudi_py.runtime.clock import Clock
from hudi_py.storage.base import Storage
from hudi_py.table_view import TableView
from hudi_py.txn.table_lock import TableLock
from hudi_py.versions.served import format_of
from hudi_py.writing.buckets import check_buckets
from hudi_py.writing.create_table import create_table
from hudi_py.writing.generated_keys import require_keys
from hudi_py.writing.incoming import IncomingRows
from hudi_py.writing.required import Required
from hudi_py.writing.same_table import require_same_table
from hudi_py.writing.schema import schema_to_write
from hudi_py.writing.stored_paths import are_keys_prefixed, check_stored_keys, check_stored_paths, may_differ_in_text

WRITE_USE: Final = Use.WRITE | Use.SERVICES
"""A write includes the services that run after its commit."""


class WriteTarget:
    """
    Opens, creates and checks the table of a write service, which may not exist yet.

    Args:
        storage: Storage of the table.
        settings: Settings of the writer.
        clock: Source of the time of creation.

    Raises:
        ConfigError: A setting is invalid, or contradicts the table.
        UnsupportedTable: hudi_py does not write this kind of table.
    """

    def __init__(self, storage: Storage, settings: Settings, clock: Clock) -> None:
        self._storage = storage
        self._settings = settings
        self._clock = clock
        self._table: TableView | None = None
        self._version = 0  # of the table when it was checked
        # Both checks read files, so each is made once: an existing table never gets buckets, or other paths, later.
        self._are_buckets_checked = False
        self._are_paths_checked = False
        self._are_keys_checked = False
        try:
            self._table = self._open()
        except TableNotFound:
            try:
                new_table_properties(settings)  # raises for invalid settings now, not at the first write
            except ConfigError as error:  # the path may be a wrong one, so it is told that no table is there
                raise ConfigError(f"there is no table at {storage.root}, and none can be created: {error}") from error

    @property
    def known(self) -> TableView | None:
        """The table as it was opened before; None if it did not exist then."""
        return self._table

    def opened(self) -> TableView:
        """
        Return the table.

        Raises:
            TableNotFound: It does not exist.
        """
        return self._table or self._open()

    def opened_or_created(self, rows: IncomingRows, operation: str) -> TableView:
        """Return the table, created for *rows* if it does not exist; a deletion creates none."""
        if self._table is None:
            try:
                self._table = self._open()
            except TableNotFound:
                if operation == "DELETE":
                    raise  # there is nothing to delete; a table with only key columns would be of no use
                self._check_new(rows, operation)  # raises before anything is created that would have to be undone
                create_table(self._storage, self._settings, self._clock)
                self._table = self._open()
        return self._table

    def key_generator(self, table: TableView, *, computes_paths: bool = True) -> KeyGenerator:
        """Return the table's key generator; if releases of Hudi write its keys differently, a stored key decides."""
        config = table.config
        properties = dict(config.properties)
        asked = key_generator_asked_for(self._settings)
        # Only the kind is asked here, so the form of keys and the paths, which may have to be looked up, do not matter.
        actual = key_generator_of(properties, single_field_prefixed=False, computes_paths=False).kind
        if asked not in (None, actual.value):
            raise ConfigError(
                f"the settings ask for key generator {asked}, but the table at {self._storage.root} has "
                f"{actual.value}; leave the setting out or write to another table"
            )
        prefixed = self._settings[keys.NEW_COMPLEX_KEY_ENCODING]
        if prefixed is None and len(config.record_key_fields) == 1 and actual is KeyGeneratorKind.COMPLEX:
            prefixed = are_keys_prefixed(
                self._storage, table.snapshot().slices_with_rows(), config.record_key_fields[0]
            )
            if prefixed is None and not config.format.prefixes_single_key:
                prefixed = False
        generator = key_generator_of(
            properties, self._settings, single_field_prefixed=prefixed, computes_paths=computes_paths
        )
        return attrs.evolve(generator, lengths=PathLengths.of(self._storage))

    def check(self, table: TableView, generator: KeyGenerator) -> BucketIndex | None:
        """
        Return the bucket index of *table* if its rows can be written, None if it has none.

        Raises:
            ConfigError: The settings are not those of the table's other writers.
            UnsupportedTable: hudi_py does not write this kind of table.
        """
        if table.config.version != self._version:  # upgraded since it was opened
            table.require(WRITE_USE)
            require_same_table(self._settings, table.config, self._storage.root)
            self._version = table.config.version
        if generator.times and not self._are_paths_checked:
            check_stored_paths(self._storage, table.snapshot().slices_with_rows(), generator)
            self._are_paths_checked = True
        buckets = bucket_index_of(self._settings, table.config.properties, generator, table.config.format)
        if not self._are_buckets_checked:
            check_buckets(self._storage, table.timeline, table.contents, buckets)
            self._are_buckets_checked = True
        return buckets

    def check_keys(self, table: TableView, generator: KeyGenerator, text: str | None) -> None:
        """
        Raise unless computed keys are those of the table's rows; for writes that look keys up.

        Args:
            table: The table.
            generator: Computes the keys.
            text: Avro schema of the table's rows; None if there are none yet.

        Raises:
            ConfigError: The table's other writers store keys as other texts.
        """
        if text is not None and not self._are_keys_checked:
            self._are_keys_checked = True
            if may_differ_in_text(generator, parse_record_schema(text)):
                check_stored_keys(self._storage, table.snapshot().slices_with_rows(), generator)

    def column_ids(self, table: TableView, text: str | None, left: ResolvedSchema | None) -> ColumnIds | None:
        """
        Return the ids of the columns that a write has to carry on; None for a table without schema on read.

        Args:
            table: The table.
            text: Avro schema of its rows.
            left: The columns that the write leaves; None for those of before.

        Raises:
            UnsupportedTable: Not all of them can be carried on; nothing was written.
        """
        ids = ids_to_keep(table.contents, table.timeline, table.config, lambda: text)
        if ids is not None:
            ids.left_by(left, "0")  # raises now, and not when all rows are written
        return ids

    def _open(self) -> TableView:
        table = TableView(self._storage, settings=self._settings.as_dict(), clock=self._clock)
        table.require(WRITE_USE)
        require_same_table(self._settings, table.config, self._storage.root)
        self._version = table.config.version
        return table

    def _check_new(self, rows: IncomingRows, operation: str) -> None:
        """Check the first rows of a new table, as far as possible without touching the storage."""
        properties = new_table_properties(self._settings)
        if self._settings[keys.LOCK_PROVIDER]:
            TableLock(self._storage, self._settings, self._clock).require_usable()
        # The form of single-field keys does not matter for the checks; it is decided when rows are written.
        generator = key_generator_of(properties, self._settings, single_field_prefixed=False)
        generator = attrs.evolve(generator, lengths=PathLengths.of(self._storage))
        require_keys(self._settings, generator, operation)
        bucket_index_of(self._settings, {}, generator, format_of(properties))
        needed = columns_needed(self._settings, operation, generator, merge_rules_of(properties))
        shaped = rows.shaped(None, needed, keys_only=False)
        rules = merge_rules_of(properties)
        schema = schema_to_write(None, shaped.schema, self._settings[keys.TABLE_NAME], keys_only=False)
        # Of the columns and not of rows: without rows, or with one of each key, a table would come about that no later
        # write fits.
        generator.check_types(schema.schema)
        refuse_types_without_order(schema.schema, rules.batch_fields)
        combines = operation == "UPSERT" or combines_inserts(self._settings)
        shaped.checked(Required.of(generator, operation, rules, schema.schema, combines=combines), generator)


def columns_needed(settings: Settings, operation: str, generator: KeyGenerator, rules: MergeRules) -> tuple[str, ...]:
    """Return the columns that the rows of a write must have."""
    fields = (*generator.key_columns, *generator.partition_fields)
    combines = operation != "DELETE" and combines_inserts(settings)
    ordered = operation == "UPSERT" or combines
    return (*fields, *rules.batch_fields) if ordered else fields
