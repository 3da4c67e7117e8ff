"""Settings from outside: known, given once, valid; refused where they would silently do nothing."""

import importlib.resources
import re
from collections import Counter
from pathlib import Path

import pytest

import hudi_py
from hudi_py.config import keys
from hudi_py.config.door import admitted, nearest_setting, passed_over, require_served
from hudi_py.config.harmless import ELSEWHERE, HARMLESS
from hudi_py.config.hudi_options import hudi_options, options_by_spelling
from hudi_py.config.keys import ALL_KEYS, key_by_name
from hudi_py.config.refused import REFUSED
from hudi_py.config.settings import Settings
from hudi_py.config.uses import Use
from hudi_py.config.verdict import FAMILY, Kind, verdict_of
from hudi_py.errors import ConfigError
from hudi_py.table import Table
from support.tables import NOW, TableBuilder, at

PACKAGE = Path(hudi_py.__file__).parent
NAMES = [name for names in HARMLESS.values() for name in names.split()]
RULES = [*NAMES, *(rule.name for rule in REFUSED)]
WRITER = Use.WRITE | Use.SERVICES
OTHER = "something.else"


def of_kind(kind):
    return [name for name in hudi_options() if verdict_of(name).kind is kind]


def example_of(rule):
    """A setting that the rule is about."""
    return f"{rule.name.removesuffix(FAMILY)}x" if rule.name.endswith(FAMILY) else rule.name


def opened(builder, settings):
    return Table(builder.storage, settings=settings, clock=builder.clock)


def test_every_setting_of_the_releases_has_a_verdict():
    """In every spelling; what is new in a release is looked at before it can pass."""
    assert [] == [name for name in options_by_spelling() if verdict_of(name) is None]


def test_no_two_rules_are_about_the_same_name():
    """What is served is neither harmless nor refused, and nothing is both."""
    assert {} == {name: count for name, count in Counter(RULES).items() if count > 1}
    assert [] == [name for name in RULES if key_by_name(name) is not None]


def test_all_spellings_of_a_setting_have_one_verdict():
    """An old spelling is no way around."""
    kinds = {name: {verdict_of(each).kind for each in option.names} for name, option in hudi_options().items()}
    assert {} == {name: found for name, found in kinds.items() if len(found) > 1}


def test_every_rule_is_about_a_setting_that_exists():
    """A rule with a misspelled name would protect nobody."""
    known = options_by_spelling()
    others = {f"{prefix}{FAMILY}" for prefix in ELSEWHERE}

    def is_alive(rule):
        if rule.endswith(FAMILY):
            return rule in others or any(name.startswith(rule.removesuffix(FAMILY)) for name in known)
        return rule in known

    assert [] == [rule for rule in RULES if not is_alive(rule)]


def test_every_served_setting_is_read():
    """A switch that no code asks for is not served, whatever the table says."""
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path.name != "keys.py"]
    used = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", "\n".join(sources)))
    names = {name for name, value in vars(keys).items() if isinstance(value, keys.Key)}
    assert set() == names - used


def test_a_served_setting_takes_all_spellings_of_the_releases():
    """A file written for an older release sets the same thing."""
    for key in ALL_KEYS:
        options = [options_by_spelling()[name] for name in key.names if name in options_by_spelling()]
        assert set(key.names) >= {name for option in options for name in option.names}, key.name
        # options of modules that the bundle does not have, such as Hudi's for AWS, are in no list
        assert options or key.name.startswith(("hoodie_py.", "hudi_py.", "hoodie.write.lock.dynamodb.")), key.name


def test_the_defaults_of_the_releases_are_never_refused():
    """A file that spells every default out asks for nothing."""
    defaults = {name: option.default for name, option in hudi_options().items() if option.default}
    refused = []
    for name, default in defaults.items():
        if verdict_of(name).kind is Kind.REFUSED:
            try:
                require_served(admitted({name: default}), Use.ALL)
            except ConfigError:
                refused.append(name)
    assert refused == []


def test_the_defaults_of_what_is_served_are_valid():
    """The parser of a setting takes what Apache Hudi prints."""
    for name, option in hudi_options().items():
        key = key_by_name(name)
        if key is not None and option.default and key is not keys.WRITE_TABLE_VERSION:
            admitted({name: option.default})


@pytest.mark.parametrize("rule", REFUSED, ids=lambda rule: rule.name)
def test_a_refused_value_is_refused_by_name(rule):
    """For each use that it matters to, and for no other."""
    name = example_of(rule)
    settings = admitted({name: OTHER})
    for use in Use:
        if use & rule.uses:
            with pytest.raises(ConfigError, match=f"{re.escape(name)}={OTHER} is refused"):
                require_served(settings, use)
        else:
            require_served(settings, use)
    for value in (*rule.unless, ""):
        require_served(admitted({name: value.upper()}), Use.ALL)


