"""Who may import whom. The tables are the rule; the tests only read them."""

import ast
import re
from graphlib import CycleError, TopologicalSorter

import pytest

from support.repository import ROOT, imports, modules, nodes_of

LAYERS = (
    {"errors", "model", "avro_schemas"},
    {"config", "formats", "versions"},
    {"storage", "runtime"},
    {"timeline", "fsview", "txn", "engine"},
    {"rows"},
    {"services", "mdt"},
    {"writing", "snapshot", "local"},
    {
        "opened_table",
        "row_verbs",
        "table_view",
        "table_services",
        "table_insight",
        "table_leases",
        "table_retention",
        "table_rewriting",
        "table_merge",
        "after_commit",
        "clean_beside",
        "table_statements",
        "write_service",
        "write_job",
        "write_target",
        "local_writing",
        "table_writing",
        "table",
    },
    {"spark"},
    {"__init__", "__main__", "inspection"},
)
LEVEL = {component: level for level, components in enumerate(LAYERS) for component in components}
SIBLINGS = {  # an import within one layer
    ("model", "errors"),
    ("config", "formats"),
    ("config", "versions"),
    ("formats", "versions"),
    ("storage", "runtime"),  # what is repeated is told
    ("fsview", "timeline"),
    ("fsview", "engine"),
    ("txn", "timeline"),
    ("services", "mdt"),
    ("table_view", "opened_table"),
    ("table_services", "table_view"),
    ("table_insight", "table_services"),
    ("table_insight", "table_view"),
    ("table", "table_insight"),
    ("table", "table_leases"),
    ("table_leases", "table_view"),
    ("table_rewriting", "table_services"),
    ("after_commit", "table_services"),
    ("after_commit", "clean_beside"),
    ("clean_beside", "table_services"),
    ("clean_beside", "table_view"),
    ("write_service", "clean_beside"),
    ("after_commit", "table_view"),
    ("write_service", "after_commit"),
    ("table_rewriting", "table_view"),
    ("table", "table_retention"),
    ("table_retention", "table_rewriting"),
    ("table", "table_services"),
    ("table", "table_view"),
    ("local", "writing"),
    ("write_service", "table_services"),
    ("write_service", "write_job"),
    ("write_service", "write_target"),
    ("write_job", "table_view"),
    ("write_target", "table_view"),
    ("write_service", "table_statements"),
    ("write_service", "table_view"),
    ("table_statements", "table_view"),
    ("local_writing", "table_merge"),
    ("table_merge", "table_statements"),
    ("table_merge", "table_view"),
    ("table_writing", "table_merge"),
    ("local_writing", "write_service"),
    ("table_writing", "local_writing"),
    ("table_writing", "table_statements"),
    ("row_verbs", "write_service"),
    ("table_writing", "row_verbs"),
    ("table_writing", "table_view"),
    ("table_writing", "write_service"),
    ("table_retention", "table_writing"),
    ("__main__", "inspection"),
}
SERVICES = {  # an import between two services; None stands for all of them
    "restore": {"rollback", "savepoint"},
    "approval": {"clean", "orphans"},  # what they would remove, and what became of it
    "clean": {"savepoint"},  # those whose time to live is over go before a plan is made
    "lease": {"clean", "savepoint"},  # what a plan covers is known there; a lease may have a savepoint
    "archive": {"clean"},  # archival must not overtake the clean, so it asks for the same window
    "upkeep": {"clean", "archive"},  # of the metadata table, which is a table itself
    "compaction": {"rewriting", "rollback"},  # what an earlier attempt left is rolled back first (B-25)
    "clustering": {"rewriting", "rollback"},
    "explain": {"clean"},
    "erasure": {"clean", "explain"},  # why a file is kept, in the words of explain
    "usage": {"clean", "explain"},  # the planner's verdicts, in the words of explain
    "simulation": {"clean"},
    "doctor": {"archive", "check", "clean", "explain", "usage"},  # what they would do, and the form of a finding
    "log_compaction": {"compaction", "rewriting", "rollback"},
    "maintenance": {"clean"},
    "orphans": {"check"},  # what the check knows of every file
    "undo": {"clean"},  # its notes on what has been examined
    "recovery": None,
}
FREE = {"testing"}  # may import anything, and only tests import it

