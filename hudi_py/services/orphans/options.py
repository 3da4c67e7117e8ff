"""The options of one search for orphans, as a caller gives them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypedDict

from hudi_py.config.arguments import check_aware, check_flags, check_kinds, check_known, count_of, span_of
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.services.orphans.facts import OrphanAction
from hudi_py.services.orphans.service import OrphanService
from hudi_py.timeline.contents import Contents


class OrphanOptions(TypedDict, total=False):
    """
    How to look for files that no instant knows.

    - ``older_than``: smallest age of a file that is removed (``36h``, ``7d``, or a timedelta); by default
      ``hoodie_py.orphans.older.than``, which is 3 days.
    - ``dry_run``: only look; nothing is written.
    - ``delete``: delete the files for good instead of moving them into quarantine.
    - ``max_deletes``: largest number of files to remove; the rest is left for the next run.
    - ``inventory``: path of a CSV or Parquet file of the store, with the columns path, size and mtime, or path or URL
      of the ``manifest.json`` of an inventory of Amazon S3; it is read instead of listing the folders.
    - ``now``: timezone-aware; replaces the clock for ages.
    - ``approved``: the only files that may be removed: path to size in bytes.
    """

    older_than: str | timedelta | None
    dry_run: bool
    delete: bool
    max_deletes: int | None
    inventory: str | None
    now: datetime | None
    approved: Mapping[str, int] | None


def orphan_service(contents: Contents, table: TableConfig, settings: Settings, options: OrphanOptions) -> OrphanService:
    """
    Return the service for these options.

    Raises:
        ConfigError: A value is invalid, or two contradict each other.
        TypeError: An option is unknown.
    """
    check_known(options, OrphanOptions.__annotations__)
    dry_run, delete = options.get("dry_run", False), options.get("delete", False)
    check_flags(dry_run=dry_run, delete=delete)
    check_aware(options.get("now"))
    check_kinds(str, "the path of a file", inventory=options.get("inventory"))
    check_kinds(Mapping, "path to size in bytes of each file", approved=options.get("approved"))
    span = span_of("older_than", options.get("older_than"), least=timedelta(0), such_as="an age such as 36h or 7d")
    most = count_of("max_deletes", options.get("max_deletes"), least=0)
    doing = OrphanAction.DELETE if delete else OrphanAction.QUARANTINE
    return OrphanService(
        contents=contents,
        table=table,
        settings=settings,
        action=OrphanAction.SHOW if dry_run else doing,
        older_than=span,
        max_deletes=most,
        inventory=options.get("inventory"),
        now=options.get("now"),
        approved=options.get("approved"),
    )
