"""Single changes of tables of Apache Hudi whose files are lost or cut off: all of them, or an error."""

import pytest

from hudi_py.errors import HudiError
from hudi_py.model.files import is_data_file
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support.history_tables import fixture_in_memory


def changes_of(storage):
    return sorted(map(repr, Table(storage).change_log().to_arrow().to_pylist()))


@pytest.mark.parametrize("name", ["mor_cdc-0.15.0", "mor_cdc-1.1.1", "mor_cdc_overwritten-1.1.1", "cow_cdc-1.0.2"])
def test_no_change_is_left_out_where_a_file_is_lost_or_cut_off(name):
    """
    A log file without its last blocks has fewer changes, and an older file in the place of a lost one shows other rows
    before an overwrite.
    """
    whole = fixture_in_memory(f"rows/{name}")
    files = {path: whole.read(path) for path in whole.files()}
    expected, refused = changes_of(whole), 0
    data = [path for path in files if not path.startswith(".hoodie/") and is_data_file(path.rpartition("/")[2])]
    assert len(data) > 5
    for path in data:
        for left in (None, b"", files[path][: len(files[path]) // 2]):
            rest = {other: content for other, content in files.items() if other != path}
            storage = MemoryStorage.from_files(rest if left is None else {**rest, path: left})
            try:
                assert changes_of(storage) == expected, (path, left)
            except HudiError:
                refused += 1
    assert refused > len(data)
