"""Refuses to rewrite files of another table that the metadata table lists as this one's."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_py.errors import RefusedError
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
