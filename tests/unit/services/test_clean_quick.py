"""Judging a partition by names alone, held against the judgement of every slice."""

import random
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.config.clean import CleanConfig, CleanPolicy
from hudi_py.formats.records_codec import decode_savepoint_files, encode_savepoint
from hudi_py.fsview.build import PendingOperation, ViewContext, build_partition
from hudi_py.fsview.fate import Protection
from hudi_py.fsview.held import HeldFiles
from hudi_py.model.files import base_file_key, base_file_keys, format_base_file
from hudi_py.model.lease import Lease
from hudi_py.model.records import SavepointMetadata
from hudi_py.services.clean.planning.breakers import Census
from hudi_py.services.clean.planning.plan import assemble
from hudi_py.services.clean.planning.quick import QuickJudge
from hudi_py.services.clean.planning.scope import Scope
from hudi_py.services.clean.retention.policy import Keeps, Reason, judge_partition
from hudi_py.services.clean.retention.windows import reaching_back
from hudi_py.storage.base import is_hidden
from hudi_py.storage.local import LocalStorage
from hudi_py.versions.format import LogNaming
from support.laws import examples
from support.tables import SYNC, TableBuilder, at

TIMES = tuple(at(number) for number in range(1, 9))
ARCHIVED = at(0)
IDS = ("a-0", "b-0", "b-1", "B\n-0", "é")
ODD = (
    ".hoodie_partition_metadata",
    ".hoodie_partition_metadata.parquet",
    ".hoodie_partition_metadata_0",
    f".a-0_{TIMES[0]}.log.1_0-1-2",
    f".hoodie_partition_metadata_{TIMES[0]}.log.1",
    "app_2024_01.csv",
    "a_b_c_20240101000000000.parquet",
    f"_0_{TIMES[1]}.parquet",
    f"a-0_0_{TIMES[1]}.parquet.part",
    f"a-0_0_{TIMES[1]}\n.parquet",
)
PENDING = {("p", "a-0"): PendingOperation(TIMES[5], TIMES[2], False, ())}


def found_in_a_savepoint():
    """Two files of one partition, one of another, as a plan finds them in a savepoint."""
    files = {
        "p": (format_base_file("a-0", "0-1-2", TIMES[1]), format_base_file("b-0", "7-3-9", TIMES[2])),
        "q": (format_base_file("a-0", "0-1-2", TIMES[0]),),
    }
    content = SavepointMetadata(savepointed_by="", savepointed_at_ms=1, comments="", files=files)
    return decode_savepoint_files(encode_savepoint(content, SYNC), "a savepoint")


PROTECTIONS = (
    *[Protection()] * 4,
    Protection(savepointed_files={"p": frozenset({format_base_file("a-0", "0-1-2", TIMES[2])})}),
    Protection(savepointed_files=HeldFiles({"p": [format_base_file("b-0", "0-1-2", TIMES[1])]}, {"q": ["x"]})),
    Protection(savepointed_files=HeldFiles(found_in_a_savepoint())),
    Protection(pending=PENDING),
    Protection(pending_files={("p", format_base_file("b-0", "0-1-2", TIMES[2])): PENDING["p", "a-0"]}),
)


def some_context(rng):
    """Mostly everything is committed and nothing replaced."""
    visible = frozenset(TIMES if rng.random() < 0.7 else rng.sample(TIMES, rng.randrange(len(TIMES))))
    replaced = rng.sample(IDS, rng.choice((0, 0, 0, 1, 2)))
    return ViewContext(
        log_naming=LogNaming.BY_WRITE,
        visible_times=visible,
        first_time=min(visible, default=None),
        last_time=max(visible, default=None),
        completed_times=visible,
        replaced={("p", file_id): rng.choice(TIMES) for file_id in replaced},
        pending_compactions=PENDING if rng.random() < 0.1 else {},
    )


