"""The examples of docs/writing.md do what they say."""

import re

from support.repository import ROOT


def test_examples_run(tmp_path):
    """Each of them, one after another, with its own assertions."""
    page = (ROOT / "docs" / "writing.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert examples
    names = {"location": tmp_path / "trips"}
    for example in examples:
        exec(example, names)
