"""``hudi-py compact``."""

from pathlib import Path

import attrs
import pytest

import hudi_py
from hudi_py.config.clustering import clustering_config_with
from hudi_py.model.records import Strategy
from hudi_py.txn.commit import Prepared
from support.fixtures import unpack

DUE = ("--conf", "hoodie.compact.inline.max.delta.commits=1", "--conf", "hoodie.log.compaction.blocks.threshold=1")


def document(run, *arguments):
    result = run(*arguments, "--json")
    assert result.code == 0, result.err
    return result.json


def test_dry_run_schedule_and_execution_agree(run, tmp_path):
    """What the dry run shows is scheduled and carried out; afterwards there is nothing to do."""
    table = str(unpack("mor_logs-1.1.1", tmp_path))
    before = sorted(Path(table).rglob("*"))
    plan = document(run, "compact", table, "--dry-run", *DUE)
    assert plan["would_schedule"]
    assert sorted(Path(table).rglob("*")) == before
    time = document(run, "compact", table, "--schedule-only", *DUE)["instant"]
    pending = document(run, "compact", table, "--dry-run", *DUE)
    assert (pending["would_schedule"], pending["pending_compactions"]) == (False, [time])
    done = document(run, "compact", table, "--execute", time, *DUE)
    assert (done["instant"], done["file_groups"]) == (time, len(plan["plan"]["operations"]))
    assert done["bytes_before"] == plan["bytes_to_read"]
    assert document(run, "compact", table, *DUE)["instant"] is None
    assert "nothing to do: " in run("compact", table).out


def test_wrong_usage_is_told(run, tmp_path):
    """Options that exclude each other, an unknown compaction, a table without log files: exit code 2."""
    table = str(unpack("mor_logs-1.1.1", tmp_path))
    assert run("compact", table, "--dry-run", "--schedule-only").code == 2
    assert run("compact", table, "--execute", "20240101000000000").code == 2
    assert run("compact", str(unpack("cow_nomdt-1.1.1", tmp_path))).code == 2


def test_a_cancelled_plan_is_gone(run, tmp_path):
    """The next one is another; the option goes with no other."""
    table = str(unpack("mor_logs-1.1.1", tmp_path))
    time = document(run, "compact", table, "--schedule-only", *DUE)["instant"]
    assert document(run, "compact", table, "--cancel", time) == {"instant": time, "cancelled": True}
    assert document(run, "compact", table, "--dry-run", *DUE)["pending_compactions"] == []
    assert run("compact", table, "--cancel", time).code == 2
    assert run("compact", table, "--cancel", time, "--dry-run").code == 2


def test_a_reason_is_that_of_the_moment_of_planning(run, tmp_path):
    """The same by --schedule-only as by --dry-run, at the time that --now gives."""
    table = str(unpack("mor_logs-1.1.1", tmp_path))
    first = hudi_py.open_table(table).timeline.completed("deltacommit")[0].requested_time
    options = ("--now", first, "--conf", "hoodie.compact.inline.trigger.strategy=TIME_ELAPSED")
    reason = document(run, "compact", table, "--dry-run", *options)["reason"]
    assert "are needed" in reason
    assert reason in run("compact", table, "--schedule-only", *options).out


def test_a_stored_clustering_takes_no_options_of_planning(run, tmp_path):
    """Rows would not be sorted as asked, and the exit code would say that they are; nothing is changed."""
    table = str(unpack("cow_clustered-1.1.1", tmp_path))
    time = document(run, "cluster", table, "--schedule-only")["instant"]
    files = sorted(Path(table).rglob("*"))
    for by in ("--execute", "--cancel"):
        for option in (("--sort-by", "id"), ("--partition", "x"), ("--max-bytes", "1GB"), ("--layout", "linear")):
            result = run("cluster", table, by, time, *option)
            assert (result.code, sorted(Path(table).rglob("*"))) == (2, files)
            assert f"{option[0]} with {by}" in result.err
    assert document(run, "cluster", table, "--execute", time)["instant"] == time


