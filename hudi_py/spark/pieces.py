"""Reads pieces of tables on executors: each task some of them, in order, batch by batch."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from hudi_py.snapshot.batches import Pieces
from hudi_py.spark.failures import SHIP
from hudi_py.spark.session import require_classic, use_own_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

PIECES_PER_TASK_MAX: Final = 16
BYTES_PER_TASK_MAX: Final = 128 << 20
BYTES_PER_TASK_MIN: Final = 1 << 20
_OPENED: Final = 64 << 10  # what opening a file costs besides its bytes


def in_tasks(found: Pieces, slots: int) -> list[tuple[Any, ...]]:
    """
    Divide pieces among tasks, without changing their order.

    Args:
        found: The pieces.
        slots: Tasks that can run at the same time.
    """
    costs = [_OPENED + size for size in found.sizes]
    bytes_max = min(BYTES_PER_TASK_MAX, max(BYTES_PER_TASK_MIN, -(-sum(costs) // slots)))
    tasks: list[list[Any]] = []
    left = 0
    for piece, cost in zip(found.pieces, costs, strict=True):
        # In order and without splitting: a piece is read by one task, and the rows keep the order of the pieces.
        if cost > left or len(tasks[-1]) == PIECES_PER_TASK_MAX:
            tasks.append([])
            left = bytes_max
        tasks[-1].append(piece)
        left -= cost
    return [tuple(task) for task in tasks]


def frame_of(spark: SparkSession, found: Pieces, schema: StructType) -> DataFrame:
    """
    A DataFrame whose tasks read pieces where they run.

    Args:
        spark: The session.
        found: One or more pieces.
        schema: Columns of the rows.

    Raises:
        ConfigError: The session is one of Spark Connect.
    """
    require_classic(spark)
    use_own_python(spark)
    context = spark.sparkContext
    tasks = [(pickle.dumps(task),) for task in in_tasks(found, context.defaultParallelism)]
    frame = spark.createDataFrame(context.parallelize(tasks, len(tasks)), "pieces binary")
    return frame.mapInArrow(reading(pickle.dumps(found.read)), schema)


def reading(read: bytes) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """
    Return the function that executors run.

    It is defined inside a function so that Spark pickles its code instead of a reference to this module, and it can
    say what is missing where hudi_py is not installed.

    Args:
        read: The pickled `Pieces.read`.
    """
    ship = SHIP

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle
        import socket

        try:
            from hudi_py.spark.pieces import batches_of

            function = pickle.loads(read)  # noqa: S301 - our own bytes
        except ImportError as error:
            raise ImportError(
                f"on the Spark executor {socket.gethostname()} a package is missing: {error}. {ship}"
            ) from error
        for batch in batches:
            for pieces in batch.to_pylist():
                yield from batches_of(function, pickle.loads(pieces["pieces"]))  # noqa: S301

    return run


def batches_of(read: Callable[[Any], Iterator[pa.RecordBatch]], pieces: Sequence[Any]) -> Iterator[pa.RecordBatch]:
    """
    The rows of the pieces of one task.

    Raises:
        HudiError: As *read*; the message says that it occurred on an executor.
    """
    import socket

    from hudi_py.errors import HudiError

    for piece in pieces:
        try:
            yield from read(piece)
        except HudiError as error:
            raise type(error)(f"on the Spark executor {socket.gethostname()}: {error}") from error
