"""Everything that imports pyspark: sessions, the write client, reading, and the engine that runs tasks on executors."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """``hudi_py.spark.register``, which is `hudi_py.register`; loaded when it is used, as executors do not need it."""
    if name != "register":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hudi_py.spark.source import register

    return register
