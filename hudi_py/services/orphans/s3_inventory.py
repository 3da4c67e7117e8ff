"""
Reads an inventory that Amazon S3 made of a bucket: a manifest, and the files with a row for each object that it names.

Sizes and times, which an inventory need not have, are not taken from it: whoever asks about a file looks it up.

In CSV there is no heading, and keys are encoded for URLs, with a plus for a space; in Parquet and ORC they are as they
are. Source: Amazon S3 User Guide, "Cataloging and analyzing your data with S3 Inventory", "Locating your inventory
list".
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from urllib.parse import unquote_plus

import attrs

from hudi_py.errors import ConfigError, CorruptMetadata, NotFound
from hudi_py.model.json_document import parse_json
from hudi_py.model.store_names import S3_SCHEMES
from hudi_py.model.words import why_unread
from hudi_py.storage.base import Storage
from hudi_py.storage.factory import open_beside

_VERSION: Final = "2016-11-30"
_CHUNK_BYTES: Final = 1 << 20
_BUCKET, _KEY, _VERSION_ID, _IS_LATEST, _IS_MARKER = "bucket", "key", "versionid", "islatest", "isdeletemarker"
_COLUMNS: Final = (_BUCKET, _KEY, _VERSION_ID, _IS_LATEST, _IS_MARKER)
_TRUTH: Final = {"true": True, "false": False}


def is_manifest(file: str) -> bool:
    """Whether a file that is given as an inventory is such a manifest, by its name."""
    return file.lower().endswith(".json")


@attrs.frozen
class _Listed:
    """
    A file of the inventory.

    Args:
        key: In the bucket that the inventory is in.
        size_bytes, md5: Its size, and MD5 sum in hex; None if the manifest does not have it.
    """

    key: str
    size_bytes: int | None
    md5: str | None


@attrs.frozen
class _Manifest:
    """
    What a manifest says.

    Args:
        bucket: That was listed.
        inside: The bucket that the inventory is in.
        form: ``CSV``, ``ORC`` or ``PARQUET``.
        columns: Of CSV: names of the columns, in order, in lower case.
        files: With the rows.
    """

    bucket: str
    inside: str
    form: str
    columns: tuple[str, ...]
    files: tuple[_Listed, ...]


def object_urls(file: str, storage: Storage) -> Iterator[str]:
    """
    Yield the URL of each object that a bucket has, by an inventory of it: no older versions, and no deletion markers.

    Args:
        file: Path or URL of ``manifest.json``. Of a local one the files that it names lie beside it, in the folder
            ``data`` next to that, or at their keys below a folder above.
        storage: Of a table in that bucket.

    Raises:
        ConfigError: A file is missing, is not the one that the manifest names, does not decode, or is not understood;
            or the inventory is of another bucket. What was yielded before must not be used.
        StorageError: The store refused or cannot be reached.
    """
    scheme, separator, rest = storage.root.partition("://")
    if not separator or scheme.lower() not in S3_SCHEMES:
        raise _refusal(file, f"a manifest of Amazon S3 lists a bucket, and {storage.root} is in none; give a CSV")
    manifest = _read_manifest(file, storage)
    bucket = rest.partition("/")[0]
    if manifest.bucket != bucket:
        raise _refusal(file, f"it lists the bucket {manifest.bucket}, and the table is in {bucket}")
    for listed in manifest.files:
        where = f"{file}, {listed.key}"
        place, name = _place_of(file, manifest, listed, storage)
        try:
            read = _csv_rows if manifest.form == "CSV" else _columnar_rows
            for row in read(place, name, manifest, listed, where):
                if row is not None:
                    yield f"{scheme}://{row}"
        except NotFound as error:
            raise _refusal(where, "the file is not there") from error


def _read_manifest(file: str, storage: Storage) -> _Manifest:
    folder, name = _split(file)
    place = open_beside(storage, folder)
    try:
        content = place.read(name)
    except NotFound as error:
        raise _refusal(file, "there is no such file") from error
    except CorruptMetadata as error:
        raise _refusal(file, str(error)) from error
    try:
        told = place.read(f"{name[: -len('.json')]}.checksum").decode("ascii").strip()
    except (NotFound, UnicodeError):  # whoever copied the manifest may have left it
        told = ""
    if told and told.lower() != hashlib.md5(content, usedforsecurity=False).hexdigest():
        raise _refusal(file, "it is not the file whose MD5 sum is in the checksum file beside it; copy both again")
    try:
        return _parsed(parse_json(content))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise _refusal(file, f"it is no manifest of an inventory of Amazon S3 that is understood: {why}") from error


def _parsed(document: Any) -> _Manifest:
    if document["version"] != _VERSION:
        raise ValueError(f"version {document['version']!r} is not known, {_VERSION} is")
    form = str(document["fileFormat"]).upper()
    if form not in ("CSV", "ORC", "PARQUET"):
        raise ValueError(f"fileFormat {document['fileFormat']!r} is not known; CSV, Parquet and ORC are")
    columns = tuple(each.strip().lower() for each in str(document["fileSchema"]).split(",")) if form == "CSV" else ()
    if form == "CSV":
        _check_columns(columns)
    files = tuple(
        _Listed(
            str(each["key"]),
            None if each.get("size") is None else int(each["size"]),
            None if not each.get("MD5checksum") else str(each["MD5checksum"]).lower(),
        )
        for each in document["files"]
    )
    # A name, or that of a resource: arn:aws:s3:::name.
    bucket, inside = (str(document[each]).rpartition(":")[2] for each in ("sourceBucket", "destinationBucket"))
    return _Manifest(bucket, inside, form, columns, files)


def _check_columns(columns: Sequence[str]) -> None:
    """
    Raises:
        ValueError: The columns do not tell which objects there are.
    """
    absent = [name for name in (_BUCKET, _KEY) if name not in columns]
    if absent:
        raise ValueError(f"its schema has no column {absent[0].capitalize()}")
    if len(set(columns)) < len(columns):
        raise ValueError("its schema has a column twice")
    of_versions = [name for name in (_VERSION_ID, _IS_LATEST, _IS_MARKER) if name in columns]
    if of_versions and not {_IS_LATEST, _IS_MARKER} <= set(columns):
        raise ValueError(
            f"its schema has {of_versions[0]} without both IsLatest and IsDeleteMarker, so older versions of objects "
            "cannot be told from what the bucket has"
        )


def _place_of(file: str, manifest: _Manifest, listed: _Listed, storage: Storage) -> tuple[Storage, str]:
    """The storage that has a file of an inventory, and its path there."""
    scheme, separator, _ = file.partition("://")
    if separator and scheme.lower() in S3_SCHEMES:
        return open_beside(storage, f"{scheme}://{manifest.inside}"), listed.key
    folder = Path(_split(file)[0]).absolute()
    name = listed.key.rpartition("/")[2]
    # As Amazon lays them out: the manifest in a folder of its time, the rows in `data` next to it.
    candidates = [folder / name, folder / "data" / name, folder.parent / "data" / name]
    candidates += [above / listed.key for above in folder.parents]
    for each in candidates:
        if each.is_file():
            return open_beside(storage, str(each.parent)), each.name
    raise _refusal(file, f"{name}, which it names, is neither beside it, nor in a folder data, nor at {listed.key}")


def _csv_rows(place: Storage, name: str, manifest: _Manifest, listed: _Listed, where: str) -> Iterator[str | None]:
    """Bucket and key of each object; None for a row of none. The file is checked last, so all of it is read."""
    try:
        with place.open_read(name) as raw:
            checked = _Checked(raw)
            opened = gzip.GzipFile(fileobj=cast("BinaryIO", checked)) if name.endswith(".gz") else checked
            with io.TextIOWrapper(cast("BinaryIO", opened), encoding="utf-8", newline="") as text:
                for number, row in enumerate(csv.reader(text, strict=True), 1):
                    try:
                        found = _named(row, manifest)
                    except ValueError as error:
                        raise _refusal(f"{where}, row {number}", str(error)) from error
                    yield found
                checked.check(listed)
    except (OSError, EOFError, ValueError, csv.Error, zlib.error) as error:
        raise _refusal(where, why_unread(error)) from error


def _named(row: list[str], manifest: _Manifest) -> str | None:
    if len(row) != len(manifest.columns):
        raise ValueError(f"it has {len(row)} columns, and {len(manifest.columns)} by the schema of the manifest")
    found = dict(zip(manifest.columns, row, strict=True))
    return _object_in({**found, _KEY: unquote_plus(found[_KEY], errors="strict")}, manifest.bucket)


def _columnar_rows(place: Storage, name: str, manifest: _Manifest, listed: _Listed, where: str) -> Iterator[str | None]:
    from pyarrow.lib import ArrowException

    try:
        with place.open_read(name) as raw:
            _Checked(raw).check(listed)
        with place.open_read(name) as raw:
            for columns in _orc_columns(raw) if manifest.form == "ORC" else _parquet_columns(raw):
                for row in zip(*columns.values(), strict=True):
                    yield _object_in(dict(zip(columns, row, strict=True)), manifest.bucket)
    except (ArrowException, OSError, ValueError) as error:
        raise _refusal(where, str(error)) from error


def _parquet_columns(raw: BinaryIO) -> Iterator[dict[str, list[Any]]]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(raw) as opened:
        wanted = _wanted(opened.schema_arrow.names)
        for batch in opened.iter_batches(columns=list(wanted.values())):
            yield {name: batch.column(stored).to_pylist() for name, stored in wanted.items()}


def _orc_columns(raw: BinaryIO) -> Iterator[dict[str, list[Any]]]:
    from pyarrow.orc import ORCFile

    opened = ORCFile(raw)
    wanted = _wanted(opened.schema.names)
    for number in range(opened.nstripes):
        batch = opened.read_stripe(number, columns=list(wanted.values()))
        yield {name: batch.column(stored).to_pylist() for name, stored in wanted.items()}


def _wanted(names: Sequence[str]) -> dict[str, str]:
    """The columns that tell which objects there are: their names as in CSV to those in the file (``is_latest``)."""
    stored = {name.replace("_", "").lower(): name for name in names}
    _check_columns(tuple(stored))
    return {name: stored[name] for name in _COLUMNS if name in stored}


def _object_in(row: dict[str, Any], bucket: str) -> str | None:
    """
    Return ``bucket/key``; None for an older version, or the marker of a deletion.

    Raises:
        ValueError: It is not known what the row is of.
    """
    if row[_BUCKET] != bucket:
        raise ValueError(f"it is of the bucket {row[_BUCKET]!r}, and the manifest of {bucket}")
    if not row[_KEY]:
        raise ValueError("it has no key")
    if _IS_LATEST in row and (not _truth(row, _IS_LATEST) or _truth(row, _IS_MARKER)):
        return None
    return f"{bucket}/{row[_KEY]}"


def _truth(row: dict[str, Any], name: str) -> bool:
    found = _TRUTH.get(str(row[name]).lower())
    if found is None:
        raise ValueError(f"{name} is {row[name]!r}, neither true nor false")
    return found


class _Checked(io.RawIOBase):
    """A stream that is read once, from its beginning on, and compared with what is said of it."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._sum = hashlib.md5(usedforsecurity=False)
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._raw.read(len(buffer))
        self._sum.update(data)
        self._size += len(data)
        buffer[: len(data)] = data
        return len(data)

    def check(self, listed: _Listed) -> None:
        """
        Read the rest, and compare.

        Raises:
            ValueError: It is another file.
        """
        scratch = bytearray(_CHUNK_BYTES)
        while self.readinto(scratch):
            pass
        if listed.size_bytes is not None and self._size != listed.size_bytes:
            raise ValueError(f"it has {self._size} bytes, and {listed.size_bytes} by the manifest; copy it again")
        if listed.md5 is not None and self._sum.hexdigest() != listed.md5:
            raise ValueError("its MD5 sum is not that of the manifest; copy it again")


def _split(file: str) -> tuple[str, str]:
    """Folder and name of a path or URL; a bare name is in the working folder."""
    folder, slash, name = file.rpartition("/")
    return (folder or slash or "."), name


def _refusal(file: str, why: str) -> ConfigError:
    return ConfigError(f"--inventory {file}: {why}; nothing was done")
