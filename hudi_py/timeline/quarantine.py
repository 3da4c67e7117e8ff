"""
Files that were taken out of a table and can still be put back: below ``.hoodie/.aux/hudi_py/quarantine``.

Each removal has a folder of its own with a manifest, written before the first file is moved, and the files below
``files``, at the same paths as in the table. Neither Apache Hudi nor hudi_py looks there for data. A file that cannot
be moved stays where it is; a crash leaves every file at one of the two places.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from hudi_py.errors import CorruptMetadata, NotFound, RefusedError
from hudi_py.model.files import OWN_FOLDER, is_partition_path, join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.model.json_document import parse_json
from hudi_py.model.tag import Tag
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.storage.base import Entry, Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.deletion import Permit
from hudi_py.timeline.erasures import noted
from hudi_py.timeline.timeline import Timeline

FOLDER: Final = f"{OWN_FOLDER}/quarantine"
_MANIFEST: Final = "manifest.json"
_FILES: Final = "files"
ListFolders: TypeAlias = Callable[[Iterable[str]], Mapping[str, list[Entry]]]
_EMPTYING: Final = "emptying"  # present from before the first file is deleted for good


@attrs.frozen(kw_only=True)
class Manifest:
    """
    What one removal took out of the table.

    Args:
        name: Of the removal: the requested time of a clean, or another name for what no instant did.
        kind: ``clean`` or ``orphans``.
        made_ms: When it began, in epoch milliseconds.
        until_ms: From when on its files may be deleted for good.
        files: Partition path to names of its files and their sizes in bytes, -1 if unknown.
        reasons: Path to why the file was removed, where that differs from file to file.
        tag: What its files are tagged with, by which the store deletes them; None if hudi_py deletes them.
    """

    name: str
    kind: str
    made_ms: int
    until_ms: int
    files: Mapping[str, Mapping[str, int]]
    reasons: Mapping[str, str] = attrs.field(factory=dict)
    tag: Tag | None = None

    @property
    def folder(self) -> str:
        """Folder of the removal, relative to the table."""
        return f"{FOLDER}/{self.name}"

    @property
    def files_folder(self) -> str:
        """Folder with the files."""
        return files_folder(self.name)

    def paths(self) -> Iterator[str]:
        """Paths of the files as they were in the table."""
        return iter(paths_of(self.files))


def files_folder(name: str) -> str:
    """Folder with the files of a removal, relative to the table."""
    return f"{FOLDER}/{name}/{_FILES}"


def store_manifest(storage: Storage, manifest: Manifest) -> None:
    """Write the manifest; one of the same name is replaced."""
    document = {
        "kind": manifest.kind,
        "made_ms": manifest.made_ms,
        "until_ms": manifest.until_ms,
        "files": {path: dict(sorted(names.items())) for path, names in sorted(manifest.files.items())},
        **({"reasons": dict(sorted(manifest.reasons.items()))} if manifest.reasons else {}),
        **({"tag": list(manifest.tag)} if manifest.tag else {}),
    }
    storage.replace(f"{manifest.folder}/{_MANIFEST}", json.dumps(document).encode())


def load_manifest(storage: Storage, name: str) -> Manifest | None:
    """
    Read the manifest of a removal; None if there is none.

    Raises:
        CorruptMetadata: It is damaged. Its files are still there.
    """
    path = f"{FOLDER}/{name}/{_MANIFEST}"
    try:
        document = parse_json(storage.read(path))
        # Converted one by one, so that a damaged document fails here and not while files are moved back.
        files = {str(p): {str(n): int(s) for n, s in names.items()} for p, names in document["files"].items()}
        # Files are moved back to these paths: one with `..` would lead out of the table.
        strange = [p for p in files if not is_partition_path(p)]
        if strange:
            raise ValueError(f"{strange[0]!r} is not a partition path")
        return Manifest(
            name=name,
            kind=str(document["kind"]),
            made_ms=int(document["made_ms"]),
            until_ms=int(document["until_ms"]),
            files=files,
            reasons={str(p): str(why) for p, why in document.get("reasons", {}).items()},
            tag=Tag(*map(str, document["tag"])) if "tag" in document else None,
        )
    except NotFound:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptMetadata(
            f"{storage.root}/{path} is damaged ({error}); the files beside it are as they were when they were removed"
        ) from error


def free_name(storage: Storage, name: str) -> str:
    """The name, or one like it that no removal has: a manifest must not take the place of another."""
    found, number = name, 1
    while storage.size(f"{FOLDER}/{found}/{_MANIFEST}") is not None:
        number += 1
        found = f"{name}-{number}"
    return found


def may_hold(storage: Storage) -> frozenset[str]:
    """Names of the removals in quarantine, and of those that left only a folder; costs one listing."""
    return frozenset(entry.name for entry in storage.list(FOLDER) if entry.is_folder)


def removals(storage: Storage) -> tuple[str, ...]:
    """Names of the removals in quarantine, sorted."""
    return tuple(
        sorted(
            entry.name
            for entry in storage.list(FOLDER)
            if entry.is_folder and any(inner.name == _MANIFEST for inner in storage.list(f"{FOLDER}/{entry.name}"))
        )
    )


def sizes_held(storage: Storage, manifest: Manifest, listed: ListFolders | None = None) -> dict[str, dict[str, int]]:
    """
    The files that are in quarantine now: partition path to names and sizes in bytes.

    Args:
        storage: Of the table.
        manifest: Of the removal.
        listed: Lists folders with sizes; None for one after the other.
    """
    folders = {
        path: join_path(manifest.files_folder, path) if path else manifest.files_folder for path in manifest.files
    }
    entries = (
        {folder: storage.list(folder, details=True) for folder in folders.values()}
        if listed is None
        else listed(folders.values())
    )
    return {
        path: {entry.name: entry.size_bytes or 0 for entry in entries[folder] if not entry.is_folder}
        for path, folder in folders.items()
    }


def paths_of(files: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the paths of files that are given by partition."""
    return [join_path(path, name) for path, names in files.items() for name in names]


