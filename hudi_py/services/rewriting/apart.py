"""Refuses to rewrite files of another table below this one, which Apache Hudi takes for this one's."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_py.errors import RefusedError
from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.listing import Listing, other_tables
from hudi_py.storage.base import Storage


def refuse_other_tables(storage: Storage, listing: Listing, partition_paths: Iterable[str], word: str) -> None:
    """
    Check the partitions of a plan.

    A table below this one would get files with times that its own timeline does not have.

    Args:
        storage: Of the table.
        listing: What the plan was made of; a walk of the folders finds no other table's partitions.
        partition_paths: Partitions whose files the plan rewrites.
        word: ``compaction``, ``log compaction`` or ``clustering``.

    Raises:
        RefusedError: One of them lies in another table.
    """
    for path, folder in {} if listing.is_fresh else other_tables(storage, frozenset(partition_paths)).items():
        raise RefusedError(
            f"{storage.root}: no {word}, nothing was changed: the metadata table lists {path}, which lies in another "
            f"table: {folder} has a .hoodie of its own. Move that table elsewhere, or drop the metadata table (a write "
            "with hoodie.metadata.enable=false)"
        )


def why_not_apart(storage: Storage, groups: Iterable[GroupKey]) -> str | None:
    """
    Why a stored plan is not carried out: Apache Hudi plans for the groups of such a table, too.

    Args:
        storage: Of the table.
        groups: Partition path and file id of those in the plan.

    Returns:
        The end of a sentence about the plan; None if all groups are of this table.
    """
    for path, folder in sorted(other_tables(storage, frozenset(path for path, _ in groups)).items()):
        return f"names file groups of {path}, which lies in another table: {folder} has a .hoodie of its own"
    return None
