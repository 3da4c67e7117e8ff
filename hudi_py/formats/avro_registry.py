"""The schema texts that Hudi writes, by record name and table version."""

from __future__ import annotations

import functools
import importlib.resources
import pathlib
from typing import TYPE_CHECKING, Final

from hudi_py.versions.served import FORMATS, NEWEST

if TYPE_CHECKING:  # moved there in Python 3.11, gone from importlib.abc in 3.14
    from importlib.resources.abc import Traversable

NAMESPACE: Final = "org.apache.hudi.avro.model"


@functools.cache
def schema_text(record: str, table_version: int = NEWEST) -> str:
    """
    Return the writer schema of *record* as Hudi of that table version puts it into file headers.

    Args:
        record: Name without namespace, for example ``HoodieCleanerPlan``.
        table_version: Most records look the same in all of them; of one that changed, ``NAME.vN.avsc`` is the form that
            *N* was the last version to write.

    Returns:
        Compact JSON, byte for byte as on disk (rules/timeline 4.2).

    Raises:
        KeyError: No such record; that is a mistake of ours, never of a file.
    """
    folder = _folder()
    generations = [f"{record}.v{version}.avsc" for version in sorted(FORMATS) if table_version <= version]
    for name in (*generations, f"{record}.avsc"):
        file = folder / name
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise KeyError(f"no Avro schema of a record {record!r} is shipped")


def schema_files() -> tuple[str, ...]:
    """Names of all shipped schema files, sorted."""
    return tuple(sorted(file.name for file in _folder().iterdir() if file.name.endswith(".avsc")))


def _folder() -> Traversable:
    # In a checkout and in an editable install the package hudi_py.avro_schemas does not exist, its folder does.
    try:
        return importlib.resources.files("hudi_py.avro_schemas")
    except ModuleNotFoundError:
        return pathlib.Path(__file__).parents[2] / "avro_schemas"
