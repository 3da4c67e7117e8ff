"""
Apache Hudi's own payload classes: what each makes of two records of a key. Pure.

A payload class has two methods. ``preCombine`` chooses between two log records in 0.15; ``combineAndGetUpdateValue``
merges a log record with the row of the base file, and in 1.0.2 with another log record, too. Later releases have merge
modes in their place.

Source: Hudi 0.15.0, 1.0.2 ``EventTimeAvroPayload``, ``FirstValueAvroPayload``, ``PartialUpdateAvroPayload``,
``OverwriteNonDefaultsWithLatestAvroPayload``, ``AWSDmsAvroPayload``, ``MySqlDebeziumAvroPayload``,
``PostgresDebeziumAvroPayload``, and ``FileGroupRecordBuffer``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from hudi_py.config.payload_class import hudis_payload
from hudi_py.rows.filling import Filling

_DEBEZIUM_OPERATION: Final = "_change_operation_type"
_TOASTED: Final = "__debezium_unavailable_value"


@attrs.frozen(kw_only=True)
class Payload:
    """
    The rules of one class.

    Args:
        orders_base: Whether ordering values decide between a log record and the base file.
        ties_to_older: Whether the older of two rows with equal ordering values wins.
        ties_to_older_in_logs: The same of two log records in 0.15.
        flags_reset: Whether a row that marks a deletion wins over the base file without a comparison.
        reads_marker: Whether the class looks at ``hoodie.payload.delete.field``.
        deleting: A column and the text in it, in any case, that marks a row as deleted.
        ordering: The only ordering field that is served; None for any.
        by_sequence: Whether its texts are a file and a position, ``FILE.POSITION``, and are compared as two numbers;
            but two log records in 0.15 as texts.
        filling: Which values of a newer row are taken from the older one.
        fills_logs: Whether they are between log records of 0.15, too.
        fills_older: Whether an older record fills in what the newer one before it does not give.
    """

    orders_base: bool = False
    ties_to_older: bool = False
    ties_to_older_in_logs: bool = False
    flags_reset: bool = False
    reads_marker: bool = False
    deleting: tuple[str, str] | None = None
    ordering: str | None = None
    by_sequence: bool = False
    filling: Filling | None = None
    fills_logs: bool = False
    fills_older: bool = False


_LATEST: Final = Payload()
_BY_NAME: Final[Mapping[str, Payload]] = {
    "": _LATEST,
    "OverwriteWithLatestAvroPayload": _LATEST,
    "DefaultHoodieRecordPayload": Payload(orders_base=True, reads_marker=True),
    "EventTimeAvroPayload": Payload(orders_base=True, flags_reset=True),
    "FirstValueAvroPayload": Payload(
        orders_base=True, ties_to_older=True, ties_to_older_in_logs=True, reads_marker=True
    ),
    "PartialUpdateAvroPayload": Payload(
        orders_base=True, flags_reset=True, filling=Filling(by_default=False), fills_logs=True, fills_older=True
    ),
    "OverwriteNonDefaultsWithLatestAvroPayload": Payload(filling=Filling()),
    "AWSDmsAvroPayload": Payload(deleting=("Op", "D")),
    "MySqlDebeziumAvroPayload": Payload(
        orders_base=True,
        ties_to_older=True,
        deleting=(_DEBEZIUM_OPERATION, "d"),
        ordering="_event_seq",
        by_sequence=True,
    ),
    "PostgresDebeziumAvroPayload": Payload(
        orders_base=True,
        deleting=(_DEBEZIUM_OPERATION, "d"),
        ordering="_event_lsn",
        filling=Filling(_TOASTED, in_bytes=True),
    ),
}


def payload_of(name: str) -> Payload | None:
    """Return the rules of a class by its name in Java, with its package or without; None if it is not one of Hudi's."""
    short = hudis_payload(name)
    return None if short is None else _BY_NAME.get(short)
