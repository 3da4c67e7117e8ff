"""
Which operations on a table each supported setting affects. Pure.

A setting that is given for one call but does not affect it is reported, because the user expects something of it.
Settings from a file are not reported: the file may be shared with other commands and Spark jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from hudi_py.config.keys import key_by_name
from hudi_py.config.uses import Use

_CHANGING: Final = Use.WRITE | Use.SERVICES | Use.REWRITE
_EFFECTS: Final = (
    (
        Use.WRITE,
        """hoodie.table.* hoodie.database.name hoodie.write.table.version hoodie.datasource.write.*
        hoodie.datasource.insert.*
        hoodie.combine.* hoodie.record.* hoodie.parquet.small.* hoodie.index.* hoodie.bucket.*
        hoodie.copyonwrite.* hoodie.allow.empty.commit hoodie.write.complex.* hoodie.bulkinsert.*
        hoodie.upsert.* hoodie.insert.* hoodie.delete.* hoodie_py.write.* hoodie.clean.automatic
        hoodie.write.num.* hoodie.logfile.* hoodie.write.record.* hoodie.merge.* hoodie.keygen.* hoodie.simple.*
        hoodie.memory.* hoodie.write.commit.callback.*""",
    ),
    (
        Use.WRITE | Use.CLEAN | Use.ARCHIVE,  # clean and archival read each other's settings, to warn of contradictions
        """hoodie.clean.* hoodie_py.clean.* hoodie.archive.* hoodie_py.archive.*
        hoodie.keep.* hoodie.commits.archival.batch hoodie.fail.on.timeline.archiving
        hoodie.timeline.compaction.* hoodie_py.quarantine.*""",
    ),
    (Use.CLEAN, "hoodie_py.orphans.*"),
    (Use.WRITE, "hoodie.partition.ttl.* hoodie_py.partition.ttl.*"),
    (Use.WRITE | Use.SAVEPOINT, "hoodie_py.tags.*"),
    (Use.WRITE | Use.REWRITE, "hoodie.parquet.* hoodie.bloom.* hoodie.index.bloom.*"),
    (Use.WRITE | Use.CLEAN | Use.ARCHIVE | Use.REWRITE, "hoodie.table.services.enabled hoodie.compact.inline.*"),
    (
        Use.WRITE | Use.REWRITE,
        """hoodie.compaction.* hoodie.log.compaction.* hoodie.clustering.* hoodie.layout.optimize.*
        hoodie_py.clustering.*""",
    ),
    (
        Use.WRITE,
        """hoodie.compact.inline hoodie.compact.schedule.inline hoodie.log.compaction.inline
        hoodie.clustering.inline* hoodie.clustering.schedule.* hoodie.clustering.async.*
        hoodie.fail.writes.on.inline.table.service.exception""",
    ),
    (
        _CHANGING,
        """hoodie.write.lock.* hoodie.write.concurrency.* hoodie.fs.* hoodie.client.heartbeat.*
        hoodie.clean.failed.writes.policy hoodie.metadata.compact.* hoodie.metadata.global.*
        hoodie.metadata.record.* hoodie_py.hook.*""",
    ),
    # Leases are part of the judgement of who needs a file, which commands that look show, too.
    (Use.ALL, "hoodie.metadata.enable hoodie_py.read.* hoodie_py.conf.* hoodie_py.leases.* hoodie_py.gc.*"),
)


def effect_of(name: str) -> Use:
    """
    Return the operations that a supported setting affects.

    Args:
        name: Canonical name of a key.

    Raises:
        KeyError: The tables of this module do not contain it.
    """
    if name in _rules():
        return _rules()[name]
    # The longest family is the most specific one, as for verdicts.
    return _rules()[max((family for family in _families() if name.startswith(family)), key=len, default=name) + "*"]


@cache
def _rules() -> dict[str, Use]:
    return {name: use for use, names in _EFFECTS for name in names.split()}


@cache
def _families() -> tuple[str, ...]:
    return tuple(name.removesuffix("*") for name in _rules() if name.endswith("*"))


def without_effect(names: Iterable[str], use: Use) -> Iterator[tuple[str, str]]:
    """
    Yield the settings that do not affect an operation, with the reason.

    Args:
        names: Names of known settings, old or new.
        use: The operation.
    """
    from hudi_py.config.verdict import Kind, verdict_of

    for name in names:
        key = key_by_name(name)
        if key is not None:
            effect = effect_of(key.name)
            if not effect & use:
                yield name, f"it only affects {effect.words}"
            continue
        verdict = verdict_of(name)
        if verdict is None:
            continue
        if verdict.kind is Kind.HARMLESS:
            yield name, verdict.reason
        elif verdict.refused is not None and not verdict.refused.uses & use:
            yield name, f"it only affects {verdict.refused.uses.words}, for which it is refused"
