"""Tables that combine what Apache Hudi offers: every time and range as it reads them."""

import pytest

import hudi_py
from hudi_py.errors import HudiError
from hudi_py.rows.read import plain_rows
from support.fixtures import HASHED_META, combined_names, row_hash, unpack_combined


@pytest.mark.parametrize("name", combined_names())
def test_all_reads_are_those_of_hudi(name, tmp_path):
    """Ordering by several fields and by those of structs, computed keys, older types, all services on one table."""
    path, reads = unpack_combined(name, tmp_path)
    table = hudi_py.open_table(path)
    kept = HASHED_META if table.config.populate_meta_fields else ()

    def agrees(expected, rows):
        if "error" in expected:
            with pytest.raises(HudiError):
                list(rows())
        else:
            found = [row for batch in rows() for row in plain_rows(batch)]
            assert (row_hash(found, kept), len(found)) == (expected["hash"], expected["rows"]), expected

    if "snapshot" in reads:
        agrees(reads["snapshot"], lambda: table.rows(with_meta=True))
    if "read_optimized" in reads:
        agrees(reads["read_optimized"], lambda: table.rows(with_meta=True, read_optimized=True))
    for time, expected in reads["as_of"].items():
        agrees(expected, lambda time=time: table.rows(with_meta=True, as_of=time))
    for expected in reads["incremental"]:
        begin = expected["begin"]
        if name.endswith("-1.0.2") and begin.strip("0"):  # the release takes the commit of this time in
            begin = str(int(begin) - 1)
        agrees(expected, lambda begin=begin, end=expected["end"]: table.changes(begin, end, with_meta=True))


@pytest.mark.parametrize("read_optimized", [False, True])
@pytest.mark.parametrize("name", [name for name in combined_names() if name.startswith("virtual")])
def test_conditions_on_empty_meta_columns_find_the_rows_that_show_them(name, read_optimized, tmp_path):
    """Paths and keys rule nothing out where rows hold neither: an empty text and a null are found."""
    table = hudi_py.open_table(unpack_combined(name, tmp_path)[0])
    everything = table.rows(with_meta=True, read_optimized=read_optimized).to_arrow()
    for column in HASHED_META:
        shown = everything[column].to_pylist()
        for where, expected in ((f"{column} = ''", shown.count("")), (f"{column} is null", shown.count(None))):
            found = table.rows(columns=["id"], where=where, read_optimized=read_optimized).to_arrow()
            assert found.num_rows == expected, where
        assert shown.count("") + shown.count(None) == len(shown)
