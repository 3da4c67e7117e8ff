"""
The retention policy of a table: a TOML document that says what is kept, and the settings that follow from it. Pure.

A key that is not known, a value of another type and two lines that contradict each other are refused with their lines:
a misspelt line would otherwise delete what it was to keep.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final

import attrs

from hudi_py.config import keys
from hudi_py.config.archive import archive_config
from hudi_py.config.arguments import check_texts
from hudi_py.config.clean import CleanPolicy, clean_config, format_duration
from hudi_py.config.expiry import expiry_config
from hudi_py.config.keys import Key
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from hudi_py.model.instant_time import parse_duration
from hudi_py.model.words import parse_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MS: Final = timedelta(milliseconds=1)


def _span(value: Any) -> timedelta:
    span = parse_duration(value) if isinstance(value, str) else None
    if span is None or span <= timedelta(0):
        raise ValueError('a span such as "36h" or "7d" is needed')
    return span


def _count(value: Any) -> int:
    # To Python, true is an int, too.
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("a whole number above 0 is needed")
    return value


def _bytes(value: Any) -> int:
    found = parse_bytes(value) if isinstance(value, str) else _count(value)
    if not found:
        raise ValueError('a size such as "500GB" or a whole number of bytes is needed')
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a text is needed")
    return value


def _flag(value: Any) -> bool:
    # By identity, because 1 equals True in Python.
    if value is not True and value is not False:
        raise ValueError("true or false is needed")
    return bool(value)


@attrs.frozen
class _Line:
    """A key of the document: how its value is read, what it means in words, and the setting that it becomes."""

    read: Callable[[Any], Any]
    meaning: str
    setting: Key[Any] | None = None


_LINES: Final[Mapping[str, _Line]] = {
    "keep.everything": _Line(_span, "files that the last {} need are kept"),
    "keep.floor": _Line(_span, "files that the last {} need are kept, whatever is asked for", keys.CLEAN_FLOOR),
    "keep.changes": _Line(
        _span,
        "changes of the last {} can be read, for which its snapshots are kept, whatever keep.max_bytes says",
        keys.CLEAN_CHANGES_RETAINED,
    ),
    "keep.max_bytes": _Line(
        _bytes,
        "what keep.everything keeps of older versions ends earlier if it has more than {} bytes",
        keys.CLEAN_MAX_OLD_BYTES,
    ),
    "keep.commits": _Line(_count, "files that the last {} commits need are kept", keys.CLEAN_MIN_COMMITS),
    "keep.versions": _Line(_count, "{} versions of each file group are kept", keys.CLEAN_MIN_FILE_VERSIONS),
    "tags.hourly": _Line(_count, "the last commit of each of the last {} hours is tagged", keys.TAGS_HOURLY),
    "tags.daily": _Line(_count, "the last commit of each of the last {} days is tagged", keys.TAGS_DAILY),
    "tags.weekly": _Line(_count, "the last commit of each of the last {} weeks is tagged", keys.TAGS_WEEKLY),
    "tags.monthly": _Line(_count, "the last commit of each of the last {} months is tagged", keys.TAGS_MONTHLY),
    "tags.watermark": _Line(
        _text,
        "instead, the first commit is tagged whose watermark, {} in its extra metadata, is past the period",
        keys.TAGS_WATERMARK,
    ),
    "tags.delay": _Line(_span, "by at least {}", keys.TAGS_WATERMARK_DELAY),
    "partitions.days": _Line(_count, "partitions expire after {} days", keys.PARTITION_TTL_DAYS),
    "partitions.by": _Line(_text, "the age of a partition counts from its {}"),
    "partitions.format": _Line(_text, "the value of a partition is a time of the form {}", keys.PARTITION_TTL_FORMAT),
    "partitions.field": _Line(_text, "that time is in the column {}", keys.PARTITION_TTL_FIELD),
    "partitions.max": _Line(_count, "a run drops {} partitions at most", keys.PARTITION_TTL_MAX),
    "archive.min_commits": _Line(_count, "archival leaves {} commits active", keys.KEEP_MIN_COMMITS),
    "archive.max_commits": _Line(_count, "archival begins with more than {} active commits", keys.KEEP_MAX_COMMITS),
    "clean.quarantine": _Line(_flag, "deleted files can be put back for a while: {}", keys.CLEAN_QUARANTINE),
    "clean.grace": _Line(_span, "they can be put back for {}", keys.QUARANTINE_GRACE),
}
_BY: Final = {"last-change": "KEEP_BY_TIME", "creation": "KEEP_BY_CREATION_TIME", "value": ""}


@attrs.frozen(kw_only=True)
class RetentionPolicy:
    """
    A policy that was checked.

    Args:
        text: The document.
        settings: The settings that follow from it, by name.
        meaning: Line number and key of each line, and what it means as a sentence.
    """

    text: str = attrs.field(repr=False)
    settings: Mapping[str, str]
    meaning: tuple[tuple[int, str, str], ...] = attrs.field(repr=False)

    @property
    def mark(self) -> str:
        """Name of the document, which differs for each text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def parse_policy(text: str, source: str = "the policy") -> RetentionPolicy:
    """
    Check a policy, and translate it into settings.

    Args:
        text: A TOML document.
        source: What to call it in messages.

    Raises:
        ConfigError: Names the line, and what to write instead.
    """
    check_texts(document=text)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is no TOML document: {error}") from error
    at = _line_numbers(text)

    def line(name: str) -> str:
        return f"line {at[name]}, {name}" if name in at else name

    values: dict[str, Any] = {}
    for name, value in _flat(document):
        known = _LINES.get(name)
        if known is None:
            close = get_close_matches(name, _LINES, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(_LINES)}"
            raise ConfigError(f"{source}, {line(name)}: unknown; {hint} Nothing was changed")
        try:
            values[name] = known.read(value)
        except ValueError as error:
            raise ConfigError(f"{source}, {line(name)} = {value!r}: {error}") from error
    # An empty document is a mistake: in force, it would let the settings of each process decide.
    if not values:
        raise ConfigError(f"{source} says nothing; see docs/policy.md")
    for one, other, why in _contradictions(values):
        raise ConfigError(f"{source}: {line(one)} and {line(other)} contradict each other: {why}")
    settings = _compiled(values)
    try:  # whatever the settings refuse among themselves, before the document is stored
        checked = Settings(settings)
        clean_config(checked), archive_config(checked), expiry_config(checked)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from error
    meaning = ((at.get(name, 0), name, _LINES[name].meaning.format(_shown(values[name]))) for name in values)
    return RetentionPolicy(text=text, settings=settings, meaning=tuple(sorted(meaning)))


