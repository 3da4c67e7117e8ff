"""Ways to spoil a real table: plans, links, bombs, special files, names. Each gets the table and a folder outside."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import hudi_py
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block, join_data_block
from hudi_py.formats.properties import checksum, parse_properties

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2066\u200f.\n[red]x"
LATE = "20990101000000000"
EARLY = "19990101000000000"

Spoil = Callable[[Path, Path], None]


def timeline(table: Path) -> Path:
    folder = table / ".hoodie" / "timeline"
    return folder if folder.is_dir() else table / ".hoodie"


def partition(table: Path) -> Path:
    return min(path.parent for path in table.rglob("*.parquet") if ".hoodie" not in path.parts)


def put(table: Path, name: str, data: bytes) -> None:
    (timeline(table) / name).write_bytes(data)


def link_away(path: Path, outside: Path, *, relative: bool = False) -> None:
    """Move a folder out of the table and leave a link."""
    target = outside / path.name.strip(".")
    if path.exists():
        shutil.move(path, target)
    else:
        target.mkdir()
        (target / EARLY).mkdir()
        (target / EARLY / "file.parquet.marker.CREATE").write_bytes(b"")
        (target / LATE).mkdir()
    os.symlink(os.path.relpath(target, path.parent) if relative else target, path)


def avro(schema: Any, body: bytes, codec: str = "null", count: int = 1) -> bytes:
    """A container file around bytes that may mean anything."""
    stream = io.BytesIO()
    header = {"avro.schema": json.dumps(schema) if not isinstance(schema, str) else schema, "avro.codec": codec}
    meta = {"type": "map", "values": "bytes"}
    stream.write(b"Obj\x01")
    fastavro.schemaless_writer(stream, meta, {key: text.encode() for key, text in header.items()})
    if codec == "deflate":
        machine = zlib.compressobj(9, zlib.DEFLATED, -15)
        body = machine.compress(body) + machine.flush()
    fastavro.schemaless_writer(sync := io.BytesIO(), "long", count)
    fastavro.schemaless_writer(sync, "long", len(body))
    return stream.getvalue() + bytes(16) + sync.getvalue() + body + bytes(16)


def long(value: int) -> bytes:
    fastavro.schemaless_writer(stream := io.BytesIO(), "long", value)
    return stream.getvalue()


FILES = {
    "type": "record",
    "name": "HoodieCleanerPlan",
    "fields": [
        {
            "name": "filePathsToBeDeletedPerPartition",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "HoodieCleanFileInfo",
                    "fields": [{"name": "filePath", "type": ["null", "string"]}],
                },
            },
        }
    ],
}


def many_items(count: int, codec: str) -> bytes:
    return avro(FILES, long(count) + bytes(count) + long(0), codec)


def null_fields(count: int) -> bytes:
    fields = [{"name": "a", "type": "int"}, *({"name": f"n{i}", "type": "null"} for i in range(count))]
    item = {"type": "record", "name": "I", "fields": fields}
    items = {"name": "x", "type": {"type": "array", "items": item}}
    schema = {"type": "record", "name": "HoodieCleanerPlan", "fields": [items]}
    return avro(schema, long(100_000) + bytes(100_000) + long(0))


def deep_schema(depth: int) -> bytes:
    kind: Any = "int"
    for level in range(depth):
        kind = {"type": "record", "name": f"R{level}", "fields": [{"name": "a", "type": kind}]}
    return avro(kind, bytes(1))


def plan_of(paths: list[str], partitions: list[str]) -> bytes:
    """A clean plan of Hudi's own schema."""
    text = schema_text("HoodieCleanerPlan")
    record = {
        "earliestInstantToRetain": None,
        "lastCompletedCommitTimestamp": EARLY,
        "policy": "KEEP_LATEST_COMMITS",
        "filesToBeDeletedPerPartition": None,
        "version": 2,
        "filePathsToBeDeletedPerPartition": {
            name: [{"filePath": path, "isBootstrapBaseFile": False} for path in paths] for name in partitions
        },
        "partitionsToBeDeleted": partitions,
        "extraMetadata": None,
    }
    fastavro.schemaless_writer(body := io.BytesIO(), fastavro.parse_schema(json.loads(text)), record)
    return avro(text, body.getvalue())


