"""The options ``--engine`` and ``--master`` of commands whose work can run on Spark executors."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hudi_py.engine.choice import AutoEngine
from hudi_py.errors import ConfigError

if TYPE_CHECKING:
    from hudi_py.engine.base import Engine


def engine_options(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """
    Return a decorator that adds both options.

    Args:
        text: What the values of ``--engine`` mean.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        master = click.option(
            "--master", metavar="URL", help="Master of Spark. Default: that of spark-submit, else local[*]."
        )
        kinds = click.Choice(["auto", "local", "spark"])
        engine = click.option("--engine", type=kinds, default="auto", show_default=True, help=text)
        return engine(master(function))

    return decorate


def chosen_engine(name: str, master: str | None, job: str) -> Engine | None:
    """
    Return the engine that runs the tasks; None for threads.

    Spark is started only if it was asked for by name or with a master; ``auto`` uses the Spark of spark-submit.

    Args:
        name: ``auto``, ``local`` or ``spark``.
        master: Master of Spark; None for that of spark-submit, else ``local[*]``.
        job: Name of the Spark application.
    """
    if name == "local" and master is not None:
        raise ConfigError("--master is for Spark, but --engine local does not use Spark; leave one of them out")
    if name == "local" or (name == "auto" and master is None and "PYSPARK_GATEWAY_PORT" not in os.environ):
        return None

    # A function: with `auto` Spark starts only if there is enough to delete.
    def on_spark() -> Engine:
        from hudi_py.spark.engine import SparkEngine
        from hudi_py.spark.session import job_session

        return SparkEngine(job_session(job, master))

    return AutoEngine(on_spark) if name == "auto" else on_spark()
