"""Column expressions used by several ways of writing, and Spark's estimate of the size of rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from hudi_py.model.files import DEFAULT_PARTITION
from hudi_py.rows.keys import GENERATED, KeyGenerator

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from hudi_py.rows.partition_times import PartitionTime

_ROWS_OF_TASK: Final = 1 << 33
UNKNOWN_BYTES: Final = 1 << 60
"""For rows of unknown size, Spark's estimate is about 2 to the power of 63."""


def quoted(name: str) -> Column:
    """Return the column with exactly this name, even if it contains dots or other special characters."""
    return F.col("`" + name.replace("`", "``") + "`")


def partitioning(frame: DataFrame, keys: KeyGenerator) -> list[Column]:
    """
    Return expressions that are equal for two rows exactly if the rows have the same partition path.

    Null, the empty string and the name of the default partition share a folder. Timestamps are compared as
    microseconds, as in the path, because their text is ambiguous when clocks are set back.
    """
    types = {field.name: field.dataType.typeName() for field in frame.schema}
    found = []
    for name in keys.partition_fields:
        column = quoted(name)
        if name in keys.times:
            found.append(_formatted(column, types.get(name), keys.times[name], name))
            continue
        text = (F.unix_micros(column) if types.get(name) == "timestamp" else column).cast("string")
        # All three go to one folder, so their rows have to reach the same task.
        blank = text.isNull() | text.isin("", DEFAULT_PARTITION)
        found.append(F.when(blank, F.lit("")).otherwise(text))
    return found


def _formatted(column: Column, kind: str | None, time: PartitionTime, name: str) -> Column:
    """Return the text in the path, by Python: two times of one folder have to reach the same task."""
    number = {"timestamp": F.unix_micros, "date": F.unix_date}.get(str(kind))
    return F.udf(partial(time.text, name=name), "string")(column if number is None else number(column))


def with_generated_keys(frame: DataFrame, instant_time: str) -> DataFrame:
    """Add the keys of rows of a table without key columns, see `hudi_py.writing.generated_keys`."""
    number = F.monotonically_increasing_id()  # of the task in its upper bits, and of the row in the others
    rows = F.lit(_ROWS_OF_TASK)
    # The number is unique in the write whatever Spark does with the tasks.
    key = F.concat(F.lit(f"{instant_time}_"), F.shiftright(number, 33), F.lit("_"), number % rows)
    return frame.withColumn(GENERATED, key)


def estimated_bytes(frame: DataFrame) -> int:
    """Return Catalyst's estimate of the size: for files, their size on disk; `UNKNOWN_BYTES` or more if unknown."""
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())  # noqa: SLF001


def int_hashing_to(task: int, count: int, tried_max: int = 1 << 16) -> int:
    """
    Return an int that Spark's hash partitioning into *count* partitions assigns to partition *task*.

    Used only to balance work: if Spark changes its hash function, results stay correct, but balance gets worse.
    """
    # About *count* numbers are tried on average.
    for number in range(tried_max):
        if _murmur3(number) % count == task:
            return number
    return task


def _murmur3(number: int, seed: int = 42) -> int:
    """Return the hash of Spark's ``Murmur3_x86_32.hashInt``, as a signed int."""
    mask = 0xFFFFFFFF
    mixed = number * 0xCC9E2D51 & mask
    mixed = (mixed << 15 | mixed >> 17) & mask
    mixed = mixed * 0x1B873593 & mask
    value = seed ^ mixed
    value = (value << 13 | value >> 19) & mask
    value = value * 5 + 0xE6546B64 & mask
    value ^= 4
    value ^= value >> 16
    value = value * 0x85EBCA6B & mask
    value ^= value >> 13
    value = value * 0xC2B2AE35 & mask
    value ^= value >> 16
    return value - (1 << 32) if value >> 31 else value
