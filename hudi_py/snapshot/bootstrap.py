"""
Bootstrapped tables: finds the files outside of the table that have the columns of its file slices.

Source: Hudi 0.15.0, 1.1.1 ``AbstractTableFileSystemView.addBootstrapBaseFileIfPresent``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound, UnsupportedTable
from hudi_py.formats.bootstrap_index import FOLDER, NAME, sources_of
from hudi_py.formats.hfile import HFile
from hudi_py.model.files import FileSlice, SourceFile
from hudi_py.storage.base import Storage

_BASE: Final = "hoodie.bootstrap.base.path"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?")
_KNOWN_INDEX: Final = (
    "",
    "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex",
    "org.apache.hudi.common.bootstrap.index.HFileBootstrapIndex",
)


def is_bootstrapped(table: TableConfig) -> bool:
    """Whether columns of the table's rows may be in files outside of it."""
    return bool(table.properties.get(_BASE, "").strip())


def with_sources(storage: Storage, table: TableConfig, slices: Iterable[FileSlice]) -> list[FileSlice]:
    """
    The slices, with the file outside of the table where a base file has the meta columns only.

    Raises:
        UnsupportedTable: The index is of a kind that hudi_py does not read.
        CorruptMetadata: The index lacks such a file, or names one that is not below the folder the table was made from.
    """
    slices = list(slices)
    if not is_bootstrapped(table) or not any(map(_lacks_columns, slices)):
        return slices
    from hudi_py.rows.path_columns import PathColumns

    properties = table.properties
    kind = properties.get("hoodie.bootstrap.index.class", "").strip()
    if kind not in _KNOWN_INDEX or properties.get("hoodie.bootstrap.index.type", "HFILE").strip() != "HFILE":
        raise UnsupportedTable(
            f"{storage.root}: the bootstrap index is of the kind {kind or properties['hoodie.bootstrap.index.type']}, "
            "and hudi_py reads HFiles only; read the table with Apache Hudi"
        )
    path = f"{FOLDER}/{NAME}"
    source = f"{storage.root}/{path}"
    try:
        with storage.open_read(path) as stream:
            # Read as a whole: most slices of such a table have their columns outside.
            found = sources_of(HFile(stream, stream.seek(0, 2), source), source)
    except NotFound as error:
        raise CorruptMetadata(
            f"{source} is missing: it says in which files outside of the table the columns of its first rows are; "
            "restore it from a backup"
        ) from error
    columns = PathColumns(fields=table.partition_fields, is_hive_style=table.hive_style, is_encoded=table.url_encode)
    base = _plain(properties[_BASE].strip()).rstrip("/") + "/"

    def completed(file_slice: FileSlice) -> FileSlice:
        if not _lacks_columns(file_slice) or file_slice.base_file is None:
            return file_slice
        known = found.get((file_slice.partition_path, file_slice.file_id))
        name = f"{storage.root}/{file_slice.partition_path}/{file_slice.base_file.name}"
        if known is None:
            raise CorruptMetadata(f"{source} does not say where the columns of {name} are; read it with Apache Hudi")
        plain = _plain(known.uri)
        # Whoever can write to the table must not choose any other file of this machine to be read.
        if not plain.startswith(base) or ".." in plain.split("/"):
            raise CorruptMetadata(f"{source}: the columns of {name} would be in {known.uri}, outside of {base}")
        values = columns.values(file_slice.partition_path) if table.partition_fields else {}
        other = SourceFile(known.uri, known.size_bytes, values)
        return attrs.evolve(file_slice, base_file=attrs.evolve(file_slice.base_file, source=other))

    return [completed(each) for each in slices]


def _lacks_columns(file_slice: FileSlice) -> bool:
    return file_slice.base_file is not None and file_slice.base_file.lacks_columns


def _plain(location: str) -> str:
    """A location without its scheme and host, which the index and the property may write in different ways."""
    return _SCHEME.sub("", location, count=1)