def plan(data: Callable[[Path, Path], bytes]) -> Spoil:
    """A pending clean of that plan."""

    def spoil(table: Path, outside: Path) -> None:
        content = data(table, outside)
        put(table, f"{LATE}.clean.requested", content)
        put(table, f"{LATE}.clean.inflight", content)

    return spoil


def commit(data: bytes) -> Spoil:
    """A completed commit of that content."""

    def spoil(table: Path, outside: Path) -> None:
        is_first = timeline(table).name == ".hoodie"
        for name in (f"{LATE}.commit.requested", f"{LATE}.inflight"):
            put(table, name, b"")
        put(table, f"{LATE}.commit" if is_first else f"{LATE}_{LATE[:-1]}1.commit", data)

    return spoil


def folder_link(find: Callable[[Path], Path], *, relative: bool = False) -> Spoil:
    return lambda table, outside: link_away(find(table), outside, relative=relative)


def special(find: Callable[[Path], Path], make: Callable[[Path], None]) -> Spoil:
    """Something else in the place of a file."""

    def spoil(table: Path, outside: Path) -> None:
        path = find(table)
        path.unlink(missing_ok=True)
        make(path)

    return spoil


def newest(table: Path) -> Path:
    return max(path for path in timeline(table).iterdir() if path.name.split(".")[-1] == "commit")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


def endless(path: Path) -> None:
    os.symlink("/dev/zero", path)


def loop(path: Path) -> None:
    os.symlink(path.name, path)


def properties(table: Path) -> Path:
    return table / ".hoodie" / "hoodie.properties"


def hostile_name(table: Path, outside: Path) -> None:
    hostile_words(table)
    path = properties(table)
    found = parse_properties(path.read_bytes(), "")
    escaped = "".join(f"\\u{ord(char):04x}" for char in ESCAPES)
    lines = [
        line for line in path.read_text("latin-1").splitlines() if "table.name" not in line and "checksum" not in line
    ]
    total = checksum(found.get("hoodie.database.name", ""), ESCAPES)
    path.write_text(
        "\n".join([*lines, f"hoodie.table.name={escaped}", f"hoodie.table.checksum={total}", ""]), "latin-1"
    )


def hostile_words(table: Path) -> None:
    """What writers may choose in their commits: operations, notes, documentation of columns."""
    opened = hudi_py.open_table(table)
    for number, instant in enumerate(opened.timeline.completed("commit")[-2:]):
        commit = opened.contents.commit(instant)
        schema = json.loads((commit.extra_metadata or {})["schema"])
        schema["doc"] = schema["fields"][-1]["doc"] = ESCAPES
        notes = {"schema": json.dumps(schema), ESCAPES: ESCAPES, "engine": ESCAPES, "user": ESCAPES}
        said = attrs.evolve(commit, extra_metadata=notes, operation_type=commit.operation_type if number else ESCAPES)
        path = next(timeline(table).glob(f"{instant.requested_time}*commit"))
        path.write_bytes(encode_commit(said, as_json=opened.config.layout_version == 1, sync=bytes(16)))


def hostile_partition(table: Path, outside: Path) -> None:
    shutil.rmtree(table / ".hoodie" / "metadata", ignore_errors=True)
    shutil.copytree(partition(table), table / ("p" + ESCAPES))


def half_a_character(table: Path, outside: Path) -> None:
    path = properties(table)
    lines = [line for line in path.read_text("latin-1").splitlines() if "partition.fields" not in line]
    path.write_text("\n".join([*lines, "hoodie.table.partition.fields=\\ud800", ""]), "latin-1")


def other_bytes_in_a_partition(table: Path, outside: Path) -> None:
    """A folder as a Java process with another encoding would have named it."""
    shutil.rmtree(table / ".hoodie" / "metadata", ignore_errors=True)
    shutil.copytree(os.fsencode(partition(table)), os.fsencode(table) + b"/caf\xe9")


