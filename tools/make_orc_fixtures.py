"""
Makes the fixtures ``tests/fixtures/combined/orc_*``: tables of Apache Hudi with base files in ORC, and its answers.

    python tools/make_orc_fixtures.py --release 1.1.1

Needs what `tools/real_hudi` needs. The rows are the same each time, the times of the commits are not. Releases from 1.1
on read such tables with ``spark.sql.orc.enableVectorizedReader=false`` only (docs/reading-orc.md).
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

import pyarrow as pa  # noqa: E402 - the others need the path
from real_hudi import RealHudi, RealHudiError  # noqa: E402

import hudi_py  # noqa: E402
from support.fixtures import pack_combined  # noqa: E402

_UTC: Final = dt.timezone.utc
_TIMES: Final = pa.timestamp("us", "UTC")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_FORMAT: Final = {"hoodie.table.base.file.format": "ORC", "hoodie.base.file.format": "ORC"}
_KINDS: Final[dict[str, dict[str, str]]] = {
    "orc_cow": {"hoodie.datasource.write.table.type": "COPY_ON_WRITE", **_FORMAT},
    "orc_mor": {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **_FORMAT},
    "orc_mixed": {
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.table.multiple.base.file.formats.enable": "true",
    },
}
_SETTINGS: Final = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "n",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
}


def main() -> None:
    """Write all tables of a release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", required=True)
    hudi = RealHudi(parser.parse_args().release)
    # Spark would read old dates and times of its source in the calendar of its past.
    hudi.sql("set spark.sql.parquet.datetimeRebaseModeInRead=CORRECTED")
    hudi.sql("set spark.sql.orc.enableVectorizedReader=false")
    for name in _KINDS if not hudi.version.startswith("0.") else ["orc_cow"]:
        with tempfile.TemporaryDirectory() as folder:
            make(hudi, Path(folder) / name)
    hudi.close()


def make(hudi: RealHudi, path: Path) -> None:
    """Write one table, ask for its rows, and pack both."""
    write(hudi, path)
    pack_combined(path, hudi.version, answers(hudi, path))


def answers(hudi: RealHudi, path: Path) -> Iterator[tuple[str, Any, Any, list[dict[str, Any]]]]:
    """Each question, and the rows that Apache Hudi reads."""
    for kind, begin, end, options in questions(path):
        try:
            rows = hudi.read(path, meta=True, options=options)
        except RealHudiError as error:
            raise SystemExit(f"{path.name}: {kind} {begin} {end}: {error}") from error
        yield kind, begin, end, [_shown(row) for row in rows]


def write(hudi: RealHudi, path: Path) -> None:
    """Rows of all types; updates and deletes where the release can; then more columns, and wider ones."""
    first = _SETTINGS | _KINDS[path.name]
    hudi.write(path, _rows(range(4), 1), "insert", first)
    # Releases before 1.0 cannot update such a table: "Custom key generator is not supported yet".
    is_updated = not hudi.version.startswith("0.")
    later = _SETTINGS | (_KINDS[path.name] | _FORMAT if path.name == "orc_mixed" else _FORMAT)
    if is_updated:
        hudi.write(path, _rows((1, 2, 4), 2), "upsert", later)
        hudi.write(path, _rows((3,), 3), "delete", later)
    hudi.write(path, _wider(_rows((5, 6), 4)), "insert", later)
    if is_updated:
        hudi.write(path, _wider(_rows((0, 6), 5)), "upsert", later)


def questions(path: Path) -> Iterator[tuple[str, str, str | None, dict[str, str]]]:
    """Kind, begin and end of each question, and the options that ask it of Apache Hudi."""
    table = hudi_py.open_table(str(path))
    writes = table.timeline.writes.completed()
    yield "snapshot", "", None, {}
    if table.is_merge_on_read:
        yield "read_optimized", "", None, {"hoodie.datasource.query.type": "read_optimized"}
    for each in writes:
        yield "as_of", each.requested_time, None, {"as.of.instant": each.requested_time}
    ends = sorted(each.completion_time or each.requested_time for each in writes)
    for begin, end in [("000", None), *((each, None) for each in ends[:-1]), *(("000", each) for each in ends[:-1])]:
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": begin,
            **({"hoodie.datasource.read.end.instanttime": end} if end else {}),
        }
        yield "incremental", begin, end, options


def _rows(numbers: Any, write: int) -> pa.Table:
    """Rows with a value of each type, or null in all of them; times and dates have what ORC keeps in its own way."""
    times = [
        dt.datetime(2024, 2, 29, 12, 30, 0, 123_456, _UTC),
        dt.datetime(1969, 12, 31, 23, 59, 58, tzinfo=_UTC),
        dt.datetime(1950, 1, 1, 1, 1, 1, 500_000, _UTC),
    ]
    days = [dt.date(2024, 2, 29), dt.date(1500, 3, 10), dt.date(1, 1, 1)]
    rows = []
    for number in numbers:
        time, day, at = times[number % 3], days[number % 3], write * 10 + number
        row = {
            "i": at, "f": at + 0.1, "d": at + 0.1, "s": f"ä{at}", "b": at % 2 == 0, "y": bytes([at, 255]),
            "day": day, "at": time, "p12": Decimal(at) / 100, "p38": Decimal(-at) * 10**20, "l": [at, at + 1],
            "m": [("k", time)], "st": {"a": at, "t": time, "d": [day]},
        }  # fmt: skip
        key = {"id": f"k{number}", "p": "ab"[number % 2], "n": write}
        rows.append({**key, **(dict.fromkeys(row) if number == 1 and write == 1 else row)})
    return pa.Table.from_pylist(rows, _schema(pa.int32(), pa.float32()))


def _schema(integer: pa.DataType, floating: pa.DataType) -> pa.Schema:
    struct = pa.struct([("a", pa.int32()), ("t", _TIMES), ("d", pa.list_(pa.date32()))])
    return pa.schema(
        [
            ("id", pa.string()), ("p", pa.string()), ("n", pa.int64()), ("i", integer), ("f", floating),
            ("d", pa.float64()), ("s", pa.string()), ("b", pa.bool_()), ("y", pa.binary()), ("day", pa.date32()),
            ("at", _TIMES), ("p12", pa.decimal128(12, 2)), ("p38", pa.decimal128(38, 4)), ("l", pa.list_(pa.int32())),
            ("m", pa.map_(pa.string(), _TIMES)), ("st", struct),
        ]
    )  # fmt: skip


def _wider(rows: pa.Table) -> pa.Table:
    """The rows with a column more, and two of a wider type."""
    return rows.cast(_schema(pa.int64(), pa.float64())).append_column("z", pa.array(["new"] * rows.num_rows))


def _shown(value: Any) -> Any:
    """Times in the form of the command line."""
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shown(each) for each in value]
    if isinstance(value, str) and _TIME.fullmatch(value):
        return str(dt.datetime.fromisoformat(value.removesuffix("Z")))
    return value


if __name__ == "__main__":
    main()
