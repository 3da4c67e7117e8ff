"""Tables with a clean plan that may be no longer right when it is carried out, for tests of cleans."""

import pytest

from support.tables import TableBuilder, at

NAME = TableBuilder.base_name
LATER = "20260615000000000"  # than any clean here
ONE_COMMIT, ONE_VERSION = {"commits_retained": 1}, {"file_versions_retained": 1}
LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
RETENTIONS = pytest.mark.parametrize("retention", [ONE_COMMIT, ONE_VERSION], ids=["commits", "versions"])


def five_versions(layout=2, commits=5):
    """Group ``a`` of r0 and ``b`` of r1, both written by every commit."""
    builder = TableBuilder(layout)
    for number in range(1, commits + 1):
        builder.commit(at(number), {"r0": ["a"], "r1": ["b"]})
    return builder


def schedule(builder, retention, *, inflight=False):
    """A clean that is planned, and perhaps begun with its first file deleted; returns its instant."""
    table = builder.table()
    service = table.services.clean(table.services.clean_config(**retention))
    instant = service.schedule()
    if inflight:
        store = table.contents.store
        plan = table.contents.clean_plan(instant)
        store.transition(instant, store.read_plan(instant))
        files = [file.path for files in plan.files_to_delete.values() for file in files]
        assert builder.storage.delete(min(files).removeprefix(f"{builder.storage.root}/"))
    return instant


def shown(builder):
    """Relative paths that the newest snapshot reads."""
    table = builder.table()
    return {f"{path}/{n}" for path in table.partitions() for each in table.file_slices(path) for n in each.file_names}


def forget(builder, *numbers):
    """What finished rollbacks of commits by Apache Hudi leave."""
    for number in numbers:
        for path in builder.storage.files():
            name = path.rpartition("/")[2]
            if name.startswith(at(number)) or name.endswith(f"_{at(number)}.parquet"):
                builder.storage.delete(path)