def is_emptied(storage: Storage, manifest: Manifest) -> bool:
    """Whether its files are being deleted for good, or were to be when a process died."""
    return storage.size(f"{manifest.folder}/{_EMPTYING}") is not None


def purge(
    storage: Storage,
    permit: Permit,
    clock: Clock,
    kept: Callable[[], Collection[str]] = tuple,
    may: Callable[[Mapping[str, int]], bool] | None = None,
) -> tuple[str, ...]:
    """
    Delete the removals for good whose time in quarantine is over, see `removals_over`; return their names.

    Those that are left to the store are only forgotten, once their files are gone. A process that empties a removal
    says so first, and looks then whether another one has begun to undo it, which looks in the other order: so without a
    lock, too, at least one of the two notices.

    Args:
        storage: Of the table.
        permit: To delete data.
        clock: Tells which times are over.
        kept: Names of the removals that are being undone at the moment.
        may: Whether a removal may be deleted now, by the paths and sizes of its files; None for all.
    """
    # Looked at again, because deletion may have been forbidden while a long clean ran, or while others were emptied.
    permit.check()
    done: list[str] = []

    def tag_again(manifest: Manifest, paths: list[str]) -> None:
        if manifest.tag is not None:  # one that an earlier attempt did not reach would stay for ever
            storage.tag_many(paths, manifest.tag)

    over = removals_over(storage, int(clock.now().timestamp() * 1000), kept(), tag_again)
    for name in over:
        manifest = load_manifest(storage, name)
        if may is not None and manifest is not None:
            held = sizes_held(storage, manifest)
            if not may({join_path(path, file): size for path, files in held.items() for file, size in files.items()}):
                continue
        permit.check(done=len(done), total=len(over))  # as late as can be: whoever is asked may take long
        announcement = f"{FOLDER}/{name}/{_EMPTYING}"
        storage.replace(announcement, b"")
        if name in kept():
            storage.delete(announcement)
            continue
        with noted(storage, () if manifest is None else tuple(manifest.files), clock):
            forget(storage, name)
        log.info("quarantine.purged", removal=name)
        done.append(name)
    return tuple(done)


