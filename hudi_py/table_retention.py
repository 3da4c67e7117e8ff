"""What an opened table keeps, and for how long: the switch against deletion, its policy, the expiry of partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any

import attrs

from hudi_py.config.arguments import check_callables, check_flags, check_known
from hudi_py.errors import ConfigError
from hudi_py.runtime.told_time import warn_of_time_to_come
from hudi_py.table_rewriting import TableRewriting
from hudi_py.table_writing import TableWriting
from hudi_py.timeline.policy_file import load_policy

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from hudi_py.config.expiry import ExpiryOptions
    from hudi_py.config.retention_policy import RetentionPolicy
    from hudi_py.model.instant import Instant
    from hudi_py.model.removal_list import RemovalList
    from hudi_py.services.approval.asked import ApprovedRemoval
    from hudi_py.services.expiry.plan import ExpiryReport

__all__ = ["TableRetention"]


class TableRetention(TableWriting, TableRewriting):
    """A table that says what is kept of it."""

    @property
    def deletion_forbidden(self) -> str | None:
        """Why no data may be deleted from this table, read from its properties now; None if it may."""
        return self._store.deletion.why_off()

    def forbid_deletion(self) -> bool:
        """
        Forbid hudi_py to delete data from this table, until `allow_deletion`: a property, in force for every process.

        Cleans, searches for orphans, rollbacks of completed commits and restores are refused; commits leave out their
        clean. What failed writes left is still deleted. Apache Hudi does not know this switch: switch off its cleans
        (``hoodie.clean.automatic=false`` in its writers).

        Returns:
            False if it was forbidden already.

        Raises:
            RefusedError: A restore or the rollback of a completed commit has begun, and has to be finished first.
            ConflictError: Another process holds the table's lock, or rewrites the properties; nothing was changed.
        """
        return self._changed(self.services.deletion().forbid, beside=True)

    def allow_deletion(self) -> bool:
        """
        Allow the deletion of data again; return False if it was allowed.

        Raises:
            ConflictError: As `forbid_deletion`.
        """
        return self._changed(self.services.deletion().allow, beside=True)

    def empty_quarantine(
        self, *, dry_run: bool = False, may: Callable[[Mapping[str, int]], bool] | None = None
    ) -> tuple[str, ...]:
        """
        Delete for good what is in quarantine for longer than it can be put back (``hoodie_py.quarantine.grace``).

        Args:
            dry_run: Only tell what that would be; nothing is written.
            may: Asked before each removal, with the paths and sizes of its files; one that may not go stays.

        Returns:
            Names of the removals: requested times of cleans, and names of searches for orphans.

        Raises:
            RefusedError: Deletion is forbidden in this table; nothing was deleted.
            ConflictError: Another process holds the table's lock; nothing was deleted.
        """
        from hudi_py.timeline.quarantine import pending_undos, removals_over

        check_flags(dry_run=dry_run)
        check_callables(may=may)
        if dry_run:
            store = self._store
            undone = pending_undos(self._contents, store.load())
            return removals_over(self.storage, int(store.clock.now().timestamp() * 1000), undone)
        return self._changed(lambda: self.services.clean().empty_quarantine(may=may))

    def create_due_tags(self) -> tuple[Instant, ...]:
        """
        Create the tags that are due by ``hoodie_py.tags.hourly``, ``daily``, ``weekly`` and ``monthly``.

        Commits do this by themselves, before they clean; expired tags are deleted by cleans.

        Returns:
            The created savepoints, oldest first.
        """
        return self._changed(lambda: self.services.savepoint().create_due(self.services.tag_schedule), beside=True)

    def list_for_approval(self, kind: str = "clean", *, now: datetime | None = None, **options: Any) -> RemovalList:
        """
        List what a clean or a search for orphans would remove, for a person to decide; see docs/approval.md.

        Nothing is removed, and nothing is written to the table: a plan on the timeline would be carried out by the next
        writer. Write `RemovalList.text` to a file.

        Args:
            kind: ``clean`` or ``orphans``.
            now: Timezone-aware; replaces the clock.
            options: As for `hudi_py.Table.plan_clean` or `hudi_py.Table.orphans`; they are part of the list, and so are
                settings that decide what goes, and where to.

        Raises:
            ConfigError: A value is invalid.
            RefusedError: The clean or the search would be refused.
        """
        from hudi_py.config.removal_settings import OF_ORPHANS, settings_to_list
        from hudi_py.services.approval.asked import Asking, list_of_clean, list_of_orphans

        asking = Asking(
            table=self.storage.root,
            made_ms=int(self._store.clock.now().timestamp() * 1000),
            options=options,
            settings=settings_to_list(self.settings, frozenset(self._from_policy)),
        )
        if kind == "orphans":
            check_known(options, OF_ORPHANS)  # whoever approves the list decides about the rest
            report = self.services.orphans(**options, dry_run=True, now=now).run()
            return list_of_orphans(report, asking)
        if kind != "clean":
            raise ConfigError(f"kind={kind!r}: give clean or orphans")
        config = self.services.clean_config(now=now, **options)
        plan = self.services.clean(config, now=now).plan(sizes=True)
        return list_of_clean(plan, asking)

    def remove_approved(
        self, asked: RemovalList, *, dry_run: bool = False, delete: bool = False, now: datetime | None = None
    ) -> ApprovedRemoval:
        """
        Remove exactly the files of a list that a person approved, as far as they may still go; see docs/approval.md.

        Every check is made again. A file that something needs by now, that has another size than in the list, or that
        is not there any more is kept and named. Nothing else is removed: a pending clean is refused, failed writes are
        not rolled back, the quarantine is not emptied.

        Args:
            asked: From `list_for_approval`, with ``approved_by``, and without the files that shall stay.
            dry_run: Only tell what would be removed; nothing is written.
            delete: Of orphans: delete them for good instead of moving them into quarantine.
            now: Timezone-aware; replaces the clock.

        Raises:
            ConfigError: *asked* is no list, a setting is given with another value than the list was made under, the
                list has options that lists do not have, or who approved it cannot be printed.
            RefusedError: Nobody has approved the list, it is of another table, or the clean or search is refused.
        """
        from hudi_py.config.removal_settings import check_listed_options, under_listed_settings
        from hudi_py.services.approval.asked import check_approved

        check_flags(dry_run=dry_run, delete=delete)
        check_approved(asked, self.storage.root)
        if delete and asked.kind != "orphans":
            raise ConfigError("delete is about lists of orphans, and this one is of a clean; leave it out")
        check_listed_options(asked.options, of_orphans=asked.kind == "orphans")
        # The caller's table keeps the settings that it was given.
        other = copy(self)
        other.settings = under_listed_settings(self.settings, asked.settings, frozenset(self._from_policy))
        try:
            return other._remove_approved(  # noqa: SLF001 - of the same class
                asked, dry_run=dry_run, delete=delete, now=now
            )
        finally:
            if not dry_run:
                self.refresh()

    def _remove_approved(
        self, asked: RemovalList, *, dry_run: bool, delete: bool, now: datetime | None
    ) -> ApprovedRemoval:
        from hudi_py.services.approval.asked import ApprovedRemoval, kept_of_clean, kept_of_orphans

        options = dict(asked.options)
        if asked.kind == "orphans":
            options |= {"dry_run": dry_run, "delete": delete, "now": now, "approved": asked.sizes}
            service = self.services.orphans(**options)
            report = service.run() if dry_run else self._changed(service.run)
            removed = tuple(each.file.path for each in report.to_remove) if dry_run else report.done
            return ApprovedRemoval(
                asked=asked,
                removed=removed,
                kept=kept_of_orphans(asked, report),
                failed=report.failed,
                orphans=report,
                is_dry_run=dry_run,
            )
        config = attrs.evolve(
            self.services.clean_config(now=now, **options),
            approved=asked.sizes,
            approved_by=asked.approved_by,
        )
        service_ = self.services.clean(config, now=now)
        plan = service_.plan(details=True)
        kept = kept_of_clean(asked, plan, {path: self.storage.size(path) for path in asked.sizes})
        planned = tuple(file.path for path in plan.files for file in plan.files[path])
        if dry_run:
            return ApprovedRemoval(asked=asked, removed=planned, kept=kept, is_dry_run=True)
        results = tuple(self._changed(lambda: self.services.run_clean(service_), recorded=True))
        gone = {path for result in results for path in result.deleted_files}
        failed = {path: "the storage refused" for result in results for path in result.failed_files}
        why = next((each.why_spared for each in results if each.why_spared), "a clean found nothing to delete")
        kept |= {path: why for path in planned if path not in gone and path not in failed}
        return ApprovedRemoval(
            asked=asked,
            removed=tuple(path for path in asked.sizes if path in gone),
            kept=kept,
            failed=failed,
            cleans=results,
        )

    @property
    def policy(self) -> RetentionPolicy | None:
        """
        The retention policy in force; None if the table has none. See docs/policy.md.

        Raises:
            CorruptMetadata: It is missing or damaged; no data is deleted until one is applied again.
        """
        return load_policy(self.storage, self.config.properties)

    def apply_policy(self, document: str) -> RetentionPolicy:
        """
        Put a retention policy in force for every process of hudi_py; its settings take the place of theirs.

        Args:
            document: The text of the TOML document.

        Raises:
            ConfigError: It is not understood, or contradicts itself; the message names the lines. Nothing was changed.
            RefusedError: A restore, or the rollback of a completed commit, has begun: it would stop half-way.
            ConflictError: Another process holds the table's lock, or rewrites the properties; nothing was changed.
        """
        from hudi_py.config.retention_policy import parse_policy

        policy = parse_policy(document)
        if any(name.startswith("hoodie.partition.ttl.") for name in policy.settings) and not self.config.is_partitioned:
            raise ConfigError(f"{self.storage.root} has no partition columns, so nothing in it expires")
        self._changed(lambda: self.services.policy().apply(policy), beside=True)
        return policy

    def remove_policy(self) -> bool:
        """
        Let the settings of each process decide again; return False if no policy was in force.

        Raises:
            ConflictError: As `apply_policy`.
        """
        return self._changed(lambda: self.services.policy().apply(None), beside=True)

    def under_policy(self, document: str) -> Self:
        """
        Return the table as if a policy were in force, on a storage that refuses all changes: to see what it does.

        Raises:
            ConfigError: As `apply_policy`.
        """
        from hudi_py.config.retention_policy import parse_policy

        trial = self.read_only()
        trial._follow_policy(parse_policy(document))  # noqa: SLF001 - of the same class
        return trial

    def expire_partitions(
        self,
        *,
        dry_run: bool = False,
        now: datetime | None = None,
        **options: Unpack[ExpiryOptions],
    ) -> ExpiryReport:
        """
        Delete all rows of partitions that are older than they may be, in one commit; see docs/expiry.md.

        The commit is that of `drop_partitions`, but no clean nor any other service follows it: earlier times,
        savepoints and leases keep what they show, and later cleans delete the files when nothing needs them any more.

        Args:
            dry_run: Only tell which partitions expire and why; nothing is written.
            now: Timezone-aware; replaces the clock.
            options: ``days``, ``by``, ``value_format``, ``value_field``, ``partitions``, ``max_partitions``; see
                `hudi_py.ExpiryOptions`.

        Returns:
            The verdict on every partition, and the commit.

        Raises:
            ConfigError: A value is invalid, two contradict each other, or the table has no partitions.
            ConflictError: Rows came into one of the partitions meanwhile; nothing was dropped.
            As `drop_partitions`.
        """
        from hudi_py.config.expiry import expiry_config_with
        from hudi_py.services.expiry.plan import ExpiryReport
        from hudi_py.writing.commit_words import expiry_words

        check_flags(dry_run=dry_run)
        config = expiry_config_with(self.settings, **options)
        service = self.services.expiry(config, now=now)
        plan = service.plan()
        report = ExpiryReport(plan=plan, is_dry_run=dry_run)
        if dry_run or not plan.expired:
            return report
        warn_of_time_to_come(now, self._store.clock, "expiry of partitions")
        words = expiry_words(plan.rule)
        written = self._changed_by(
            lambda writer: writer.drop_partitions(
                plan.expired, words, lambda: service.refuse_changed(plan.expired), is_service=True
            )
        )
        return attrs.evolve(report, commit=written.instant)