def some_config(rng):
    """By commits or by versions."""
    if rng.random() < 0.5:
        return CleanConfig(policy=CleanPolicy.KEEP_LATEST_COMMITS, commits_retained=rng.randint(1, 6))
    return CleanConfig(policy=CleanPolicy.KEEP_LATEST_FILE_VERSIONS, file_versions_retained=rng.randint(1, 4))


def some_files(rng):
    """Names and sizes of a partition, which as a rule is plain."""
    odd = rng.choice((0, 0, 0, 0.1))
    names = [ODD[0]] if rng.random() < 0.9 else []
    for file_id in rng.sample(IDS, rng.randint(0, len(IDS))):
        for time in rng.sample((*TIMES, ARCHIVED), rng.randint(0, len(TIMES))):
            token = rng.choice(("0-1-2", "7-3-9", ""))
            names.append(format_base_file(file_id, token, time, rng.choice(("parquet", "parquet", "orc"))))
            if rng.random() < odd:
                names += [format_base_file(file_id, "9-9-9", time), rng.choice(ODD)]
    names = sorted(set(names), key=lambda _: rng.random())
    has_sizes = rng.random() < 0.5
    return [(name, rng.choice((0, 1, 5, None)) if has_sizes else None) for name in names]


class CountedLease(Lease):
    """A lease that counts how often it is asked."""

    asked = 0

    def needs(self, begins, ends):
        """As a lease, counted."""
        CountedLease.asked += 1
        return super().needs(begins, ends)


def some_lease(rng, of=Lease, instant=None):
    """On a commit or on all from it on, with or without a write that was pending."""
    now = datetime(2026, 11, 1, tzinfo=timezone.utc)
    return of(
        id="l",
        holder="job",
        instant=instant or rng.choice(TIMES),
        pending=(rng.choice(TIMES),) if rng.random() < 0.3 else (),
        created=now,
        expires=now,
        is_consumer=rng.random() < 0.3,
    )


def some_keeps(rng, config, earliest):
    """As a plan has them where there are leases and nothing else but Hudi's policy."""
    by_versions = config.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
    return Keeps(
        windows=() if by_versions else ((Reason.WINDOW, earliest),),
        versions=config.versions,
        leases=tuple(some_lease(rng) for _ in range(3)),
    )


def planned(judgement, config):
    """What a plan takes from one judgement."""
    census = Census()
    plan = assemble(
        census.watch([judgement]),
        config=config,
        earliest=None,
        last_completed_commit="",
        savepoints=frozenset(),
        needs_cleaning=True,
        scope=Scope(everything=True, reason=""),
    )
    return dict(plan.files), plan.files.size_bytes, plan.partitions_to_delete, dict(plan.kept), census, plan.file_count


@examples(100)
@given(st.integers(0, 2**32))
@pytest.mark.slow
def test_what_is_judged_by_names_is_what_every_slice_is_judged(seed):
    """Files and their order, sizes, reasons, counts of what stays and the circuit breakers' census are the same."""
    rng = random.Random(seed)
    for _ in range(30):  # one in six is plain enough
        context, protection, config, earliest = some_context(rng), rng.choice(PROTECTIONS), some_config(rng), TIMES[4]
        files = some_files(rng)
        keeps = some_keeps(rng, config, earliest) if rng.random() < 0.3 else None
        quick = QuickJudge.of(context, protection, config, earliest=earliest, commit_count=8, keeps=keeps)
        judged = quick.judge("p", [name for name, _ in files], [size for _, size in files])
        if judged is None:
            continue
        partition = build_partition(context, "p", files)
        slow = judge_partition(context, partition, config, protection, earliest=earliest, commit_count=8, keeps=keeps)
        assert planned(slow, config) == planned(judged, config)
        assert slow.condemned_count == judged.condemned_count


