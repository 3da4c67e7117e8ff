"""Which columns of a slice's base file have other names today. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hudi_py.formats.column_history import MovedColumns
from hudi_py.model.files import FileSlice


def with_moved(slices: Iterable[FileSlice], moved: MovedColumns | None) -> list[FileSlice]:
    """
    The slices, with base files that say where their columns are today.

    Raises:
        UnsupportedTable: Nothing says which columns a base file has.
    """
    if moved is None:
        return list(slices)

    def told(file_slice: FileSlice) -> FileSlice:
        base = file_slice.base_file
        if base is None:
            return file_slice
        return attrs.evolve(file_slice, base_file=attrs.evolve(base, moved=moved.of(base.instant_time)))

    return [told(each) for each in slices]
