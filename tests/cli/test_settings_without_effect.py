"""A setting that is given to a command for itself and does nothing in it is named."""

from __future__ import annotations

import pytest

from hudi_py.config.effects import effect_of
from hudi_py.config.keys import ALL_KEYS
from hudi_py.config.settings import Settings
from hudi_py.config.uses import Use

CHANGING = ("clean", "savepoint create", "archive", "recover")
USES = {
    "timeline": Use.LOOK,
    "files": Use.LOOK,
    "overview": Use.LOOK,
    "check": Use.LOOK,
    "read": Use.READ | Use.LOOK,
    "clean": Use.CLEAN | Use.LOOK,
    "archive": Use.ARCHIVE | Use.LOOK,
    "savepoint create": Use.SAVEPOINT | Use.LOOK,
    "recover": Use.ROLLBACK | Use.CLEAN | Use.LOOK,
}
NAMED = {
    "hoodie.write.table.version=6": "writing",
    "hoodie.upsert.shuffle.parallelism=7": "writing",
    "hoodie.index.class=x.Y": "for which it is refused",
    "hoodie.metrics.on=true": "no metrics are sent",
}


@pytest.mark.parametrize("command", USES)
def test_what_does_nothing_here_is_named_with_the_reason(run, table, command):
    """Whether served elsewhere, refused elsewhere or harmless; what does something here is not."""
    path = table("cow_cleaned-1.1.1")
    words = command.split()
    given = [each for name in NAMED for each in ("--conf", name)]
    done = run(*words, path, "--conf", "hoodie.metadata.enable=true", *given, "--json")
    assert done.code in (0, 3), done.err
    lines = [line for line in done.err.splitlines() if "has no effect on" in line]
    assert len(lines) == len(NAMED)
    for name, reason in NAMED.items():
        [line] = [each for each in lines if name.partition("=")[0] in each]
        assert f"has no effect on {words[0]}: " in line
        assert reason in line
    assert not run(*words, table("cow_nomdt-1.1.1"), "--json").err.count("has no effect")


def test_a_file_for_many_uses_is_taken_in_silence(run, table, tmp_path):
    """A Spark job reads it too, so what is for writing belongs there."""
    file = tmp_path / "job.properties"
    file.write_text("\n".join(NAMED))
    done = run("clean", table("cow_cleaned-1.1.1"), "--conf-file", file, "--dry-run")
    assert (done.code, "has no effect" in done.err) == (0, False)


@pytest.mark.parametrize("command", USES)
def test_what_a_command_reads_is_never_said_to_have_no_effect(run, table, command, monkeypatch):
    """The table of effects is held against what is looked up on the way; each key is in it."""
    looked_up = set()
    get = Settings.__getitem__

    def recording(self, key):
        looked_up.add(key.name)
        return get(self, key)

    monkeypatch.setattr(Settings, "__getitem__", recording)
    for name in ("cow_cleaned-1.1.1", "cow_failed_write-0.15.0"):
        run(*command.split(), table(name), "--json")
    asked_by_the_door = {"hoodie.clean.automatic", "hoodie.archive.automatic", "hoodie.write.lock.provider"}
    # A wrong hook is refused before anything is done, whatever is asked for.
    hooks = ("hoodie_py.hook.", "hoodie.write.commit.callback.")
    asked_by_the_door |= {key.name for key in ALL_KEYS if key.name.startswith(hooks)}
    assert {each for each in looked_up if not effect_of(each) & USES[command]} <= asked_by_the_door
    assert looked_up
    assert all(effect_of(key.name) for key in ALL_KEYS)
