"""Whoever is given a value by a public name can name its type: what public signatures mention is public itself."""

import ast
import importlib

import pytest

from support.repository import imports, modules, tree_of

MODULES = modules()
PUBLIC = importlib.import_module("hudi_py")
BUILT_BY_USERS = {"Column", "Condition", "WriteClient"}
"""Of other classes the constructor is nobody's business: open_table and verbs give them."""
FOR_OUR_COMMANDS = {
    *(
        "services",
        "run_clean",
        "run_clustering",
        "require",
        "contents",
        "listing",
        "view_context",
        "storage",
        "settings",
    ),  # of a table
    *("column_statistics", "row_commits"),  # of a snapshot
    *("format",),  # of a table's properties
    *("prepared", "for_listing"),  # of an engine
    *("add_names",),  # of planned files
}
"""Attributes of public classes that users do not need; what they mention may change."""


def home_of(module, name):
    """Module and name of the class, function or alias that *name* means in *module*; None where it is not ours."""
    for item in imports(module, MODULES[module]):
        source, _, imported = item.target.rpartition(".")
        if imported == name and source in MODULES:
            return home_of(source, name)
    for node in tree_of(MODULES[module]).body:
        target = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
            return module, name
        if isinstance(target, ast.Name) and target.id == name and "TypeVar" not in ast.unparse(node):
            return module, name
    return None


def annotations(module, name, *, with_constructor):
    """Each annotation of a public parameter, result or field, with where it stands; inherited ones too."""
    node = next((each for each in tree_of(MODULES[module]).body if getattr(each, "name", None) == name), None)
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base  # of a generic class
            home = home_of(module, plain.id) if isinstance(plain, ast.Name) else None
            if home is not None:
                yield from annotations(*home, with_constructor=with_constructor)
    for member in node.body if isinstance(node, ast.ClassDef) else [node]:
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            if not member.target.id.startswith("_") and member.target.id not in FOR_OUR_COMMANDS:
                yield f"{name}.{member.target.id}", module, member.annotation
        elif isinstance(member, ast.FunctionDef):
            is_shown = member.name == "__init__" if member.name.startswith("_") else True
            if not is_shown or member.name in FOR_OUR_COMMANDS or (member.name == "__init__" and not with_constructor):
                continue
            given = [*member.args.args, *member.args.kwonlyargs, member.args.kwarg, member.args.vararg]
            for annotation in [*(each.annotation for each in given if each is not None), member.returns]:
                if annotation is not None:
                    yield f"{name}.{member.name}", module, annotation


def names_in(annotation):
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def home_of_public(name):
    """Aliases know no module of their own."""
    lazy = PUBLIC._LAZY.get(name)
    return (getattr(PUBLIC, name).__module__ if lazy is None else f"hudi_py.{lazy}"), name


@pytest.mark.parametrize("name", PUBLIC.__all__)
def test_types_in_public_signatures_are_public(name):
    """Parameters, results and fields; those of the constructor where users call it."""
    hidden = set()
    for where, module, annotation in annotations(*home_of_public(name), with_constructor=name in BUILT_BY_USERS):
        for mentioned in names_in(annotation):
            home = home_of(module, mentioned)
            if home is not None and (mentioned not in PUBLIC.__all__ or home_of_public(mentioned) != home):
                hidden.add(f"{where}: {mentioned} of {home[0]}")
    assert sorted(hidden) == []


@pytest.mark.parametrize("name", sorted(PUBLIC._LAZY))
def test_names_that_are_loaded_late_come_from_where_they_are_defined(name):
    """Type checkers, which see the imports, and programs, which see the table, get the same."""
    assert home_of(*home_of_public(name)) == home_of_public(name)
    assert (home_of_public(name)[0], name) in {
        (each.target.rpartition(".")[0], each.target.rpartition(".")[2])
        for each in imports("hudi_py", MODULES["hudi_py"])
    }
