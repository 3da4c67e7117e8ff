"""Numbers and paths in messages for people."""

from __future__ import annotations

import subprocess

import pytest

from hudi_py.model.words import human_span, shell_word

WORDS = (
    "/lake/trips",
    "/lake/a b",
    "$(id)`id`;&|<>*?~",
    'it\'s "so"',
    "\\'",
    "a\nb\tc\r",
    "\x1b[31m\x7f\x85",
    "\u202eevil",
    "日本",
    "",
)


def test_a_path_in_a_command_is_one_word_of_a_shell():
    """The shell gives back what was put in, and runs nothing; what is shown has no control character."""
    shown = [shell_word(word) for word in WORDS]
    script = "printf '%s\\0' " + " ".join(shown)
    told = subprocess.run(["bash", "-c", script], capture_output=True, env={"LC_ALL": "C.UTF-8"}, check=True).stdout
    assert told.decode().split("\0")[:-1] == list(WORDS)
    assert all(word.isprintable() for word in shown)


def test_a_name_that_is_not_utf_8_keeps_its_bytes():
    """As the file system gives it."""
    shown = shell_word(b"/lake/\xff\xe9".decode("utf-8", "surrogateescape"))
    told = subprocess.run(["bash", "-c", f"printf '%s' {shown}"], capture_output=True, check=True).stdout
    assert told == b"/lake/\xff\xe9"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (0.04, "40 ms"), (1, "1 s"), (90, "1.5 min"), (172800, "2.0 d")]
)
def test_a_span_is_said_in_the_unit_that_it_reaches(seconds, text):
    """What took less than a second did not take none."""
    assert human_span(seconds) == text
