"""
Entries of a commit in addition to its files: those of the user, and a write key that makes a repeated write do nothing.

Each commit with a write key repeats in its ``extraMetadata`` the newest versions of all applications, so the one that
completed last has them all. By requested time another one may be the newest, and that one tells which write was pending
when it completed: only commits between these two are read. If they are archived, the archive is read; a version whose
commit was rolled back is undone, and its key can be used again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from hudi_py.config import keys
from hudi_py.config.arguments import check_kinds
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.model.instant import Action
from hudi_py.model.json_document import parse_json
from hudi_py.model.records import CommitMetadata
from hudi_py.runtime.log import log
from hudi_py.timeline.archive import archived_commits, has_archive, is_archived
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.row_schema import IDS_ENTRY
from hudi_py.timeline.timeline import Timeline
from hudi_py.writing.result import WriteResult

KEYS_ENTRY: Final = "hudi_py.write.keys"
_EXPIRY_ENTRY: Final = "hudi_py.expiry"
_OURS: Final = "hudi_py."
"""How the names of entries begin that only hudi_py writes: a foreign one would count as a written key, for instance."""
_HUDIS: Final = frozenset({"schema", IDS_ENTRY})
"""What each reader takes the columns from."""
# A long of Java, for programs of Hudi's world that read the commit.
_VERSION_MAX: Final = (1 << 63) - 1
_TAKEN: Final = "where hudi_py itself sets what this name says; use another name"

_Versions = dict[str, tuple[int, str]]
"""Application to its newest version and the requested time of its commit."""
_SINCE: Final = ""
"""In the place of an application, which has a name: the first write that was pending when the commit completed."""


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
        if version < newest:
            # What is restarted repeats its last write; who begins at 0 again has forgotten what it wrote.
            log.warning(
                "write.key.older",
                why=f"the rows of write key {application}:{version} were not written, because {application}:{newest} "
                f"was committed before ({instant_time}); a stream with a new checkpoint needs another name",
            )
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
        # It may complete later, with versions that this commit does not have, and it is not the newest then.
        earlier = timeline.pending(Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)[:1]
        if earlier and earlier[0].requested_time < instant_time:
            versions[_SINCE] = (0, earlier[0].requested_time)
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
        ConfigError: One of them has another form, or a name is set by hudi_py itself.
    """
    key = None if write_key is None else _checked_key(write_key)
    check_kinds(Mapping, "a dictionary of texts", extra_metadata=extra_metadata)
    extra = dict(extra_metadata or {})
    for name, text in extra.items():
        if not all(isinstance(each, str) for each in (name, text)) or not name:
            raise ConfigError(f"extra_metadata has {name!r}: {text!r}; names and values are texts")
        if is_taken(name):
            raise ConfigError(f"extra_metadata has {name!r}, {_TAKEN}")
    # By type, because True is an int, too.
    if retries is not None and (type(retries) is not int or retries < 0):
        raise ConfigError(f"retries={retries!r}; give a whole number of at least 0")
    return CommitWords(key=key, extra=extra, retries=retries)


def expiry_words(rule: str) -> CommitWords:
    """Return the entry of a commit that drops partitions by this *rule* of expiry."""
    return CommitWords(extra={_EXPIRY_ENTRY: rule})


def is_taken(name: str) -> bool:
    """Whether an entry of a commit with this name is set by hudi_py, and none of a user."""
    return name in _HUDIS or name.startswith(_OURS)


def copied_settings(settings: Settings) -> dict[str, str]:
    """
    Return the settings that every commit repeats, as ``hoodie.datasource.write.commitmeta.key.prefix`` says.

    Raises:
        ConfigError: One of them has a name that hudi_py uses.
    """
    prefix = settings[keys.COMMIT_METADATA_PREFIX]
    copied = {name: settings.text(name) for name in settings if name.startswith(prefix)}
    taken = sorted(filter(is_taken, copied))
    if taken:
        raise ConfigError(
            f"the setting {taken[0]!r} begins with {prefix!r}, so {keys.COMMIT_METADATA_PREFIX.name} puts it into each "
            f"commit, {_TAKEN}"
        )
    return copied


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
    store = contents.store
    found: _Versions = {}
    undone: set[str] = set()  # applications of which only versions were seen that are undone
    since: str | None = None
    for instant in reversed(timeline.commits.completed()):
        if since is not None and instant.requested_time < since and undone <= found.keys():
            return found
        text = contents.commit(instant).extra_metadata.get(KEYS_ENTRY)
        if not text:
            continue
        versions = _parsed(text, store.storage.root)
        pending = versions.pop(_SINCE, None)
        if since is None:
            since = instant.requested_time if pending is None else pending[1]
        for application, version in versions.items():
            if _stands(version[1], instant.requested_time, timeline, contents):
                _keep_larger(found, application, version)
            else:
                undone.add(application)
    # Active commits first: the archive may be large.
    first = timeline.first_not_savepointed
    if since is not None and first is not None and first <= since and undone <= found.keys():
        return found
    if has_archive(store.storage, store.config):
        _add_archived(found, timeline, contents)
    return found


def _add_archived(found: _Versions, timeline: Timeline, contents: Contents) -> None:
    """Add what archived commits say; all of them are read once."""
    store = contents.store
    times = {each.requested_time for each in timeline.commits.completed()}
    overtaken: set[tuple[str, tuple[int, str]]] = set()
    for commit in archived_commits(store.storage, store.config):
        times.add(commit.time)
        text = (commit.fields().get("extraMetadata") or {}).get(KEYS_ENTRY)
        versions = _parsed(text, store.storage.root) if text else {}
        versions.pop(_SINCE, None)
        for application, version in versions.items():
            if version[1] <= commit.time:
                _keep_larger(found, application, version)
            else:
                overtaken.add((application, version))
    for application, version in overtaken:
        if version[1] in times:
            _keep_larger(found, application, version)


def _stands(time: str, repeated_by: str, timeline: Timeline, contents: Contents) -> bool:
    """
    Whether the commit of that time was not undone: commits may repeat its version.

    The newest commit is undone first, so one that was requested before a commit that stands was not undone.
    """
    if time <= repeated_by or any(each.requested_time == time for each in timeline.commits.completed()):
        return True
    return is_archived(contents.store.storage, contents.store.config, time)


def _keep_larger(found: _Versions, application: str, version: tuple[int, str]) -> None:
    found[application] = max(version, found.get(application, version))


def _parsed(text: str, root: str) -> _Versions:
    try:
        return {application: (int(version), str(time)) for application, (version, time) in parse_json(text).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptMetadata(f"{root}: {KEYS_ENTRY} of a commit is damaged: {text[:200]!r}") from error
