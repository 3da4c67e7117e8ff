"""
Deleting many objects: pages spread over folders, several requests at once, as fast as the store bears.

Stores count requests by prefix, so that a page takes keys of many folders in turn. It begins with one request at a
time; each round without trouble allows one more and longer pages, trouble halves both, and what was throttled is tried
again after a pause, behind everything else.
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
    How much is asked of the store at once; remembered from one deletion to the next.

    Args:
        requests_max: Requests at once, at most.
        keys: Of one page.
        requests: At once, now.
    """

    requests_max: int = REQUESTS_MAX
    keys: int = KEYS_PER_DELETE
    requests: int = 1

    def went_well(self) -> None:
        """A round without trouble."""
        self.requests = min(self.requests_max, self.requests + 1)
        self.keys = min(KEYS_PER_DELETE, 2 * self.keys)

    def was_throttled(self) -> None:
        """The store wants less."""
        self.requests = max(1, self.requests // 2)
        self.keys = max(KEYS_MIN, self.keys // 2)


def delete_in_pages(
    paths: Sequence[str],
    send: Callable[[list[str]], Outcomes],
    pace: Pace,
    begin: Callable[[], Attempts],
) -> dict[str, bool | StorageFailure]:
    """
    Args:
        paths: Without repetitions.
        send: Deletes one page, by one request; raises `StorageError` when the page fails as a whole.
        begin: Before the first round, and after each one that deleted something: how long to insist from there on.

    Returns:
        What became of each path, in the order of *paths*. Where the store refuses a page as a whole, the rest is not
        tried: it would only take the same time again.
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
        if len(again) < sum(map(len, pages)):
            attempts = begin()
        if refused is not None or (again and not attempts.again(_why(found[again[0]]))):
            found.update(dict.fromkeys(pending, refused or found[again[0]]))
            break
        if again:
            pace.was_throttled()
            pending.extend(again)
        else:
            pace.went_well()
    return {path: found[path] for path in paths}


def spread(paths: Iterable[str]) -> list[str]:
    """The same paths, those of different folders in turn."""
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
