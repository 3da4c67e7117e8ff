"""Rows in an order that queries like: conditions on the columns open few of the files afterwards."""

import random

import pyarrow as pa
import pytest

from hudi_py.config.clustering import clustering_config_with
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.pieces import Pieces
from hudi_py.rows.rewrite import move_rows
from hudi_py.rows.written import FileTarget
from hudi_py.storage.memory import MemoryStorage
from support.writes import ALONE, create_table, open_table

SCHEMA = pa.schema(
    [("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.string())]
)
ROWS, FILES = 6400, 64
TIME = "20260101000000000"
QUICK = {**ALONE, "hoodie.index.bloom.num_entries": 100, "hoodie.index.bloom.fpp": 0.1}


def table_in_no_order(layout):
    """Its rows lie in random order, then in that of the layout, in many files."""
    chance = random.Random(7)
    storage = create_table(9)
    rows = [
        {"id": f"k{n}", "region": "eu", "ts": n, "x": chance.randrange(1000), "y": f"y{chance.randrange(1000):03}"}
        for n in range(ROWS)
    ]
    for start in range(0, ROWS, ROWS // 4):
        part = pa.Table.from_pylist(rows[start : start + ROWS // 4], schema=SCHEMA)
        open_table(storage, **QUICK).bulk_insert(part)
    size = sum(each.size_bytes for each in open_table(storage).file_slices("eu"))
    target = {"hoodie.clustering.plan.strategy.target.file.max.bytes": size // FILES + 1}
    (done,) = open_table(storage, **QUICK, **target).cluster(sort_by=["x", "y"], layout=layout)
    assert done.rows == ROWS
    return storage, rows


def share_opened(storage, where, expected):
    """The rows are right; and of all files so many were opened."""
    table = open_table(storage)
    found = table.rows(where=where)
    assert {row["id"] for row in found.to_arrow().to_pylist()} == expected
    files = len(table.file_slices("eu"))
    assert files >= FILES / 2
    return 1 - sum(found.skipped.values()) / files


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["z-order", "hilbert"])
def test_conditions_on_either_or_both_columns_open_few_files(layout):
    """A curve serves both; sorted by the first column alone, the second one is in every file."""
    storage, rows = table_in_no_order(layout)
    both = {row["id"] for row in rows if 300 <= row["x"] < 400 and row["y"] < "y100"}
    assert share_opened(storage, "x >= 300 and x < 400 and y < 'y100'", both) <= 0.15
    for where, expected in (
        ("x < 20", {row["id"] for row in rows if row["x"] < 20}),
        ("y < 'y020'", {row["id"] for row in rows if row["y"] < "y020"}),
    ):
        assert share_opened(storage, where, expected) <= 0.4
    storage, rows = table_in_no_order("linear")
    assert share_opened(storage, "y < 'y020'", {row["id"] for row in rows if row["y"] < "y020"}) > 0.6


def written_rows(storage, sizes, options):
    """Rows of each file, for batches of these sizes."""
    made = []

    def open_file(number):
        target = FileTarget(partition_path="", file_id=f"f{number}", write_token="0-0-0", instant_time=TIME)
        return target, storage.open_write(target.path)

    schema = pa.schema([("ts", pa.int64())])
    batches = []
    for size in sizes:
        numbers = range(len(made), len(made) + size)
        made += numbers
        texts = [[f"{name}{n}" for n in numbers] for name in META_COLUMNS]
        batches.append(pa.RecordBatch.from_arrays([*map(pa.array, [*texts, numbers])], names=[*META_COLUMNS, "ts"]))
    avro = '{"type": "record", "name": "r", "fields": [{"name": "ts", "type": "long"}]}'
    pieces = Pieces(((batch, None) for batch in batches), 100)
    done = move_rows(pieces, open_file, schema=schema, avro_schema=avro, options=options)
    return [each.stat.num_writes for each in done]


def test_a_file_that_is_full_early_is_followed_by_a_whole_one():
    """Not by the sliver that the count of rows left for it, which would open more files for every query."""
    storage = MemoryStorage()
    assert written_rows(storage, [70, 70, 70], BaseFileOptions()) == [100, 100, 10]
    always_full = BaseFileOptions(max_file_bytes=1)
    assert written_rows(storage, [70, 70, 70], always_full) == [70, 70, 70]
    assert written_rows(storage, [70, 150], always_full) == [70, 100, 50]


def test_a_plan_in_linear_order_is_carried_out_so_where_another_layout_is_set():
    """The order belongs to the plan, also where it is the one that nobody has to name."""
    storage = create_table(9)
    grid = [{"id": f"k{x}{y}", "region": "eu", "ts": 1, "x": x, "y": str(y)} for y in range(4) for x in range(4)]
    for rows in (grid[:8], grid[8:]):
        open_table(storage, **QUICK).bulk_insert(pa.Table.from_pylist(rows, schema=SCHEMA))
    config = clustering_config_with(Settings(QUICK), sort_by=["x", "y"], layout="linear")
    instant = open_table(storage, **QUICK).services.clustering(config).schedule()
    other = open_table(storage, **QUICK, **{"hoodie.layout.optimize.strategy": "ZORDER"})
    assert other.services.clustering().execute(instant.requested_time).rows == 16
    found = open_table(storage).rows().to_arrow().to_pylist()
    assert [(row["x"], row["y"]) for row in found] == [(x, str(y)) for x in range(4) for y in range(4)]


@pytest.mark.parametrize("asked", ["", [""], ["x", " "]])
def test_an_order_by_no_column_is_refused(asked):
    """A shell's variable that is empty would rewrite all files in no order."""
    with pytest.raises(ConfigError, match="names no column"):
        open_table(create_table(9), **QUICK).cluster(sort_by=asked)
