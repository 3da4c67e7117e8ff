"""Conditions on a partition column beside rows of the default partition: null and the empty value lie in one folder."""

import pytest

from hudi_py.errors import RefusedError
from hudi_py.model.files import in_default_partition
from hudi_py.rows.condition_text import parse_condition
from hudi_py.rows.predicate import filters_of
from hudi_py.snapshot.select import check_default_partition

pa = pytest.importorskip("pyarrow")
SCHEMA = pa.schema([("region", pa.string()), ("day", pa.string()), ("id", pa.string())])
DEFAULT = "__HIVE_DEFAULT_PARTITION__"


def check(partitions, *where, fields=("region", "day")):
    check_default_partition(partitions, filters_of(list(map(parse_condition, where)), SCHEMA), fields)


@pytest.mark.parametrize("path", [f"{DEFAULT}/1", f"region={DEFAULT}/day=1"])
@pytest.mark.parametrize(
    "where",
    [
        "region is null", "region is not null", "region = ''", "region != 'eu'", "region > 'a'", f"region = {DEFAULT}",
        "not region = 'eu'", "region in ('eu', '')", "region not in ('eu', 'us')", "region like 'e%'",
        "id = 'a' or region is null", "not (id = 'a' and region = 'eu')", "not (id = 'a' or region = 'eu')",
        "id = 'a' and region != 'eu'", "region between 'a' and 'f'", "not (region is null)",
    ],
)  # fmt: skip
def test_what_hudi_answers_otherwise_is_refused(path, where):
    """Hudi 1.1.1, rows with '', null and the name itself: null finds three, '' finds three, != finds none of them."""
    with pytest.raises(RefusedError, match="the condition on region"):
        check(["eu/1", path], where)


@pytest.mark.parametrize("path", [f"{DEFAULT}/1", f"region={DEFAULT}/day=1"])
@pytest.mark.parametrize(
    "where",
    [
        "region = 'eu'", "day is not null", "day != '1'", "id is null", "region in ('eu', 'us', null)",
        "not region != 'eu'", "not (region not in ('eu', 'us'))", "id = 'a' or region = 'eu'", "region != null",
        "region = 'eu' and region is not null", "not (region != 'eu' or region is null)", "region not in ('eu', null)",
        "region = 'eu' or (region = 'us' and region > 'a')",
    ],
)  # fmt: skip
def test_what_both_answer_alike_is_answered(path, where):
    """Another value exactly, another partition column that has values, a column that is none."""
    check(["eu/1", path], where)


def test_a_condition_that_rules_these_rows_out_settles_the_others():
    """Whichever is given first."""
    for where in (("region = 'eu'", "region is not null"), ("region is not null", "region = 'eu'")):
        check([f"{DEFAULT}/1"], *where)
    with pytest.raises(RefusedError, match="the condition on day"):
        check([f"{DEFAULT}/1", f"eu/{DEFAULT}"], "region = 'eu'", "day is not null")


def test_tables_without_such_rows_are_asked_anything():
    """No default partition, or no partitions at all."""
    check(["eu/1", "us/2"], "region is null")
    check([""], "region is null", fields=())


def test_a_path_of_another_depth_may_be_any_column():
    """One column may be several folders: then every one counts."""
    assert in_default_partition(f"2024/{DEFAULT}/01", 0, 1)
    assert not in_default_partition("2024/01/01", 0, 1)


@pytest.mark.parametrize("where", ["n is null", "n != 3", "n in (1, null)", "not (n > 3)"])
def test_columns_that_cannot_be_empty_are_answered(where):
    """A number without a value is null to Hudi and in the files alike."""
    schema = pa.schema([("n", pa.int32())])
    check_default_partition([DEFAULT], filters_of([parse_condition(where)], schema), ("n",))