def other_bytes_in_a_file(table: Path, outside: Path) -> None:
    source = os.fsencode(min(partition(table).glob("*.parquet")))
    shutil.copy(source, os.path.dirname(source) + b"/\xff" + os.path.basename(source))


def schema_of(columns: Any) -> bytes:
    """A commit whose table has these columns."""
    schema = json.dumps({"type": "record", "name": "T", "fields": columns})
    return json.dumps({"partitionToWriteStats": {}, "extraMetadata": {"schema": schema}}).encode()


def twice_each(count: int) -> list[dict[str, Any]]:
    """Each type has two columns of the type before."""
    kind: Any = "int"
    for number in range(count):
        second = "int" if number == 0 else f"R{number - 1}"
        kind = {
            "type": "record", "name": f"R{number}",
            "fields": [{"name": "a", "type": kind}, {"name": "b", "type": second}],
        }  # fmt: skip
    return [{"name": "x", "type": kind}]


def archive_of(table: Path) -> Path:
    old = table / ".hoodie" / "archived"
    return old if old.is_dir() else table / ".hoodie" / "timeline" / "history"


def archive_log_bomb(table: Path, outside: Path) -> None:
    folder = table / ".hoodie" / "archived"
    folder.mkdir(exist_ok=True)
    deep: Any = {"type": "record", "name": "I", "fields": [{"name": f"n{i}", "type": "null"} for i in range(2000)]}
    deep["fields"].append({"name": "a", "type": "int"})
    schema = {
        "type": "record",
        "name": "HoodieArchivedMetaEntry",
        "fields": [{"name": "x", "type": {"type": "array", "items": deep}}],
    }
    bodies = [long(400_000) + bytes(400_000) + long(0)] * 4
    block = LogBlock(BlockType.AVRO_DATA, {int(HeaderKey.SCHEMA): json.dumps(schema)}, join_data_block(bodies))
    (folder / ".commits_.archive.99_1-0-1").write_bytes(encode_log_block(block))


def history_bomb(table: Path, outside: Path) -> None:
    folder = table / ".hoodie" / "timeline" / "history"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{EARLY}_{EARLY}_0.parquet"
    rows = 3000
    values = {
        "instantTime": EARLY,
        "completionTime": EARLY,
        "action": "commit",
        "metadata": bytes(500_000),
        "plan": b"",
    }
    columns = {each: pa.DictionaryArray.from_arrays(pa.array([0] * rows, "int32"), [values[each]]) for each in values}
    pq.write_table(pa.table(columns), folder / name, compression="gzip", store_schema=False)
    size = (folder / name).stat().st_size
    (folder / "manifest_99").write_text(json.dumps({"files": [{"fileName": name, "fileLen": size}]}))
    (folder / "_version_").write_text("99")


def savepoint_of_gigabytes(table: Path, outside: Path) -> None:
    last = newest(table).name
    folder = timeline(table)
    (folder / f"{last[:17]}.savepoint.inflight").touch()
    with (folder / last.replace(".commit", ".savepoint")).open("wb") as file:
        file.truncate(3 << 30)


def files_partition(table: Path) -> Path:
    return table / ".hoodie" / "metadata" / "files"


def hfile_bomb(table: Path, outside: Path) -> None:
    """The trailer is whole; each block says that it inflates to two gigabytes."""
    base = max(files_partition(table).glob("*.hfile"))
    data = bytearray(base.read_bytes())
    at = data.find(b"DATABLK*")
    assert at >= 0
    data[at + 12 : at + 16] = struct.pack(">i", (1 << 31) - 1)
    base.write_bytes(data)


def log_of_metadata_bomb(table: Path, outside: Path) -> None:
    """A block as long as a file can be, and one whose header is as long."""
    for log in files_partition(table).glob(".*.log.*"):
        if not log.name.endswith(".crc"):
            log.write_bytes(b"#HUDI#" + struct.pack(">q", (1 << 62)) + bytes(100) + log.read_bytes())


