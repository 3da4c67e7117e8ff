"""
What one maintenance run may delete, and how long it may take, over all its steps.

A step that has begun is finished as far as it has to be; a limit decides what is begun after it. What is left is due in
the next run.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import attrs

from hudi_py.config import keys
from hudi_py.config.arguments import count_of, span_of
from hudi_py.config.settings import Settings
from hudi_py.runtime.clock import Clock, Deadline

_MS: Final = timedelta(milliseconds=1)


@attrs.define
class RunBudget:
    """
    Args:
        deadline: When no further step is begun.
        files: Number of files that may still be deleted; None for no limit.
        size_bytes: Number of bytes that may still be deleted; None for no limit.
    """

    deadline: Deadline
    files: int | None = None
    size_bytes: int | None = None

    def why_over(self, *, deletes: bool) -> str:
        """Why a step must not begin, *deletes*: whether it deletes files; ``""`` if it may."""
        if self.deadline.is_over:
            return "the time of this run is over"
        if deletes and self.files is not None and self.files <= 0:
            return "this run has deleted as many files as it may"
        if deletes and self.size_bytes is not None and self.size_bytes <= 0:
            return "this run has deleted as many bytes as it may"
        return ""

    def limits(self, settings: Settings) -> dict[str, Any]:
        """The options of the run's clean: what is left, and never more than the settings allow."""
        found: dict[str, Any] = {}
        for name, left, key in (
            ("max_files", self.files, keys.CLEAN_MAX_FILES),
            ("max_bytes", self.size_bytes, keys.CLEAN_MAX_BYTES),
        ):
            asked_bytes: int | None = settings[key]
            if left is not None:
                found[name] = left if asked_bytes is None else min(left, asked_bytes)
        if self.deadline.moment is not None:
            left_ms = max((self.deadline.moment - self.deadline.clock.now()) // _MS, 1)
            asked = settings[keys.CLEAN_MAX_DURATION]
            found["max_duration"] = left_ms * _MS if asked is None else min(left_ms * _MS, asked)
        return found

    def without_time(self) -> RunBudget:
        """The same for a rehearsal, which takes another time than the run."""
        return RunBudget(Deadline(self.deadline.clock), self.files, self.size_bytes)

    def spend(self, files: int, size_bytes: int | None) -> None:
        """Note what a step deleted; bytes that are not known use up all that is left."""
        if self.files is not None:
            self.files -= files
        if self.size_bytes is not None and files:
            self.size_bytes = 0 if size_bytes is None else self.size_bytes - size_bytes

    def take(self, sizes: Mapping[str, int]) -> bool:
        """Whether these files may be deleted together, and note it; what is larger than all that is left may not."""
        total = sum(sizes.values())
        if self.deadline.is_over:
            return False
        if self.files is not None and len(sizes) > self.files:
            return False
        if self.size_bytes is not None and total > self.size_bytes:
            return False
        self.spend(len(sizes), total)
        return True


def run_budget(
    clock: Clock, max_deletes: int | None, max_bytes: int | None, max_duration: str | timedelta | None
) -> RunBudget:
    """
    Return the budget of a run that begins now; arguments as for `hudi_py.Table.maintain`.

    Raises:
        ConfigError: A limit is invalid.
    """
    span = span_of("max_duration", max_duration, least=_MS, such_as="a span of time such as 90s or 15m")
    files = count_of("max_deletes", max_deletes, least=1)
    return RunBudget(Deadline.after(clock, span), files, count_of("max_bytes", max_bytes, least=1))
