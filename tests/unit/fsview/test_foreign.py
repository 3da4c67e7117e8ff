"""Base files in a format that the table does not have are named, and nothing is built on them, pinned or deleted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hudi_py.config.clustering import clustering_config
from hudi_py.config.compaction import compaction_config
from hudi_py.errors import UnsupportedTable
from hudi_py.formats.properties import parse_properties
from hudi_py.fsview.build import latest_slices
from hudi_py.fsview.loader import load_context
from hudi_py.model.instant import State
from hudi_py.services.clustering.policy import candidates_of
from hudi_py.services.clustering.tasks import GroupWork, rewrite_group
from hudi_py.services.compaction.plan import plan_compaction
from hudi_py.services.rewriting.tasks import compact_slice
from hudi_py.writing.partition import load_partition
from support.tables import NOW, TableBuilder, at, planned

EXTENSIONS = pytest.mark.parametrize("extension", ["orc", "lance", "hfile"])
LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
STRAY = at(9)
PROPERTIES = ".hoodie/hoodie.properties"


def table_with(extension: str, layout: int, *times: str) -> TableBuilder:
    """Three versions of a group in Parquet, and beside them base files of the other format of these times."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"eu": ["a"], "us": ["b"]})
    for time in times:
        builder.put(f"eu/e_0-1-0_{time}.{extension}")
    return builder


@LAYOUTS
@EXTENSIONS
def test_whatever_their_time_they_are_named_and_left(extension, layout):
    """Of a commit, of none, of before the timeline: one code that does not say remove, and recover touches none."""
    builder = table_with(extension, layout, at(1), at(3), STRAY, "20200101000000000")
    builder.commit(at(4), {"us": ["c"]}, state=State.INFLIGHT)
    builder.put(f"eu/e_0-1-0_{at(4)}.{extension}")
    table = builder.table()
    found = [each for each in table.check() if each.where.endswith(extension)]
    assert {each.code for each in found} == {"file-format-other"}
    assert len(found) == 5
    assert all("remove" not in each.fix for each in found)
    table.recover()
    assert len([path for path in builder.storage.files() if path.endswith(extension)]) == 5


@LAYOUTS
@EXTENSIONS
def test_cleans_and_savepoints_are_refused_by_name(extension, layout):
    """An older one is not deleted as superseded, a current one not pinned as if it could be read."""
    builder = table_with(extension, layout, at(1), at(3))
    before = builder.storage.files()
    for use in (lambda t: t.plan_clean(commits_retained=1), lambda t: t.clean(commits_retained=1)):
        with pytest.raises(UnsupportedTable, match=rf"eu/e_.*{extension} is a base file in a format.*a clean cannot"):
            use(builder.table())
    with pytest.raises(UnsupportedTable, match=rf"{extension}.*a savepoint cannot"):
        builder.table().create_savepoint(at(3))
    assert before == builder.storage.files()


@LAYOUTS
def test_a_table_of_several_formats_is_cleaned_by_the_names(layout):
    """Where the properties allow other formats, they are versions of their groups like any."""
    builder = table_with("orc", layout, at(1), at(2), at(3))
    properties = builder.storage.read(PROPERTIES)
    builder.put(PROPERTIES, properties + b"hoodie.table.multiple.base.file.formats.enable=true\n")
    assert parse_properties(builder.storage.read(PROPERTIES), PROPERTIES)
    table = builder.table()
    assert f"e_0-1-0_{at(1)}.orc" in planned(table.plan_clean(commits_retained=1))["eu"]
    assert not load_context(table.timeline, table.contents).extensions


@EXTENSIONS
def test_they_are_left_out_of_plans_and_stored_plans_that_name_them_are_refused(extension):
    """Compaction and clustering would write their rows in Parquet; nothing is touched."""
    builder = table_with(extension, 2, at(3))
    builder.put(f"eu/.e_{at(5)}.log.1_0-1-0")
    builder.commit(at(5), {"us": ["c"]})
    table = builder.table()
    context = load_context(table.timeline, table.contents)
    name = f"e_0-1-0_{at(3)}.{extension}"
    (found,) = (each for each in latest_slices(context, table.partition("eu")) if each.file_id == "e")
    assert found.base_file.name == name
    left = candidates_of(context, "eu", [found], clustering_config(table.settings))
    why = f"its base file {name} is not in Parquet"
    assert (left.slices, left.left_out) == ((), {"e": why})
    config = compaction_config(table.settings)
    views = [table.partition("eu")]
    plan = plan_compaction(context, views, config, NOW.date(), takes_first=False, has_extras=True)
    assert not plan.would_schedule
    assert [(each.file_id, each.reason) for each in plan.left] == [("e", why)]
    before = builder.storage.files()
    job = SimpleNamespace(storage=builder.storage, instant_time=at(6))
    for way in (
        lambda: compact_slice(job, found),
        lambda: rewrite_group(job, GroupWork(number=0, partition_path="eu", slices=(found,), outputs=1)),
    ):
        with pytest.raises(UnsupportedTable, match=rf"e of partition 'eu' is not rewritten: its base file {name}"):
            way()
    assert before == builder.storage.files()


@EXTENSIONS
def test_nothing_is_written_beside_them(extension):
    """Their rows are not looked up, so that an upsert would write them a second time."""
    builder = table_with(extension, 2, at(3))
    table = builder.table()
    context = load_context(table.timeline, table.contents)
    job = SimpleNamespace(storage=builder.storage, context=context, needed={}, overwrites=False, logs=None)
    assert load_partition(job, "us").latest
    with pytest.raises(UnsupportedTable, match=rf"{extension}.*a write cannot"):
        load_partition(job, "eu")
