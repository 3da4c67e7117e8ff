"""Paths and hidden names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConfigError
from hudi_py.storage.base import check_all_below_root, check_below_root, check_path, is_hidden

UUID = "93bb1c22-4d6f-4c2e-8d2a-1f0b6f4d9c11"


@given(st.text(alphabet="ab./\0 ~é", max_size=12))
def test_accepted_paths_are_the_clean_relative_ones(path):
    """Agrees with the plain definition: no NUL, no part that is empty, ``.`` or ``..``."""
    is_clean = path == "" or ("\0" not in path and all(part not in ("", ".", "..") for part in path.split("/")))
    for check, accepts_root in ((check_path, True), (check_below_root, False)):
        if is_clean and (path or accepts_root):
            assert check(path) is path
        else:
            with pytest.raises(ConfigError):
                check(path)


@given(st.lists(st.text(alphabet="ab./\0 ~é", max_size=6), max_size=4))
def test_many_paths_are_accepted_where_each_of_them_is(paths):
    """One look at all of them refuses what a look at each refuses, and nothing else."""
    try:
        for path in paths:
            check_below_root(path)
    except ConfigError:
        with pytest.raises(ConfigError):
            check_all_below_root(paths)
    else:
        check_all_below_root(paths)


@pytest.mark.parametrize("name", [f"001.commit.{UUID}", f"x.{UUID.upper()}", ".001.commit.crc", ".a.crc"])
def test_left_overs_are_hidden(name):
    """Temporary files and checksums."""
    assert is_hidden(name)


@pytest.mark.parametrize(
    "name", ["001.commit", UUID, f".{UUID}", f"{UUID}-0_1-0-1_001.parquet", f"x.{UUID[:-1]}g", "a.crc", ".crc2", "."]
)
def test_data_is_shown(name):
    """Everything else, above all names that merely contain a UUID."""
    assert not is_hidden(name)
