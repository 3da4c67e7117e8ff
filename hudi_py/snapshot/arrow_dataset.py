"""
Rows as a dataset of Arrow, which DuckDB, polars and pyarrow query; columns and filters reach the reader.

They ask a dataset for a scanner with the columns and the filter of a query. Of the table only these columns and those
of the filter are read, from files that can hold a row of the answer, as far as the filter is understood
(`hudi_py.snapshot.arrow_filter`); Arrow applies the whole filter to what is read.

What asks the C++ object behind a dataset, and not this one, would see no rows of ours: it gets an error in place of an
empty answer, because that object has one file, whose reading fails.

Source: pyarrow ``Dataset``; how DuckDB and ``polars.scan_pyarrow_dataset`` call them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from hudi_py.errors import ConfigError, HudiError
from hudi_py.rows.read import refuse_repeated
from hudi_py.runtime.log import log
from hudi_py.snapshot.arrow_filter import understood
from hudi_py.snapshot.arrow_scanner import Columns, RowsScanner, arrow_scanner

if TYPE_CHECKING:
    from hudi_py.rows.condition import Condition
    from hudi_py.snapshot.batches import Batches

_BATCH_ROWS: Final = 131_072
"""As in pyarrow."""
_OF_FRAGMENTS: Final = frozenset({"__batch_index", "__fragment_index", "__last_in_fragment", "__filename"})
_PLACE: Final = "FieldPath("
"""In the text of expressions that name columns by their place among all."""


class Narrowable(Protocol):
    """Rows that can be read in part, as `hudi_py.snapshot.rows.Rows`."""

    schema: pa.Schema

    def narrowed(self, columns: Sequence[str] | None = None, *where: Condition) -> Batches:
        """The rows that meet all of *where*; with these columns, or all for None."""


class RowsDataset(ds.UnionDataset):
    """
    The rows of one snapshot as a `pyarrow.dataset.Dataset`; every scan reads them again.

    Served are `schema`, `scanner`, `to_table`, `to_batches`, `head`, `take`, `count_rows` and `filter`, with the
    arguments of pyarrow. All others are refused.

    Args:
        rows: The rows.
        chosen: A filter that rows have to meet besides that of a scan; None for all rows.
    """

    def __init__(self, rows: Narrowable, chosen: Any = None) -> None:
        parquet: Any = ds.ParquetFileFormat()
        unreadable = ds.FileSystemDataset([parquet.make_fragment(_Unreadable())], rows.schema, parquet)
        super().__init__(rows.schema, [unreadable])  # type: ignore[call-arg]
        self._rows = rows
        self._chosen = chosen

    def __repr__(self) -> str:
        return f"<RowsDataset of {self._rows!r}{'' if self._chosen is None else f', filtered by {self._chosen}'}>"

    def __reduce__(self) -> tuple[Callable[..., RowsDataset], tuple[Any, ...]]:
        return RowsDataset, (self._rows, self._chosen)

    def scanner(  # type: ignore[override]
        self,
        columns: Columns = None,
        filter: Any = None,  # noqa: A002 - the name in pyarrow, by which it is given
        batch_size: int = _BATCH_ROWS,
        **options: Any,
    ) -> RowsScanner:
        """
        What reads the rows, with the methods of a `pyarrow.dataset.Scanner`.

        Args:
            columns: Names, each once, or expressions by name; None for all columns.
            filter: A `pyarrow.compute.Expression`; None for all rows.
            batch_size: Largest number of rows of a batch.
            options: Others of `pyarrow.dataset.Scanner.from_batches`, for what Arrow does with the batches. Files are
                read ahead as for `Rows`.

        Raises:
            ConfigError: An option or a column that only a dataset of plain files has, or a column that is named twice.
            pyarrow.ArrowInvalid: A column does not exist, or an expression does not fit.
        """
        if options.pop("fragment_scan_options", None) is not None:
            raise ConfigError("fragment_scan_options are for the files of a plain dataset; leave them out")
        texts = _texts_of(columns)
        for each in sorted(_OF_FRAGMENTS.difference(self.schema.names)):
            if any(each in text for text in texts):
                raise ConfigError(f"no column {each}: rows of a table may come from several files; leave it out")
        if columns is not None and not isinstance(columns, Mapping):
            refuse_repeated(columns)
        chosen = self._both(filter)
        rows = self._read(self._needed(columns, chosen), chosen)
        return RowsScanner(rows, columns, chosen, batch_size, options)

    def count_rows(self, *given: Any, **options: Any) -> int:
        """The number of rows that meet a filter; the arguments are those of `scanner` without the columns."""
        return self.scanner([], *given, **options).count_rows()

    def filter(self, expression: Any) -> RowsDataset:
        """The rows that meet a further filter, a `pyarrow.compute.Expression`."""
        return RowsDataset(self._rows, self._both(expression))

    def get_fragments(self, filter: Any = None) -> NoReturn:  # noqa: A002 - as `scanner`
        """Refused."""
        _refuse("get_fragments", "its rows are merged from files, which alone are not a part of it; use to_batches()")

    def replace_schema(self, schema: Any) -> NoReturn:
        """Refused."""
        _refuse("replace_schema", "cast the columns that scanner(columns=…) computes, or the table of to_table()")

    def sort_by(self, sorting: Any, **options: Any) -> NoReturn:
        """Refused."""
        _refuse("sort_by", "use to_table().sort_by(…), or order by in DuckDB or polars")

    def join(self, *given: Any, **options: Any) -> NoReturn:
        """Refused."""
        _refuse("join", "use to_table().join(…), or join in DuckDB or polars")

    def join_asof(self, *given: Any, **options: Any) -> NoReturn:
        """Refused."""
        _refuse("join_asof", "use to_table().join_asof(…), or join in DuckDB or polars")

    def _both(self, expression: Any) -> Any:
        if expression is not None and not isinstance(expression, ds.Expression):
            raise ConfigError(f"{expression!r} is not an expression; write pyarrow.dataset.field('fare') > 5")
        if self._chosen is None or expression is None:
            return self._chosen if expression is None else expression
        return self._chosen & expression

    def _needed(self, columns: Columns, chosen: Any) -> list[str] | None:
        """Names of columns that have what a scan asks for; None for all of them."""
        if columns is None:
            return None
        texts = [*_texts_of(columns), "" if chosen is None else str(chosen)]
        if any(_PLACE in text for text in texts):
            return None
        whole, names = set(texts).intersection(self.schema.names), self.schema.names
        parts = [text for text in texts if text not in whole]
        found = [name for name in names if name in whole or any(name in text for text in parts)]
        few = pa.schema([self.schema.field(name) for name in found])
        try:  # Arrow has the last word about which columns an expression needs
            arrow_scanner([], schema=few, columns=columns, filter=chosen)
        except pa.ArrowException:
            return None
        return found

    def _read(self, names: list[str] | None, chosen: Any) -> Batches:
        condition = None if chosen is None else understood(chosen, self.schema)
        if condition is not None:
            try:
                return self._rows.narrowed(names, condition)
            except HudiError as error:  # on values that are shown differently
                log.info("read.condition.unused", condition=str(condition), reason=str(error))
        return self._rows.narrowed(names)


class _Unreadable:
    """A file for the C++ object of a dataset."""

    closed = False

    def read(self, _: int = -1) -> NoReturn:
        _refuse("a scan by pyarrow's C++ code", "use scanner(), to_table() or to_batches() of the dataset itself")

    seek = tell = size = read

    def close(self) -> None:
        """Nothing is open."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False


def _refuse(what: str, instead: str) -> NoReturn:
    raise ConfigError(f"a dataset of rows does not have {what}; {instead}")


def _texts_of(columns: Columns) -> list[str]:
    if columns is None:
        return []
    return [str(each) for each in (columns.values() if isinstance(columns, Mapping) else columns)]
