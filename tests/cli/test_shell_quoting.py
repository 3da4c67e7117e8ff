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


def on_path(folder):
    """The environment of a shell that finds the program, in this folder."""
    program = folder / "hudi-py"
    program.write_text(
        f"#!{sys.executable}\nfrom hudi_py.inspection.cli import main\nmain(prog_name='hudi-py')\n", encoding="utf-8"
    )
    program.chmod(0o755)
    return {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)}


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
    environment = on_path(tmp_path)
    script = RUNNER.invoke(main, ["completion", "bash"]).stdout
    asked = (
        f"{script}\nCOMP_LINE=$1; COMP_POINT=${{#COMP_LINE}}; COMP_WORDBREAKS=$2; COMP_WORDS=(); COMP_CWORD=0\n"
        '_hudi_py_completion hudi-py; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", asked, "bash", f"hudi-py {typed}", BREAKS], capture_output=True, text=True, check=False,
        cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert done.stdout.splitlines() == [completed], done.stderr


def test_fish_keeps_commas():
    """Its script splits an answer once."""
    assert 'string split --max 1 ","' in RUNNER.invoke(main, ["completion", "fish"]).stdout


ZSH = """\
compdef() { }
compadd() { print -rl -- $completions }
_describe() { print -rl -- $completions_with_descriptions }
eval "$(hudi-py completion zsh)"
words=(${(z)1}); [[ $1 == *" " ]] && words+=("")
CURRENT=$#words
_hudi_py_completion
"""
"""What zsh's own functions are given; these quote it for the line."""
FISH = 'hudi-py completion fish | source; complete -C "$argv[1]"'


def asked_zsh(line, folder):
    """What zsh offers: words with their descriptions."""
    done = subprocess.run(
        ["zsh", "-f", "-c", ZSH, "zsh", line], capture_output=True, text=True, check=False, cwd=folder,
        env=on_path(folder),
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


def asked_fish(line, folder):
    """What fish offers: words with their descriptions, here behind a colon, too."""
    done = subprocess.run(
        ["fish", "-N", "-c", FISH, line], capture_output=True, text=True, check=False, cwd=folder, env=on_path(folder)
    )
    assert done.stderr == ""
    return [each.replace("\t", ":", 1) for each in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A folder with a table whose partitions and savepoints have odd names, and one whose name no shell can be told."""
    folder = tmp_path_factory.mktemp("odd")
    for name in ("it's", "two\nplain"):
        rows = pa.table({"id": ["1", "2"], "day": ["a b", "$(touch hit)"]})
        hudi_py.write(str(folder / name), rows, settings=SETTINGS)
    hudi_py.open_table(str(folder / "it's")).create_savepoint(name="a:b c", comment="one\nplain,evil\n_")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_zsh_and_fish_offer_whole_words_and_nothing_that_a_table_made_up(odd, shell):
    """Behind ``=`` with the option, which they replace; names and comments of several lines offer no further words."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")

    def asked(line):
        return (asked_zsh if shell == "zsh" else asked_fish)(line, odd)

    values = ["day=$(touch hit)", "day=a b"]
    assert sorted(asked('hudi-py files "it\'s" --partition da')) == values
    assert sorted(asked('hudi-py files "it\'s" --partition=da')) == [f"--partition={each}" for each in values]
    assert asked("hudi-py du ") == ["it's"]
    offered = asked('hudi-py savepoint delete "it\'s" ')
    name = "a\\:b c" if shell == "zsh" else "a:b c"
    instant = hudi_py.open_table(str(odd / "it's")).timeline.completed("savepoint")[0].requested_time
    assert sorted(offered) == [f"{instant}:a:b c", f"{name}:{instant}"]
    assert not (odd / "hit").exists()


@pytest.mark.parametrize("shell", ["zsh", "fish", "bash"])
def test_offers_of_one_shell_are_lines_that_nobody_else_wrote(odd, shell):
    """As the program answers: one line for each offer, three in zsh."""
    words = "hudi-py savepoint delete it\\'s"
    environment = {"_HUDI_PY_COMPLETE": f"{shell}_complete", "COMP_WORDS": words}
    environment["COMP_CWORD"] = "" if shell == "fish" else "4"  # the word, or its number
    before = os.getcwd()
    os.chdir(odd)
    try:
        said = RUNNER.invoke(main, [], prog_name="hudi-py", env=environment).stdout
    finally:
        os.chdir(before)
    assert len(said.splitlines()) == {"zsh": 6, "fish": 2, "bash": 2}[shell], said
