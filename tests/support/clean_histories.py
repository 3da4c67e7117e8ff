"""Random histories of a table for the laws of planning a clean, and what is drawn for a plan."""

from datetime import timedelta

import attrs
from hypothesis import strategies as st

from hudi_py.model.instant import State
from hudi_py.model.instant_time import parse_instant_time
from support.tables import TableBuilder, at

PARTITIONS = ("r0", "r1", "r2")


@attrs.frozen
class Step:
    """What happens at one time."""

    kind: str  # write, replace, pending, logs, savepoint, clean
    partitions: tuple[str, ...]
    group: int


steps = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from(("write", "write", "write", "replace", "pending", "logs", "savepoint", "clean")),
        partitions=st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3, unique=True).map(tuple),
        group=st.integers(0, 2),
    ),
    min_size=1,
    max_size=14,
)


@attrs.frozen
class Made:
    """A generated table, and what has to survive everything."""

    builder: TableBuilder
    savepointed: frozenset[str]
    length: int
    group: str  # a file id of r0 that may be written to; what was replaced never is again


def make(layout, history):
    """Play *history* on an empty table."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    savepointed = set()
    opened = {}  # (partition, group) -> newest base instant
    generation = dict.fromkeys(PARTITIONS, 0)
    for number, step in enumerate(history, 1):
        ids = {path: f"g{step.group}-{generation[path]}" for path in step.partitions}
        if step.kind in ("write", "pending"):
            state = State.COMPLETED if step.kind == "write" else State.INFLIGHT
            builder.commit(at(number), {path: [file_id] for path, file_id in ids.items()}, state=state)
            if step.kind == "write":
                opened.update(dict.fromkeys(ids.items(), at(number)))
        elif step.kind == "replace":
            path = step.partitions[0]
            old = [file_id for partition, file_id in opened if partition == path]
            generation[path] += 1
            for file_id in old:
                del opened[path, file_id]
            builder.commit(at(number), {}, replaced={path: old})
        elif step.kind == "logs":
            logs = [
                (path, file_id, opened[path, file_id]) for path, file_id in ids.items() if (path, file_id) in opened
            ]
            if logs:
                builder.log_files(at(number), logs)
        elif step.kind == "savepoint":
            times = [i.requested_time for i in builder.table().timeline.completed("commit")]
            if times and not builder.table().timeline.completed("savepoint"):
                held = {
                    path: [name for each in builder.table().file_slices(path) for name in each.file_names]
                    for path in builder.table().partitions()
                }
                builder.savepoint(times[-1], held)
                savepointed = {f"{path}/{name}" for path, names in held.items() for name in names}
        else:
            builder.clock.moment = parse_instant_time(at(number), builder.table().zone)
            builder.table().clean(commits_retained=2)
    builder.clock.moment = parse_instant_time(at(len(history) + 1), builder.table().zone) + timedelta(minutes=1)
    return Made(builder, frozenset(savepointed), len(history), f"g0-{generation['r0']}")


tables = st.builds(make, st.sampled_from((1, 2)), steps)


policies = st.sampled_from(("commits_retained", "file_versions_retained", "hours_retained"))


retained = st.integers(1, 6)


def paths(plan):
    return {file.path for files in plan.files.values() for file in files}
