"""Maps that have a key twice: Arrow allows them, but programs of Hudi's world keep one value, or show the first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from hudi_py.errors import WriteError
from hudi_py.formats.arrow_types import holds_type


def refuse_repeated_keys(column: Any, name: str) -> None:
    """
    Look through a column, at any depth.

    Args:
        column: An array, or a chunked one.
        name: Of the column.

    Raises:
        WriteError: A map has a key twice. Names the column and the key.
    """
    if holds_type(column.type, pa.types.is_map):
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            _look_through(chunk, name)


def _look_through(array: Any, path: str) -> None:
    if not holds_type(array.type, pa.types.is_map):
        return
    if isinstance(array, pa.MapArray):
        # Not by a cast to lists, which fails for nulls where the schema has none: others count and name these.
        offsets = array.offsets.to_numpy()
        first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
        names, values = array.keys.slice(first, count), array.items.slice(first, count)
        maps = np.repeat(np.arange(len(array)), np.diff(offsets))
        if array.null_count:  # null maps have no entries, whatever lies below them
            shown = array.is_valid().to_numpy(zero_copy_only=False)[maps]
            maps, names, values = maps[shown], names.filter(pa.array(shown)), values.filter(pa.array(shown))
        _refuse(maps, names, path)
        _look_through(values, f"{path}.value")
    elif isinstance(array, pa.StructArray):
        for field, child in zip(array.type, array.flatten(), strict=True):
            _look_through(child, f"{path}.{field.name}")
    else:
        _look_through(array.flatten(), f"{path}.element")


def _refuse(maps: np.typing.NDArray[np.int64], names: Any, path: str) -> None:
    """*names* are the keys of all maps, *maps* the place of the map that each one belongs to."""
    if not pa.types.is_string(names.type) or len(names) == 0:  # other keys are refused for their type
        return
    encoded: Any = names.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = np.sort(maps * len(encoded.dictionary) + codes)
    repeated = pairs[1:][pairs[1:] == pairs[:-1]]
    if len(repeated):
        key = encoded.dictionary[int(repeated[0]) % len(encoded.dictionary)].as_py()
        raise WriteError(
            f"column {path!r} has a map with the key {key!r} twice, of which Apache Hudi keeps only one value; nothing "
            "was committed. Decide which one it is"
        )
