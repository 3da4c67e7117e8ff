"""The commands that write rows: ``hudi-py write``, ``delete``, ``update``, ``merge``, ``drop-partition``. No JVM."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from hudi_py.errors import RefusedError, ServiceFailed
from hudi_py.inspection import complete
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command, pairs
from hudi_py.inspection.say import say
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from hudi_py.table_merge import Clause, Rows
    from hudi_py.write_service import WriteService
    from hudi_py.writing.commit_words import CommitWords
    from hudi_py.writing.result import WriteResult

_WHERE: Final = "Condition that the rows meet, as for hudi-py read. Repeatable: all have to be met."
_CLAUSE: Final = '"ACTION [if CONDITION]"'
_OPERATIONS: Final = ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table")


def _writing(function: Callable[..., WriteResult]) -> Callable[..., None]:
    """Add the options that all writing commands have; call the function with a service and words, show its result."""

    @click.option("--write-key", metavar="APP:VERSION", help="Write only if this key was not committed before.")
    @click.option(
        "--retries",
        type=click.IntRange(0),
        metavar="N",
        help="Write again up to N times if another writer was faster. Default: as the settings say.",
    )
    @click.option("--dry-run", is_flag=True, help="Show what would change; nothing is written.")
    @functools.wraps(function)
    def wrapper(
        common: Common, table: str, write_key: str | None, retries: int | None, dry_run: bool, **arguments: Any
    ) -> None:
        from hudi_py.local_writing import operation_of, service_of
        from hudi_py.writing.commit_words import commit_words, parse_write_key

        if "operation" in arguments:
            arguments["operation"] = operation_of(arguments["operation"], common.settings)
        # Parsed first, because a wrong key must not cost the time of opening the table.
        words = commit_words(None if write_key is None else parse_write_key(write_key), retries=retries)
        # Opened before the rows are read: a table that cannot be written to is refused at once.
        service = service_of(
            table,
            settings=common.settings,
            storage_options=common.storage_options,
            is_rehearsal=dry_run,
            # Only write creates a table: a misspelled path of the others would become a new, empty one.
            must_exist=function.__name__ != "write",
        )
        try:
            result = function(service, words, **arguments)
        except ServiceFailed as error:
            if not dry_run:
                raise
            # The error speaks of a commit, which the rehearsal made in memory only.
            raise RefusedError(
                "dry run, nothing was written: the rows would be committed, but a service after the commit would fail: "
                f"{error.__cause__ or error}"
            ) from error
        _show(common, table, result, dry_run=dry_run)

    return wrapper


def _show(common: Common, table: str, result: WriteResult, *, dry_run: bool) -> None:
    from hudi_py.inspection.report import write_report

    if common.as_json:
        cleans: list[Any] = [None] * len(result.cleans)
        # Their contents are on the timeline only after a real run.
        if cleans and not dry_run:
            opened = common.open(table)
            found = [opened.timeline.find(clean.instant) for clean in result.cleans]
            cleans = [opened.contents.plain(each) if each is not None and each.is_completed else None for each in found]
        print_json(write_report(result, cleans, dry_run=dry_run))
        return
    numbers = (
        f"{counted(result.rows_inserted, 'row')} inserted, {result.rows_updated} updated, "
        f"{result.rows_deleted} deleted, "
        f"{counted(result.files_written, 'file')}"
    )
    if result.groups_replaced:
        # Their rows are gone, too, and nobody has counted them.
        numbers += f", {counted(result.groups_replaced, 'file group')} replaced with all their rows"
    if result.is_repeated:
        say(f"nothing was done: commit {result.instant} has this write key or a later version of it")
    elif dry_run:
        say(f"would be written (nothing was written): {numbers}")
    elif result.instant is None:
        say("nothing to write")
    else:
        say(f"commit {result.instant}: {numbers}, {sum(result.seconds.values()):.2f} s")


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--operation",
    type=click.Choice(_OPERATIONS),
    metavar="OPERATION",
    help=f"{', '.join(_OPERATIONS)}. Default: as hoodie.datasource.write.operation says, else upsert.",
)
@command
@_writing
def write(service: WriteService, words: CommitWords, files: tuple[str, ...], operation: str) -> WriteResult:
    """
    Write rows of files to a table, in one commit. Creates the table if there is none.

    FILE is a Parquet, CSV (with a header) or JSON-lines file. A new table needs --conf hoodie.table.name=... and --conf
    hoodie.datasource.write.recordkey.field=...
    """
    from hudi_py.local_writing import written

    return written(service, list(files), operation, words)


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--where", multiple=True, required=True, metavar="CONDITION", help=_WHERE)
@command
@_writing
def delete(service: WriteService, words: CommitWords, where: tuple[str, ...]) -> WriteResult:
    """Delete the rows that meet all conditions, in one commit."""
    from hudi_py.table_statements import rows_to_delete

    return service.change(rows_to_delete([*where]), "DELETE", words)


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--set", "values", multiple=True, required=True, metavar="COLUMN=EXPRESSION", help="Repeatable.")
@click.option("--where", multiple=True, metavar="CONDITION", help=f"{_WHERE} Default: all rows.")
@command
@_writing
def update(service: WriteService, words: CommitWords, values: tuple[str, ...], where: tuple[str, ...]) -> WriteResult:
    """Give columns of rows new values, in one commit. Texts are in quotes: --set "note = 'checked'"."""
    from hudi_py.table_statements import rows_to_update

    return service.change(rows_to_update(pairs("--set", values), [*where] or ()), "UPSERT", words)


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("file")
@click.option("--on", required=True, multiple=True, metavar="COLUMN", help="Columns that match. Repeatable, or a,b.")
@click.option("--when-matched", multiple=True, metavar=_CLAUSE, help="Rows of both: update, delete. Repeatable.")
@click.option("--when-not-matched", multiple=True, metavar=_CLAUSE, help="Rows of the file alone: insert.")
@click.option("--when-not-matched-by-source", multiple=True, metavar=_CLAUSE, help="Rows of the table alone: delete.")
@command
@_writing
def merge(
    service: WriteService,
    words: CommitWords,
    file: str,
    on: tuple[str, ...],
    when_matched: tuple[str, ...],
    when_not_matched: tuple[str, ...],
    when_not_matched_by_source: tuple[str, ...],
) -> WriteResult:
    """
    Merge the rows of a file into a table, in one commit. Clauses say what becomes of each row.

    The first clause whose condition is met decides about a row: --when-matched "delete if source.gone = true"
    --when-matched update. In conditions source.c is a column of the file, c one of the table.
    """
    from hudi_py.local_writing import merged
    from hudi_py.table_merge import Rows

    columns = tuple(name.strip() for each in on for name in each.split(",") if name.strip())
    clauses = (
        *(_clause("--when-matched", text, Rows.MATCHED, ("update", "delete")) for text in when_matched),
        *(_clause("--when-not-matched", text, Rows.NEW, ("insert",)) for text in when_not_matched),
        *(_clause("--when-not-matched-by-source", text, Rows.LEFT, ("delete",)) for text in when_not_matched_by_source),
    )
    return merged(service, [file], columns, clauses, words)


def _clause(option: str, text: str, rows: Rows, actions: tuple[str, ...]) -> Clause:
    from hudi_py.table_merge import Clause

    # At the first " if ": conditions have no such word of their own.
    action, _, condition = (part.strip() for part in text.partition(" if "))
    if action not in actions or (" if " in text and not condition):
        known = " or ".join(f"{each}, {each} if CONDITION" for each in actions)
        raise click.BadParameter(f"{text!r}: expected {known}", param_hint=option)
    return Clause(rows=rows, deletes=action == "delete", where=condition or ())


@click.command("drop-partition")
@click.argument("table", shell_complete=complete.tables)
@click.argument("partitions", shell_complete=complete.partitions, nargs=-1, required=True, metavar="PARTITION...")
@command
@_writing
def drop_partition(service: WriteService, words: CommitWords, partitions: tuple[str, ...]) -> WriteResult:
    """Delete all rows of partitions, in one commit; the clean deletes the files later."""
    return service.drop_partitions([path.rstrip("/") for path in partitions], words)
