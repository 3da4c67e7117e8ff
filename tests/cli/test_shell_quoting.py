"""Completion in bash: what it puts into the line names what was offered, and runs nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.inspection.cli import main
from hudi_py.inspection.shell_quoting import quoted, word_at_end
from support.cli_runner import RUNNER
from support.repository import ROOT

BREAKS = " \t\n\"'@><=;|&(:"
"""As bash has them."""
NAMES = (
    "my table",
    "it's",
    'a"b',
    "x; touch hit",
    "$(touch hit)",
    "`hit`",
    "a\\b",
    "new,comma,",
    "t:1",
    "u@v=w",
    "été",
    "*",
)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("opened", ["", '"', "'"])
@pytest.mark.parametrize("name", NAMES)
def test_a_quoted_name_stands_for_itself(tmp_path, name, opened):
    """As bash reads the line."""
    line = f"printf %s {opened}{quoted(name, opened)}{opened}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (name, "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("du ", ""), ("du my", "my"), ("du my\\ ta", "my\\ ta"), ('du "my ta', "my ta"), ("du 'a=b", "a=b"),
        ("du a=b", "b"), ("du a:b\\=", "b\\="), ("du 'a b'", ""), ("du 'a\\' b", "b"),
    ],
)  # fmt: skip
def test_bash_replaces_the_end_of_the_word(line, rest):
    """From the last sign at which bash ends words, or from the open quotation mark."""
    assert line[word_at_end(line, BREAKS).cut :] == rest


SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("du it", "it\\'s\\ \\;\\ t:1"),
        ("du 'it", "it'\\''s ; t:1"),
        ("files it\\'s\\ \\;\\ t:1 --partition ", "day=a\\ b"),
        ("files it\\'s\\ \\;\\ t:1 --partition day=", "a\\ b"),
        ("files it\\'s\\ \\;\\ t:1 --partition=day=a", "a\\ b"),
        ('files "it\'s ; t:1" --partition "da', "day=a b"),
        ("files it\\'s\\ \\;\\ t:1 --part", "--partition"),
    ],
)
def test_the_script_completes_odd_names(tmp_path, typed, completed):
    """The function that bash calls, with the line as bash hands it over."""
    hudi_py.write(str(tmp_path / "it's ; t:1"), pa.table({"id": ["1"], "day": ["a b"]}), settings=SETTINGS)
    program = tmp_path / "hudi-py"
    program.write_text(
        f"#!{sys.executable}\nfrom hudi_py.inspection.cli import main\nmain(prog_name='hudi-py')\n", encoding="utf-8"
    )
    program.chmod(0o755)
    script = RUNNER.invoke(main, ["completion", "bash"]).stdout
    asked = (
        f"{script}\nCOMP_LINE=$1; COMP_POINT=${{#COMP_LINE}}; COMP_WORDBREAKS=$2; COMP_WORDS=(); COMP_CWORD=0\n"
        '_hudi_py_completion hudi-py; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", asked, "bash", f"hudi-py {typed}", BREAKS], capture_output=True, text=True, check=False,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout.splitlines() == [completed], done.stderr


def test_fish_keeps_commas():
    """Its script splits an answer once."""
    assert 'string split --max 1 ","' in RUNNER.invoke(main, ["completion", "fish"]).stdout
