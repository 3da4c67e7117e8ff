"""
Compares the metadata table with the folders, and decides which of the two is wrong.

If a clean or rollback deleted a file that only the metadata table lists, it is wrong. Otherwise the file is lost, and
the metadata table is the proof: without it, readers would not notice that rows are missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import attrs

from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.as_of import readable_slices
from hudi_py.fsview.build import build_partition
from hudi_py.fsview.listing import walk_partitions
from hudi_py.fsview.loader import load_context
from hudi_py.mdt.listing import is_used, open_as_it_is
from hudi_py.mdt.table import MetadataTable, MetadataTableMissing
from hudi_py.model.files import METADATA_TABLE_FOLDER, join_path
from hudi_py.model.instant import Action
from hudi_py.services.check.facts import TableFacts
from hudi_py.services.check.judge_files import Expectation
from hudi_py.timeline.contents import Contents

_PLANNED = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.SAVEPOINT, Action.INDEXING)


class OutOfStep(NamedTuple):
    """Why the metadata table has to be created again; or files that it lists and that are lost."""

    problem: str | None = None
    lost: tuple[str, ...] = ()


def compare_metadata_table(
    contents: Contents, table: TableConfig, settings: Settings, facts: TableFacts, clusterings: frozenset[str]
) -> OutOfStep:
    """
    Compare the metadata table with the folders, unless an action is running.

    Args:
        facts: Of the table; if its timeline has changed by the end, the result is empty.
        clusterings: Requested times of pending layout-1 replacecommits that are clusterings.
    """
    storage = contents.store.storage
    if not table.has_metadata_table:
        if not storage.list(METADATA_TABLE_FOLDER):
            return OutOfStep()
        return OutOfStep(
            f"{METADATA_TABLE_FOLDER} exists, but the properties do not name it: it was being dropped or created"
        )
    if is_used(table, settings):
        try:
            MetadataTable(storage)
        except MetadataTableMissing as error:  # whatever is pending: nothing of it can be recorded
            return OutOfStep(f"it is missing: {error}")
        except CorruptMetadata:
            pass  # below
    if any(i.action not in _PLANNED and i.requested_time not in clusterings for i in facts.timeline.pending()):
        return OutOfStep()  # a running action is recorded in it when it completes
    if not is_used(table, settings):
        return OutOfStep()
    try:
        found = _difference(contents, table, settings, facts)
    except (CorruptMetadata, NotFound) as error:
        # Not an error: a metadata table is made again from the folders.
        found = OutOfStep(f"it cannot be read: {error}")
    return found if contents.store.load().instants == facts.timeline.instants else OutOfStep()


def _difference(contents: Contents, table: TableConfig, settings: Settings, facts: TableFacts) -> OutOfStep:
    """The first file on which the metadata table and the folders differ, where it matters to readers."""
    storage = contents.store.storage
    timeline, listing = open_as_it_is(contents.store, table, settings)
    try:
        # Readers are refused what a lost archive leaves open; here only the two listings are compared.
        context = attrs.evolve(load_context(timeline, contents, with_clustering=False), unknown_commits=None)
    except CorruptMetadata:
        return OutOfStep()  # a damaged instant is a finding of its own
    listed = {path: {entry.name for entry in entries} for path, entries in listing.walk()}
    unlisted, ghosts = None, []
    for path, entries in walk_partitions(storage, named=listed):
        names, known = {entry.name for entry in entries}, listed.pop(path, set())
        ghosts += [(path, name) for name in sorted(known - names)]
        there = build_partition(context, path, ((entry.name, None) for entry in entries))
        # Only files that readers open: what a retried task left need not be listed.
        slices = readable_slices(context, there, timeline.compacting)
        visible = {name for file_slice in slices for name in file_slice.file_names}
        if unlisted is None and visible - known:
            unlisted = f"it does not list {join_path(path, min(visible - known))}, which holds committed rows"
    for path, known in listed.items():
        ghosts += [(path, name) for name in sorted(known)]  # the folder is missing, or no longer a partition
    lost = _lost(facts, ghosts) if ghosts else ()
    # Before ghosts: creating the metadata table again would hide that files are lost.
    if lost:
        return OutOfStep(lost=lost)
    if ghosts:
        return OutOfStep(f"it lists {join_path(*ghosts[0])}, which is not there")
    return OutOfStep(unlisted)


def _lost(facts: TableFacts, ghosts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Those that a completed commit wrote, and that nothing deleted, or whose deletion was undone since."""
    expected = Expectation(facts)
    lost = []
    for path, name in ghosts:
        named = expected.named.get(path, {}).get(name)
        # Of an archived commit, or of none: nothing here says that the file should exist.
        if named is None:
            continue
        if not expected.is_explained(path, name, named.requested_time) or expected.needs.is_latest(path, name):
            lost.append(join_path(path, name))
    return tuple(lost)
