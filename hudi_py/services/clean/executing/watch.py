"""
Reports the progress of a clean: to a callback, and as structured events.

Planning counts partitions, deleting counts files. The callback is called at most every tenth of a second, and always
at the beginning and the end of a phase.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from hudi_py.engine.base import Engine, R, T
from hudi_py.runtime.clock import MONOTONIC, Seconds
from hudi_py.runtime.log import log
from hudi_py.services.clean.executing.tasks import DeleteTask
from hudi_py.services.clean.planning.stored_plan import Names
from hudi_py.services.clean.retention.policy import PartitionJudgement
from hudi_py.storage.base import Deletion, Storage, StorageFailure
from hudi_py.storage.wrappers import DelegatingStorage

CALL_SECONDS: Final = 0.1
EVENT_SECONDS: Final = 10.0
# An object store deletes this number with one request.
PAGE_FILES_MIN: Final = 1000
PAGES_MAX: Final = 20  # of one task: a backend may list the folder for each page


@attrs.frozen(kw_only=True)
class CleanProgress:
    """
    The progress of a clean.

    Args:
        phase: ``plan`` (counts partitions) or ``delete`` (counts files).
        instant: Requested time of the clean whose files are deleted; ``""`` while planning.
        done: Number of partitions judged, or of files handled.
        total: Total number of them; None if it is not known in advance, as in a full listing.
        files_found: Number of files to delete found so far, while planning.
        files_failed: Number of files that could not be deleted, while deleting.
        bytes_done, bytes_total: Bytes of the handled and of all files, estimated by the mean size in each partition;
            None if sizes are unknown, as for a plan stored earlier.
        elapsed_seconds: Seconds since the phase began.
        is_finished: Whether the phase is over.
    """

    phase: str
    instant: str = ""
    done: int = 0
    total: int | None = None
    files_found: int = 0
    files_failed: int = 0
    bytes_done: int | None = None
    bytes_total: int | None = None
    elapsed_seconds: float = 0.0
    is_finished: bool = False

    @property
    def rate(self) -> float | None:
        """Partitions or files a second; None before anything is done."""
        return self.done / self.elapsed_seconds if self.done and self.elapsed_seconds > 0 else None

    @property
    def eta_seconds(self) -> float | None:
        """Seconds that the rest will take at that rate; None if the rate or the total is unknown."""
        return None if self.total is None or self.rate is None else max(0, self.total - self.done) / self.rate


OnProgress: TypeAlias = Callable[[CleanProgress], None]


class Reporter:
    """
    Counts the progress of a clean and reports it.

    Args:
        on_progress: Called with the progress from any thread, but never by two at once. An exception that it raises
            ends the run: the clean stays pending, and the next one finishes it.
        seconds: Stopwatch that measures the phases.
    """

    def __init__(self, on_progress: OnProgress | None = None, *, seconds: Seconds = MONOTONIC) -> None:
        self._call = on_progress
        self._seconds = seconds
        self._lock = threading.Lock()
        self._state = CleanProgress(phase="plan")
        self._began = self._called = self._logged = 0.0
        self._sizes: Mapping[str, tuple[int, int]] = {}
        self._sized = ""
        self._bytes = 0.0

    @property
    def wants_sizes(self) -> bool:
        """Whether a callback would show the bytes."""
        return self._call is not None

    @property
    def is_heard(self) -> bool:
        """Whether progress is reported anywhere."""
        return self._call is not None or log.is_heard

    def begin(self, phase: str, *, instant: str = "", total: int | None = None) -> None:
        """Begin a phase."""
        self._began = self._called = self._logged = self._seconds()
        # Sizes are those of one plan; of a plan that an earlier run stored there are none.
        known = phase == "delete" and bool(self._sizes) and instant == self._sized
        self._bytes = 0.0
        self._state = CleanProgress(
            phase=phase,
            instant=instant,
            total=total,
            bytes_done=0 if known else None,
            bytes_total=sum(size for _, size in self._sizes.values()) if known else None,
        )
        self._tell()

    def sizes(self, instant: str, sizes: Mapping[str, tuple[int, int]]) -> None:
        """Set the number and bytes of the files that a clean deletes in each partition; each counts as the mean."""
        self._sized, self._sizes = instant, sizes

    def freed(self, instant: str, deleted: Names) -> int | None:
        """
        Bytes of the deleted files, by the mean size in each partition: exact where all planned files were deleted.

        Args:
            instant: The clean.
            deleted: Names of its deleted files by partition path.

        Returns:
            None if this run did not plan the clean, or did not read sizes.
        """
        if not self._sizes or instant != self._sized:
            return None
        return round(sum(self._estimated(partition, len(names)) for partition, names in deleted.items()))

    def _estimated(self, partition: str, files: int) -> float:
        """Bytes of some files of a partition, by their mean size: sizes of a million files would take much memory."""
        count, size = self._sizes.get(partition, (0, 0))
        return size * files / count if count else 0.0

    def advance(self, done: int = 1, *, found: int = 0, failed: int = 0, paths: Iterable[str] = ()) -> None:
        """Add to what is done."""
        with self._lock:
            state = self._state
            if state.bytes_done is not None:
                for partition, files in Counter(path.rpartition("/")[0] for path in paths).items():
                    self._bytes += self._estimated(partition, files)
            now = self._seconds()
            self._state = attrs.evolve(
                state,
                done=state.done + done,
                files_found=state.files_found + found,
                files_failed=state.files_failed + failed,
                bytes_done=None if state.bytes_done is None else round(self._bytes),
                elapsed_seconds=now - self._began,
            )
            if now - self._logged >= EVENT_SECONDS:
                self._logged = now
                self._event("clean.progress")
            # A callback may draw on a terminal: for each file it would take longer than the deletion.
            if now - self._called >= CALL_SECONDS:
                self._called = now
                # Under the lock, so that no two threads call it at once.
                self._tell()

    def finish(self) -> None:
        """End the phase, and report its last state."""
        with self._lock:
            self._state = attrs.evolve(self._state, elapsed_seconds=self._seconds() - self._began, is_finished=True)
            self._event("clean.phase.finished")
            self._tell()
            if self._state.instant == self._sized:
                self._sizes = {}

    def watch(self, judgements: Iterable[PartitionJudgement]) -> Iterator[PartitionJudgement]:
        """Pass on the judgements of a plan; count them only if progress is reported: there may be many."""
        if not self.is_heard:
            yield from judgements
            return
        for judged in judgements:
            yield judged
            self.advance(found=judged.condemned_count)

    def _tell(self) -> None:
        if self._call is not None:
            self._call(self._state)

    def _event(self, name: str) -> None:
        state = self._state
        fields: dict[str, Any] = {"phase": state.phase, "done": state.done, "total": state.total}
        if state.instant:
            fields["instant"] = state.instant
        if state.bytes_done is not None:
            fields.update(bytes_done=state.bytes_done, bytes_total=state.bytes_total)
        fields["elapsed_ms"] = int(state.elapsed_seconds * 1000)
        if not state.is_finished and state.eta_seconds is not None:
            fields["eta_seconds"] = round(state.eta_seconds)
        log.info(name, **fields)


class WatchedEngine:
    """
    An engine that counts deletions as they happen, or after each task if other machines delete.

    Args:
        inner: The engine that does the work.
        reporter: Receives the counts.
    """

    def __init__(self, inner: Engine, reporter: Reporter) -> None:
        self._inner, self._reporter = inner, reporter
        self.name, self.slots, self.files_min, self.files_max = (
            inner.name,
            inner.slots,
            inner.files_min,
            inner.files_max,
        )

    def prepared(self, storage: Storage, files: int) -> Engine:
        """See `Engine.prepared`."""
        return WatchedEngine(self._inner.prepared(storage, files), self._reporter)

    def for_listing(self, storage: Storage, folders: int) -> Engine | None:
        """See `Engine.for_listing`."""
        return self._inner.for_listing(storage, folders)

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        # A counting storage would count in a copy on each executor, so only local tasks get one.
        counted = self._counted(items) if self.name == "local" else items
        results = self._inner.map(function, counted, parallelism=parallelism, description=description)
        for item, result in zip(items, results, strict=True):
            if self.name != "local" and isinstance(item, DeleteTask):
                self._reporter.advance(len(item.paths), paths=item.paths)
            yield result

    def _counted(self, items: Sequence[T]) -> Sequence[Any]:
        return [
            item._replace(storage=CountedStorage(item.storage, self._reporter))
            if isinstance(item, DeleteTask)
            else item
            for item in items
        ]


class CountedStorage(DelegatingStorage):
    """Deletes page by page, so that progress can be reported in between."""

    def __init__(self, inner: Storage, reporter: Reporter) -> None:
        super().__init__(inner)
        self._reporter = reporter

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, Deletion]:
        wanted = tuple(paths)
        outcomes: dict[str, Deletion] = {}
        size = max(PAGE_FILES_MIN, -(-len(wanted) // PAGES_MAX))
        for start in range(0, len(wanted), size):
            page = wanted[start : start + size]
            found = self.inner.delete_many(page)
            outcomes.update(found)
            failed = sum(isinstance(outcome, StorageFailure) for outcome in found.values())
            self._reporter.advance(len(page), failed=failed, paths=page)
        return outcomes
