"""Tighter plans of clusterings: as good as any for few files, never worse than Apache Hudi's for many."""

import random

import pytest

from hudi_py.config.clustering import ClusteringConfig
from hudi_py.model.files import BaseFile, FileSlice, LogFile
from hudi_py.services.clustering.packing import EXACT_MAX, cost_of, packed_groups
from hudi_py.services.clustering.plan import plan_clustering
from hudi_py.services.clustering.policy import Candidates, base_bytes, hudi_groups

TIME = "20260101000000000"


def slice_of(number, size, logs=0):
    name = f"f{number:03}"
    base = BaseFile(f"{name}_1-0-1_{TIME}.parquet", name, "1-0-1", TIME, "parquet", size)
    files = tuple(
        LogFile(f".{name}_{TIME}.log.{at}_1-0-1", name, TIME, at, "1-0-1", size_bytes=3) for at in range(logs)
    )
    return FileSlice("p", name, TIME, base, files)


def drawn(chance, count):
    """Slices of a partition, and limits of which some are no multiples of each other."""
    target = chance.choice((50, 100))
    small = chance.choice((30, 60, target))
    config = ClusteringConfig(
        small_bytes=small,
        group_bytes_max=max(small, chance.choice((target, 2 * target, 150, chance.randint(60, 300)))),
        target_bytes=target,
        is_packed=True,
        single_group=chance.random() < 0.5,
        sort_columns=("ts",) if chance.random() < 0.2 else (),
    )
    logs = chance.random() < 0.3
    sizes = [(chance.randint(1, small - 1), chance.choice((0, 0, 2)) if logs else 0) for _ in range(count)]
    return [slice_of(number, *size) for number, size in enumerate(sizes)], config


def groupings(slices):
    """Every way to divide slices into groups."""
    if not slices:
        yield []
        return
    for rest in groupings(slices[1:]):
        yield [[slices[0]], *rest]
        for at in range(len(rest)):
            yield [*rest[:at], [slices[0], *rest[at]], *rest[at + 1 :]]


def best(slices, config):
    """The lowest cost of all groupings in which each group is rewritten or, where it may be, left alone."""
    costs = []
    for groups in groupings(slices):
        if any(len(group) > 1 and sum(map(base_bytes, group)) > config.group_bytes_max for group in groups):
            continue
        options = [()]
        for group in groups:
            must = config.sort_columns or any(each.log_files for each in group)
            options = [(*chosen, group) for chosen in options] + ([] if must else options)
        costs += [cost_of(slices, chosen, config) for chosen in options]
    return min(costs)


@pytest.mark.parametrize("seed", range(60))
def test_few_files_are_grouped_as_well_as_possible(seed):
    """Fewest files afterwards, then fewest bytes moved, over all groupings."""
    chance = random.Random(seed)
    slices, config = drawn(chance, chance.randint(0, 6))
    assert cost_of(slices, packed_groups(slices, config), config) == best(slices, config)


@pytest.mark.parametrize("seed", range(100))
def test_many_files_are_never_grouped_worse_than_apache_hudi_does(seed):
    """No more files afterwards, and as many files only if no more bytes are moved; no slice is in two groups."""
    chance = random.Random(seed)
    slices, config = drawn(chance, chance.randint(EXACT_MAX, 60))
    ours = packed_groups(slices, config)
    assert cost_of(slices, ours, config) <= cost_of(slices, hudi_groups(slices, config), config)
    taken = [each.file_id for group in ours for each in group]
    assert len(taken) == len(set(taken))
    assert all(sum(map(base_bytes, group)) <= config.group_bytes_max for group in ours if len(group) > 1)
    shuffled = chance.sample(slices, len(slices))
    assert packed_groups(shuffled, config) == ours


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("is_packed", [False, True])
def test_each_slice_is_planned_or_left_out_with_a_reason(seed, is_packed):
    """And the limits of a plan hold, whatever is planned."""
    chance = random.Random(seed)
    partitions = []
    for path in "abc":
        slices, config = drawn(chance, chance.randint(0, 20))
        partitions.append(Candidates(partition_path=path, slices=tuple(slices), left_out={}))
    limits = {"groups_max": chance.randint(1, 5), "bytes_max": chance.choice((None, 100, 1000)), "is_packed": is_packed}
    config = ClusteringConfig(small_bytes=100, group_bytes_max=200, target_bytes=100, **limits)
    planned = plan_clustering(partitions, config)
    for partition in partitions:
        here = {each.file_id for each in partition.slices}
        chosen = {
            each.file_id
            for group in planned.groups
            if group.partition_path == partition.partition_path
            for each in group.slices
        }
        left = {file_id for path, file_id in planned.left_out if path == partition.partition_path}
        assert (chosen | left, chosen & left) == (here, set())
    assert all(planned.left_out.values())
    assert len(planned.groups) <= config.groups_max
    assert config.bytes_max is None or planned.size_bytes <= config.bytes_max
