"""Leases beside log files and compactions in every order: no lease loses a file, whichever slice a log file is on."""

import random

from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConfigError, ConflictError, RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.model.instant import State
from hudi_py.model.records import CommitMetadata, CompactionOperation, CompactionPlan, WriteStat
from hudi_py.table import Table
from support.laws import examples
from support.tables import SYNC, TableBuilder, at, data_files

POLICIES = ({"commits_retained": 1}, {"file_versions_retained": 1}, {"file_versions_retained": 1, "keep_daily": 2})
GROUPS = ("a", "b")


class Life:
    """
    A table with random steps; each held lease with the files that its reader sees.

    A write takes its time first and looks for the slice, and completes, later: other writes and compactions come in
    between, with later times.
    """

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.builder = TableBuilder(self.rng.choice((1, 2)), table_type="MERGE_ON_READ")
        self.policy = self.rng.choice(POLICIES)
        self.builder.commit(at(1), {"r0": GROUPS}, action="deltacommit")
        self.number, self.writing, self.planned, self.held = 1, [], {}, {}
        self.newest = dict.fromkeys(GROUPS, at(1))

    def next(self):
        self.number += 6  # four a day
        return at(self.number)

    def now(self):
        """A completion time behind everything that has begun."""
        self.number += 1
        return f"{at(self.number)[:10]}4500000"

    def begin(self):
        self.writing.append(self.next())
        for state in (State.REQUESTED, State.INFLIGHT):
            self.builder.instant(self.writing[-1], "deltacommit", state)

    def write(self):
        """One that has begun, or a new one."""
        if not self.writing:
            self.begin()
        time = self.writing.pop(self.rng.randrange(len(self.writing)))
        some = [group for group in GROUPS if self.rng.random() < 0.7]
        logs = [("r0", group, self.planned.get(group, self.newest[group])) for group in some]
        self.builder.log_files(time, logs, completed_at=self.now())

    def plan(self):
        free = sorted(set(GROUPS) - set(self.planned))
        if not free:
            return
        group, time = self.rng.choice(free), self.next()
        base = self.newest[group]
        operation = CompactionOperation(
            base_instant_time=base,
            file_id=group,
            partition_path="r0",
            data_file_path=self.builder.base_name(group, base),
            delta_file_paths=(),
        )
        content = codec.encode_compaction_plan(CompactionPlan(operations=(operation,)), sync=SYNC)
        self.builder.instant(time, "compaction", State.REQUESTED, content)
        self.builder.instant(time, "compaction", State.INFLIGHT)
        self.planned[group] = time

    def compact(self):
        if not self.planned:
            return
        group = self.rng.choice(sorted(self.planned))
        time = self.newest[group] = self.planned.pop(group)
        path = f"r0/{self.builder.base_name(group, time)}"
        self.builder.put(path)
        stat = WriteStat(file_id=group, path=path, partition_path="r0", num_writes=1)
        metadata = CommitMetadata(partition_to_write_stats={"r0": (stat,)}, operation_type="COMPACT")
        content = encode_commit(metadata, as_json=self.builder.layout.version == 1, sync=SYNC)
        self.builder.instant(time, "commit", State.COMPLETED, content, completed_at=self.now())

    def take(self):
        table = self.builder.table()
        times = [each.requested_time for each in table.timeline.commits.completed()]
        time = self.rng.choice((None, self.rng.choice(times)))
        try:
            view = table if time is None else table.as_of(time)
            seen = {f"r0/{name}" for each in view.file_slices("r0") for name in each.file_names}
            lease = table.take_lease(ttl="1h", at=time, holder="a test")
        except (RefusedError, ConfigError, ConflictError):
            return
        self.held[lease.id] = seen

    def release(self):
        if self.held:
            lease = self.rng.choice(sorted(self.held))
            assert self.builder.table().release_lease(lease)
            del self.held[lease]

    def clean(self):
        settings = {"hoodie_py.clean.verify": True}
        Table(self.builder.storage, settings=settings, clock=self.builder.clock).clean(**self.policy)

    def step(self):
        acts = (self.begin, self.write, self.plan, self.compact, self.take, self.release, self.clean)
        self.rng.choices(acts, weights=(2, 3, 3, 4, 3, 2, 2))[0]()
        there = set(data_files(self.builder.storage))
        for lease, files in self.held.items():
            assert files <= there, (lease, files - there)


@examples(50)
@given(st.integers(0, 2**32))
def test_no_lease_loses_a_file_and_two_planners_agree(seed):
    """The second planner judges each clean; the files that a lease showed when it was taken stay."""
    life = Life(seed)
    for _ in range(70):
        life.step()
