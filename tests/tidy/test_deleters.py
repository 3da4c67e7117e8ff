"""Who deletes files, and what: whatever deletes rows that a reader was shown passes the one switch against it."""

import ast
import re

from support.repository import modules, tree_of

VERBS = {"delete", "delete_many", "delete_folder", "move_many"}
ON_STORAGE = re.compile(r"storage$|^job$|outer$")
DATA = {  # files with committed rows: all of these need a permit
    "services.clean.executing.partitions",
    "services.clean.executing.tasks",
    "services.clean.executing.watch",
    "services.orphans.service",
    "services.rollback.execute",
    "timeline.quarantine",
}
PERMIT_OF_CALLER = {
    "services.clean.executing.tasks",  # runs on executors; execute asks before each round of tasks
    "services.clean.executing.watch",  # the same, with progress
}
OTHERS = {
    "files of writes that never completed": {
        *("services.clustering.tasks", "services.rewriting.tasks", "writing.files", "services.recovery.execute"),
    },
    "quarantine, from which files are put back": {"services.undo.service"},
    "checksum files whose data file is deleted, and own notes": {
        *("services.clean.memory.leftovers", "services.clean.memory.notes"),
    },
    "instants that are in the archive, and its own files": {
        *("services.archive.history", "services.archive.service", "services.archive.merge_logs", "timeline.store"),
    },
    "the metadata table": {"mdt.create", "mdt.create_index", "mdt.removal", "mdt.update"},
    "locks, leases, fences, markers, heartbeats, policies, copies of the properties": {
        *(
            "timeline.policy_file",
            "txn.attempt",
            "txn.file_lock",
            "timeline.leases",
            "timeline.fence",
            "timeline.markers",
            "timeline.heartbeat",
        ),
        *("timeline.properties_copies", "timeline.properties_file", "writing.create_table"),
    },
    "histories of columns, of writes that are no longer on the timeline": {"timeline.column_folder"},
}


def deletes(name: str) -> bool:
    """Whether a module calls a deleting method of a storage."""
    calls = (node.func for node in ast.walk(tree_of(modules()[name])) if isinstance(node, ast.Call))
    return any(
        isinstance(called, ast.Attribute)
        and (
            (called.attr in VERBS and (called.attr != "delete" or ON_STORAGE.search(ast.unparse(called.value))))
            or (called.attr == "remove" and ast.unparse(called.value).endswith("deleter"))
        )
        for called in calls
    )


def test_every_module_that_deletes_is_known():
    """A new deleter says here what it deletes, and needs a permit for data (docs/decisions/no-deletion.md)."""
    found = {name for name in modules() if name.split(".")[1:2] not in (["storage"], ["testing"]) and deletes(name)}
    known = DATA.union(*OTHERS.values())
    assert {name.removeprefix("hudi_py.") for name in found} == known


def test_whatever_deletes_data_has_a_permit():
    """It takes one, or asks for one."""
    for name in DATA - PERMIT_OF_CALLER:
        assert re.search(r"permit(\.check|\.in_parts)?\(", modules()[f"hudi_py.{name}"].read_text(encoding="utf-8")), (
            name
        )
