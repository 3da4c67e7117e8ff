"""``tools/release_notes.py``: the notes of a release are its part of the changelog."""

from __future__ import annotations

import importlib.util

import pytest

from support.repository import ROOT

TEXT = """# Changelog

## [Unreleased]

## [0.2.0] - 2026-12-01

### Added

- Second.

## [0.1.0] - 2026-11-01

- First.
"""


@pytest.fixture(scope="module")
def tool():
    """The tool as a module."""
    spec = importlib.util.spec_from_file_location("release_notes", ROOT / "tools" / "release_notes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_release_has_its_own_notes_only(tool):
    """Named by its version or its tag."""
    assert tool.notes(TEXT, "0.2.0") == tool.notes(TEXT, "v0.2.0") == "### Added\n\n- Second.\n"
    assert tool.notes(TEXT, "0.1.0") == "- First.\n"


@pytest.mark.parametrize("version", ["0.3.0", "0.2", "Unreleased"])
def test_a_release_without_notes_is_refused(tool, version):
    """With the versions that there are; nobody publishes empty notes."""
    with pytest.raises(LookupError, match=r"Unreleased, 0\.2\.0, 0\.1\.0"):
        tool.notes(TEXT, version)


def test_what_is_not_released_yet_has_notes(tool):
    """The real changelog has a part for the next release."""
    assert "### Added" in tool.notes(tool.CHANGELOG.read_text(encoding="utf-8"))
