"""
Reports what a check finds and no service can repair, so that recovery never hides it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hudi_py.services.check.findings import RULES, Finding, Severity
from hudi_py.services.recovery.finding import Problem, RecoveryFinding, Step

_HARMLESS: Final = frozenset({"instant-twice"})
"""Two executors of one clean leave both files, in Hudi too, and every reader takes the newest (rule A-75)."""


def contradictions(found: Iterable[Finding], known: Iterable[RecoveryFinding]) -> Iterator[RecoveryFinding]:
    """
    One finding for each code of a check that none of the known findings is about, errors before warnings.

    Args:
        found: Findings of the check.
        known: Findings of recovery itself.
    """
    known = tuple(known)
    by_code: dict[str, list[Finding]] = {}
    for each in found:
        if each.severity is not Severity.INFO and each.code not in _HARMLESS and not _is_known(each, known):
            by_code.setdefault(each.code, []).append(each)
    for code in RULES:  # the rules are ordered by subject, errors first
        same = sorted(by_code.get(code, ()), key=lambda each: each.where)
        if same:
            message = same[0].message if len(same) == 1 else f"{RULES[code].meaning}: {len(same)} times"
            yield RecoveryFinding(
                problem=Problem.CONTRADICTION,
                step=Step.DECIDE,
                evidence=(f"{code}: {message}", RULES[code].fix),
                paths=tuple(each.where for each in same),
            )


def _is_known(finding: Finding, known: Iterable[RecoveryFinding]) -> bool:
    """Whether a finding of recovery is about the same file or instant, the properties, or the whole metadata table."""
    if finding.code.startswith("properties-"):
        return any(each.problem is Problem.PROPERTIES for each in known)
    if finding.code.startswith("mdt-") and any(each.problem is Problem.METADATA_TABLE for each in known):
        return True
    if finding.code.startswith("instant-"):
        time = finding.where.rpartition("/")[2].partition(".")[0].partition("_")[0]
        return any(each.instant is not None and each.instant.requested_time == time for each in known)
    paths = (path.rstrip("/") for each in known for path in each.paths)
    if finding.code == "partition-metafile-missing":  # then the files of that folder are the findings
        return any(path.rpartition("/")[0] == finding.where.rpartition("/")[0] for path in paths)
    return finding.where in paths
