"""
Arrow's classes, for annotations generic in the type stubs, plain at run time; what damaged Parquet raises; and a look
through nested types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute

if TYPE_CHECKING:
    Array = pa.Array[Any]
    ChunkedArray = pa.ChunkedArray[Any]
    Field = pa.Field[Any]
    Column = Array | ChunkedArray
else:
    Array = pa.Array
    ChunkedArray = pa.ChunkedArray
    Field = pa.Field
    Column = pa.Array | pa.ChunkedArray

compute: Any = pyarrow.compute  # untyped: the stubs refuse plain Python values as arguments

PARQUET_DAMAGE: Final = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What pyarrow raises on a Parquet file that is damaged, the last one for names of columns that are not UTF-8."""


def holds_type(arrow: Any, is_wanted: Callable[[Any], bool]) -> bool:
    """Whether a type is a wanted one, or has one in it at any depth."""
    return is_wanted(arrow) or any(holds_type(arrow.field(at).type, is_wanted) for at in range(arrow.num_fields))
