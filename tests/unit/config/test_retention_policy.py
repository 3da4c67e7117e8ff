"""A retention policy: what its lines mean, and that whatever is not meant is refused with its line."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.config.archive import archive_config
from hudi_py.config.clean import CleanPolicy, clean_config
from hudi_py.config.clean_options import clean_config_with
from hudi_py.config.expiry import ExpiryBy, expiry_config
from hudi_py.config.retention_policy import parse_policy
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from support.tables import NOW

WHOLE = """
[keep]
everything = "7d"
commits = 3
versions = 2
floor = "1h"
changes = "72h"
max_bytes = "500GB"
[tags]
daily = 30
[partitions]
days = 400
format = "%Y/%m/%d"
[archive]
min_commits = 20
max_commits = 30
[clean]
quarantine = true
grace = "3d"
"""


def test_lines_become_the_settings_of_the_services():
    """What each service reads is what the document says."""
    policy = parse_policy(WHOLE)
    settings = Settings(policy.settings)
    clean = clean_config(settings)
    assert (clean.policy, clean.window_age) == (CleanPolicy.KEEP_LATEST_BY_HOURS, timedelta(days=7))
    assert (clean.min_commits, clean.min_file_versions, clean.quarantine) == (3, 2, True)
    assert (clean.changes_retained, clean.max_old_bytes) == (timedelta(hours=72), 500_000_000_000)
    assert clean.quarantine_grace == timedelta(days=3)
    assert (archive_config(settings).keep_min, archive_config(settings).keep_max) == (20, 30)
    expiry = expiry_config(settings)
    assert (expiry.by, expiry.days, expiry.value_format) == (ExpiryBy.VALUE, 400, "%Y/%m/%d")
    lines = WHOLE.splitlines()
    assert len(policy.meaning) == sum("=" in line for line in lines)
    assert all(lines[number - 1].startswith(key.partition(".")[2]) for number, key, _ in policy.meaning)
    assert parse_policy(WHOLE).mark == policy.mark != parse_policy(WHOLE + "# more").mark


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[keep]\neverthing = "7d"', r"line 2, keep.everthing: unknown; did you mean keep.everything\?"),
        ('keep.everything = "7d"\nkeeps.commits = 1', r"line 2, keeps.commits.*keep.commits"),
        ("[keep]\n\ncommits = 0", r"line 3, keep.commits = 0: a whole number above 0"),
        ("[keep]\ncommits = true", "line 2, keep.commits = True: a whole number"),
        ("[keep]\neverything = 7", "line 2, keep.everything = 7: a span"),
        ('[keep]\neverything = "1h"\nfloor = "2h"', "line 2, keep.everything and line 3, keep.floor contradict"),
        ('[keep]\nmax_bytes = "1GB"', "line 2, keep.max_bytes and keep.everything contradict"),
        ('[keep]\nmax_bytes = "much"\neverything = "1d"', "line 2, keep.max_bytes = 'much': a size"),
        ('[keep]\nmax_bytes = 0\neverything = "1d"', "line 2, keep.max_bytes = 0: a whole number"),
        ('[keep]\nmax_bytes = 9\neverything = "1d"\nchanges = "3d"', "line 2, keep.max_bytes and line 4, keep.changes"),
        ('[keep]\nmax_bytes = 9\neverything = "1d"\nfloor = "1d"', "line 2, keep.max_bytes and line 4, keep.floor"),
        ("[archive]\nmin_commits = 9\nmax_commits = 9", "line 3, archive.max_commits and line 2, archive.min_commits"),
        ("keep.commits = 9\narchive.min_commits = 9", "line 2, archive.min_commits and line 1, keep.commits"),
        ('[partitions]\nby = "creation"', "line 2, partitions.by and partitions.days"),
        ('[partitions]\ndays = 1\nby = "value"', "line 3, partitions.by and partitions.format"),
        ('[partitions]\ndays = 1\nby = "age"', "use one of last-change, creation, value"),
        ('[partitions]\ndays = 1\nby = "creation"\nformat = "%Y"', "line 3, partitions.by and line 4, partitions.form"),
        ('[partitions]\ndays = 1\nformat = "day"', "format with a year"),
        ('[partitions]\ndays = 1\nfield = "day"', "line 3, partitions.field and partitions.format"),
        ('[clean]\ngrace = "1d"', "line 2, clean.grace and clean.quarantine"),
        ("[keep]\n[tags]", "says nothing"),
        ("keep: 7d", "no TOML document"),
    ],
)
def test_what_is_not_meant_is_refused_with_its_line(text, message):
    """A misspelt line would delete what it was to keep."""
    with pytest.raises(ConfigError, match=message):
        parse_policy(text)


@pytest.mark.parametrize(
    "options",
    [{"commits_retained": 1}, {"file_versions_retained": 1}, {"hours_retained": 1}, {"older_than": "1m"}, {}],
)
def test_no_option_of_one_clean_goes_below_the_floor(options):
    """Whatever is asked for, what the span needs is kept; a longer window is not made shorter."""
    settings = Settings({"hoodie_py.clean.floor": "36h"})
    config = clean_config_with(settings, options, now=NOW, zone=NOW.tzinfo)
    assert timedelta(hours=36) in (config.window_age, config.age_beside)
    long = clean_config_with(settings, {"age_retained": "7d"}, now=NOW, zone=NOW.tzinfo)
    assert long.window_age == timedelta(days=7)
