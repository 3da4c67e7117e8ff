"""
Deletes and moves many objects.

Deletion sends several requests at once, each for a page of keys, as fast as the store allows.

Stores limit the rate of requests by prefix, so each page takes keys of many folders in turn. Deletion starts with one
request at a time. A round without trouble adds one request and makes pages larger; throttling halves both, and the
throttled keys are tried again after a pause, after all others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import Final

import attrs

from hudi_py.errors import StorageError
from hudi_py.storage.base import StorageFailure
from hudi_py.storage.remote_backends import KEYS_PER_DELETE
from hudi_py.storage.retry import Attempts

KEYS_MIN: Final = 25
REQUESTS_MAX: Final = 4
Outcomes = Mapping[str, bool | StorageFailure]


@attrs.define
class Pace:
    """
    How much to ask of the store at once; kept from one deletion to the next.

    Args:
        requests_max: Upper bound of *requests*.
        keys: Number of keys in a page.
        requests: Number of requests sent at the same time.
    """

    requests_max: int = REQUESTS_MAX
    keys: int = KEYS_PER_DELETE
    requests: int = 1

    def went_well(self) -> None:
        """Speed up after a round without trouble."""
        self.requests = min(self.requests_max, self.requests + 1)
        self.keys = min(KEYS_PER_DELETE, 2 * self.keys)

    def was_throttled(self) -> None:
        """Slow down after the store refused requests temporarily."""
        self.requests = max(1, self.requests // 2)
        self.keys = max(KEYS_MIN, self.keys // 2)


def delete_in_pages(
    paths: Sequence[str],
    send: Callable[[list[str]], Outcomes],
    pace: Pace,
    begin: Callable[[], Attempts],
) -> dict[str, bool | StorageFailure]:
    """
    Delete *paths*, page by page.

    Args:
        paths: Paths without duplicates.
        send: Deletes one page with one request; raises `StorageError` when the page fails as a whole.
        pace: Size of pages and number of requests; adapted to how the store responds.
        begin: Starts the budget for retries; called first and after every round that deleted something.

    Returns:
        The result for each path, in the order of *paths*. When the store refuses a whole page for good, the remaining
        paths are not tried and get the same failure, because they would fail in the same way.
    """
    pending, found, attempts = deque(spread(paths)), dict[str, bool | StorageFailure](), begin()
    while pending:
        size = pace.keys
        pages = [[pending.popleft() for _ in range(min(size, len(pending)))] for _ in range(pace.requests) if pending]
        refused = None
        for page, answer in zip(pages, _answers(pages, send), strict=True):
            if isinstance(answer, StorageError):
                failure = StorageFailure(str(answer), answer.retryable)
                refused = refused if answer.retryable else failure
                answer = dict.fromkeys(page, failure)
            found.update(answer)
        again = [path for page in pages for path in page if _may_succeed(found[path])]
        # Each round that deletes something starts a new budget: only a store that does nothing at all ends the work.
        if len(again) < sum(map(len, pages)):
            attempts = begin()
        if refused is not None or (again and not attempts.again(_why(found[again[0]]))):
            found.update(dict.fromkeys(pending, refused or found[again[0]]))
            break
        if again:
            pace.was_throttled()
            # At the end, so that the store gets a pause for their prefix.
            pending.extend(again)
        else:
            pace.went_well()
    return {path: found[path] for path in paths}


def copy_then_delete(
    moves: Mapping[str, tuple[str, str]],
    copy: Callable[[str, str], bool],
    delete: Callable[[Iterable[str]], Outcomes],
) -> dict[str, bool | StorageFailure]:
    """
    Move objects: copy on the server, a few at a time, then delete what was copied.

    Args:
        moves: Old and new path for each path to report on.
        copy: Copies one object; returns whether it exists, and raises `StorageError` when that fails.
        delete: Deletes many objects.

    Returns:
        The result for each path, in the order of *moves*: True if it was moved, False if it did not exist.
    """
    outcomes = for_each(moves, lambda path: copy(*moves[path]))
    # Only what has been copied is deleted, so at every moment an object exists at one of its two paths at least.
    there = {moves[path][0]: path for path, outcome in outcomes.items() if outcome is True}
    for old, outcome in delete(there).items():
        if isinstance(outcome, StorageFailure):
            outcomes[there[old]] = outcome
    return outcomes


def for_each(paths: Iterable[str], do: Callable[[str], bool]) -> dict[str, bool | StorageFailure]:
    """Call *do* for each path, a few at a time, and return what it returned, or the `StorageError` that it raised."""

    def tried(path: str) -> bool | StorageFailure:
        try:
            return do(path)
        except StorageError as error:
            return StorageFailure(str(error), error.retryable)

    wanted = tuple(paths)
    with ThreadPoolExecutor(REQUESTS_MAX, thread_name_prefix="hudi-py-each") as pool:
        return dict(zip(wanted, pool.map(tried, wanted), strict=True))


def spread(paths: Iterable[str]) -> list[str]:
    """Return the same paths, reordered so that folders take turns."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        by_folder.setdefault(path.rpartition("/")[0], []).append(path)
    return [path for turn in zip_longest(*by_folder.values()) for path in turn if path is not None]


def _answers(pages: list[list[str]], send: Callable[[list[str]], Outcomes]) -> list[Outcomes | StorageError]:
    def attempt(page: list[str]) -> Outcomes | StorageError:
        try:
            return send(page)
        except StorageError as error:
            return error

    if len(pages) == 1:
        return [attempt(pages[0])]
    with ThreadPoolExecutor(len(pages), thread_name_prefix="hudi-py-delete") as pool:
        return list(pool.map(attempt, pages))


def _may_succeed(result: bool | StorageFailure) -> bool:
    return isinstance(result, StorageFailure) and result.retryable


def _why(result: bool | StorageFailure) -> str:
    return result.message if isinstance(result, StorageFailure) else ""