def _flat(document: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for section, content in document.items():
        if isinstance(content, dict):
            found += [(f"{section}.{name}", value) for name, value in content.items()]
        else:
            found.append((section, content))
    return found


def _line_numbers(text: str) -> dict[str, int]:
    """Key to its line; keys in forms that are rarely written have none."""
    found: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([\w-]+)\s*\]", line)
        key = re.match(r"\s*([\w.-]+)\s*=", line)
        if header:
            section = header[1]
        elif key:
            found.setdefault(f"{section}.{key[1]}" if section else key[1], number)
    return found


def _contradictions(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    found = []

    def compare(one: str, other: str, why: str, *, wrong: Callable[[Any, Any], bool]) -> None:
        if one in values and other in values and wrong(values[one], values[other]):
            found.append((one, other, why))

    compare(
        "keep.everything", "keep.floor", "what is kept is shorter than the floor", wrong=lambda one, other: one < other
    )
    compare(
        "archive.max_commits",
        "archive.min_commits",
        "archival begins with more commits than it leaves",
        wrong=lambda one, other: one <= other,
    )
    compare(
        "archive.min_commits",
        "keep.commits",
        "archival would pass commits that cleans have to see; it has to leave more",
        wrong=lambda one, other: one <= other,
    )
    compare("partitions.by", "partitions.format", 'a form belongs to by = "value"', wrong=lambda one, _: one != "value")
    if "keep.max_bytes" in values and "keep.everything" not in values:
        found.append(("keep.max_bytes", "keep.everything", "it shortens what that line keeps, which is missing"))
    for promise in ("keep.floor", "keep.changes"):
        compare(
            "keep.max_bytes",
            promise,
            f"nothing is left to shorten: {promise} keeps all that keep.everything keeps, whatever its size",
            wrong=lambda _, other: other >= values.get("keep.everything", timedelta.max),
        )
    tagged = [name for name in ("tags.hourly", "tags.daily", "tags.weekly", "tags.monthly") if name in values]
    if "tags.watermark" in values and not tagged:
        found.append(("tags.watermark", "tags.daily", "without a number of periods nothing is tagged"))
    if "tags.delay" in values and "tags.watermark" not in values:
        found.append(("tags.delay", "tags.watermark", "a delay belongs to a watermark"))
    if values.get("partitions.by") == "value" and "partitions.format" not in values:
        found.append(("partitions.by", "partitions.format", "the form of the value is missing"))
    if "partitions.field" in values and "partitions.format" not in values:
        found.append(("partitions.field", "partitions.format", "the form of the value is missing"))
    others = [name for name in values if name.startswith("partitions.") and name != "partitions.days"]
    if others and "partitions.days" not in values:
        found.append((others[0], "partitions.days", "without a number of days no partition expires"))
    if "partitions.by" in values and values["partitions.by"] not in _BY:
        found.append(("partitions.by", "partitions.by", f"use one of {', '.join(_BY)}"))
    if "clean.grace" in values and not values.get("clean.quarantine"):
        found.append(("clean.grace", "clean.quarantine", "without quarantine nothing can be put back"))
    return found


def _compiled(values: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in values.items():
        setting = _LINES[name].setting
        if setting is not None:
            # In the smallest unit of a setting, so that nothing is rounded.
            found[setting.name] = f"{value // _MS}ms" if isinstance(value, timedelta) else _plain(value)
    if "keep.everything" in values:
        found[keys.CLEAN_AGE_RETAINED.name] = f"{values['keep.everything'] // _MS}ms"
        # By hours, so that no other retention of a writer's settings takes the place of this one.
        found[keys.CLEAN_POLICY.name] = CleanPolicy.KEEP_LATEST_BY_HOURS.value
    by = _BY.get(values.get("partitions.by", ""), "")
    if by:
        found[keys.PARTITION_TTL_TYPE.name] = by
    return found


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: Any) -> str:
    return format_duration(value) if isinstance(value, timedelta) else _plain(value)
