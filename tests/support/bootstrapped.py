"""Tables of real Hudi that were made from the files of another folder."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path

from hudi_py.formats.avro_file import decode_avro_file, encode_avro_file
from hudi_py.formats.bootstrap_index import FOLDER, NAME
from hudi_py.formats.hfile import HFile
from hudi_py.formats.hfile_writer import encode_hfile
from support.fixtures import FOLDER as FIXTURES


def unpack_bootstrapped(name: str, folder: Path) -> Path:
    """
    Unpack a fixture of ``bootstrapped/``: ``folder/table`` and ``folder/source``; returns the table's base path.

    Hudi writes absolute paths into the properties and into the index; they are made those of *folder*.
    """
    with tarfile.open(FIXTURES / "bootstrapped" / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    table = folder / "table"
    point_index_to(table, str(folder / "source"))
    return table


def point_index_to(table: Path, source: str) -> None:
    """Let the index and the properties of a table name another source folder."""
    properties = table / ".hoodie" / "hoodie.properties"
    text = properties.read_text(encoding="utf-8")
    was = re.search(r"^hoodie.bootstrap.base.path=(.*)$", text, re.MULTILINE)[1]
    properties.write_text(text.replace(f"path={was}\n", f"path={source}\n"), encoding="utf-8")
    index = table / FOLDER / NAME
    if index.exists():
        data = index.read_bytes()
        entries = [(key, _moved(value, was, source)) for key, value in HFile(io.BytesIO(data), len(data), "index")]
        index.write_bytes(encode_hfile(entries))


def _moved(value: bytes, was: str, source: str) -> bytes:
    file = decode_avro_file(value, "index")
    (record,) = file.records
    for status in record["fileIdToBootstrapFile"].values():
        status["path"]["uri"] = status["path"]["uri"].replace(was, source)
    return encode_avro_file(file.schema_text, record, file.sync)