@pytest.mark.parametrize(
    ("service", "name"),
    [("compaction", "mor_logs-1.1.1"), ("log-compaction", "mor_logs-1.1.1"), ("clustering", "cow_clustered-1.1.1")],
)
def test_explain_agrees_with_the_dry_run(run, tmp_path, service, name):
    """Each file group of the plan is planned, each other one has a reason; files name their group."""
    table = str(unpack(name, tmp_path))
    opened = hudi_py.open_table(table)
    command = {"compaction": ["compact"], "log-compaction": ["compact", "--logs"], "clustering": ["cluster"]}[service]
    plan = document(run, *command, table, "--dry-run", *DUE)["plan"]
    planned = {each["file_id"] for each in plan.get("operations", ())}
    planned |= {file_id for group in plan.get("groups", ()) for file_id in group["file_ids"]}
    seen = {}
    for partition in opened.partitions():
        for group in document(run, "explain", table, partition, "--service", service, *DUE)["file_groups"]:
            seen[group["file_id"]] = group["planned"]
            assert group["reason"]
    assert {file_id for file_id, is_planned in seen.items() if is_planned} == planned
    assert planned
    partition = opened.partitions()[0]
    each = opened.file_slices(partition)[0]
    for target in (each.file_id, each.base_file.name, f"{partition}/{each.base_file.name}"):
        (found,) = document(run, "explain", table, target, "--service", service, *DUE)["file_groups"]
        assert found["file_id"] == each.file_id
    assert run("explain", table, partition, "--service", service, "--commits-retained", "1").code == 2
    assert run("explain", table, "no-such-thing", "--service", service).code == 2


def test_a_pending_plan_that_is_not_served_is_told(run, tmp_path):
    """By each run and dry run, with how to cancel it; what it leaves is clustered."""
    path = str(unpack("cow_clustered-1.1.1", tmp_path))
    table = hudi_py.open_table(path)
    first, *others = table.partitions()
    assert others
    stored = table.contents.requested_replace(
        table.services.clustering(clustering_config_with(table.settings, partitions=[first])).schedule()
    )
    (pending,) = table.refresh().timeline.pending()
    odd = attrs.evolve(stored.clustering_plan, strategy=Strategy(class_name="com.example.Masking", strategy_params={}))
    store = table.contents.store
    store.remove(pending)
    Prepared(store, pending.action, pending.requested_time).request(attrs.evolve(stored, clustering_plan=odd))
    time = pending.requested_time
    for more in (["--dry-run"], []):
        told = document(run, "cluster", path, *more)
        assert [each["instant"] for each in told["left_pending"]] == [time]
        (reason,) = (each["reason"] for each in told["left_pending"])
        assert "com.example.Masking, which may do more than move rows" in reason
        assert f"hudi-py cluster {path} --cancel {time}" in reason
    assert told["file_groups"]
    assert told["instant"] != time
    assert f"stays pending: clustering {time}" in run("cluster", path, "--dry-run").out
    assert run("cluster", path, "--partition", first).code == 5
    assert run("cluster", path, "--cancel", time).code == 0
    assert document(run, "cluster", path, "--dry-run")["left_pending"] == []


def test_a_limit_of_a_clustering_leaves_groups_for_the_next(run, tmp_path):
    """What does not fit is named."""
    table = str(unpack("cow_clustered-1.1.1", tmp_path))
    plan = document(run, "cluster", table, "--dry-run")
    assert plan["would_schedule"]
    limited = document(run, "cluster", table, "--dry-run", "--max-bytes", "1")
    assert not limited["would_schedule"]
    assert "larger than a plan may be (--max-bytes" in limited["left_out"][0]["reason"]


def test_the_exit_code_tells_what_limits_left(run, tmp_path):
    """7 until nothing is left, and only if it is asked for; as scripts repeat a command."""
    table = str(unpack("mor_logs-0.15.0", tmp_path))
    assert run("compact", table, "--exit-code", "--dry-run").code == 2
    limit = ("--conf", "hoodie.compaction.target.io=0")  # Hudi 0.15 takes one file group nevertheless
    codes = [run("compact", table, *DUE, *limit, "--exit-code").code]
    while codes[-1] == 7:
        run_again = run("compact", table, "--conf", "hoodie.compact.inline.trigger.strategy=TIME_ELAPSED",
                        "--conf", "hoodie.compact.inline.max.delta.seconds=1", *limit, "--exit-code")  # fmt: skip
        codes.append(run_again.code)
    assert codes[0] == 7
    assert codes[-1] == 0
    assert run("compact", table, "--exit-code", "--json").json["instant"] is None
    table = str(unpack("cow_partitioned-1.1.1", tmp_path))
    one = ("--conf", "hoodie.clustering.plan.strategy.max.num.groups=1")
    assert run("cluster", table, *one, "--exit-code").code == 7
    assert run("cluster", table, *one).code == 0
    assert run("cluster", table, "--exit-code").code == 0
