"""
Circuit breakers: signs that a plan was made from a wrong view of the table. Pure.

A plan that trips one is shown by a dry run and never stored, unless ``hoodie_py.clean.breakers=false`` confirms it. The
limit on the share of deleted files, ``hoodie_py.clean.breaker.max.share``, is 1 by default, which allows any share: the
first clean of an old table deletes most of its files. The other breakers are always on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, tzinfo

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.model.files import join_path
from hudi_py.model.instant_time import format_instant_time
from hudi_py.services.clean.retention.policy import PartitionJudgement, Reason

CLOCK_TOLERANCE = timedelta(hours=15)
"""If times of a table in local time are read in another time zone, they differ by no more than the zones do."""

_NAMED_MAX = 3


@attrs.define
class Census:
    """Counts the files that a plan keeps and deletes, and names the first groups that keep no slice."""

    kept_count: int = 0
    condemned_count: int = 0
    replaced_count: int = 0
    bare_count: int = 0
    bare_groups: list[str] = attrs.field(factory=list)

    @property
    def share(self) -> float:
        """The share of condemned files among all that were judged."""
        total = self.kept_count + self.condemned_count
        return self.condemned_count / total if total else 0.0

    def watch(self, judgements: Iterable[PartitionJudgement]) -> Iterator[PartitionJudgement]:
        """Pass on the judgements, counting them."""
        for judged in judgements:
            self._add(judged)
            yield judged

    def _add(self, judged: PartitionJudgement) -> None:
        live: dict[str, bool] = {}
        kept = condemned = 0
        for verdict in judged.verdicts:
            file_slice = verdict.file_slice
            count = file_slice.file_count
            file_id = file_slice.file_id
            if verdict.keep:
                kept += count
                live[file_id] = True
                continue
            condemned += count
            # A replaced group may lose all of its slices, so it does not count as bare.
            if verdict.reason is Reason.REPLACED:
                self.replaced_count += count
            elif file_id not in live:
                live[file_id] = False
        if judged.condemned is not None:  # judged by names alone: one file per slice, and each group keeps one
            kept += sum(judged.kept.values())
            condemned += len(judged.condemned.names)
        self.kept_count += kept
        self.condemned_count += condemned
        if not all(live.values()):
            bare = [join_path(judged.partition_path, file_id) for file_id, is_live in live.items() if not is_live]
            self.bare_count += len(bare)
            self.bare_groups += bare[: _NAMED_MAX - len(self.bare_groups)]


def tripped(
    census: Census,
    config: CleanConfig,
    *,
    planning_time: datetime,
    clock_time: datetime,
    last_time: str | None,
    cut_off: str | None,
    zone: tzinfo,
) -> tuple[str, ...]:
    """
    The reasons not to carry out the plan, one sentence each; empty if there are none.

    Args:
        census: The counted files of the plan.
        config: The settings of the clean.
        planning_time: The time that the plan was made for, with a time zone.
        clock_time: The time of the clock, with a time zone.
        last_time: The largest time on the timeline, if any.
        cut_off: The instant time before which files are too old, if the policy goes by time.
        zone: Time zone of the table's instant times.
    """
    if not census.condemned_count:
        return ()
    found = []
    # No rule of any policy allows this, so the view must be wrong.
    if census.bare_count:
        names = ", ".join(census.bare_groups)
        found.append(f"{census.bare_count} live file groups would lose their last version ({names})")
    if census.share > config.breaker_max_share:
        found.append(
            f"{census.condemned_count} of {census.condemned_count + census.kept_count} examined files would be "
            f"deleted, more than hoodie_py.clean.breaker.max.share={config.breaker_max_share:g} allows"
        )
    if not census.kept_count and census.replaced_count < census.condemned_count:
        found.append("no examined file would be left, and no replacecommit explains that")
    # Only policies by time depend on the clock; a wrong clock would make every file look old.
    if cut_off is not None:
        clock = clock_time.astimezone(zone)
        if last_time is not None and format_instant_time(_later(planning_time.astimezone(zone))) < last_time:
            shown = format_instant_time(planning_time.astimezone(zone))
            found.append(f"the clock went back: it shows {shown}, and the timeline ends at {last_time}")
        if cut_off > format_instant_time(clock):
            found.append(f"the window begins at {cut_off}, which is in the future ({format_instant_time(clock)} now)")
    return tuple(found)


def _later(moment: datetime) -> datetime:
    try:
        return moment + CLOCK_TOLERANCE
    except OverflowError:
        return moment
