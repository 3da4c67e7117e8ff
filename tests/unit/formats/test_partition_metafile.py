"""The partition metadata file; real ones are compared in test_real_files.py."""

from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.formats.partition_metafile import format_partition_metadata, partition_depth


def test_text_is_that_of_hudi():
    """The example of the format description, from another time zone."""
    written_at = datetime(2026, 11, 21, 4, 49, 23, tzinfo=timezone(timedelta(hours=1)))
    assert (
        b"#partition metadata\n#Sat Nov 21 03:49:23 UTC 2026\ncommitTime=20261121034919310\npartitionDepth=1\n"
    ) == format_partition_metadata("eu", instant_time="20261121034919310", written_at=written_at)


@pytest.mark.parametrize(("path", "depth"), [("", 0), ("eu", 1), ("y=2023/m=11/d=14", 3)])
def test_depth_counts_folders(path, depth):
    """Readers use the depth to find the table's root."""
    assert depth == partition_depth(path)


def test_naive_time_is_refused():
    """A comment with a guessed zone misleads."""
    with pytest.raises(ValueError, match="aware"):
        format_partition_metadata("", instant_time="1", written_at=datetime(2026, 1, 1))  # noqa: DTZ001
