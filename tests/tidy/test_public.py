"""The public surface, and what it costs to load it."""

import importlib
import importlib.util
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("pyspark", "py4j", "pandas", "numpy")


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a fresh Python has loaded after *code*; warnings are errors in it."""
    show = "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    command = [sys.executable, "-W", "error", "-c", f"{code}\n{show}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def public_names() -> list[str]:
    return list(getattr(importlib.import_module("hudi_py"), "__all__", []))


def test_public_names_are_sorted_and_unique():
    """A list in order shows what is missing."""
    assert sorted(set(public_names())) == public_names()


@pytest.mark.parametrize("name", public_names())
def test_public_name_is_there_and_documented(name):
    """Whoever finds a name finds out what it is for."""
    value = getattr(importlib.import_module("hudi_py"), name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert inspect.getdoc(value)


def test_import_is_quiet_and_loads_neither_spark_nor_pandas():
    """Reading a timeline does not pay for Spark."""
    assert set() == loaded_by("import hudi_py") & set(HEAVY)


def test_help_of_the_command_line_loads_neither_spark_nor_pandas():
    """--help answers at once."""
    code = (
        "import contextlib\nfrom hudi_py.inspection.cli import main\n"
        "with contextlib.suppress(SystemExit):\n    main(['--help'])"
    )
    assert set() == loaded_by(code) & set(HEAVY)
