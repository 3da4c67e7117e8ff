"""What the quick start checks before it starts anything."""

import click
import pytest

from support.cli_runner import RUNNER


@pytest.fixture
def quickstart(load_tool):
    """The script."""
    return load_tool("quickstart")


def test_input_that_is_absent_or_unknown_is_refused(quickstart, tmp_path):
    """Each message names the file."""
    (tmp_path / "rows.xlsx").write_text("")
    for name in ("absent.csv", "rows.xlsx"):
        with pytest.raises(click.UsageError, match=name):
            quickstart.check_input(tmp_path / name)


def test_input_format_follows_from_the_name(quickstart, tmp_path):
    """Upper case is common in exported files."""
    (tmp_path / "rows.CSV").write_text("a\n1\n")
    assert "csv" == quickstart.check_input(tmp_path / "rows.CSV")
    assert "" == quickstart.check_input(None)


def test_folder_with_something_in_it_is_refused(quickstart, tmp_path):
    """A table is never mixed with other files."""
    (tmp_path / "mine.txt").write_text("")
    result = RUNNER.invoke(quickstart.main, [str(tmp_path)])
    assert 2 == result.exit_code
    assert "is not empty" in result.stderr


def test_columns_without_a_file_are_refused(quickstart):
    """They would have no effect."""
    result = RUNNER.invoke(quickstart.main, ["--record-key", "id"])
    assert 2 == result.exit_code
    assert "none was given" in result.stderr


def test_data_files_leave_out_hudis_own(quickstart, tmp_path):
    """The metadata table is no user data."""
    for name in ("eu/a.parquet", ".hoodie/metadata/b.parquet"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"1234")
    assert {"eu/a.parquet": 4} == quickstart.data_files(tmp_path).size_by_path
    assert {} == quickstart.data_files(tmp_path / "absent").size_by_path


def test_settings_carry_hudis_names(quickstart):
    """Unset columns leave no empty setting behind."""
    source = quickstart.Source(None, "id", None, None, changes=False)
    chosen = quickstart.settings(source, "my-table", "6")
    assert "my_table" == chosen["hoodie.table.name"]
    assert "6" == chosen["hoodie.write.table.version"]
    assert "hoodie.datasource.write.partitionpath.field" not in chosen
