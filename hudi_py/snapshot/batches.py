"""Arrow batches that are read on demand, and their conversions to the tables and frames of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs

from hudi_py.errors import ConfigError
from hudi_py.model.shown import Shown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@attrs.frozen(kw_only=True)
class Pieces:
    """
    Batches in pieces that can be read independently, in any process that reaches the table's storage; picklable.

    Args:
        read: Reads the batches of one piece.
        pieces: The pieces, in the order in which iterating reads them.
        sizes: Bytes of the files of each piece; 0 where unknown.
    """

    read: Callable[[Any], Iterator[pa.RecordBatch]]
    pieces: tuple[Any, ...]
    sizes: tuple[int, ...]


class Batches(Shown):
    """
    Arrow batches; every iteration reads them again.

    pyarrow, polars and DuckDB accept this object itself (it has the Arrow C stream interface), in bounded memory.

    Attributes:
        schema: Columns of the batches, a `pyarrow.Schema`.
    """

    schema: pa.Schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        found = self.in_pieces()
        for piece in found.pieces:
            # One piece after another, so that only one is in memory.
            yield from found.read(piece)

    def in_pieces(self) -> Pieces:
        """The same batches in pieces that can be sent to other processes: file slices, or files of a commit."""
        raise NotImplementedError

    def _listed(self) -> Iterable[tuple[str, str]]:
        return ((field.name, str(field.type)) for field in self.schema)

    def to_arrow(self) -> pa.Table:
        """All rows in memory, as a `pyarrow.Table`. Raises as iterating does (`CorruptMetadata`, `StorageError`)."""
        import pyarrow as pa

        return pa.Table.from_batches(self, self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """
        All rows in memory, as a `pandas.DataFrame`.

        Raises:
            ConfigError: pandas is not installed.
            As `to_arrow`.
        """
        require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """
        All rows in memory, as a `polars.DataFrame`.

        Raises:
            ConfigError: polars is not installed.
            As `to_arrow`.
        """
        return require("polars").DataFrame(self.to_arrow())

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        import pyarrow as pa

        # A new reader for each call, because a stream can be read only once.
        stream: Any = pa.RecordBatchReader.from_batches(self.schema, self)
        return stream.__arrow_c_stream__(requested_schema)


def require(package: str) -> Any:
    """
    Import an optional package.

    Raises:
        ConfigError: The package is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise ConfigError(f"rows as {package} need a package that is missing; pip install {package}") from error
