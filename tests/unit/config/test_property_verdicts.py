"""What stands in a table's properties: known, and refused where hudi_py would do something else than is meant."""

import re
import tarfile
from collections import Counter

import pytest

from hudi_py.config.harmless import ELSEWHERE
from hudi_py.config.hudi_options import hudi_options
from hudi_py.config.property_verdicts import (
    HARMLESS_PROPERTIES,
    REFUSED_PROPERTIES,
    SERVED,
    property_verdict,
    unknown_properties,
)
from hudi_py.config.uses import Use
from hudi_py.config.verdict import FAMILY
from hudi_py.errors import UnsupportedTable
from hudi_py.formats.properties import format_properties, parse_properties
from hudi_py.table import Table
from support import fixtures
from support.tables import NOW, TableBuilder, at

OTHER = "something.else"
PROPERTIES = ".hoodie/hoodie.properties"


def table_with(added, settings=None):
    """A table of four commits with more properties."""
    builder = TableBuilder()
    for number in range(4):
        builder.commit(at(number), {"p": ["g"]})
    known = parse_properties(builder.storage.read(PROPERTIES), PROPERTIES)
    builder.put(PROPERTIES, format_properties({**known, **added}, ("made", "for a test")))
    return Table(builder.storage, settings=settings, clock=builder.clock)


def test_every_property_of_the_releases_has_one_verdict():
    """Those of Hudi's own class for it; no name stands twice."""
    names = [*SERVED, *HARMLESS_PROPERTIES, *(rule.name for rule in REFUSED_PROPERTIES)]
    assert {} == {name: count for name, count in Counter(names).items() if count > 1}
    own = [each for option in hudi_options().values() if option.owner == "HoodieTableConfig" for each in option.names]
    assert [] == [name for name in own if property_verdict(name) is None and not name.startswith(ELSEWHERE)]


@pytest.mark.slow  # opens every archive
def test_no_fixture_of_a_release_has_an_unknown_property():
    """Tables of real Hudi stay readable and cleanable."""
    unknown = {}
    for path in sorted(fixtures.FOLDER.rglob("*.tar.gz")):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.endswith(".hoodie/hoodie.properties"):
                    content = archive.extractfile(member).read()
                    found = unknown_properties(parse_properties(content, member.name))
                    if found:
                        unknown[path.name] = found
    assert unknown == {}


@pytest.mark.parametrize("rule", REFUSED_PROPERTIES, ids=lambda rule: rule.name)
def test_a_refused_property_is_refused_by_name(rule):
    """For each use that it matters to, with the values that are as usual accepted."""
    name = f"{rule.name.removesuffix(FAMILY)}x" if rule.name.endswith(FAMILY) else rule.name
    table = table_with({name: OTHER})
    for use in Use:
        if use & rule.uses:
            with pytest.raises(UnsupportedTable, match=f"{re.escape(name)}={OTHER}, which is not supported for"):
                table.require(use)
        else:
            table.require(use)
    for value in (*rule.unless, ""):
        table_with({name: value}).require(Use.ALL)


@pytest.mark.parametrize("value", ["ORC", "orc"])
def test_a_table_in_orc_is_refused_for_writing_and_rewriting_only(value):
    """Reading and all services that know files by their names serve it; other formats are refused for everything."""
    table = table_with({"hoodie.table.base.file.format": value})
    table.require(Use.LOOK | Use.READ | Use.SERVICES)
    for use in (Use.WRITE, Use.REWRITE):
        with pytest.raises(UnsupportedTable, match=f"format={value}, which is not supported for .*use Apache Hudi"):
            table.require(use)


@pytest.mark.parametrize(
    "way",
    [
        lambda table: table.clean(now=NOW, commits_retained=1),
        lambda table: table.archive(keep_min_commits=1, keep_max_commits=2),
        lambda table: table.rollback(at(3)),
        lambda table: table.create_savepoint(),
        lambda table: table.recover(),
        lambda table: table.require(Use.WRITE),
    ],
    ids=["clean", "archive", "rollback", "savepoint", "recover", "write"],
)
def test_an_unknown_property_stops_what_changes_the_table(way):
    """A newer release may mean by it that files are needed; reading goes on."""
    table = table_with({"hoodie.table.of.a.later.release": "true"})
    before = table.storage.files()
    assert table.timeline.completed("commit")
    table.require(Use.READ)
    with pytest.raises(UnsupportedTable, match=r"hoodie\.table\.of\.a\.later\.release"):
        way(table)
    assert before == table.storage.files()


def test_an_unknown_property_may_pass_when_asked_to():
    """As for settings, by the same setting."""
    table = table_with({"hoodie.table.of.a.later.release": "true"}, {"hoodie_py.conf.allow.unknown": True})
    assert table.clean(now=NOW, commits_retained=1)


def test_properties_that_are_not_hudis_are_nobodys_business():
    """People put notes there."""
    table_with({"owner": "me"}).require(Use.ALL)


def test_rows_of_a_moment_are_refused_as_those_of_the_table():
    """The values that stay at a time are no way around a property that reading does not serve."""
    table = table_with({"hoodie.table.ro.file.format": OTHER})
    for way in (table, table.snapshot(), table.as_of(at(1)), table.range("0")):
        with pytest.raises(UnsupportedTable, match=r"hoodie\.table\.ro\.file\.format"):
            way.rows()
