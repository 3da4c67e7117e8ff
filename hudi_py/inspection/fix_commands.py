"""The commands in the advice of findings, with the table that they are for, so that they can be copied."""

from __future__ import annotations

import re
from typing import Final

from hudi_py.model.words import shell_word

_COMMAND: Final = re.compile(
    r"\b(hudi-py (?:archive|check|clean|cluster|compact|consumer delete|deletion allow|du|lease release"
    r"|policy (?:apply|remove)|recover|rollback|savepoint delete|tag create))\b(?: TABLE\b)?"
)


def with_table(fix: str, table: str) -> str:
    """
    Name a table in each command of a finding's advice.

    Args:
        fix: The advice, as ``hudi-py check --codes`` and ``hudi-py doctor --codes`` print it.
        table: Path or URL of the table.

    Returns:
        ``run hudi-py clean /lake/trips --full`` for ``run hudi-py clean --full``.
    """
    return _COMMAND.sub(lambda found: f"{found[1]} {shell_word(table)}", fix)
