"""What the tidy tests look at: the files of the repository and the imports of the package."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "hudi_py"
TOP_LEVEL = frozenset(
    {
        ".ci",
        ".gitignore",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "MANIFEST.in",
        "README.md",
        "SECURITY.md",
        "avro_schemas",
        "docs",
        "hudi_py",
        "mkdocs.yml",
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "tests",
        "tools",
    }
)


class Import(NamedTuple):
    """One name that a module imports, written out: ``from hudi_py.model import x`` gives ``hudi_py.model.x``."""

    target: str
    line: int
    deferred: bool  # inside a function, or for type checkers only


@cache
def repository_files() -> tuple[Path, ...]:
    """Every file that is or could be committed; all below the allowed folders where git is absent."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
        paths = [ROOT / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        below = (ROOT / name for name in TOP_LEVEL)
        paths = [path for top in below for path in ([top] if top.is_file() else top.rglob("*"))]
    return tuple(sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts))


def text_files() -> Iterator[tuple[Path, str]]:
    """Yield the files that people write, with their text."""
    for path in repository_files():
        if path.suffix in {".py", ".md", ".cfg", ".toml", ".sh", ".avsc", ".js", ".css", ".html", ".properties", ""}:
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    """Syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's syntax tree."""
    return tuple(ast.walk(tree_of(path)))


@cache  # asked by many tests for each module, and each answer takes a walk through its tree
def imports(name: str, path: Path) -> tuple[Import, ...]:
    """What a module imports, anywhere in it."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return tuple(_imports_below(tree_of(path), package, deferred=False))


def _imports_below(node: ast.AST, package: str, *, deferred: bool) -> Iterator[Import]:
    if isinstance(node, ast.expr):  # no import is part of an expression
        return
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, node.lineno, deferred) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, base] if base else above)
        yield from (Import(f"{base}.{alias.name}", node.lineno, deferred) for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from _imports_below(child, package, deferred=deferred or _defers(node))


def _defers(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
