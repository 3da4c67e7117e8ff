"""Pages that are made from the code say what the code says."""

import importlib.util

import pytest

from support.repository import ROOT


@pytest.mark.parametrize("name", ["settings", "metrics"])
def test_pages_made_from_the_code_are_up_to_date(name):
    """``python tools/make_..._page.py`` writes them."""
    tool = f"make_{name}_page"
    spec = importlib.util.spec_from_file_location(tool, ROOT / "tools" / f"{tool}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == module.page()
