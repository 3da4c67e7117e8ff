"""Translates Spark's report of a failed task to one of our errors, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import AnalysisException, PySparkException, PySparkTypeError

from hudi_py import errors
from hudi_py.errors import ConfigError, HudiError, WriteError

_OURS: Final = re.compile(r"^hudi_py\.errors\.(\w+): (.*)$", re.MULTILINE)
_LAST_WORDS: Final = re.compile(r"^(\w[\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)$", re.MULTILINE)


SHIP: Final = (
    "Install the same release of hudi_py for the Python of every executor and name it in PYSPARK_PYTHON before Spark "
    "starts, or ship it: spark-submit --archives ENVIRONMENT.tar.gz#env with PYSPARK_PYTHON=./env/bin/python, or "
    "--py-files for packages of pure Python; see docs/executors.md"
)


@contextmanager
def naming_executors() -> Iterator[None]:
    """
    Add to a configuration error of a task that it occurred on the executors, and what to do.

    Raises:
        ConfigError: The error of the task, with the addition.
    """
    try:
        yield
    except ConfigError as error:
        if str(error).startswith("on the Spark executors"):
            raise
        raise ConfigError(f"on the Spark executors: {error}. {SHIP}") from error


@contextmanager
def executor_errors(
    otherwise: type[HudiError] = WriteError, consequence: str = "nothing of the write is visible"
) -> Iterator[None]:
    """
    Translate Spark's report of an error in a task to one of our errors, in one line.

    Args:
        otherwise: Class of the error to raise if the task failed with an error that is not ours.
        consequence: What the failure means, or what to do; part of the message.

    Raises:
        HudiError: The error that a task raised; ConfigError if the executors' Python lacks a package.
    """
    try:
        yield
    except Exception as error:
        if not _is_of_a_task(error):
            raise
        raise _translated(str(error), otherwise, consequence) from error


def _is_of_a_task(error: Exception) -> bool:
    """Return whether a task failed. An invalid query is an error of the user, and Spark's own message is better."""
    of_spark = isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")
    return of_spark and not isinstance(error, (AnalysisException, PySparkTypeError))


def _translated(text: str, otherwise: type[HudiError], consequence: str) -> HudiError:
    ours = _OURS.findall(text)
    if ours:
        name, message = ours[-1]
        kind = getattr(errors, name, otherwise)
        # The name is from a text, and executors may have another release.
        return kind(message) if isinstance(kind, type) and issubclass(kind, HudiError) else otherwise(message)
    words = _LAST_WORDS.findall(text)
    last = words[-1] if words else text.strip().splitlines()[0] if text.strip() else "no message"
    if "PYTHON_VERSION_MISMATCH" in text:
        said = next(line for line in text.splitlines() if "PYTHON_VERSION_MISMATCH" in line)
        return ConfigError(f"on the Spark executors Python has another version: {said.strip()[:300]}. {SHIP}")
    if last.startswith(("ModuleNotFoundError", "ImportError")):
        return ConfigError(f"on the Spark executors a package is missing ({last[:300]}). {SHIP}")
    return otherwise(f"a Spark task failed; {consequence}: {last[:500]}")
