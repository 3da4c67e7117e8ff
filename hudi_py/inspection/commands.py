"""
The commands of the program. Each is imported when it is asked for, so that no command waits for the others to load.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Final

import click

from hudi_py.inspection.examples import add_examples
from hudi_py.inspection.tables_options import add_options

_MODULES: Final = {
    "approve_command": ("approve",),
    "check_command": ("check",),
    "clean_command": ("clean",),
    "cluster_command": ("cluster",),
    "compact_command": ("compact",),
    "completion_command": ("completion",),
    "deletion_command": ("deletion",),
    "doctor_command": ("doctor",),
    "du_command": ("du",),
    "erased_command": ("erased",),
    "expire_command": ("expire-partitions",),
    "explain_command": ("explain",),
    "fleet_command": ("fleet", "fleet-entry"),
    "history_commands": ("archive", "restore", "rollback", "savepoint", "tag"),
    "lease_command": ("consumer", "lease"),
    "life_commands": ("diff", "history", "simulate"),
    "maintain_command": ("maintain",),
    "orphans_command": ("orphans",),
    "overview_command": ("overview",),
    "policy_command": ("policy",),
    "read_command": ("read",),
    "recover_command": ("recover",),
    "report_command": ("report",),
    "serve_command": ("serve",),
    "timeline_commands": ("files", "instant", "timeline"),
    "undo_command": ("undo",),
    "write_commands": ("delete", "drop-partition", "merge", "update", "write"),
}
"""Modules and the names of their commands; a command is a variable of that name, with ``_`` for ``-``."""


class Commands(MutableMapping[str, click.Command]):
    """Commands by name, complete with the options and examples that others have, too."""

    def __init__(self) -> None:
        self._modules = {name: module for module, names in _MODULES.items() for name in names}
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module = import_module(f"hudi_py.inspection.{self._modules[name]}")
            command: click.Command = getattr(module, name.replace("-", "_"))
            add_options(command)
            add_examples(command, (name,))
            self._loaded[name] = command
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._modules.setdefault(name, "")  # never asked for: it is loaded
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._modules[name]
        self._loaded.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)
