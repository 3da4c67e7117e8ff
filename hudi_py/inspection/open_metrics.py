"""
Metrics as text, in a form that OpenMetrics and the older format of Prometheus (node_exporter's text files) both accept.

Source: OpenMetrics 1.0.0. Every family is a gauge: what a table shows now may fall as well as rise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

_LINE: Final = re.compile(r"(\w+)\{(.*)\} (-?[0-9.]+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPE: Final = re.compile(r"\\(.)")
CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

FAMILIES: Final[Mapping[str, tuple[str, str]]] = {
    "hudi_py_table_up": ("", "1 if the table could be read, else 0."),
    "hudi_py_table_info": ("", "Always 1; name, type and version of the table are labels."),
    "hudi_py_instants": ("", "Instants on the active timeline, by action and state."),
    "hudi_py_pending_age_seconds": ("seconds", "Age of the oldest instant that is not completed, by action."),
    "hudi_py_last_completed_timestamp_seconds": ("seconds", "When the newest completed action began, since 1970."),
    "hudi_py_last_completed_age_seconds": ("seconds", "Time since the newest completed action began."),
    "hudi_py_last_duration_seconds": ("seconds", "How long the newest completed action took."),
    "hudi_py_last_written_bytes": ("bytes", "Bytes of the files that the newest completed action wrote."),
    "hudi_py_last_deleted_files": ("files", "Files that the newest completed action deleted."),
    "hudi_py_examined_timestamp_seconds": ("seconds", "When files and findings were examined, since 1970."),
    "hudi_py_held_files": ("files", "Files of the table by what keeps them, as in hudi-py du."),
    "hudi_py_held_bytes": ("bytes", "Bytes of the table by what keeps them, as in hudi-py du."),
    "hudi_py_wasted_bytes": ("bytes", "Bytes that nothing needs: the sum of removable, unexamined and orphan."),
    "hudi_py_findings": ("", "Findings of hudi-py doctor, by severity and code."),
    "hudi_py_commits_since_clean": ("", "Completed commits since the last clean."),
    "hudi_py_command_exit_code": ("", "Exit code of the last run of a command of hudi-py."),
    "hudi_py_command_duration_seconds": ("seconds", "How long the last run of a command took."),
    "hudi_py_command_timestamp_seconds": ("seconds", "When the last run of a command ended, since 1970."),
    "hudi_py_command_success_timestamp_seconds": (
        "seconds", "When the last run of a command that succeeded (exit code 0, 3 or 7) ended, since 1970.",
    ),
}  # fmt: skip
"""Name of each family to its unit (empty for none), with which the name ends, and its meaning."""


@attrs.frozen
class Sample:
    """
    One value.

    Args:
        family: A name of `FAMILIES`.
        labels: Names and values.
        value: In the family's unit.
    """

    family: str
    labels: Mapping[str, str]
    value: float


def metrics_text(samples: Iterable[Sample]) -> str:
    """Return the text of all samples, family by family; of two samples with the same labels the last one counts."""
    by_family: dict[str, dict[str, float]] = {name: {} for name in FAMILIES}
    for sample in samples:
        by_family[sample.family][_labels(sample.labels)] = sample.value
    lines = []
    for name, found in by_family.items():
        if not found:
            continue
        unit, meaning = FAMILIES[name]
        lines.append(f"# TYPE {name} gauge")
        if unit:
            lines.append(f"# UNIT {name} {unit}")
        lines.append(f"# HELP {name} {meaning}")
        lines += [f"{name}{{{labels}}} {_number(value)}" for labels, value in found.items()]
    return "\n".join([*lines, "# EOF"]) + "\n"


def samples_in(text: str, family: str) -> Iterator[Sample]:
    """Yield the samples of one family in a text of `metrics_text`; lines of another form are left out."""
    for line in text.split("\n"):
        found = _LINE.fullmatch(line)
        if found is not None and found[1] == family:
            labels = {name: _ESCAPE.sub(_unescaped, value) for name, value in _LABEL.findall(found[2])}
            yield Sample(family, labels, float(found[3]))


def _unescaped(match: re.Match[str]) -> str:
    return {"n": "\n"}.get(match[1], match[1])


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    """Names of tables may contain anything: a line end would begin a line of its own, a quote another label."""
    # Characters that no encoding has (halves of pairs) would make the whole text unreadable.
    clean = value.encode("utf-8", "backslashreplace").decode()
    # A carriage return alone ends a line for some readers of the format.
    return clean.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\\\r")


def _number(value: float) -> str:
    # Whole numbers without a point, and never in a form that rounds bytes.
    return str(int(value)) if float(value).is_integer() else f"{value:.3f}"
