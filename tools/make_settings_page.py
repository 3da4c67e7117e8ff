"""
Write ``docs/settings.md``: every setting and every property, and what hudi_py does with it.

Everything comes from the tables in ``hudi_py/config``; tests/tidy holds the page up to date. Usage:
``python tools/make_settings_page.py``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hudi_py.config.harmless import ELSEWHERE, HARMLESS
from hudi_py.config.hudi_options import hudi_options
from hudi_py.config.keys import ALL_KEYS, Key
from hudi_py.config.property_verdicts import HARMLESS_PROPERTIES, REFUSED_PROPERTIES, SERVED
from hudi_py.config.refused import REFUSED, Refused
from hudi_py.config.verdict import Kind, verdict_of

ROOT: Final = Path(__file__).resolve().parents[1]
TARGET: Final = ROOT / "docs" / "settings.md"
_HEAD: Final = """# Settings

All settings of Apache Hudi 0.15.0, 1.0.2, 1.1.1 and 1.2.0, extracted from their option classes, and what hudi_py does
with them. Pass settings as `settings` to `hudi_py.open_table`, `hudi_py.read` and `hudi_py.WriteClient`, and on the
command line with `--conf` and `--conf-file`. The file may be shared with a Spark job.

- **served**: has the same effect as in Apache Hudi; an invalid value is an error.
- **harmless here**: ignored. Its value changes neither rows, nor which files are deleted, nor anything that other
  writers rely on.
- **refused**: any value that is not listed as accepted is an error (exit code 2), but only in the operations listed;
  `hudi-py clean`, for example, ignores settings that are refused for writing.

Any other setting is an error, which names the setting with the nearest name: most are misspelled, and a default would
silently be used instead. `--allow-unknown-conf`, or `hoodie_py.conf.allow.unknown=true`, allows them. Giving a setting
under two names with different values is an error.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, *_served(), *_refused(), *_harmless(), *_elsewhere(), *_properties()]
    return "\n".join(parts) + "\n"


def _served() -> Iterator[str]:
    yield "## Served\n\n| setting | also spelled | default |\n|---|---|---|"
    for key in sorted(ALL_KEYS, key=lambda key: key.name):
        yield f"| `{key.name}` | {_code(key.aliases)} | {_default(key)} |"


def _refused() -> Iterator[str]:
    yield "\n## Refused\n\n| setting | accepted | refused for | because |\n|---|---|---|---|"
    for rule in sorted(REFUSED, key=lambda rule: rule.name):
        yield _line(rule)


def _harmless() -> Iterator[str]:
    yield "\n## Harmless here"
    names: dict[str, list[str]] = {reason: [] for reason in HARMLESS}
    for name in hudi_options():
        verdict = verdict_of(name)
        if verdict is not None and verdict.kind is Kind.HARMLESS:
            names[verdict.reason].append(name)
    for reason, found in sorted(names.items()):
        if found:
            yield f"\n{reason[0].upper()}{reason[1:]}:\n"
            yield from (f"- `{name}`" for name in found)


def _elsewhere() -> Iterator[str]:
    yield "\n## Of other tools\n\nSettings that start with one of these are taken as they are:\n"
    yield from (f"- `{prefix}*`" for prefix in ELSEWHERE)


def _properties() -> Iterator[str]:
    yield (
        "\n## Properties of a table (hoodie.properties)\n\nA property that no known release writes is reported when "
        "rows are read, and refused by everything that changes the table.\n\nUsed by hudi_py:\n"
    )
    yield from (f"- `{name}`" for name in sorted(SERVED))
    yield "\n| property | accepted | not supported for | because |\n|---|---|---|---|"
    for rule in sorted(REFUSED_PROPERTIES, key=lambda rule: rule.name):
        yield _line(rule)
    yield "\n| property | harmless, because |\n|---|---|"
    yield from (f"| `{name}` | {reason} |" for name, reason in sorted(HARMLESS_PROPERTIES.items()))


def _line(rule: Refused) -> str:
    accepted = [*(f"`{value}`" for value in rule.unless), *([f"that of `{rule.same_as.name}`"] if rule.same_as else [])]
    return f"| `{rule.name}` | {', '.join(accepted) or 'none'} | {rule.uses.words} | {rule.reason} |"


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _default(key: Key[object]) -> str:
    value = key.default
    if value is None or value in ("", ()):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(page(), encoding="utf-8")
