"""Markers tell what a write created; what cannot be read tells nothing, and that is said."""

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.storage.memory import MemoryStorage
from hudi_py.timeline.markers import read_markers

FOLDER = ".hoodie/.temp/20260101000000000"
MARKER = b"r0/f_1-0-1_20260101000000000.parquet.marker.CREATE"


@pytest.mark.parametrize("content", [b"\xb5garbage", MARKER + b"\n\xff", MARKER + b"\nr0/f.marker.NEW", b"\x00"])
def test_a_damaged_list_of_markers_is_named(content):
    """Whether it is no text at all or no marker, nothing is concluded from it."""
    files = {f"{FOLDER}/MARKERS.type": b"TIMELINE_SERVER_BASED", f"{FOLDER}/MARKERS0": content}
    with pytest.raises(CorruptMetadata, match=f"{FOLDER}/"):
        read_markers(MemoryStorage.from_files(files), "20260101000000000")
