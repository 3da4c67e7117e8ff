"""``hudi-py deletion`` on a table of Apache Hudi: what is refused, with which exit code, and how it ends."""

from __future__ import annotations


def test_forbidden_shown_refused_and_allowed(run, table):
    """Exit code 1 for what is refused; `maintain` and the dry run say why, and nothing is lost."""
    path = table("cow_nonpartitioned-1.1.1")
    assert run("deletion", "show", path, "--json").json == {"forbidden": False, "why": None}
    assert "Apache Hudi does not know" in run("deletion", "forbid", path).out
    assert run("deletion", "forbid", path, "--json").json == {"forbidden": True, "changed": False}
    assert "hoodie_py.gc.enabled=false in .hoodie/hoodie.properties" in run("deletion", "show", path).out
    files = {each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts}
    refused = run("clean", path, "--commits-retained", "1", "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (1, "RefusedError")
    assert run("orphans", path).code == 1
    for options in (("--dry-run",), ()):
        done = run("maintain", path, *options, "--json")
        assert done.code == 0
        assert "hoodie_py.gc.enabled=false" in next(s["why"] for s in done.json["steps"] if s["step"] == "clean")
    assert "no data is deleted from this table" in run("clean", path, "--dry-run", "--commits-retained", "1").out
    assert files == {each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts}
    assert run("deletion", "allow", path, "--json").json == {"forbidden": False, "changed": True}
    assert run("clean", path, "--commits-retained", "1").code == 0
    assert files > {each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts}
