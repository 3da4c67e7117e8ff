"""Options of ``spark.read.format("hudi_py")``: texts, as Spark hands them over. Needs no Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from hudi_py.errors import ConfigError
from hudi_py.spark.question import Question

_TEXTS: Final = ("where", "as_of", "savepoint", "start", "end")
_FLAGS: Final = ("read_optimized", "with_deletes", "change_log")
_STORAGE: Final = "storage."
_SETTINGS: Final = ("hoodie.", "hoodie_py.")
_WORDS: Final = {"true": True, "false": False}
_AS_OF_ELSEWHERE: Final = ("timestampasof", "versionasof", "as.of.instant")
"""How Spark's own sources and Apache Hudi name `as_of`."""
_CATALOG: Final = "provider"
"""Spark says it, with owner and location, where a table is made in its catalog."""
_OF_SINKS: Final = "checkpointlocation"
READS_ONLY: Final = (
    "the format hudi_py only reads; write with hudi_py.WriteClient(spark, LOCATION, settings).upsert(rows), "
    "the rows of a stream so in foreachBatch; nothing was created"
)
EARLIEST: Final = "earliest"
LATEST: Final = "latest"


@attrs.frozen(kw_only=True)
class SourceOptions:
    """
    What is read, and how.

    Args:
        location: Path or URL of the table.
        question: What is asked of it; *start* may be `LATEST`, which only streams accept.
        storage_options: As for `hudi_py.open_table`.
        settings: As for `hudi_py.open_table`.
    """

    location: str
    question: Question
    storage_options: Mapping[str, str]
    settings: Mapping[str, str]


def source_options(options: Mapping[str, str]) -> SourceOptions:
    """
    Args:
        options: Names, in upper or lower case, to texts.

    Raises:
        ConfigError: There is no location, or an option is unknown or invalid.
    """
    given = {name.lower(): text for name, text in options.items()}
    if _CATALOG in given:
        raise ConfigError(
            "tables of Spark's catalog (CREATE TABLE ... USING hudi_py) are not served: Spark 4 reads them without "
            "their location. Make a view: CREATE TEMPORARY VIEW NAME USING hudi_py OPTIONS (path 'LOCATION')"
        )
    if _OF_SINKS in given:
        raise ConfigError(f"checkpointLocation is an option of writeStream: {READS_ONLY}")
    location = given.pop("path", None)
    if not location:
        # Spark asks so for one path that is missing, for several, and for tables of its catalog that it wants to fill.
        raise ConfigError(
            f'no single table is named: spark.read.format("hudi_py").load(LOCATION). To write: {READS_ONLY}'
        )
    storage = {name.removeprefix(_STORAGE): given.pop(name) for name in list(given) if name.startswith(_STORAGE)}
    settings = {name: given.pop(name) for name in list(given) if name.startswith(_SETTINGS)}
    asked: dict[str, Any] = {name: given.pop(name) for name in _TEXTS if given.get(name)}
    asked |= {name: _flag(name, given.pop(name)) for name in _FLAGS if name in given}
    if "columns" in given:
        asked["columns"] = _names(given.pop("columns"))
    empty = [name for name in _TEXTS if name in given]
    if empty:
        raise ConfigError(f"the option {empty[0]} is empty; give it a value, or leave it out")
    for name in _AS_OF_ELSEWHERE:
        if name in given:
            raise ConfigError(f'the option {name} is called as_of here: .option("as_of", "{given[name]}")')
    if given:
        # Ignored, a misspelled option would let another question be answered.
        known = ", ".join((*_TEXTS, *_FLAGS, "columns"))
        raise ConfigError(
            f"the option {min(given)} is not known; there are {known}, settings (hoodie.…) and options of the storage "
            f"library ({_STORAGE}NAME)"
        )
    if asked.get("start") == EARLIEST:
        asked["start"] = "0"
    return SourceOptions(location=location, question=Question(**asked), storage_options=storage, settings=settings)


def _flag(name: str, text: str) -> bool:
    found = _WORDS.get(text.strip().lower())
    if found is None:
        raise ConfigError(f"the option {name} is {text!r}; write true or false")
    return found


def _names(text: str) -> list[str]:
    """Names between commas, or a JSON list of names, which may hold commas."""
    if not text.lstrip().startswith("["):
        return [name.strip() for name in text.split(",") if name.strip()]
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"the option columns is not a JSON list: {error}") from error
    if not all(isinstance(name, str) for name in found):
        raise ConfigError("the option columns has to be a JSON list of names")
    return list(found)