def _left_to_store(storage: Storage, manifest: Manifest) -> list[str]:
    """Where the files are that the store has still to delete."""
    held = {} if manifest.tag is None else sizes_held(storage, manifest)
    return [join_path(manifest.files_folder, path) for path in paths_of(held)]


def removals_over(
    storage: Storage,
    now_ms: int,
    kept: Collection[str] = (),
    left_to_store: Callable[[Manifest, list[str]], None] = lambda *_: None,
) -> tuple[str, ...]:
    """
    Names of the removals whose time in quarantine is over, sorted. Those with damaged manifests stay.

    Of those that are left to the store only the ones whose files are gone.

    Args:
        storage: Of the table.
        now_ms: In epoch milliseconds.
        kept: Names of removals that stay whatever their time: those that are being undone.
        left_to_store: Called with each removal of which the store has still to delete files, and with these.
    """
    over = []
    for name in removals(storage):
        if name in kept:
            continue
        try:
            manifest = load_manifest(storage, name)
        except CorruptMetadata as error:
            # Without its time it is unknown whether it is over, and its files may be the last copies.
            log.warning("quarantine.unreadable", removal=name, why=str(error))
            continue
        if manifest is None or manifest.until_ms > now_ms:
            continue
        left = _left_to_store(storage, manifest)
        if left:
            left_to_store(manifest, left)
        else:
            over.append(name)
    return tuple(over)


def pending_undos(contents: Contents, timeline: Timeline) -> dict[str, Instant]:
    """Requested times of the cleans that are being undone, each to the pending rollback that does it."""
    found = {}
    for instant in timeline.pending(Action.ROLLBACK):
        try:
            target = contents.rollback_plan(instant).instant_to_rollback
        except (CorruptMetadata, NotFound):  # it has done nothing, and never will (rule B-7)
            continue
        if target is not None and target.action == Action.CLEAN.value:
            found[target.requested_time] = instant
    return found


def undoes_clean(contents: Contents, rollback: Instant) -> bool:
    """Whether a completed rollback undid a clean; one that does not decode undid a write, as those of Apache Hudi."""
    try:
        undone = contents.rollback(rollback).instants_rollback
    except (CorruptMetadata, NotFound):
        return False
    return any(each.action == Action.CLEAN.value for each in undone)


def refuse_under_undo(contents: Contents, timeline: Timeline, what: str) -> None:
    """
    Refuse what looks at old files in the folders while the undo of a clean is pending.

    Some of its files are back and others are not, and the metadata table lists none of them: what counts on them loses
    rows, and what deletes them leaves an undo that can never be finished.

    Raises:
        RefusedError: Finish the undo first.
    """
    for time, instant in pending_undos(contents, timeline).items():
        raise RefusedError(
            f"{contents.store.storage.root}: {what} refused, nothing was changed: {instant} is pending, the undo of "
            f"clean {time}. Finish it: hudi-py undo TABLE {time}, or hudi-py recover"
        )


def forget(storage: Storage, name: str) -> None:
    """Delete a removal with its files for good; the manifest after them, so that after a crash it can be found."""
    storage.delete_folder(files_folder(name))
    storage.delete(f"{FOLDER}/{name}/{_MANIFEST}")
    storage.delete_folder(f"{FOLDER}/{name}")


def sizes_in(entries: Iterable[tuple[str, str, int | None]]) -> dict[str, dict[str, int]]:
    """Files as a manifest lists them, from partition paths, names and sizes."""
    found: dict[str, dict[str, int]] = {}
    for partition, name, size in entries:
        found.setdefault(partition, {})[name] = -1 if size is None else size
    return found