@pytest.mark.parametrize("rule", [rule for rule in REFUSED if rule.uses & ~Use.WRITE], ids=lambda rule: rule.name)
def test_a_refused_setting_changes_no_byte_of_a_table(rule):
    """It is refused before a table is touched, whichever way it is used."""
    builder = TableBuilder()
    for number in range(4):
        builder.commit(at(number), {"p": ["g"]})
    before = dict(builder.storage.files())
    ways = {
        Use.CLEAN: lambda table: table.clean(now=NOW, commits_retained=1),
        Use.ARCHIVE: lambda table: table.archive(keep_min_commits=1, keep_max_commits=2),
        Use.ROLLBACK: lambda table: table.rollback(at(3)),
        Use.SAVEPOINT: lambda table: table.create_savepoint(),
        Use.READ: lambda table: table.rows(),
    }
    for use, way in ways.items():
        if use & rule.uses:
            with pytest.raises(ConfigError, match=re.escape(example_of(rule))):
                way(opened(builder, {example_of(rule): OTHER}))
    assert before == dict(builder.storage.files())


def test_a_harmless_setting_changes_nothing():
    """All of them at once: no use is refused, and the plan of a clean is the same."""
    builder = TableBuilder()
    for number in range(5):
        builder.commit(at(number), {"p": ["g"]})
    given = dict.fromkeys(of_kind(Kind.HARMLESS), OTHER)
    plain, loaded = opened(builder, {}), opened(builder, given)
    loaded.require(Use.ALL)
    plan = plain.plan_clean(now=NOW, commits_retained=2)
    assert plan.file_count
    assert plan == loaded.plan_clean(now=NOW, commits_retained=2)
    assert len(given) == len(passed_over(loaded.settings))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("hoodie.cleaner.commits.retaned", "hoodie.cleaner.commits.retained"),
        ("hoodie.clean.comits.retained", "hoodie.clean.commits.retained"),
        ("hodie.clean.policy", "hoodie.clean.policy"),
        ("hudi.clean.policy", "hoodie.clean.policy"),
        ("Hoodie.Clean.Policy", "hoodie.clean.policy"),
        ("hoodie.metadata.enabel", "hoodie.metadata.enable"),
        ("hoodie.write.lock.provder", "hoodie.write.lock.provider"),
        ("hoodie.datasource.hive_sync.enabled", "hoodie.datasource.hive_sync.enable"),
        ("hoodie.write.lock.dynamodb.partiton_key", "hoodie.write.lock.dynamodb.partition_key"),
        (
            "hoodie.deltastreamer.keygen.timebased.output.dateformatt",
            "hoodie.deltastreamer.keygen.timebased.output.dateformat",
        ),
        ("hoodie_py.clean.min.comits", "hoodie_py.clean.min.commits"),
        ("hoodie_py.write.single.pas", "hoodie_py.write.single.pass.max.bytes"),
    ],
)
def test_an_unknown_setting_is_an_error_with_the_nearest_name(given, meant):
    """The default of what was meant would have counted; it may pass when asked to."""
    assert nearest_setting(given) == meant
    with pytest.raises(ConfigError, match=re.escape(f"{given} (did you mean {meant}?)")):
        admitted({given: "1"})
    admitted({given: "1", "hoodie_py.conf.allow.unknown": "true"})


@pytest.mark.parametrize("value", ["1_000", "٣", "99999999999999999999", "1.0", "0x10", "", " "])
def test_a_number_that_java_would_not_take_is_an_error(value):
    """Apache Hudi refuses it, so its jobs and ours must not read one file of settings in two ways."""
    with pytest.raises(ConfigError, match=r"hoodie\.clean\.commits\.retained.*whole number"):
        _ = Settings({"hoodie.clean.commits.retained": value})[keys.CLEAN_COMMITS_RETAINED]


@pytest.mark.parametrize("value", ["nan", "1_0", "-1", "inf", "much"])
def test_a_share_that_is_no_number_is_an_error(value):
    """What a comparison with it says is not what was meant."""
    with pytest.raises(ConfigError, match="a number"):
        _ = Settings({keys.RECORD_SIZE_THRESHOLD.name: value})[keys.RECORD_SIZE_THRESHOLD]


def test_a_lock_without_a_name_is_an_error():
    """Somebody meant one; to go on without it would let two writers in."""
    with pytest.raises(ConfigError, match="leave the setting out"):
        _ = Settings({"hoodie.write.lock.provider": " "})[keys.LOCK_PROVIDER]


def test_every_misspelling_by_one_letter_is_noticed():
    """Families of harmless settings hide none."""
    shorter = {name[:-1] for name in options_by_spelling() if not name.startswith(ELSEWHERE) and name[:1] == "h"}
    wrong = {name for name in shorter if name not in options_by_spelling()}
    with pytest.raises(ConfigError, match=f"and {len(wrong) - 3} more"):
        admitted(dict.fromkeys(wrong, ""))


def test_settings_of_others_pass_without_a_look_at_the_list(monkeypatch):
    """A file of a Spark job holds its settings too, and a common run reads no list of them."""
    options_by_spelling.cache_clear()
    hudi_options.cache_clear()
    monkeypatch.setattr(importlib.resources, "files", None)
    settings = admitted(
        {"spark.sql.shuffle.partitions": "2", "hive.metastore.uris": "x", "hoodie.clean.automatic": "true"}
    )
    require_served(settings, Use.LOOK)


