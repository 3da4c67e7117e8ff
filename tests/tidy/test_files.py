"""The repository about itself: what lies where, what must not stand in it, and what ships."""

import ast
import configparser
import json
import re

import pytest

from hudi_py.services.check.findings import RULES, Severity
from hudi_py.services.doctor.findings import RULES as DOCTOR_RULES
from support.repository import PACKAGE, ROOT, TOP_LEVEL, imports, modules, repository_files, text_files, tree_of

LINES_MAX = 500
SIZE_BYTES_MAX = 2 * 2**20
# Written in pieces, so that this file does not find itself.
MACHINE_PATHS = re.compile(
    r"(?<![\w.~}$-])/(?:" + "|".join(("work", "farm", "root", "home/\\w+", "Users/\\w+")) + r")/"
)
REGISTRY_HOSTS = re.compile(
    "|".join(
        ("pypi" + r"\.org", "python" + "hosted", "registry\\." + "npmjs", "repo1?\\." + "maven", "crates" + "\\.io")
    )
)
LEFT_OVERS = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(path for path in repository_files() if path.suffix == ".md" and "fixtures" not in path.parts)


def places(pattern: re.Pattern[str]) -> list[str]:
    """Where a pattern occurs, as path:line."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path, text in text_files()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_top_level_holds_only_what_is_listed():
    """The first look at the repository shows its parts and nothing else."""
    assert set() == {path.relative_to(ROOT).parts[0] for path in repository_files()} - TOP_LEVEL


def test_no_path_of_a_machine():
    """Nothing works on one machine only."""
    assert [] == places(MACHINE_PATHS)


def test_no_host_of_a_package_registry():
    """Which registry serves is the user's choice."""
    assert [] == places(REGISTRY_HOSTS)


def test_nothing_left_to_be_done_in_a_comment():
    """What is left to do is an issue."""
    assert [] == places(LEFT_OVERS)


def test_python_files_are_small():
    """A file that outgrows this has two jobs."""
    python = [path for path in repository_files() if path.suffix == ".py"]
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in python}
    assert {} == {name: count for name, count in lines.items() if count >= LINES_MAX}


def test_no_large_file():
    """Fixtures are small and zipped."""
    assert [] == [str(path) for path in repository_files() if path.stat().st_size > SIZE_BYTES_MAX]


@pytest.mark.parametrize("path", sorted((ROOT / "avro_schemas").glob("*.avsc")), ids=lambda path: path.name)
def test_schema_is_json_with_a_name(path):
    """Each schema parses and says which record it is."""
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert schema["type"] == "record"
    assert schema["name"]


def test_every_package_is_listed_for_packaging():
    """A package that setup.cfg does not list is missing from the wheel and nowhere else."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    listed = config["options"]["packages"].split()
    present = {name for name, path in modules().items() if path.name == "__init__.py"} | {"hudi_py.avro_schemas"}
    wanted = "\n    ".join(sorted(present))
    assert sorted(present) == listed, f"write into setup.cfg:\npackages =\n    {wanted}"


def test_every_package_states_its_boundary():
    """A folder's __init__ says what belongs into it."""
    packages = [*PACKAGE.rglob("__init__.py"), ROOT / "avro_schemas" / "__init__.py"]
    assert [] == [str(path.relative_to(ROOT)) for path in packages if not ast.get_docstring(tree_of(path))]


def test_what_tests_share_has_one_place_and_one_name():
    """No test module is a library: helpers are modules of ``tests/support``, and only those are imported."""
    tests = ROOT / "tests"
    python = [path for path in repository_files() if path.suffix == ".py" and tests in path.parents]
    strays = [
        str(path.relative_to(ROOT))
        for path in python
        if path.parent != tests / "support" and path.name != "conftest.py" and not path.name.startswith("test_")
    ]
    assert [] == strays
    folders = {"tests", *(path.name for path in tests.iterdir() if path.is_dir())} - {"support"}
    imported = [
        f"{path.relative_to(ROOT)}:{each.line}: {each.target}"
        for path in python
        for each in imports("tests.module", path)
        if each.target.split(".")[0] in folders
    ]
    assert [] == imported


def test_every_test_states_its_promise():
    """A test's docstring says what its users may rely on."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in repository_files()
        if path.name.startswith("test_") and path.suffix == ".py"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert [] == silent


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_existing_files(page):
    """Paths in code spans and links lead somewhere; NAME stands for what a reader chooses."""
    text = page.read_text(encoding="utf-8")
    spans = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^\s*(?:\$ )?((?:tools|\.ci)/\S+)", text, re.MULTILINE)
    words = {word for span in spans for word in span.split() if re.match(r"(?:tools|tests|\.ci|hudi_py|docs)/\w", word)}
    named = {ROOT / word.partition("::")[0].rstrip("/.,:") for word in words if "NAME" not in word}
    links = {page.parent / link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link}
    assert [] == sorted(str(path) for path in named | links if not path.exists())


@pytest.mark.parametrize(("command", "rules"), [("check", RULES), ("doctor", DOCTOR_RULES)])
def test_readme_lists_what_a_command_finds(command, rules):
    """By how bad it is, as ``--codes`` tells it."""
    section = README.partition(f"\n`hudi-py {command} TABLE` ")[2]
    for severity in Severity:
        row = re.search(rf"^\| {severity.value} \| (.*) \|$", section, re.MULTILINE)
        assert re.findall(r"`(.*?)`", row[1]) == [code for code, rule in rules.items() if rule.severity is severity]


def test_readme_python_parses_and_uses_public_names():
    """An example that cannot run is worse than none."""
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    used = {
        node.attr
        for block in blocks
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "hudi_py"
    }
    assert set() == used - set(_public_names())


def test_the_first_example_runs(tmp_path, monkeypatch, capsys):
    """Names that exist are not all: it once gave a word that no method takes."""
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", README, re.DOTALL)[1], {})
    assert "'fare': 10.0" in capsys.readouterr().out


def _public_names() -> list[str]:
    for node in tree_of(PACKAGE / "__init__.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise AssertionError("hudi_py has no __all__")
