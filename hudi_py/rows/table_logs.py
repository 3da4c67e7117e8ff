"""How the log files of a table are read by what rewrites them, or why they are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hudi_py.errors import UnsupportedTable
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.rows.filling import refuse_defaults
from hudi_py.rows.log_reading import LogReading, log_reading
from hudi_py.rows.log_rules import log_rules_of


def table_log_reading(
    properties: Mapping[str, str], text: str, counts: Callable[[str], bool], source: str
) -> LogReading:
    """
    Return how they are read now.

    Args:
        properties: The table's properties.
        text: Avro schema of the table's rows.
        counts: Whether the blocks of an instant count.
        source: The table's location, for messages.

    Raises:
        UnsupportedTable: They are merged in a way that hudi_py does not know.
    """
    rules = log_rules_of(properties, source)
    refuse_defaults(rules.filling, text, source)
    return log_reading(rules, counts, None, parse_record_schema(text), source)


def why_not_read(properties: Mapping[str, str], text: str, source: str) -> str | None:
    """Return why they are not read; None if they are. Arguments as for `table_log_reading`."""
    try:
        table_log_reading(properties, text, lambda _: True, source)
    except UnsupportedTable as error:
        return str(error)
    return None