def test_no_prefix_of_other_tools_hides_a_misspelled_setting_that_is_served():
    """A lock with another key than the one that was meant keeps nobody out."""
    for name in (spelling for key in ALL_KEYS for spelling in key.names):
        with pytest.raises(ConfigError, match=f"unknown setting {re.escape(name)}x"):
            admitted({f"{name}x": "1"})


READINGS = {
    "hoodie.datasource.query.type": "read_optimized",
    "hoodie.datasource.merge.type": "skip_merge",
    "hoodie.realtime.merge.skip": "true",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.incr.path.glob": "p/*",
}


@pytest.mark.parametrize(("name", "value"), READINGS.items())
def test_a_setting_that_asks_for_other_rows_is_refused_for_reading(name, value):
    """The rows of a plain snapshot would have passed for those that were asked for."""
    builder = TableBuilder()
    builder.commit(at(0), {"p": ["g"]})
    table = opened(builder, {name: value})
    for way in (table, table.snapshot(), table.as_of(at(0)), table.range("0")):
        with pytest.raises(ConfigError, match=re.escape(f"{name}={value} is refused for reading")):
            way.rows()


@pytest.mark.parametrize(
    "name", [rule.name for rule in REFUSED if any(accepted.endswith(FAMILY) for accepted in rule.unless)]
)
def test_classes_of_hudi_are_accepted_where_others_are_refused(name):
    """A file that spells a default of any release out asks for nothing; another class may write other rows."""
    require_served(admitted({name: "org.apache.hudi.io.HoodieMergeHandleFactory"}), WRITER | Use.REWRITE)
    with pytest.raises(ConfigError, match=re.escape(name)):
        require_served(admitted({name: "com.example.Encrypting"}), WRITER | Use.REWRITE)


@pytest.mark.parametrize("prefix", ELSEWHERE)
def test_settings_of_other_tools_pass(prefix):
    """A file that the streamer and a catalog sync read is taken as it is."""
    require_served(admitted({f"{prefix}x": ""}), WRITER)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hoodie.cleaner.commits.retained", "hoodie.clean.commits.retained"),
        ("hoodie.datasource.clustering.async.enable", "hoodie.clustering.async.enabled"),
    ],
)
def test_two_spellings_with_different_values_are_an_error(one, other):
    """Which of them counts would be a guess; the same value twice is none."""
    with pytest.raises(ConfigError, match="given twice with different values"):
        admitted({one: "2", other: "3"})
    admitted({one: "2", other: "2"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.clean.automatic", "yes"),
        ("hoodie.clean.policy", "KEEP_ALL"),
        ("hoodie.cleaner.commits.retained", "0"),
        ("hoodie.keep.max.commits", "many"),
        ("hoodie.index.bloom.fpp", "2"),
    ],
)
def test_a_served_setting_is_valid_or_an_error(name, value):
    """Whatever is done with it afterwards, before anything is done."""
    with pytest.raises(ConfigError, match=f"{re.escape(key_by_name(name).name)}='{value}' is not valid"):
        admitted({name: value})


def test_a_writer_that_does_not_clean_is_not_asked_about_cleans():
    """Where cleaning or archival is left to others, their settings do not matter to the writer."""
    settings = {"hoodie.clean.trigger.strategy": OTHER, "hoodie.archive.limit.instants": "3"}
    with pytest.raises(ConfigError, match="trigger"):
        require_served(admitted(settings), WRITER)
    off = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    require_served(admitted(settings | off), WRITER)


def test_an_ordering_field_given_twice_is_given_once():
    """The payload's name for it may say the same; another column would order rows another way."""
    ordering = {"hoodie.datasource.write.precombine.field": "ts"}
    require_served(admitted({**ordering, "hoodie.payload.ordering.field": "ts"}), WRITER)
    with pytest.raises(ConfigError, match=r"hoodie\.payload\.ordering\.field=seq"):
        require_served(admitted({**ordering, "hoodie.payload.ordering.field": "seq"}), WRITER)


@pytest.mark.parametrize("name", [1, None, b"hoodie.clean.policy"])
def test_names_of_settings_are_texts(name):
    """A mistake in a call is named, not found out by an attribute that is not there."""
    with pytest.raises(ConfigError, match="is not the name of a setting"):
        admitted({name: "x"})


@pytest.mark.parametrize("name", ["hoodie_clean_policy", "hoodie-clean-policy", "hoodie_py_clean_quarantine"])
def test_setting_with_other_signs_between_its_words_is_unknown(name):
    """It was taken for a setting of other software, and the default held."""
    with pytest.raises(ConfigError, match=f"unknown setting {name}"):
        admitted({name: "x"})


@pytest.mark.parametrize("values", ["hoodie.clean.policy=x", 5, [("hoodie.clean.policy", "x")]])
def test_settings_are_a_mapping(values):
    """Anything else is told by name."""
    with pytest.raises(ConfigError, match="settings="):
        admitted(values)
