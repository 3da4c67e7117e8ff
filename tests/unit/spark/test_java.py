"""Which Java Spark gets."""

import os
import subprocess

import pytest

from hudi_py.spark.java import (
    find_java,
    inspect_java,
    java_home_without_vector_module,
    parse_release,
    supported_releases,
)


def java_home(folder, version, *, release_file=True):
    """Lay out a Java of a version whose program only tells that version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho \'openjdk version "{version}" 2024\' >&2\nfor a do echo "$a"; done\n')
    program.chmod(0o755)
    if release_file:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize(("version", "release"), [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("nightly", None)])
def test_release_is_read_from_both_ways_of_writing_it(version, release):
    """Java 8 called itself 1.8."""
    assert release == parse_release(version)


def test_each_spark_has_its_releases():
    """An unknown, newer Spark gets those of the newest line that we know."""
    assert (8, 11, 17) == supported_releases("3.5.9")
    assert (17, 21) == supported_releases("4.0.5")
    assert (17, 21) == supported_releases("4.3.0")


@pytest.mark.parametrize("release_file", [True, False])
def test_java_on_path_is_found_with_and_without_a_release_file(tmp_path, release_file):
    """The file saves the start of a JVM; without it the program is asked."""
    home = java_home(tmp_path / "with space", "11.0.2", release_file=release_file)
    found = find_java("3.5.9", {"PATH": f"{home / 'bin'}{os.pathsep}/usr/bin:/bin"})
    assert found == (home / "bin" / "java", 11)


def test_java_home_goes_before_path(tmp_path):
    """As in Spark's own scripts: a wrong JAVA_HOME is not healed by a good PATH."""
    good, wrong = java_home(tmp_path / "17", "17.0.1"), java_home(tmp_path / "25", "25.0.1")
    assert find_java("3.5.9", {"PATH": str(good / "bin")}) is not None
    assert find_java("3.5.9", {"PATH": str(good / "bin"), "JAVA_HOME": str(wrong)}) is None


def test_no_java_is_none():
    """Neither JAVA_HOME nor PATH: nothing is found, and no default of the shell is taken."""
    assert find_java("3.5.9", {}) is None


def test_broken_java_is_none(tmp_path):
    """A stub that fails, as some systems have it, is no Java."""
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    assert inspect_java(program) is None


def test_launcher_drops_the_module_and_nothing_else(tmp_path, monkeypatch):
    """Arguments with spaces and quotes pass unchanged."""
    monkeypatch.setattr("hudi_py.spark.java._launcher_folders", lambda: [tmp_path / "launcher"])
    home = java_home(tmp_path / "it's here", "17.0.1")
    program = java_home_without_vector_module(home) / "bin" / "java"
    given = ["-a b", "--add-modules=jdk.incubator.vector", "it's", "-Dx=1"]
    shown = subprocess.run([program, *given], capture_output=True, text=True, check=True).stdout
    assert ["-a b", "it's", "-Dx=1"] == shown.splitlines()


def test_launcher_falls_back_to_a_folder_that_can_be_written(tmp_path, monkeypatch):
    """An environment that cannot be written does not stop Spark."""
    (tmp_path / "file").write_text("")
    folders = [tmp_path / "file" / "below", tmp_path / "good"]
    monkeypatch.setattr("hudi_py.spark.java._launcher_folders", lambda: folders)
    assert tmp_path / "good" == java_home_without_vector_module(java_home(tmp_path / "17", "17.0.1"))


def test_runtime_that_has_the_module_needs_no_launcher(tmp_path):
    """A whole JDK is used as it is."""
    home = java_home(tmp_path / "17", "17.0.1")
    (home / "jmods").mkdir()
    (home / "jmods" / "jdk.incubator.vector.jmod").write_text("")
    assert home == java_home_without_vector_module(home)
