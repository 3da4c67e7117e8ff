"""Values with slashes make folders in folders, and no partition comes to lie inside of another one."""

import pytest

from hudi_py.errors import WriteError
from hudi_py.formats.partition_metafile import format_partition_metadata
from support import writes

DAYS = [
    {"id": "a", "region": "2024/01/05", "ts": 1},
    {"id": "b", "region": "2024/01/06", "ts": 1},
    {"id": "c", "region": "2024/02/01", "ts": 1},
]
OPERATIONS = ["UPSERT", "INSERT", "BULK_INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"]
SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}


def row(region, key="z"):
    return {"id": key, "region": region, "ts": 2}


def days(**settings):
    storage = writes.create_table(9)
    writes.upsert(storage, DAYS, **settings)
    return storage


def partitions(storage):
    folders = (path.rpartition("/")[0] for path in storage.files() if path.endswith(".hoodie_partition_metadata"))
    return sorted(folder for folder in folders if not folder.startswith(".hoodie/"))


@pytest.mark.parametrize("metadata", [True, False])
@pytest.mark.parametrize("operation", OPERATIONS[:3])
def test_dates_make_folders_and_stay_one_value(operation, metadata):
    """Rows of each are found, changed and deleted as in any partition, and conditions see the value."""
    settings = {"hoodie.metadata.enable": metadata}
    storage = writes.create_table(9)
    writes.upsert(storage, DAYS, operation=operation, **settings)
    assert partitions(storage) == [each["region"] for each in DAYS]
    changed = DAYS[0] | {"ts": 2}
    writes.upsert(storage, [changed], **settings)
    writes.upsert(storage, [DAYS[1]], operation="DELETE", **settings)
    assert writes.rows_of(storage) == [changed, DAYS[2]]
    table = writes.open_table(storage, **settings)
    assert table.rows(where="region >= '2024/02'").to_arrow()["id"].to_pylist() == ["c"]
    assert not table.check(contents=True)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("region", ["2024", "2024/01", "2024/01/05/x", "2024/02/01/10/30"])
def test_a_partition_inside_or_around_one_of_the_table_is_refused(operation, region):
    """By both names, before a row or a metafile is written, and nothing is left pending."""
    storage = days()
    before = partitions(storage)
    with pytest.raises(WriteError, match=f"'{region}'.* is a partition of the table already"):
        writes.upsert(storage, [row("2025/03/01")] * (operation != "BULK_INSERT") + [row(region)], operation=operation)
    writes.assert_tidy(storage, region)
    assert partitions(storage) == before
    assert writes.rows_of(storage) == DAYS


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("order", [("x", "x/y"), ("x/y/z", "x")])
def test_rows_of_two_such_partitions_are_refused(operation, order):
    """Whichever comes first; afterwards each of them can be written alone."""
    storage = days()
    with pytest.raises(WriteError, match=r"would lie inside of partition 'x'"):
        writes.upsert(storage, [row(region) for region in order], operation=operation)
    writes.assert_tidy(storage, order)
    writes.upsert(storage, [row(order[0])])
    assert writes.rows_of(storage) == [*DAYS, row(order[0])]


def test_the_check_names_a_partition_inside_of_another_with_a_way_out():
    """Nothing is written to it any more; the outer one goes on."""
    storage = days()
    inner = "2024/01/05/x"
    content = format_partition_metadata(inner, instant_time="20240101000000000", written_at=writes.START)
    storage.create_new(f"{inner}/.hoodie_partition_metadata", content)
    (found,) = writes.open_table(storage).check()
    assert (found.code, found.where) == ("partition-hidden", inner)
    assert "2024/01/05" in found.message
    assert "by their keys" in found.fix
    for operation in OPERATIONS:
        with pytest.raises(WriteError, match="'2024/01/05' is a partition of the table already"):
            writes.upsert(storage, [row(inner)], operation=operation)
        writes.assert_tidy(storage, operation)
    writes.upsert(storage, [DAYS[0] | {"ts": 3}])
    writes.upsert(storage, [row(inner)], operation="DELETE")
    assert writes.rows_of(storage) == [DAYS[0] | {"ts": 3}, *DAYS[1:]]


@pytest.mark.parametrize("operation", OPERATIONS[:3])
def test_beside_other_writers_only_known_values_have_slashes(operation):
    """Another writer could make a partition around a new one at this moment."""
    storage = days()
    writes.upsert(storage, [DAYS[0] | {"ts": 2}], **SHARED)
    with pytest.raises(WriteError, match="SINGLE_WRITER"):
        writes.upsert(storage, [row("2024/03/01")], operation=operation, **SHARED)
    writes.upsert(storage, [row("plain")], operation=operation, **SHARED)
    assert [each["region"] for each in writes.rows_of(storage)] == [*(each["region"] for each in DAYS), "plain"]


def test_values_without_slashes_cost_no_look_at_other_partitions(tmp_path):
    """Only the folder of a new partition is looked at, however many others there are."""
    from hudi_py.storage.local import LocalStorage
    from hudi_py.storage.wrappers import RecordingStorage

    storage = RecordingStorage(LocalStorage(tmp_path / "t"))
    writes.create_table(9, storage)
    writes.upsert(storage, [row(f"p{number}", str(number)) for number in range(20)])
    storage.clear()
    writes.upsert(storage, [row("new")])
    looked = {path for verb, path in storage.calls if verb in ("list", "sizes") and not path.startswith(".hoodie")}
    assert looked <= {"new", ""}
