"""
Decodes the contents of instant files on demand.

A file is read at most once (`TimelineStore.read`), and decoded when its content is needed. A damaged file is an error
that names it, raised only to those who need its content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import Touched, decode_commit, decode_commit_in, decode_touched
from hudi_py.formats.instant_content import decode_content
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import (
    CleanerPlan,
    CleanMetadata,
    CommitMetadata,
    CompactionPlan,
    RequestedReplaceMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
)
from hudi_py.runtime.log import log
from hudi_py.timeline.store import TimelineStore


@attrs.frozen
class Contents:
    """Typed access to the contents of one table's instants."""

    store: TimelineStore

    def commit(self, instant: Instant) -> CommitMetadata:
        """Metadata of a completed commit, deltacommit or replacecommit."""
        return decode_commit(self.store.read(instant), self._source(instant))

    def pass_over(self, instant: Instant, error: CorruptMetadata) -> None:
        """Log a damaged commit without which its reader goes on: once, however many readers meet it."""
        if self.store.is_passed_over_first(instant):
            log.warning("view.commit.unreadable", instant=instant.requested_time, reason=str(error))

    def commit_in(self, instant: Instant, partitions: Collection[str]) -> CommitMetadata:
        """The same with the files of some partitions only; the content of its file is not kept."""
        return decode_commit_in(self.store.look_through(instant), self._source(instant), partitions)

    def touched(self, instant: Instant) -> Touched:
        """Partitions that such a commit wrote to and file groups that it replaced, without decoding its files."""
        return decode_touched(self.store.read(instant), self._source(instant))

    def clean_plan(self, instant: Instant) -> CleanerPlan:
        """
        The stored plan: from the requested file whatever the inflight one holds (rules/timeline 9.7).

        Only if the requested file is missing or empty, the copy counts that Hudi 0.15, 1.0 and we keep in the inflight
        file.

        Raises:
            CorruptMetadata: It does not decode; the message names the way out.
        """
        for state in (State.REQUESTED, State.INFLIGHT):
            try:
                data = self.store.read(Instant(instant.requested_time, instant.action, state))
            except NotFound:
                continue
            # Hudi 1.1.1 leaves the inflight file of a clean empty, also on version 6 (rules/timeline 3.3).
            if data:
                return self._decoded_clean_plan(instant, data, state)
        raise CorruptMetadata(
            f"{self._plan_source(instant)} is empty or missing: there is no plan to carry out. hudi-py clean "
            "withdraws it and makes a new plan"
        )

    def plan_of_pending_clean(self, instant: Instant) -> CleanerPlan | None:
        """
        As `clean_plan`; None if the plan does not decode and no process has begun it, as after a torn write.

        Nobody can carry out such a plan, so it has deleted nothing and never will.

        Raises:
            CorruptMetadata: It does not decode and has begun: some of its files may be deleted.
        """
        try:
            return self.clean_plan(instant)
        except CorruptMetadata:
            if instant.state is State.REQUESTED:
                return None
            raise

    def _decoded_clean_plan(self, instant: Instant, data: bytes, state: State) -> CleanerPlan:
        source = self._source(Instant(instant.requested_time, instant.action, state))
        try:
            return codec.decode_cleaner_plan(data, source)
        except CorruptMetadata as error:
            raise CorruptMetadata(
                f"{error}. No file was deleted, but no clean can run before this one is out of the way: move the files "
                f"{instant.requested_time}.clean.inflight and {instant.requested_time}.clean.requested out of "
                f"{self.store.folder} and clean again, which makes a new plan"
            ) from error

    def clean(self, instant: Instant) -> CleanMetadata:
        """Metadata of a completed clean."""
        return codec.decode_clean_metadata(self.store.read(instant), self._source(instant))

    def savepoint(self, instant: Instant) -> SavepointMetadata:
        """Metadata of a completed savepoint."""
        return codec.decode_savepoint(self.store.read(instant), self._source(instant))

    def savepoint_files(self, instant: Instant) -> Mapping[str, tuple[str, ...]]:
        """Files of a completed savepoint by partition path, each partition decoded when it is asked for."""
        return codec.decode_savepoint_files(self.store.read(instant), self._source(instant))

    def savepoint_head(self, instant: Instant) -> tuple[str, int | None]:
        """Name of a completed savepoint, and when it expires in epoch milliseconds."""
        return codec.decode_savepoint_head(self.store.read(instant), self._source(instant))

    def compaction_plan(self, instant: Instant) -> CompactionPlan:
        """Plan of a pending compaction or log compaction."""
        return codec.decode_compaction_plan(self.store.read_plan(instant), self._plan_source(instant))

    def requested_replace(self, instant: Instant) -> RequestedReplaceMetadata:
        """Metadata of a pending replacecommit or clustering; in layout 1 it shows whether this is a clustering."""
        return codec.decode_requested_replace(self.store.read_plan(instant), self._plan_source(instant))

    def rollback(self, instant: Instant) -> RollbackMetadata:
        """Metadata of a completed rollback."""
        return codec.decode_rollback_metadata(self.store.read(instant), self._source(instant))

    def rollback_plan(self, instant: Instant) -> RollbackPlan:
        """Plan of a pending rollback."""
        return codec.decode_rollback_plan(self.store.read_plan(instant), self._plan_source(instant))

    def restore_plan(self, instant: Instant) -> RestorePlan:
        """Plan of a restore, pending or completed."""
        return codec.decode_restore_plan(self.store.read_plan(instant), self._plan_source(instant))

    def plain(self, instant: Instant) -> Any:
        """Content of any instant, as plain data; None for an empty file."""
        # Of any action, also one whose record is not known here: for showing, not for deciding.
        return decode_content(self.store.read(instant), self._source(instant)).value

    def is_clustering(self, instant: Instant) -> bool:
        """Whether a pending instant is a clustering (layout 1 writes those as replacecommit)."""
        if instant.action is Action.CLUSTERING:
            return True
        # The request of an overwrite may be empty after `reopen`; a clustering always has its plan there.
        if instant.action is not Action.REPLACE_COMMIT or self.is_request_empty(instant):
            return False
        return self.requested_replace(instant).operation_type == "CLUSTER"

    def is_request_empty(self, instant: Instant) -> bool:
        """Whether the requested file is empty or missing, as after an interrupted rollback."""
        try:
            return not self.store.read_plan(instant)
        except NotFound:
            return True

    def _source(self, instant: Instant) -> str:
        return f"{self.store.storage.root}/{self.store.path(instant)}"

    def _plan_source(self, instant: Instant) -> str:
        return self._source(Instant(instant.requested_time, instant.action, State.REQUESTED))
