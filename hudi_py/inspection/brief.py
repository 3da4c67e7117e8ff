"""What a command found or did on a table, in one line, from its JSON document. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hudi_py.inspection.fleet_budget import clean_outlook
from hudi_py.model.words import counted, human_bytes, human_span


def brief(document: Any) -> str:
    """
    Return a summary of what a command printed with ``--json``, in one line; empty only for text.

    Args:
        document: Any of them.
    """
    if isinstance(document, list):
        # Findings of check and doctor: their codes say most in one line.
        if any("proposal" in each for each in document):
            return _brief_recovery(document)
        codes = [each["code"] for each in document if isinstance(each, dict) and "code" in each]
        return ", ".join(dict.fromkeys(codes)) if codes else _brief_list(document)
    if document is None:
        return "nothing"
    if not isinstance(document, dict):
        return ""
    if "error" in document:
        return str(document["error"].get("message", ""))
    special = next((say for keys, say in _BY_KEYS.items() if keys <= set(document)), None)
    if special is not None:
        return special(document)
    is_idle = not document.get("would_schedule") and not document.get("pending")
    if is_idle and isinstance(document.get("reason"), str):
        return f"nothing: {document['reason']}"
    if "needs_cleaning" in document:
        files, size = clean_outlook(document)
        return f"{counted(files, 'file')}, {human_bytes(size)}"
    totals = document.get("totals") or document.get("total")
    if isinstance(totals, dict) and {"files", "bytes"} <= set(totals):
        return f"{counted(totals['files'], 'file')}, {human_bytes(totals['bytes'])}"
    if "cleans" in document:
        deleted = sum(len(each.get("deleted_files") or ()) for each in document["cleans"])
        return f"{counted(deleted, 'file')} deleted"
    counts = {key: value for key, value in document.items() if isinstance(value, list) or key == "partitions"}
    if not counts:
        return _brief_values(document)  # what was done has no list, so an empty one cannot be told from it
    # "10 instants", "1 pending": keys are nouns in the plural, or say how something is.
    said = [
        counted(len(value), key.removesuffix("s")) if key.endswith("s") else f"{len(value)} {key.replace('_', ' ')}"
        for key, value in counts.items()
        if value and not isinstance(value, int)
    ]
    return ", ".join(said) or "nothing"


def _brief_list(entries: Sequence[Any]) -> str:
    """How many there are, of what they are."""
    if not entries:
        return "nothing"
    keys = set(entries[0]) if isinstance(entries[0], dict) else set()
    noun = next((noun for mark, noun in _NOUNS.items() if mark <= keys), None)
    return f"entries: {len(entries)}" if noun is None else counted(len(entries), noun)


def _brief_values(document: Mapping[str, Any]) -> str:
    """The first values of a document that is flat."""
    said = [
        (key if value else f"not {key}") if isinstance(value, bool) else f"{key} {value}"
        for key, value in document.items()
        if isinstance(value, str | int) and value != ""
    ]
    return ", ".join(said[:3]).replace("_", " ") or "done"


def _brief_savepoint(document: Mapping[str, Any]) -> str:
    """The commit whose files are kept, how many these are, and until when."""
    trial = document.get("files")
    found = trial or {name: each["savepointDataFile"] for name, each in document.get("partitionMetadata", {}).items()}
    word = "keeps" if trial is None else "would keep"
    until = f", until {document['expires_at']}" if document["expires_at"] else ""
    return f"{document['instant']} {word} {counted(sum(map(len, found.values())), 'file')}{until}"


def _brief_lease(document: Mapping[str, Any]) -> str:
    word = f"lease {document['id']} keeps" if document["id"] else "a lease would keep"
    return f"{word} {document['instant']} until {document['expires']}"


def _brief_deletion(document: Mapping[str, Any]) -> str:
    """Whether data may be deleted, and whether that is new."""
    said = "deletion forbidden" if document["forbidden"] else "deletion allowed"
    why = f": {document['why']}" if document.get("why") else ""
    if "changed" not in document:
        return said + why
    would = document.get("would_change")
    return f"{said}{'' if document['changed'] else ' (would be new)' if would else ' already'}"


def _brief_policy(document: Mapping[str, Any]) -> str:
    """What the policy says, line by line; the settings that follow from it are many."""
    return ", ".join(f"{each['key']}: {each['meaning']}" for each in document["lines"]) or "an empty policy"


def _brief_overview(document: Mapping[str, Any]) -> str:
    """What of an overview tells tables apart: how large, how old, whether anything is stuck."""
    files = document["files"]
    parts = [counted(document["partitions"], "partition"), f"{human_bytes(files['latest']['bytes'])} in newest files"]
    parts.append(f"{human_bytes(files['older']['bytes'])} in older ones")
    last = document["last"].get("commit")
    parts.append("no commit yet" if last is None else f"last commit {human_span(last['age_seconds'])} ago")
    return ", ".join([*parts, *([f"{len(document['pending'])} pending"] if document["pending"] else [])])


def _brief_recovery(document: Sequence[Mapping[str, Any]]) -> str:
    """How many findings there are, and which of them are not done."""
    left = [each["error"] or each["problem"] for each in document if not each["done"]]
    count = counted(len(document), "finding")
    return (
        f"{count}, {len(document) - len(left)} done; left: {', '.join(dict.fromkeys(left))}"
        if left
        else f"{count}, done"
    )


def _brief_maintenance(document: Mapping[str, Any]) -> str:
    """Which steps are due, or were taken, and what failed."""
    failed = [f"{each['step']} failed: {each['why']}" for each in document["steps"] if each["error"]]
    taken = [_brief_step(each) for each in document["steps"] if each["due"] and not each["error"]]
    word, idle = ("due", "nothing is due") if document["dry_run"] else ("done", "nothing was due")
    return "; ".join([*failed, *([f"{word}: {', '.join(taken)}"] if taken else [])]) or idle


def _brief_step(step: Mapping[str, Any]) -> str:
    count = len(step["files"])
    return f"{step['step'].replace('_', ' ')} ({count:,})" if count else step["step"].replace("_", " ")


def _brief_expiry(document: Mapping[str, Any]) -> str:
    """How many partitions go; which there are says nothing."""
    if not document["expired"]:
        return f"nothing: {document['rule']}"
    word = "would be dropped" if document["dry_run"] else "dropped"
    return f"{counted(len(document['expired']), 'partition')} {word}"


def _brief_compaction(document: Mapping[str, Any]) -> str:
    """What a run would carry out first, and what it would plan."""
    pending, groups = len(document["pending_compactions"]), len(document["plan"]["operations"])
    parts = [f"{pending} pending, which would be carried out"] if pending else []
    parts += [f"{counted(groups, 'file group')} to compact"] if groups else []
    return ", ".join(parts) or f"nothing: {document['reason']}"


def _brief_rows(document: Mapping[str, Any]) -> str:
    return counted(len(document["data"]), "row")


def _brief_simulation(document: Mapping[str, Any]) -> str:
    totals = document["totals"]
    said = f"{counted(totals['commits'], 'commit')}, {counted(totals['files_deleted'], 'file')} deleted"
    return f"{said}, {human_bytes(totals['bytes_end'])} in the end"


_BY_KEYS: Final[Mapping[frozenset[str], Callable[[Mapping[str, Any]], str]]] = {
    frozenset({"steps", "dry_run"}): _brief_maintenance,
    frozenset({"steps", "retention"}): _brief_simulation,
    frozenset({"expired", "rule"}): _brief_expiry,
    frozenset({"pending_compactions", "plan"}): _brief_compaction,
    frozenset({"rows", "data"}): _brief_rows,
    frozenset({"file_groups", "instants"}): _brief_overview,
    frozenset({"instant", "name", "expires_at"}): _brief_savepoint,
    frozenset({"id", "instant", "expires"}): _brief_lease,
    frozenset({"forbidden"}): _brief_deletion,
    frozenset({"mark", "lines", "text"}): _brief_policy,
}
"""Keys that only one command's document has, to what says it in words."""
_NOUNS: Final[Mapping[frozenset[str], str]] = {
    frozenset({"is_expired", "content"}): "savepoint",
    frozenset({"holder", "expires"}): "lease",
    frozenset({"name", "undone"}): "consumer",
}
"""Keys of the entries of a list, to what they are; of others only their number is said."""
