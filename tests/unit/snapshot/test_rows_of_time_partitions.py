"""Conditions on partition columns that are shown otherwise than they are stored."""

from __future__ import annotations

import pytest

import hudi_py
from hudi_py.errors import ConfigError
from support import fixtures


@pytest.mark.parametrize("name", fixtures.row_fixture_names("cow_timestamp_keygen"))
def test_a_condition_on_what_is_shown_otherwise_is_refused(name, tmp_path):
    """It might be meant for either value; conditions on other columns are served."""
    table = hudi_py.open_table(fixtures.unpack_rows(name, tmp_path))
    (field,) = table.config.partition_fields
    with pytest.raises(ConfigError, match=f"a condition on {field} is not supported"):
        table.rows(where=f"{field} is not null or ts > 0")
    assert table.rows(where="ts > 0").to_arrow().num_rows == table.rows().to_arrow().num_rows
