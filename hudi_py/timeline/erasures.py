"""
When files were last deleted for good that no instant tells of: ``.hoodie/.aux/hudi_py/erasures.json``.

Cleans, rollbacks and restores say on the timeline what they deleted. What leaves quarantine, and orphans that are
deleted, are on no timeline; so their partitions are noted here, each with the moment. A partition is noted as open
before its first file is deleted: after a crash in between, it is unknown when its files went.

One number for each partition, so the file does not grow with the table's age. It is changed under the table's lock.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import attrs

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.model.files import OWN_FOLDER
from hudi_py.model.json_document import parse_json
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.storage.base import Storage

_PATH: Final = f"{OWN_FOLDER}/erasures.json"
_OPEN: Final = -1


@attrs.frozen
class Erasures:
    """
    Args:
        partitions: Partition path to when files of it were last deleted, in epoch milliseconds.
        everything: When files of any partition were last deleted, as far as it is unknown of which; 0 if never.
    """

    partitions: Mapping[str, int] = attrs.field(factory=dict)
    everything: int = 0

    def last(self, partition: str | None) -> int:
        """
        When files of a partition (None: of any) were last deleted, in epoch milliseconds; 0 if never.

        Raises:
            CorruptMetadata: Such a deletion was interrupted, and has not been finished.
        """
        found = {path: ms for path, ms in self.partitions.items() if partition in (None, path)}
        opened = [path for path, ms in found.items() if ms == _OPEN]
        if opened:
            raise CorruptMetadata(
                f"a deletion of files of the partition {opened[0]!r} was interrupted, so it is unknown when they went; "
                "hudi-py maintain finishes it when the next files leave quarantine"
            )
        return max((self.everything, *found.values()))


def load_erasures(storage: Storage) -> Erasures:
    """
    Read what is noted.

    Raises:
        CorruptMetadata: The file is damaged.
    """
    try:
        document = parse_json(storage.read(_PATH))
        partitions = {str(path): int(ms) for path, ms in document["partitions"].items()}
        return Erasures(partitions, int(document["everything"]))
    except NotFound:
        return Erasures()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptMetadata(f"{storage.root}/{_PATH} is damaged: {error}") from error


@contextmanager
def noted(storage: Storage, partitions: Collection[str], clock: Clock) -> Iterator[None]:
    """
    Note that files of *partitions* are deleted for good within the block.

    Args:
        storage: Of the table.
        partitions: Their paths; for none nothing is written.
        clock: Tells when the deletion ends.
    """
    if not partitions:
        yield
        return
    try:
        before = load_erasures(storage)
    except CorruptMetadata as error:
        # What it said is lost, and all of it was before this moment.
        log.warning("erasures.damaged", why=str(error))
        before = Erasures({}, _now_ms(clock))
    _store(storage, before, dict.fromkeys(partitions, _OPEN))
    yield
    _store(storage, before, dict.fromkeys(partitions, _now_ms(clock)))


def _now_ms(clock: Clock) -> int:
    return int(clock.now().timestamp() * 1000)


def _store(storage: Storage, before: Erasures, partitions: Mapping[str, int]) -> None:
    document = {
        "everything": before.everything,
        "partitions": dict(sorted({**before.partitions, **partitions}.items())),
    }
    storage.replace(_PATH, json.dumps(document).encode())
