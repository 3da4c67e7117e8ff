"""``hudi-py completion``: a script for a shell."""

from __future__ import annotations

import sys

import click


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """
    Print a script that completes commands and options in a shell.

    \b
    Examples:
      eval "$(hudi-py completion bash)"
      hudi-py completion fish > ~/.config/fish/completions/hudi-py.fish
    """  # noqa: D301 - click takes the character for a mark
    from click.shell_completion import get_completion_class

    from hudi_py.inspection.cli import main
    from hudi_py.inspection.shell_quoting import register

    register()
    found = get_completion_class(shell)
    assert found is not None
    made = found(main, {}, "hudi-py", "_HUDI_PY_COMPLETE")
    # Not `made.source()`: for bash, click would start a bash there to ask for its version.
    sys.stdout.write(made.source_template % made.source_vars())