PURE_PACKAGES = {"model", "formats", "versions"}
PURE_MODULES = {
    "policy",
    "plan",
    "ladder",
    "scope",
    "windows",
    "as_of",
    "build",
    "view",
    "layout",
    "conflict",
    "assign",
    "breakers",
    "contradictions",
    "explain",
    "fate",
    "facts",
    "findings",
    "judge_files",
    "judge_instants",
    "judge_metadata",
    "needs",
    "select",
    "report",
    "check",
    "routes",
    "verify",
}
IMPURE = {
    *(f"hudi_py.{component}" for component in ("storage", "runtime", "engine")),
    *("os", "time", "random", "fsspec", "pyspark", "structlog"),
}
CLOCK_CALLS = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}
TIME_AND_CHANCE = {"time", "random", "secrets", "uuid"}
DOORS_TO_THE_MACHINE = {"hudi_py.runtime.clock", "hudi_py.runtime.randomness"}
MODULES = modules()
_VERSION_COMPARED = (
    r"(layout_version|table_version|(config|table|layout|format)\.version\W.*?)\W*(in )?\W*\b(\d|_?[A-Z])"
)


def component_of(name: str) -> str:
    """``hudi_py.services.clean.planning.plan`` belongs to ``services``; the package itself is ``__init__``."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def service_of(name: str) -> str | None:
    parts = name.split(".")
    return parts[2] if len(parts) > 2 and parts[1] == "services" else None


def module_of(target: str) -> str | None:
    """The module of ours that an imported name lives in; None for others' modules."""
    while target and target not in MODULES:
        if target == "hudi_py.avro_schemas":
            return target
        target = target.rpartition(".")[0]
    return target or None


def own_imports(name: str) -> list[tuple[str, int]]:
    found = [(module_of(item.target), item.line) for item in imports(name, MODULES[name])]
    return [(module, line) for module, line in found if module is not None and module != name]


def is_pure(name: str) -> bool:
    return component_of(name) in PURE_PACKAGES or name.rpartition(".")[2] in PURE_MODULES


PURE = [name for name in MODULES if is_pure(name)]


def is_allowed(importer: str, imported: str) -> bool:
    above, below = component_of(importer), component_of(imported)
    if above in FREE:
        return True
    if below in FREE:
        return False
    if above == below:
        ours, theirs = service_of(importer), service_of(imported)
        if None in (ours, theirs) or ours == theirs:
            return True
        allowed = SERVICES.get(ours, set())
        return allowed is None or theirs in allowed
    return LEVEL[below] < LEVEL[above] or (above, below) in SIBLINGS


# Each law is one test for all modules: a test for each module and law took most of the time of these tests.
def test_module_belongs_to_a_known_component():
    """A new component gets a layer before it gets an importer."""
    assert set() == {component_of(name) for name in MODULES} - {*LEVEL, *FREE}


def test_architecture_shows_the_ranks_that_hold():
    """The table of docs/architecture.md is the one above."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| (.*?) \|", page, re.MULTILINE)
    shown = [{name.removesuffix("/*") for name in re.findall(r"`(.*?)`", names)} for _, names in rows]
    present = {component_of(name) for name in MODULES} | {"avro_schemas", "__main__"}
    assert shown[::-1] == [layer & present for layer in LAYERS]


def test_architecture_shows_which_services_use_each_other():
    """The table of services there is the one above."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^  \| `(\w+)` \| (.*?) \|$", page, re.MULTILINE)
    shown = {name: None if used == "all" else set(re.findall(r"`(\w+)`", used)) for name, used in rows}
    assert shown == SERVICES


