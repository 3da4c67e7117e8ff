import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.lsm_history import (
    HistoryFile,
    HistoryRow,
    decode_manifest,
    decode_version,
    encode_manifest,
    encode_version,
    manifest_number,
    read_history,
)

files = st.builds(
    lambda first, last, level, size: HistoryFile(f"{first}_{last}_{level}.parquet", size),
    st.integers(0, 10**17),
    st.integers(0, 10**17),
    st.integers(0, 9),
    st.integers(0, 2**40),
)


def parquet(**columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


@given(st.lists(files, max_size=5, unique_by=lambda file: file.name).map(tuple))
def test_manifests_round_trip(manifest):
    """rules/timeline 5.3."""
    assert manifest == decode_manifest(encode_manifest(manifest), "x")


@given(st.integers(0, 10**9))
def test_versions_round_trip(number):
    """rules/timeline 5.3: decimal text."""
    assert number == decode_version(encode_version(number), "x")


def test_compact_manifests_are_read():
    """rules/timeline 5.3: a manifest in compact JSON was accepted by Hudi."""
    (file,) = decode_manifest(b'{"files":[{"fileName":"1_22_3.parquet","fileLen":5}]}', "x")
    assert (("1", "22"), 3, 5) == (file.time_range, file.level, file.size_bytes)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"files":1}',
        b'{"files":[{"fileName":"1_2_0.parquet"}]}',
        b'{"files":[{"fileName":null,"fileLen":1}]}',
        b'{"files":[{"fileName":"../x","fileLen":1}]}',
    ],
)
def test_bad_manifests_are_corrupt(data):
    """A manifest that names anything but history files is not followed."""
    with pytest.raises(CorruptMetadata, match=r"^manifest_1: "):
        decode_manifest(data, "manifest_1")


@pytest.mark.parametrize("data", [b"", b"x", b"-1", b"1 2", b"\xff", "१".encode(), b"9" * 30])
def test_bad_versions_are_corrupt(data):
    """The caller then falls back to the largest manifest."""
    with pytest.raises(CorruptMetadata):
        decode_version(data, "_version_")


def test_temporary_manifests_do_not_count():
    """rules/timeline 5.3: names ending in ``.tmp`` or a uuid are ignored."""
    assert [7, None, None, None] == list(
        map(manifest_number, ["manifest_7", "manifest_99.tmp", "manifest_8.0c65bdc4-4371", ".manifest_7.crc"])
    )


def test_rows_come_with_contents_only_when_asked():
    """rules/timeline 5.3: one row per instant."""
    data = parquet(
        instantTime=["1", "2"],
        completionTime=["3", None],
        action=["commit", "clean"],
        metadata=[b"m", None],
        plan=[None, b"p"],
        version=[1, 1],
    )
    assert (HistoryRow("1", "3", "commit"), HistoryRow("2", None, "clean")) == read_history(data, "x")
    full = (HistoryRow("1", "3", "commit", b"m"), HistoryRow("2", None, "clean", None, b"p"))
    assert full == read_history(io.BytesIO(data), "x", with_contents=True)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PAR1PAR1",
        parquet(instantTime=["1"], completionTime=["2"], action=["commit"])[:-20],
        parquet(instantTime=["1"]),
        parquet(instantTime=["1"], completionTime=["2"], action=[None]),
        parquet(instantTime=[1], completionTime=["2"], action=["commit"]),
    ],
)
def test_bad_files_are_corrupt(data):
    """Torn files, missing columns, nulls and other types."""
    with pytest.raises(CorruptMetadata, match=r"^history/f: "):
        read_history(data, "history/f")


def test_a_manifest_that_repeats_itself_is_damaged():
    """A few megabytes of one name would be read a hundred thousand times."""
    entry = b'{"fileName":"1_22_3.parquet","fileLen":5}'
    with pytest.raises(CorruptMetadata, match="x: names a file of the timeline history more than once"):
        decode_manifest(b'{"files":[' + b",".join([entry] * 3) + b"]}", "x")