def log_of_rows_bomb(table: Path, outside: Path) -> None:
    base = min(partition(table).glob("*.parquet"))
    file_id = base.name.partition("_")[0]
    for version, length in ((1, 1 << 62), (2, 60), (3, -1)):
        header = struct.pack(">qiiii", length, 1, 1, 1 << 30, 1 << 30)
        (base.parent / f".{file_id}_{EARLY}.log.{version}_0-1-0").write_bytes(b"#HUDI#" + header + bytes(2_000_000))


def logs(spoiled: Callable[[bytes, Path], None]) -> Spoil:
    """Every log file of a merge-on-read table; a failed write has no markers left, so that all are looked into."""

    def spoil(table: Path, outside: Path) -> None:
        shutil.rmtree(table / ".hoodie" / ".temp", ignore_errors=True)
        found = [path for path in table.rglob(".*.log.*") if ".hoodie" not in path.parts and path.suffix != ".crc"]
        assert found
        for path in found:
            spoiled(path.read_bytes(), path)

    return spoil


def frame(size: int, header_bytes: int = 0) -> bytes:
    """The beginning of a log block that claims a size, and one header text of another."""
    return b"#HUDI#" + struct.pack(">qiiiii", size, 1, 3, 1, 0, header_bytes)


def whole_sparse(path: Path, beginning: bytes) -> None:
    """A file of gigabytes that is one block by its sizes."""
    size = (3 << 30) - 14
    with path.open("wb") as file:
        file.write(beginning)
        file.truncate(3 << 30)
        file.seek(-8, os.SEEK_END)
        file.write(struct.pack(">q", size + 6))