def test_readme_shows_the_same_ranks():
    """Its map has the components that a newcomer meets; each stands on its rank."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^ (\d)  (\S+(?:  ?\S+)*)   ", page, re.MULTILINE)
    assert len(rows) == len(LAYERS)
    for rank, names in rows:
        assert {name.removesuffix("/*") for name in names.split()} <= LAYERS[int(rank)]


def test_imports_point_down():
    """A module imports lower layers, its own component, and the siblings listed above."""
    wrong = [
        f"{name}, line {line}: {module}"
        for name in MODULES
        for module, line in own_imports(name)
        if not is_allowed(name, module)
    ]
    assert [] == wrong


def test_pure_module_touches_no_outside_world():
    """Decisions depend on their arguments only."""
    targets = [(f"{name}, line {item.line}", item.target) for name in PURE for item in imports(name, MODULES[name])]
    wrong = [f"{where}: {t}" for where, t in targets if any(t == bad or t.startswith(f"{bad}.") for bad in IMPURE)]
    assert [] == wrong


def test_pure_module_never_reads_the_clock():
    """The moment of planning is an argument."""
    assert [] == [where for name in PURE for where in _clock_readings(name)]


def _clock_readings(name: str) -> list[str]:
    calls = [node for node in nodes_of(MODULES[name]) if isinstance(node, ast.Call)]
    return [f"{name}, line {call.lineno}: {ast.unparse(call)}" for call in calls if _reads_clock(call)]


def _reads_clock(call: ast.Call) -> bool:
    function = call.func
    # The cheap question first: there are a hundred thousand calls.
    if not isinstance(function, ast.Attribute) or function.attr not in {method for _, method in CLOCK_CALLS}:
        return False
    owner = ast.unparse(function.value).rpartition(".")[2]
    return (owner, function.attr) in CLOCK_CALLS


def test_time_and_chance_come_in_as_arguments():
    """One door each; what is behind them a test can replace, and two runs of one thing can be equal."""
    wrong = []
    for name in (name for name in MODULES if name not in DOORS_TO_THE_MACHINE):
        targets = {item.target for item in imports(name, MODULES[name])}
        wrong += [f"{name}: {each}" for each in targets if each.partition(".")[0] in TIME_AND_CHANCE]
        wrong += _clock_readings(name)
        reads = [node for node in nodes_of(MODULES[name]) if isinstance(node, ast.Attribute) and node.attr == "urandom"]
        wrong += [f"{name}, line {node.lineno}: urandom" for node in reads if ast.unparse(node.value) == "os"]
    assert [] == wrong


def test_events_go_through_the_log():
    """Structlog by itself prints on standard output, which belongs to what was asked for."""
    assert {"hudi_py.runtime.log"} == _importers_of("structlog")


def test_pyspark_is_imported_only_by_its_adapter():
    """Everything but hudi_py.spark works without Spark; type checkers may look at it anywhere."""
    assert {"spark"} == {component_of(name) for name in _importers_of("pyspark", "py4j")}


def _importers_of(*packages: str) -> set[str]:
    return {name for name in MODULES for item in imports(name, MODULES[name]) if item.target.split(".")[0] in packages}


def test_executor_tasks_import_little():
    """What runs on an executor is pickled with everything that it imports."""
    name = "hudi_py.services.clean.executing.tasks"
    allowed = {"storage", "model", "errors"}
    assert set() == {component_of(module) for module, _ in own_imports(name)} - allowed - {"services"}
    assert [] == [module for module, _ in own_imports(name) if component_of(module) == "services"]


def test_modules_do_not_import_each_other_in_circles():
    """An import inside a function hides a circle, so it counts too, except in the command line and the surfaces."""
    graph = {
        name: {
            module_of(item.target) or name
            for item in imports(name, path)
            if not (item.deferred and LEVEL.get(component_of(name), 0) == LEVEL["inspection"])
        }
        - {name, name.rpartition(".")[0]}
        for name, path in MODULES.items()
        if component_of(name) not in FREE
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"circle of imports: {' -> '.join(reversed(error.args[1]))}")


def test_actions_go_through_the_stages_of_a_commit():
    """Only `hudi_py.txn.commit` takes an instant from state to state, so that no stage is left out anywhere."""
    steps = {"request", "open_savepoint", "transition", "complete"}
    wrong = [
        f"{name} line {call.lineno}: {ast.unparse(call.func)}"
        for name, path in MODULES.items()
        for call in nodes_of(path)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in steps
        and ast.unparse(call.func.value).endswith("store")
    ]
    assert {each.partition(" ")[0] for each in wrong} == {"hudi_py.txn.commit"}, wrong


def test_table_versions_are_compared_in_one_folder():
    """Everything else asks the `TableFormat`, so that a new version touches hudi_py/versions alone."""
    wrong = [
        f"{name} line {node.lineno}: {ast.unparse(node)}"
        for name, path in MODULES.items()
        if component_of(name) != "versions"
        for node in nodes_of(path)
        if isinstance(node, ast.Compare) and re.search(_VERSION_COMPARED, ast.unparse(node))
    ]
    assert [] == wrong


def test_tests_only_import_the_public_doubles():
    """hudi_py.testing is for tests, ours and the users'; the package itself never needs it."""
    users = [name for name in MODULES if any(module == "hudi_py.testing" for module, _ in own_imports(name))]
    assert [] == users
    assert (ROOT / "tests").is_dir()
