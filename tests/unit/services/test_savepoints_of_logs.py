"""Savepoints of times at which a file group had log files and no base file."""

import pytest

from hudi_py.errors import RefusedError
from hudi_py.table import Table
from hudi_py.testing import Crash, StopAfter
from support.tables import TableBuilder, at

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
VERSIONS = {"file_versions_retained": 1}


def compacted(layout):
    """Group a has a log file alone at first, and a base file since the third commit."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.log_files(at(1), [("r0", "a", at(1))])
    builder.commit(at(2), {"r0": ["b"]}, action="deltacommit")
    builder.commit(at(3), {"r0": ["a"]})
    builder.commit(at(4), {"r1": ["c"]}, action="deltacommit")
    return builder


@LAYOUTS
def test_a_savepoint_that_lacks_a_group_whose_log_files_were_cleaned_is_refused(layout):
    """Its readers would miss those rows, and a restore would lose them. Later times have them in the base file."""
    builder = compacted(layout)
    (done,) = builder.table().clean(**VERSIONS)
    assert [".log." in name for name in done.deleted_files] == [True]
    with pytest.raises(RefusedError, match=r"a clean deleted r0/\.a_.*, which had rows of that time"):
        builder.table().create_savepoint(at(2))
    assert builder.table().create_savepoint(at(3)).requested_time == at(3)


@LAYOUTS
def test_so_is_one_beside_a_clean_that_has_deleted_them_and_not_completed(layout):
    """Nothing but the plan of that clean tells of the group."""
    builder = compacted(layout)
    storage = StopAfter(builder.storage, 0, verbs=("delete_many",))
    with pytest.raises(Crash):
        Table(storage, clock=builder.clock).clean(**VERSIONS)
    assert builder.table().timeline.pending("clean")
    with pytest.raises(RefusedError, match=r"r0/\.a_"):
        builder.table().create_savepoint(at(2))
