"""The page about settings says what the tables say."""

import importlib.util

from support.repository import ROOT


def test_the_page_about_settings_is_up_to_date():
    """``python tools/make_settings_page.py`` writes it."""
    spec = importlib.util.spec_from_file_location("make_settings_page", ROOT / "tools" / "make_settings_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == module.page()
