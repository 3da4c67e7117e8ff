"""Pages that are made from the code say what the code says."""

import importlib.util

import pytest

from support.repository import ROOT


def loaded(tool):
    """A tool as a module."""
    spec = importlib.util.spec_from_file_location(tool, ROOT / "tools" / f"{tool}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_about_settings_is_up_to_date():
    """``python tools/make_settings_page.py`` writes it."""
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == loaded("make_settings_page").page()


@pytest.mark.parametrize("name", ["commands.md", "findings.md", "metrics.md"])
def test_the_pages_of_the_reference_are_up_to_date(name):
    """``python tools/make_reference_pages.py`` writes them."""
    pages = loaded("make_reference_pages").PAGES
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == pages[name]()
    assert len(pages) == 3
