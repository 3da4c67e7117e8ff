"""
Values that a newer row does not give, so that those of the older row stay: ``hoodie.table.partial.update.mode``. Pure.

================  =========================================================================
mode              not given are
================  =========================================================================
IGNORE_DEFAULTS   nulls
FILL_UNAVAILABLE  texts that equal ``hoodie.write.partial.update.unavailable.value``
================  =========================================================================

Which of two rows is newer is decided as in any other table; if the older one arrives later, its values fill those that
the newer one lacks.

Source: Hudi 1.1.1, 1.2.0 ``PartialUpdateHandler``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from hudi_py.errors import UnsupportedTable
from hudi_py.model.json_document import parse_json

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Mask: TypeAlias = npt.NDArray[np.bool_]

_MODE: Final = "hoodie.table.partial.update.mode"
_MARKER: Final = "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value"
_NULLS: Final = "IGNORE_DEFAULTS"
_MARKED: Final = "FILL_UNAVAILABLE"


@attrs.frozen
class Filling:
    """
    Which values are not given.

    Args:
        marker: The text that stands for such a value in columns of texts; None where nulls do, in any column.
        in_bytes: Whether the marker stands for such a value in columns of bytes, too.
        by_default: Whether Hudi also takes values that equal the default of their column for such a value.
    """

    marker: str | None = None
    in_bytes: bool = False
    by_default: bool = True

    def given(self, column: Any) -> Mask:
        """Shape (n,), True where a column of n values has one that is given."""
        # Not at the top: looking at a table asks for its rule, and is to be quick.
        import numpy as np
        import pyarrow as pa

        from hudi_py.formats.arrow_types import compute

        if self.marker is None:
            mask: Mask = column.is_valid().to_numpy(zero_copy_only=False)
            return mask
        if not (pa.types.is_string(column.type) or (self.in_bytes and pa.types.is_binary(column.type))):
            # On Spark, Hudi 1.1 compares bytes with the marker, too, but as Java objects: they never are equal.
            return np.ones(len(column), np.bool_)
        marker = self.marker if pa.types.is_string(column.type) else self.marker.encode()
        marked = compute.equal(column, pa.scalar(marker, column.type))
        found: Mask = ~marked.fill_null(False).to_numpy(zero_copy_only=False)
        return found


def refuse_defaults(filling: Filling | None, text: str | None, source: str) -> None:
    """
    Refuse columns with a default other than null: which values Hudi takes for it depends on the Java objects at hand.

    Args:
        filling: The table's rule.
        text: Avro schema of the table's rows, if it is known.
        source: The table's location, for the message.

    Raises:
        UnsupportedTable: There is such a column.
    """
    if filling is None or filling.marker is not None or not filling.by_default or text is None:
        return
    for field in parse_json(text).get("fields", ()):
        if field.get("default") is not None:
            raise UnsupportedTable(
                f"{source}: column {field['name']} has the default {field['default']!r}, with which rows of this table "
                f"leave out values (hoodie.compaction.payload.class, {_MODE}), and releases of Hudi differ in which "
                "values they take for it; read the table with Apache Hudi, or its base files alone (read-optimized)"
            )


def filling_of(properties: Mapping[str, str], source: str) -> Filling | None:
    """
    Read from a table's properties which values are not given; None if all are.

    Raises:
        UnsupportedTable: The mode is unknown.
    """
    mode = properties.get(_MODE, "").strip()
    if mode == _NULLS:
        return Filling()
    if mode == _MARKED:
        marker = properties.get(_MARKER)
        return None if marker is None else Filling(marker)
    if not mode:
        return None
    raise UnsupportedTable(
        f"{source}: {_MODE}={mode}: hudi_py knows {_NULLS} and {_MARKED}; read the table with Apache Hudi, or its base "
        "files alone (read-optimized)"
    )
