"""
Partition paths of rows to delete, where readers show the text of the path instead of the time that was written.

Tables of version 6 with a time-based key generator are read so (see `partition_values`): what a reader gives for
``1698818400000`` is ``20231101``. Deleted as they were read, such rows would be looked for in a partition of 1970, and
nothing would be found. So a value that is the text of a partition of the table means that partition.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs
import pyarrow as pa

from hudi_py.errors import WriteError
from hudi_py.formats.arrow_types import Array
from hudi_py.rows.keys import KeyGenerator
from hudi_py.rows.partition_values import PathTexts, shown_value
from hudi_py.rows.path_columns import texts_of_path


@attrs.frozen
class ShownTimes(KeyGenerator):
    """
    A key generator for rows with times as they were written, or as they were read.

    Args:
        shown: Column to the texts that the paths of the table have for it.
    """

    shown: Mapping[str, Collection[str]] = attrs.field(factory=dict, kw_only=True)

    @classmethod
    def of(cls, generator: KeyGenerator, shows: PathTexts, partitions: Collection[str]) -> ShownTimes:
        """Return *generator* for rows as *shows* has them; *partitions* are all those of the table."""
        shown: dict[str, set[str]] = {}
        for path in partitions:
            texts = texts_of_path(shows.fields, path, is_hive_style=shows.is_hive_style, is_encoded=shows.is_encoded)
            for name, text in texts.items():
                shown.setdefault(name, set()).add(text)
        return cls(**attrs.asdict(generator, recurse=False), shown=shown)

    def _time_segments(self, batch: pa.RecordBatch, name: str) -> Array:
        column: Any = batch.column(batch.schema.get_field_index(name))
        texts = self.shown.get(name, ())
        known = {value.as_py(): text for text in texts if (value := shown_value(text, column.type)) is not None}
        encoded = column.dictionary_encode(null_encoding="encode")
        values: Any = encoded.dictionary
        segments = [self._segment(values.slice(at, 1), name, texts, known) for at in range(len(values))]
        found: Array = pa.array(segments, pa.string()).take(encoded.indices)
        return found

    def _segment(self, value: Array, name: str, texts: Collection[str], known: Mapping[Any, str]) -> str:
        shown = known.get(value[0].as_py())
        try:
            written = self.times[name].texts(value, name)[0].as_py()
        except WriteError:  # as it was read, it need not be a time in the form of the input
            if shown is None:
                raise
            written = shown
        if shown not in (None, written) and written in texts:
            raise WriteError(
                f"partition column {name!r} has the value {value[0].as_py()!r}, which is shown for rows of the "
                f"partition {shown!r} and is a time of the partition {written!r}, and the table has both; delete by a "
                "condition on other columns: delete(where=...)"
            )
        return self.time_segment(name, written if shown is None else shown)
