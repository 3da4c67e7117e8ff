"""Arrow's classes for annotations: generic in the type stubs, plain classes at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
