"""Rows that are there twice, back or hidden, although no file is missing or too many."""

import pytest

from support.tables import TableBuilder, at


def twice(layout, *operations):
    """Group a is replaced by each of these; clusterings write groups of their own."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    for number, operation in enumerate(operations, 2):
        new = {"eu": [f"new{number}"]} if operation == "CLUSTER" else {}
        builder.commit(at(number), new, replaced={"eu": ["a"]}, operation=operation)
    return [each.code for each in builder.table().check() if each.severity.name == "ERROR"]


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (("CLUSTER",), []),
        (("DELETE_PARTITION", "DELETE_PARTITION"), []),
        (("CLUSTER", "CLUSTER"), ["group-rewritten-twice"]),
        (("DELETE_PARTITION", "CLUSTER"), ["group-rewritten-twice"]),
        (("CLUSTER", "DELETE_PARTITION"), ["group-rewritten-twice"]),
    ],
)
def test_a_group_is_replaced_once_if_by_a_clustering(layout, operations, found):
    """Overwrites and drops hide the rows, however often; each clustering writes them again."""
    assert twice(layout, *operations) == found


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize(
    ("before", "found"), [(1, []), (3, ["file-overlooked"]), (9, [])], ids=["in-order", "late", "undone"]
)
def test_a_write_lies_above_what_it_was_built_upon(layout, before, found):
    """A base file of Apache Hudi 0.15 with a time before that of the one below it; what was undone hides nothing."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"eu": ["a"]}, previous=at(before) if number == 2 else None)
    assert [each.code for each in builder.table().check() if each.severity.name == "ERROR"] == found


@pytest.mark.parametrize(("built_on", "action", "found"), [
    (2, "deltacommit", ["log-overlooked"]), (1, "deltacommit", []), (2, "commit", []),
])  # fmt: skip
def test_log_files_are_merged_before_a_base_file_lies_above_them(built_on, action, found):
    """Layout 1: a write of rows merges none, so it belongs above slices without; a compaction merges them."""
    builder = TableBuilder(1, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a"]}, action="deltacommit")
    builder.commit(at(2), {"eu": ["a"]}, action="commit", operation="COMPACT", previous=at(1))
    builder.log_files(at(3), [("eu", "a", at(2))])
    builder.commit(at(4), {"eu": ["a"]}, action=action, previous=at(built_on))
    assert [each.code for each in builder.table().check() if each.severity.name == "ERROR"] == found
