"""Finding keys in base files."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.bloom import BloomKind, BloomSizing, HashedKeys
from hudi_py.rows.base_file import AVRO_SCHEMA_KEY, BLOOM_KEY, MAX_KEY, MIN_KEY, BaseFileOptions
from hudi_py.rows.lookup import lookup_keys, may_hold, open_base_file, read_footer, read_keys
from support.laws import examples

KEY = st.text("ab\ue000\U00010000", min_size=1, max_size=3)


@examples(50)
@given(
    stored=st.lists(KEY, unique=True, max_size=20),
    asked=st.lists(KEY, max_size=20),
    kind=st.sampled_from(BloomKind),
    false_positive_rate=st.sampled_from([0.9, 1e-9]),
    is_near=st.booleans(),
)
def test_lookup_is_exact(files, stored, asked, kind, false_positive_rate, is_near):
    """Whatever filter and range let pass, the answer is that of the column; they never stop a stored key."""
    options = BaseFileOptions(bloom=BloomSizing(kind=kind, entries=4, false_positive_rate=false_positive_rate))
    data = files.write([{"id": key} for key in stored], options=options)
    found = lookup_keys(io.BytesIO(data), pa.array(asked, pa.string()), is_near=is_near)
    assert found.tolist() == [key in stored for key in asked]
    assert stored == read_keys(io.BytesIO(data)).to_pylist()
    assert read_footer(io.BytesIO(data)).might_contain(pa.array(stored, pa.string())).all()


class CountedReads(io.BytesIO):
    """Remembers how many bytes were read."""

    count = 0

    def read(self, size=-1):
        data = super().read(size)
        self.count += len(data)
        return data


@pytest.mark.parametrize("asked", [["a"], ["z"], ["k0000x"]], ids=["below", "above", "not in the filter"])
def test_absent_keys_cost_the_footer_only(files, asked):
    """Range and filter answer without touching the rows."""
    data = files.write([{"id": f"k{number:04}", "v": ["x" * 50]} for number in range(5000)])
    footer_only, looked_up = CountedReads(data), CountedReads(data)
    read_footer(footer_only)
    assert not lookup_keys(looked_up, pa.array(asked)).any()
    assert footer_only.count == looked_up.count


def test_footer_of_a_file(files):
    """Counts, range, schema; the filter on demand."""
    data = files.write([{"id": "b"}, {"id": "a"}])
    footer = read_footer(io.BytesIO(data))
    assert (2, "a", "b", "DYNAMIC_V0") == (
        footer.num_rows,
        footer.min_key,
        footer.max_key,
        footer.bloom_type,
    )
    assert [True, False] == footer.bloom().might_contain(pa.array(["a", "c"])).tolist()
    assert '"_hoodie_record_key"' in footer.avro_schema


def test_file_without_filter_and_range_is_searched(files):
    """Other writers may leave them out."""
    sink = io.BytesIO()
    table = pq.read_table(io.BytesIO(files.write([{"id": "b"}]))).replace_schema_metadata({})
    pq.write_table(table, sink)
    assert read_footer(sink).bloom() is None
    assert [False, True] == lookup_keys(sink, pa.array(["a", "b"])).tolist()


def test_damaged_file_is_reported():
    """As ours, not Arrow's."""
    with pytest.raises(CorruptMetadata):
        read_footer(io.BytesIO(b"PAR1"))


@pytest.mark.parametrize("name", [MIN_KEY, MAX_KEY, BLOOM_KEY, AVRO_SCHEMA_KEY])
def test_texts_of_a_footer_that_are_no_texts_are_damage_and_rule_out_nothing(files, name):
    """As a filter that does not parse: a read opens the file, and whoever needs the footer gets an error of ours."""
    whole = pq.ParquetFile(io.BytesIO(files.write([{"id": "a"}])))
    out = io.BytesIO()
    pq.write_table(whole.read().replace_schema_metadata({**whole.metadata.metadata, name.encode(): b"a\xff"}), out)
    assert may_hold(open_base_file(out), HashedKeys(pa.array(["a"])))
    with pytest.raises(CorruptMetadata, match="no text"):
        read_footer(out)
