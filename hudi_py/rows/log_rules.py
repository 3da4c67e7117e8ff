"""
How the records of log files are merged, among themselves and with the base file, as a table's properties say. Pure.

===========================  ===================  ===================
table                        log against log      log against base
===========================  ===================  ===================
1.x, by event time           ordering values      ordering values
1.x, by commit time          the later one        the log
0.15, default payload        ordering values      ordering values
0.15, event-time payload     ordering values      ordering values
0.15, latest-wins payload    ordering values      the log
===========================  ===================  ===================

A delete by key in 1.x is compared like a row if it has ordering values; else it wins over all earlier records, and any
row after it wins over it. In 0.15 it always wins over the base file, and a later row in the logs always wins over it.

Source: rules/data-files 9.3; Hudi 0.15.0 ``HoodieMergedLogRecordScanner``, ``OverwriteWithLatestAvroPayload``,
``DefaultHoodieRecordPayload``; 1.1.1 ``BufferedRecordMergerFactory``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from hudi_py.errors import UnsupportedTable
from hudi_py.rows.filling import Filling, filling_of
from hudi_py.rows.payloads import Payload, payload_of
from hudi_py.versions.format import TableFormat
from hudi_py.versions.served import format_of

_BY_HUDI: Final = "read the table with Apache Hudi, or its base files alone (read-optimized)"
_PREFIX: Final = "hoodie.record.merge.property."
_DELETE_FIELD: Final = "hoodie.payload.delete.field"
_DELETE_MARKER: Final = "hoodie.payload.delete.marker"
_KNOWN_MODES: Final = ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING")
_BY_PAYLOAD: Final = "00000000-0000-0000-0000-000000000000"


@attrs.frozen(kw_only=True)
class LogRules:
    """
    The rules of one table.

    Args:
        ordering_fields: Columns that order the records of one key; the first column decides first.
        orders_logs: Whether they decide between two log records; otherwise the later record wins.
        orders_base: Whether they decide between a log record and the base file; otherwise the log record wins.
        deletes_reset: Whether deletes by key work as in 0.15: see above.
        text_deletes_win: Whether a delete wins over all log records before it where the ordering values are texts: Hudi
            holds those of rows and of deletes as objects of different Java classes, which it does not compare.
        delete_marker: A column and the text of the value that marks a row as deleted, in addition to the flag
            ``_hoodie_is_deleted``.
        avro_widens_floats, ids_keep_float_texts: See `hudi_py.versions.format.TableFormat`.
        marks_any_case: Whether the text of *delete_marker* counts in upper and lower case.
        filling: Which values of a newer row are taken from the older one; None if a row replaces the other whole.
        payload: How a payload class merges two rows, where this is not all that there is to it.
    """

    ordering_fields: tuple[str, ...] = ()
    orders_logs: bool = False
    orders_base: bool = False
    deletes_reset: bool = False
    text_deletes_win: bool = False
    delete_marker: tuple[str, str] | None = None
    avro_widens_floats: bool = False
    ids_keep_float_texts: bool = False
    marks_any_case: bool = False
    filling: Filling | None = None
    payload: Payload | None = None

    @property
    def merges_logs_alone(self) -> bool:
        """Whether log records can be merged among themselves, and with the base file later."""
        return self.filling is None and self.payload is None

    @property
    def merges_in_turn(self) -> bool:
        """Whether a payload class merges log records in a way that only their order of arrival tells."""
        payload = self.payload
        if payload is None:
            return False
        if self.fills_logs:
            return True
        if self.deletes_reset:
            return payload.ties_to_older_in_logs
        # There ordering values decide between rows and deletes in any case.
        return payload.ties_to_older or payload.by_sequence or not payload.orders_base

    @property
    def fills_logs(self) -> bool:
        """Whether values of a newer log record are taken from an older one."""
        # 1.0.2 merges two log records as it merges one with the base file.
        return self.filling is not None and (self.payload is None or self.payload.fills_logs or not self.deletes_reset)

    @property
    def fills_older(self) -> bool:
        """Whether an older record of the logs fills in what a row of the base file does not give."""
        return self.filling is not None and (self.payload is None or self.payload.fills_older)


def log_rules_of(properties: Mapping[str, str], source: str, *, computes_keys: bool = False) -> LogRules:
    """
    Read the rules from a table's properties.

    Args:
        properties: The table's properties (``hoodie.properties``).
        source: The table's location, for messages.
        computes_keys: The caller computes record keys where rows do not hold them, see `virtual_keys_of`.

    Raises:
        UnsupportedTable: Rows hold no keys, a Java class merges the rows, or columns are merged in an unknown way.
    """
    if not computes_keys and properties.get("hoodie.populate.meta.fields", "true").strip().lower() == "false":
        raise UnsupportedTable(
            f"{source}: hoodie.populate.meta.fields=false: the rows hold no record keys to merge the log files by; "
            f"{_BY_HUDI}"
        )
    # The first name is that of Hudi 1.1, the second that of earlier releases.
    fields = properties.get("hoodie.table.ordering.fields") or properties.get("hoodie.table.precombine.field") or ""
    ordering = tuple(part.strip() for part in fields.split(",") if part.strip())
    payload = properties.get("hoodie.compaction.payload.class", "")
    marker = _delete_marker(properties)
    its = format_of(properties)
    if not its.has_merge_mode:
        return _of_payload(payload, ordering, marker, source, its)
    # Without a mode in the properties, 1.x derives it from the ordering fields.
    mode = properties.get("hoodie.record.merge.mode") or ("EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING")
    if mode == "CUSTOM" and properties.get("hoodie.record.merge.strategy.id") == _BY_PAYLOAD and its.names_payload:
        return _of_payload(payload, ordering, marker, source, its)
    if mode not in _KNOWN_MODES:
        by = payload or properties.get("hoodie.record.merge.strategy.id", "")
        raise UnsupportedTable(
            f"{source}: hoodie.record.merge.mode={mode}: a Java class merges the rows ({by}); {_BY_HUDI}"
        )
    by_event = mode == "EVENT_TIME_ORDERING" and bool(ordering)
    return LogRules(
        ordering_fields=ordering,
        orders_logs=by_event,
        orders_base=by_event,
        text_deletes_win=not its.compares_text_deletes,
        delete_marker=marker,
        avro_widens_floats=its.avro_widens_floats,
        ids_keep_float_texts=its.ids_keep_float_texts,
        filling=filling_of(properties, source),
    )


def _of_payload(
    name: str,
    ordering: tuple[str, ...],
    marker: tuple[str, str] | None,
    source: str,
    its: TableFormat,
) -> LogRules:
    """The rules of a payload class, in table version 6 or in 1.0.2, which merges log records in another way."""
    is_before_modes = not its.has_merge_mode
    payload = payload_of(name)
    if payload is None:
        raise UnsupportedTable(
            f"{source}: hoodie.compaction.payload.class={name}: a Java class merges the rows; {_BY_HUDI}"
        )
    if payload.ordering is not None and ordering != (payload.ordering,):
        raise UnsupportedTable(
            f"{source}: hoodie.compaction.payload.class={name} is read where {payload.ordering} orders the rows, not "
            f"{', '.join(ordering) or 'nothing'}; {_BY_HUDI}"
        )
    is_simple = payload in map(payload_of, ("", "DefaultHoodieRecordPayload"))
    return LogRules(
        ordering_fields=ordering,
        # In version 6 also for latest-wins, whose ``preCombine`` compares ordering values among log records.
        orders_logs=bool(ordering),
        orders_base=bool(ordering) and (payload.orders_base or not is_before_modes),
        deletes_reset=is_before_modes,
        text_deletes_win=not its.compares_text_deletes,
        delete_marker=payload.deleting or (marker if payload.reads_marker else None),
        marks_any_case=payload.deleting is not None,
        avro_widens_floats=its.avro_widens_floats,
        ids_keep_float_texts=its.ids_keep_float_texts,
        filling=payload.filling,
        payload=None if is_before_modes and is_simple else payload,
    )


def _delete_marker(properties: Mapping[str, str]) -> tuple[str, str] | None:
    # Version 9 stores both with the prefix, earlier versions without.
    field, marker = (properties.get(_PREFIX + key, properties.get(key)) for key in (_DELETE_FIELD, _DELETE_MARKER))
    return (field, marker) if field and marker is not None else None
