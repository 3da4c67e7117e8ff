"""
Completion in shells: names are put into the line so that it names them, whatever characters they have.

Click's own script for bash puts them there as they are, so that a space ends the name and ``;`` begins a command; and
bash takes ``=`` and ``:``, which partitions and locations have, for the end of a word. Zsh and fish quote what they are
offered, and put it in place of the whole word, that of ``--partition=rome``, too; fish's script cuts names at a comma.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final, NamedTuple

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

LINE: Final = "HUDI_PY_COMP_LINE"
"""Environment variable of the script: the command line up to the cursor, as it was typed."""
_BREAKS: Final = "HUDI_PY_COMP_WORDBREAKS"
_SPACE: Final = " \t\n"
_UNSAFE: Final = re.compile(r"([^\w@%+=:,./-])")
_UNSAFE_IN_QUOTES: Final = re.compile(r'(["\\$`])')
_SCRIPT: Final = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local response completion

    response=$(env %(complete_var)s=bash_complete COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
        HUDI_PY_COMP_LINE="${COMP_LINE:0:COMP_POINT}" HUDI_PY_COMP_WORDBREAKS="$COMP_WORDBREAKS" $1)

    COMPREPLY=()
    while read -r completion; do
        case $completion in
            dir,*) COMPREPLY=(); compopt -o dirnames ;;
            file,*) COMPREPLY=(); compopt -o default ;;
            plain,*) COMPREPLY+=("${completion#plain,}") ;;
        esac
    done <<< "$response"

    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Word(NamedTuple):
    """
    The word of a line that is being typed.

    Args:
        start: Where it begins.
        cut: Where that part of it begins which bash replaces.
        quote: The quotation mark that is open there; empty for none.
    """

    start: int
    cut: int
    quote: str


def word_at_end(line: str, breaks: str) -> Word:
    """
    Return the last word of a line.

    Args:
        line: As it was typed.
        breaks: Characters at which bash ends a word, its ``COMP_WORDBREAKS``.
    """
    start = cut = 0
    quote, is_escaped = "", False
    for position, char in enumerate(line):
        if is_escaped:
            is_escaped = False
        elif char == "\\" and quote != "'":
            is_escaped = True
        elif quote:
            if char == quote:
                quote, cut = "", position + 1
        elif char in "'\"":
            quote, cut = char, position + 1
        elif char in _SPACE:
            start = cut = position + 1
        elif char in breaks:
            cut = position + 1
    return Word(start, cut, quote)


def quoted(text: str, quote: str) -> str:
    """Return *text* as it stands for itself in a line of bash, behind the quotation mark that is open there, if any."""
    if quote == "'":
        return text.replace("'", "'\\''")
    return (_UNSAFE_IN_QUOTES if quote else _UNSAFE).sub(r"\\\1", text)


def option_in(typed: str) -> str:
    """Return ``--partition=`` of ``--partition=rome``, which what is offered follows; empty for other words."""
    return typed.partition("=")[0] + "=" if typed.startswith("-") and "=" in typed else ""


class QuotingBash(BashComplete):
    """Answers the script of this module; that of click, which earlier versions printed, as click does."""

    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is being typed, and that."""
        line = os.environ.get(LINE)
        if line is None:
            return super().get_completion_args()
        start = self._word(line).start
        return split_arg_string(line[:start])[1:], "".join(split_arg_string(line[start:])[:1])

    def format_completion(self, item: CompletionItem) -> str:
        """Return the line of an offer; an empty one, which offers nothing, for what cannot follow what was typed."""
        line = os.environ.get(LINE)
        if line is None or item.type != "plain":
            return super().format_completion(item)
        word, value = self._word(line), str(item.value)
        option = option_in(line[word.start :])
        before = "".join(split_arg_string(line[word.start + len(option) : word.cut].rstrip("'\""))[:1])
        if not value.startswith(before):
            return ""
        return f"{item.type},{quoted(value[len(before) :], word.quote)}"

    @staticmethod
    def _word(line: str) -> Word:
        return word_at_end(line, os.environ.get(_BREAKS, ""))


def _whole(shell: ShellComplete, item: CompletionItem) -> str:
    """What takes the place of the word that is being typed."""
    value = str(item.value)
    option = option_in(shell.get_completion_args()[1]) if item.type == "plain" else ""
    return value if value.startswith(option) else option + value


class WholeZsh(ZshComplete):
    """As click's, for values behind ``=`` and, in its older releases, names with colons."""

    def format_completion(self, item: CompletionItem) -> str:
        """Return the three lines of an offer; the script takes an underscore for no help."""
        value = _whole(self, item)
        # What has help is split at the first colon that is not escaped; what has none is taken as it is.
        return f"{item.type}\n{value.replace(':', chr(92) + ':') if item.help else value}\n{item.help or '_'}"


class WholeFish(FishComplete):
    """As click's, for names with commas and values behind ``=``."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')

    def format_completion(self, item: CompletionItem) -> str:
        """Return the line of an offer."""
        return f"{item.type},{_whole(self, item)}" + (f"\t{item.help}" if item.help else "")


def register() -> None:
    """Have click use these."""
    classes: tuple[Any, ...] = (QuotingBash, WholeZsh, WholeFish)
    for each in classes:
        add_completion_class(each)
