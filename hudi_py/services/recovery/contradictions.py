"""
What a check finds and no service can put right: told with its way out, so that recovery never passes over it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hudi_py.services.check.findings import RULES, Finding, Severity
from hudi_py.services.recovery.finding import Problem, RecoveryFinding, Step

_HARMLESS: Final = frozenset({"instant-twice"})
"""Two executors of one clean leave it so, in Hudi too; everybody takes the newest (rule A-75)."""


def contradictions(found: Iterable[Finding], known: Iterable[RecoveryFinding]) -> Iterator[RecoveryFinding]:
    """
    One finding for each code of a check that none of *known* is about, errors before warnings.

    Args:
        found: By a check.
        known: What recovery has found itself.
    """
    known = tuple(known)
    by_code: dict[str, list[Finding]] = {}
    for each in found:
        if each.severity is not Severity.INFO and each.code not in _HARMLESS and not _is_known(each, known):
            by_code.setdefault(each.code, []).append(each)
    for code in RULES:  # which stand in the order of what they are about
        same = sorted(by_code.get(code, ()), key=lambda each: each.where)
        if same:
            message = same[0].message if len(same) == 1 else f"{RULES[code].meaning}: {len(same)} of them"
            yield RecoveryFinding(
                problem=Problem.CONTRADICTION,
                step=Step.DECIDE,
                evidence=(f"{code}: {message}", RULES[code].fix),
                paths=tuple(each.where for each in same),
            )


def _is_known(finding: Finding, known: Iterable[RecoveryFinding]) -> bool:
    """Whether recovery speaks of the same file, instant, properties, or of the metadata table as a whole."""
    if finding.code.startswith("properties-"):
        return any(each.problem is Problem.PROPERTIES for each in known)
    if finding.code.startswith("mdt-") and any(each.problem is Problem.METADATA_TABLE for each in known):
        return True
    if finding.code.startswith("instant-"):
        time = finding.where.rpartition("/")[2].partition(".")[0].partition("_")[0]
        return any(each.instant is not None and each.instant.requested_time == time for each in known)
    paths = (path.rstrip("/") for each in known for path in each.paths)
    if finding.code == "partition-metafile-missing":  # then what lies in the folder is what is missed
        return any(path.rpartition("/")[0] == finding.where.rpartition("/")[0] for path in paths)
    return finding.where in paths
