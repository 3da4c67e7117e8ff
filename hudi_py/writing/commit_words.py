"""
Entries of a commit in addition to its files: those of the user, and a write key that makes a repeated write do nothing.

Each commit with a write key repeats in its ``extraMetadata`` the newest versions of all applications, so reading the
newest such commit is enough. If it is archived, the archive is read; if it was rolled back, its write is undone, and
the key can be used again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.model.json_document import parse_json
from hudi_py.model.records import CommitMetadata
from hudi_py.timeline.archive import archived_commits, has_archive
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.row_schema import IDS_ENTRY
from hudi_py.timeline.timeline import Timeline
from hudi_py.writing.result import WriteResult

KEYS_ENTRY: Final = "hudi_py.write.keys"
_OURS: Final = frozenset({"schema", IDS_ENTRY, KEYS_ENTRY})
# A long of Java, for programs of Hudi's world that read the commit.
_VERSION_MAX: Final = (1 << 63) - 1

_Versions = dict[str, tuple[int, str]]
"""Application to its newest version and the requested time of its commit."""


@attrs.frozen(kw_only=True)
class CommitWords:
    """
    The entries of a commit in addition to its files.

    Args:
        key: Application and version of the write; versions of an application rise.
        extra: Further entries.
        retries: How often the write is begun again when another writer was faster; None for the number in the settings.
    """

    key: tuple[str, int] | None = None
    extra: Mapping[str, str] = attrs.field(factory=dict)
    retries: int | None = None

    def committed_before(self, timeline: Timeline, contents: Contents) -> WriteResult | None:
        """
        Return the result of the write that committed this key or a later version; None if none did.

        Raises:
            CorruptMetadata: A commit that may have the key is damaged.
        """
        if self.key is None:
            return None
        application, version = self.key
        newest, instant_time = _versions(timeline, contents).get(application, (-1, ""))
        # Versions of an application rise, so a lower one has been written, too.
        if version > newest:
            return None
        found = next(
            (instant for instant in timeline.commits.completed() if instant.requested_time == instant_time), None
        )
        # Archived since: that it was written is known without its content.
        metadata = CommitMetadata() if found is None else contents.commit(found)
        return WriteResult(instant=instant_time, metadata=metadata, is_repeated=True)

    def entries(self, instant_time: str, timeline: Timeline, contents: Contents) -> dict[str, str]:
        """Return the entries of ``extraMetadata`` for a commit with this requested time."""
        if self.key is None:
            return dict(self.extra)
        application, version = self.key
        versions = {**_versions(timeline, contents), application: (version, instant_time)}
        return {**self.extra, KEYS_ENTRY: json.dumps(versions, sort_keys=True, separators=(",", ":"))}


NO_WORDS: Final = CommitWords()


def commit_words(
    write_key: Any = None, extra_metadata: Mapping[str, str] | None = None, retries: int | None = None
) -> CommitWords:
    """
    Check what a user gives.

    Args:
        write_key: Application (text) and version (whole number of at least 0).
        extra_metadata: Name to text.
        retries: Whole number of at least 0; None for the number in the settings.

    Raises:
        ConfigError: One of them has another form, or a name is used by hudi_py.
    """
    key = None if write_key is None else _checked_key(write_key)
    extra = dict(extra_metadata or {})
    for name, text in extra.items():
        if not all(isinstance(each, str) for each in (name, text)) or not name:
            raise ConfigError(f"extra_metadata has {name!r}: {text!r}; names and values are texts")
        if name in _OURS:
            raise ConfigError(f"extra_metadata has {name!r}, which hudi_py sets in every commit; use another name")
    # By type, because True is an int, too.
    if retries is not None and (type(retries) is not int or retries < 0):
        raise ConfigError(f"retries={retries!r}; give a whole number of at least 0")
    return CommitWords(key=key, extra=extra, retries=retries)


def copied_settings(settings: Settings) -> dict[str, str]:
    """Return the settings that every commit repeats, as ``hoodie.datasource.write.commitmeta.key.prefix`` says."""
    prefix = settings[keys.COMMIT_METADATA_PREFIX]
    return {name: settings.text(name) for name in settings if name.startswith(prefix)}


def parse_write_key(text: str) -> tuple[str, int]:
    """
    Parse ``APP:VERSION``.

    Raises:
        ConfigError: The text has another form.
    """
    application, colon, version = text.rpartition(":")
    if not colon or not application or not version.isascii() or not version.isdigit():
        raise ConfigError(f"write key {text!r} is not of the form APP:VERSION, such as loader:7")
    return application, int(version)


def _checked_key(given: Any) -> tuple[str, int]:
    try:
        application, version = given
    except (TypeError, ValueError):
        application, version = None, None
    if isinstance(application, str) and application and type(version) is int and 0 <= version <= _VERSION_MAX:
        return application, version
    raise ConfigError(f"write_key={given!r}; give an application and a version, such as ('loader', 7)")


def _versions(timeline: Timeline, contents: Contents) -> _Versions:
    """Return the newest version of each application."""
    # Active commits first: the archive is read only if none of them has an entry.
    for metadata in _newest_first(timeline, contents):
        text = metadata.get(KEYS_ENTRY)
        if text:
            return _parsed(text, contents.store.storage.root)
    store = contents.store
    if not has_archive(store.storage, store.config):
        return {}
    found: dict[str, str] = {}
    for commit in archived_commits(store.storage, store.config):
        extra = commit.fields().get("extraMetadata") or {}
        if KEYS_ENTRY in extra:
            found[commit.time] = extra[KEYS_ENTRY]
    # By the largest time, because an archive has commits in any order.
    return _parsed(found[max(found)], store.storage.root) if found else {}


def _newest_first(timeline: Timeline, contents: Contents) -> Iterator[Mapping[str, str | None]]:
    for instant in reversed(timeline.commits.completed()):
        yield contents.commit(instant).extra_metadata


def _parsed(text: str, root: str) -> _Versions:
    try:
        return {application: (int(version), str(time)) for application, (version, time) in parse_json(text).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptMetadata(f"{root}: {KEYS_ENTRY} of a commit is damaged: {text[:200]!r}") from error
