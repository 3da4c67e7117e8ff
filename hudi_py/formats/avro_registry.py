"""The Avro schemas that Hudi writes, by record name and table version."""

from __future__ import annotations

import functools
import importlib.resources
import pathlib
from typing import TYPE_CHECKING, Final

from hudi_py.versions.served import FORMATS, NEWEST

if TYPE_CHECKING:  # moved there in Python 3.11, removed from importlib.abc in 3.14
    from importlib.resources.abc import Traversable

NAMESPACE: Final = "org.apache.hudi.avro.model"


@functools.cache
def schema_text(record: str, table_version: int = NEWEST) -> str:
    """
    Return the schema of *record* as Hudi writes it into file headers for this table version.

    Args:
        record: Name without namespace, for example ``HoodieCleanerPlan``.
        table_version: Most records are the same in all versions. If a record has changed, ``NAME.vN.avsc`` is the form
            that tables up to version *N* use.

    Returns:
        Compact JSON, byte for byte as on disk (rules/timeline 4.2).

    Raises:
        KeyError: There is no such record; this is an error in the code, never in a file.
    """
    folder = _folder()
    generations = [f"{record}.v{version}.avsc" for version in sorted(FORMATS) if table_version <= version]
    for name in (*generations, f"{record}.avsc"):
        file = folder / name
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise KeyError(f"no Avro schema of a record {record!r} is shipped")


def schema_files() -> tuple[str, ...]:
    """Return the names of all schema files in the package, sorted."""
    return tuple(sorted(file.name for file in _folder().iterdir() if file.name.endswith(".avsc")))


def _folder() -> Traversable:
    # A checkout or an editable install has no package hudi_py.avro_schemas, but the folder that it is made from.
    try:
        return importlib.resources.files("hudi_py.avro_schemas")
    except ModuleNotFoundError:
        return pathlib.Path(__file__).parents[2] / "avro_schemas"
