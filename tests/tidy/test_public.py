"""The public surface, and what it costs to load it."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_origin

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("pyspark", "py4j", "pandas", "numpy")
SPARK = ("WriteClient", "read", "register")
EXTRAS = ("pyspark", "py4j", "pandas", "polars", "duckdb")


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
    package = importlib.import_module("hudi_py")
    if name in SPARK and find_spec("pyspark") is None:
        with pytest.raises(package.ConfigError, match=rf"{name} needs Spark .*; pip install 'hudi_py\[spark\]'"):
            getattr(package, name)
        return
    value = getattr(package, name)
    # Python 3.10 takes an alias such as Callable[[int], None] for a class.
    if (inspect.isclass(value) and get_origin(value) is None) or inspect.isroutine(value):
        assert inspect.getdoc(value)


def test_unit_tests_need_no_extra():
    """`tools/test --fast` has none: what needs one says so with importorskip, or nothing of its module would run."""
    asks = re.compile(rf"^(?:from|import) (?:hudi_py\.spark|{'|'.join(EXTRAS)})", re.MULTILINE)
    paths = [str(path) for path in (ROOT / "tests/unit").rglob("*.py") if asks.search(path.read_text(encoding="utf-8"))]
    assert paths
    code = (
        "import runpy, sys\n"
        f"sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
        f"for path in {paths!r}:\n"
        "    try:\n"
        "        runpy.run_path(path)\n"
        "    except BaseException as error:\n"
        "        assert type(error).__name__ == 'Skipped', f'{path}: {error!r}'"
    )
    tests = str(ROOT / "tests")
    command = [sys.executable, "-c", f"import sys; sys.path.append({tests!r})\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


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
