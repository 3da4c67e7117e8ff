"""Documents of a table: damage of any kind is one kind of error for whoever reads them."""

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.model.json_document import parse_json
from hudi_py.model.lease import decode_lease
from hudi_py.storage.memory import MemoryStorage
from hudi_py.timeline.quarantine import load_manifest
from hudi_py.txn.lease_lock import parse_lease

DEEP = b"[" * 200_000


@pytest.mark.parametrize("data", [DEEP, b'{"a":' * 200_000, b"", b"{", b"\xff"])
def test_what_is_no_json_is_a_value_error(data):
    """Also where Python's parser gives up by itself."""
    with pytest.raises(ValueError):
        parse_json(data)


def test_documents_that_are_too_deep_are_damaged_ones():
    """Each reader says so in its own way; a lock that cannot be read is one that another process holds."""
    with pytest.raises(CorruptMetadata, match="hudi-py lease release TABLE abc"):
        decode_lease(DEEP, "t/abc.json")
    storage = MemoryStorage("t")
    storage.replace(".hoodie/.aux/hudi_py/quarantine/orphans-1/manifest.json", DEEP)
    with pytest.raises(CorruptMetadata, match="is damaged"):
        load_manifest(storage, "orphans-1")
    with pytest.raises(CorruptMetadata, match="not JSON"):
        parse_record_schema(DEEP.decode())
    assert parse_lease(DEEP) is None
