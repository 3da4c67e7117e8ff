"""``hudi-py erased``: words, exit codes and the document for programs."""

from __future__ import annotations

import pytest

from hudi_py.storage.local import LocalStorage
from support import writes
from support.fixtures import row_fixture_names, unpack_rows

PLAIN = ("--conf", "hoodie.metadata.enable=false")


@pytest.fixture
def made(tmp_path):
    """A table on disk whose key ``a`` is deleted and not cleaned."""
    storage = LocalStorage(str(tmp_path / "t"))
    writes.create_table(9, storage=storage)
    plain = {"hoodie.metadata.enable": False}
    writes.upsert(storage, writes.OLD, **plain)
    writes.upsert(storage, [writes.OLD[0]], operation="DELETE", **plain)
    return storage


def test_held_names_the_file_and_gone_the_clean(run, made):
    """Exit code 3 until the bytes are gone, then 0."""
    held = run("erased", made.root, "--key", "a", "--commits-retained", "10", *PLAIN)
    assert held.code == 3
    assert "held: 1 file" in held.out
    assert "holds rows of a" in held.out
    assert "more completed commits" in held.out
    now = run("erased", made.root, "--key", "a", "--file-versions-retained", "1", *PLAIN)
    assert "by the next clean that is due" in now.out
    (result,) = writes.open_table(made, **{"hoodie.metadata.enable": False}).clean(file_versions_retained=1)
    gone = run("erased", made.root, "--key", "a", "--key", "no such", *PLAIN)
    assert (gone.code, f"at the latest: clean {result.instant}" in gone.out) == (0, True)


def test_the_document_says_the_same(run, made):
    """For programs: verdict, files with what keeps them, and since when."""
    document = run("erased", made.root, "--partition", "eu/", "--json", *PLAIN).json
    assert (document["verdict"], document["gone_since"], document["partition"]) == ("held", None, "eu")
    assert all(each["certain"] and each["why_kept"] for each in document["files"])
    made.replace("eu/notes.txt", b"x")
    writes.open_table(made, **{"hoodie.metadata.enable": False}).clean(file_versions_retained=1)
    document = run("erased", made.root, "--key", "a", "--json", *PLAIN).json
    assert document["verdict"] == "unproven"
    assert [each["path"] for each in document["files"]] == ["eu/notes.txt"]


def test_wrong_usage_is_no_proof(run, made):
    """Exit code 2, and the word gone does not appear."""
    for asked in ((), ("--partition", "en"), ("--key", "")):
        result = run("erased", made.root, *asked, *PLAIN)
        assert result.code == 2, result.err
        assert "gone:" not in result.out


@pytest.mark.parametrize("name", [each for each in row_fixture_names() if each.startswith("cow_")][:3])
def test_every_row_of_a_table_of_hudi_is_held(run, name, tmp_path):
    """Of every partition that readers show."""
    path = unpack_rows(name, tmp_path)
    for partition in writes.open_table(LocalStorage(str(path))).partitions()[:3]:
        assert run("erased", path, "--partition", partition).code == 3