LOG_KINDS: dict[str, Spoil] = {
    "lengths are negative or endless": logs(
        lambda data, path: path.write_bytes(frame(-1) + frame(1 << 62) + frame(60, -1) + data) and None
    ),
    "blocks are cut": logs(lambda data, path: path.write_bytes(data[: len(data) // 2] + data) and None),
    "header of gigabytes": logs(lambda data, path: whole_sparse(path, frame((3 << 30) - 14, (1 << 31) - 1))),
    "content of gigabytes": logs(lambda data, path: whole_sparse(path, frame((3 << 30) - 14))),
    "nothing but magics": logs(lambda data, path: path.write_bytes(b"#HUDI#" * 5_000_000) and None),
    "sparse": logs(lambda data, path: sparse(path)),
    "pipe": logs(lambda data, path: path.unlink() or os.mkfifo(path)),
    "endless device": logs(lambda data, path: path.unlink() or endless(path)),
}


def markers(table: Path, outside: Path) -> None:
    folder = table / ".hoodie" / ".temp" / EARLY
    folder.mkdir(parents=True)
    os.mkfifo(folder / "MARKERS.type")
    for name in ("one", "two"):
        os.symlink(".", folder / name)


def heartbeat(table: Path, outside: Path) -> None:
    folder = table / ".hoodie" / ".heartbeat"
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / LATE)
    put(table, f"{LATE}.commit.requested", b"")
    put(table, f"{LATE}.inflight", b"")


def lock(table: Path, outside: Path) -> None:
    folder = table / ".hoodie" / ".locks"
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / "table_lock.json")
    os.mkfifo(table / ".hoodie" / "lock")


def two_links(table: Path, outside: Path) -> None:
    shutil.rmtree(table / ".hoodie" / "metadata", ignore_errors=True)
    for name in ("one", "two"):
        os.symlink("..", partition(table) / name)


def nested_link(table: Path, outside: Path) -> None:
    os.symlink(outside, table / "side")
    plan(lambda *_: plan_of(["side/sub/canary.parquet", "side/canary.parquet"], ["side/sub"]))(table, outside)


def linked_data(table: Path, outside: Path) -> None:
    for number, path in enumerate(sorted(partition(table).glob("*.parquet"))):
        shutil.move(path, outside / f"{number}.parquet")
        (os.symlink if number % 2 else os.link)(outside / f"{number}.parquet", path)


KINDS: dict[str, Spoil] = {
    # plans
    "plan leaves the table upwards": plan(lambda t, o: plan_of(["../outside/canary.parquet"], ["../outside"])),
    "plan names absolute paths": plan(lambda t, o: plan_of([f"{o}/canary.parquet"], [str(o)])),
    "plan names file URLs": plan(lambda t, o: plan_of([f"file://{o}/canary.parquet"], [])),
    "plan goes up inside of a path": plan(lambda t, o: plan_of([f"{t}/p/../../outside/canary.parquet"], ["p/../.."])),
    "plan names the table itself": plan(lambda t, o: plan_of([str(t), ""], ["", "."])),
    "plan names the timeline": plan(lambda t, o: plan_of([f"{t}/.hoodie/hoodie.properties"], [".hoodie"])),
    "plan with controls in its names": plan(lambda t, o: plan_of([f"{t}/p{ESCAPES}/x"], [f"p{ESCAPES}"])),
    "plan through a link": nested_link,
    "plan deflated to a hundredth": plan(lambda t, o: many_items(40_000_000, "deflate")),
    "plan of tiny items": plan(lambda t, o: many_items(20_000_000, "null")),
    "plan of null fields": plan(lambda t, o: null_fields(5000)),
    "plan of a deep schema": plan(lambda t, o: deep_schema(60)),
    "plan of a schema past the stack": plan(lambda t, o: avro("[" * 200_000, b"")),
    "plan is no plan": plan(lambda t, o: os.urandom(10_000)),
    # bombs
    "commit of brackets": commit(b'{"a":' + b"[" * 3_000_000),
    "commit of empty lists": commit(b'{"a":[' + b"[]," * 3_000_000 + b"[]]}"),
    "commit of tiny items": commit(many_items(20_000_000, "deflate")),
    "commit of other types": commit(b'{"partitionToWriteStats":{"p":[1,"a",null]},"operationType":{},"compacted":[]}'),
    "commit of columns that double": commit(schema_of(twice_each(60))),
    "commit of very many columns": commit(schema_of([{"name": f"c{n}", "type": "int"} for n in range(200_000)])),
    "archive log of null fields": archive_log_bomb,
    "history of one value in many rows": history_bomb,
    "savepoint of gigabytes": savepoint_of_gigabytes,
    "metadata table of blocks that inflate": hfile_bomb,
    "metadata table's log of endless blocks": log_of_metadata_bomb,
    "metadata table's base file is sparse": special(lambda t: max(files_partition(t).glob("*.hfile")), sparse),
    "log files of endless blocks": log_of_rows_bomb,
    "properties of blanks": special(properties, lambda path: path.write_bytes(b"\\\n" * 20_000_000) and None),
    # special files
    "commit is a pipe": special(newest, os.mkfifo),
    "commit is an endless device": special(newest, endless),
    "commit is a link to itself": special(newest, loop),
    "commit is sparse": special(newest, sparse),
    "properties are a pipe": special(properties, os.mkfifo),
    "properties are endless": special(properties, endless),
    "properties are sparse": special(properties, sparse),
    "base file is a pipe": special(lambda t: min(partition(t).glob("*.parquet")), os.mkfifo),
    "partition metafile is a pipe": special(lambda t: partition(t) / ".hoodie_partition_metadata", os.mkfifo),
    "markers are pipes and rings": markers,
    "heartbeat is a pipe": heartbeat,
    "locks are pipes": lock,
    # links
    "partition is a link": folder_link(partition),
    "partition is a relative link": folder_link(partition, relative=True),
    "partition has links back": two_links,
    "data files are links": linked_data,
    "temporary folder is a link": folder_link(lambda t: t / ".hoodie" / ".temp"),
    "timeline is a link": folder_link(timeline),
    "archive is a link": folder_link(archive_of),
    "metadata table is a link": folder_link(lambda t: t / ".hoodie" / "metadata"),
    "own folder is a link": folder_link(lambda t: t / ".hoodie" / ".aux"),
    # names
    "controls in the table's name and in the words of its commits": hostile_name,
    "controls in a partition's name": hostile_partition,
    "half a character in a column's name": half_a_character,
    "other bytes in a partition's name": other_bytes_in_a_partition,
    "other bytes in a file's name": other_bytes_in_a_file,
}