def test_leases_are_asked_about_pairs_of_times_not_about_each_slice():
    """A hundred leases over a hundred groups: seven times that supersede one another are seven questions each."""
    context = ViewContext(
        log_naming=LogNaming.BY_WRITE,
        visible_times=frozenset(TIMES),
        first_time=TIMES[0],
        last_time=TIMES[-1],
        completed_times=frozenset(TIMES),
    )
    keeps = Keeps(leases=tuple(some_lease(random.Random(number), CountedLease, TIMES[1]) for number in range(100)))
    config = CleanConfig(policy=CleanPolicy.KEEP_LATEST_COMMITS, commits_retained=2)
    quick = QuickJudge.of(context, Protection(), config, earliest=TIMES[6], commit_count=8, keeps=keeps)
    CountedLease.asked = 0
    names = [format_base_file(f"g{number}-0", "0-1-2", time) for number in range(100) for time in TIMES]
    judged = quick.judge("p", names, ())
    assert judged is not None
    assert judged.kept[Reason.LEASE] > 0
    assert CountedLease.asked <= 7 * 100


def test_leases_that_need_the_same_are_one():
    """A hundred readers of one commit cost a plan what one costs."""
    now = datetime(2026, 11, 1, tzinfo=timezone.utc)
    same = [
        Lease(id=f"l{number}", holder=f"job-{number}", instant=TIMES[number % 2], created=now, expires=now)
        for number in range(100)
    ]
    found = reaching_back(same, None, TIMES[5])
    assert sorted(each.instant for each in found) == [TIMES[0], TIMES[1]]


@pytest.mark.parametrize("policy", ["commits_retained", "file_versions_retained"])
@pytest.mark.parametrize("tagged", [None, 2, 5])
def test_plain_partitions_are_judged_by_their_names(policy, tagged, monkeypatch):
    """The usual partition takes the short way, tagged or not, and no savepoint is decoded as a whole."""
    builder = TableBuilder()
    for number in range(1, 7):
        builder.commit(at(number), {"r0": ["g0", "g1"], "r1": ["g2"]})
    table = builder.table()
    if tagged is not None:
        table.create_savepoint(at(tagged))
    config = table.services.clean_config(**{policy: 2})
    detailed = table.services.clean(config).plan(details=True)
    monkeypatch.setattr("hudi_py.services.clean.planning.situation.judge_partition", None)
    monkeypatch.setattr("hudi_py.formats.records_codec.decode_savepoint", None)
    plan = table.services.clean(config).plan(sizes=True)
    assert dict(detailed.files) == dict(plan.files)
    assert dict(detailed.kept) == dict(plan.kept)
    assert detailed.file_count == plan.file_count > 0
    assert plan.kept.get(Reason.SAVEPOINT, 0) == (3 if tagged == 2 else 0)
    assert {Reason.LATEST: 3} == {reason: n for reason, n in plan.kept.items() if reason is Reason.LATEST}


def test_the_pattern_for_many_names_finds_what_a_single_name_matches():
    """With a character excluded that no name holds, nothing else is found."""
    names = [*ODD, *(format_base_file(file_id, "0-1-2", time) for file_id in IDS for time in TIMES)]
    expected = [base_file_key(name) for name in names]
    assert [each for each in expected if each is not None] == base_file_keys(names)


def test_hidden_files_of_a_large_folder_stay_hidden(tmp_path: Path):
    """Side files and temporary files are left out wherever they stand, folders that look like one are shown."""
    uuid = "123e4567-e89b-12d3-a456-426614174000"
    shown = {"a.parquet", f"x.{'y' * 36}", "crc", "b.crc"}
    hidden = {".a.parquet.crc", f"a.parquet.{uuid}"}
    folders = {".odd.crc", f"f.{uuid}"}
    for name in shown | hidden - folders:
        (tmp_path / name).touch()
    for name in folders:
        (tmp_path / name).mkdir()
    listed = LocalStorage(str(tmp_path)).list("")
    expected = {(name, name in folders) for name in shown | hidden | folders if name in folders or not is_hidden(name)}
    assert expected == {(entry.name, entry.is_folder) for entry in listed}
    assert all((None, None) == entry[2:] for entry in listed)
