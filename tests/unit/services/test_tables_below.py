"""Another table below a table: none of its files is taken for one of the outer table, whatever is done there."""

from datetime import timedelta

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.services.usage.facts import Holder
from support.tables import NOW, TableBuilder, at, data_files

LATER = NOW + timedelta(days=9000)  # whatever the machine's clock says, every file is old
STRANGER = at(4)[:-7] + "1500000"  # between two commits
LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def around(layout, inner="inner"):
    """A table with four commits around another one, whose files are from before its timeline."""
    builder = TableBuilder(layout)
    for number in (2, 3, 4, 5):
        builder.commit(at(number), {"r0": ["f"]})
    builder.put(f"{inner}/.hoodie/hoodie.properties", b"")
    builder.put(f"{inner}/p/.hoodie_partition_metadata", b"")
    theirs = [f"{inner}/p/{builder.base_name('x', at(1)[:-3] + text)}" for text in ("000", "001", "002", "003")]
    for path in theirs:
        builder.put(path)
    return builder, set(theirs)


@LAYOUTS
@pytest.mark.parametrize("inner", ["inner", "a/b"])
@pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"])
def test_a_clean_deletes_no_file_of_a_table_below(layout, inner, policy):
    """Its times are from before the outer timeline, where every time counts as committed: it lost its old versions."""
    builder, theirs = around(layout, inner)
    words = {"commits_retained": 1} if policy == "KEEP_LATEST_COMMITS" else {"file_versions_retained": 1}
    (result,) = builder.table().clean(policy=policy, **words)
    assert result.deleted_count
    assert theirs <= set(builder.storage.files())


@LAYOUTS
def test_an_unpartitioned_table_below_is_another_one_too(layout):
    """Its metafile, data files and .hoodie lie in one folder."""
    builder, _ = around(layout)
    builder.put("flat/.hoodie/hoodie.properties", b"")
    builder.put("flat/.hoodie_partition_metadata", b"")
    theirs = {f"flat/{builder.base_name('x', at(1)[:-3] + text)}" for text in ("000", "001", "002")}
    for path in theirs:
        builder.put(path)
    builder.table().clean(commits_retained=1)
    assert theirs <= set(builder.storage.files())


@LAYOUTS
def test_its_files_are_none_of_the_tables_view(layout):
    """Neither readers nor the check take them for files of the outer table; their bytes are counted as foreign."""
    builder, theirs = around(layout)
    table = builder.table()
    assert set(table.partitions()) == {"r0"}
    assert not [each for each in table.check() if "inner" in each.where]
    uses = {use.path: use.holder for use in table.services.usage().files()}
    assert {uses[path] for path in theirs} == {Holder.FOREIGN}


@LAYOUTS
def test_a_partition_with_a_timeline_of_its_own_is_an_error(layout):
    """It is both: rows that commits name are not left out silently."""
    builder, _ = around(layout)
    builder.put("r0/.hoodie/hoodie.properties", b"")
    before = data_files(builder.storage)
    with pytest.raises(CorruptMetadata, match=r"r0 has a \.hoodie of its own"):
        builder.table().partitions()
    builder.table().clean(commits_retained=1)
    assert before == data_files(builder.storage)


def inventory(tmp_path, paths):
    file = tmp_path / "inventory.csv"
    file.write_text("path,size,mtime\n" + "".join(f"{path},4,1\n" for path in paths))
    return str(file)


@LAYOUTS
def test_an_inventory_without_hidden_files_shows_no_file_of_a_table_below_as_an_orphan(tmp_path, layout):
    """The .hoodie is looked for in the folders: an inventory may leave it out, or be older than that table."""
    builder, theirs = around(layout)
    stranger = f"inner/p/{builder.base_name('y', STRANGER)}"
    orphan = f"r0/{builder.base_name('y', STRANGER)}"
    for path in (stranger, orphan):
        builder.put(path)
    listed = inventory(tmp_path, data_files(builder.storage))
    report = builder.table().orphans(older_than="0m", inventory=listed, now=LATER)
    assert (orphan,) == report.done
    assert ("inner",) == report.other_tables
    assert theirs | {stranger} <= set(builder.storage.files())


def test_paths_of_an_inventory_that_no_file_of_the_table_has_are_passed_over(tmp_path):
    """The same file by another path would belong to no partition that a commit names."""
    builder, _ = around(2)
    name = builder.base_name("y", STRANGER)
    builder.put(f"r0/{name}")
    odd = [f"./r0/{name}", f"r0/../r0/{name}", f"../trips/r0/{name}", f"r0//{name}", f"/lake/trips/./r0/{name}", "r0/"]
    report = builder.table().orphans(older_than="0m", inventory=inventory(tmp_path, odd), now=LATER)
    assert report.verdicts == ()
    assert report.files_seen == 0


@pytest.mark.parametrize(
    "source", ["/lake/trips/src", "file:/lake/trips/src/", "file:///lake/trips/src", "/lake/trips"]
)
def test_files_that_a_bootstrapped_table_was_made_from_are_no_orphans(source):
    """They lie below the table, have names as of Hudi (they were a table once), and no instant knows them."""
    builder, _ = around(2)
    properties = builder.storage.read(".hoodie/hoodie.properties")
    builder.put(".hoodie/hoodie.properties", properties + f"hoodie.bootstrap.base.path={source}\n".encode())
    path = f"src/r0/{builder.base_name('y', STRANGER)}"
    builder.put(path)
    report = builder.table().orphans(older_than="0m", now=LATER)
    assert report.verdicts == ()
    assert path in builder.storage.files()
