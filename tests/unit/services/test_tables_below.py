"""Another table below a table: none of its files is taken for one of the outer table, whatever is done there."""

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.services.usage.facts import Holder
from support.tables import TableBuilder, at, data_files

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
