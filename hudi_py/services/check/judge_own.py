"""Finds damage in what hudi_py itself keeps beside a table: leases, and the retention policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hudi_py.errors import CorruptMetadata
from hudi_py.services.check.findings import Finding, finding
from hudi_py.storage.base import Storage
from hudi_py.timeline.leases import LeaseFolder
from hudi_py.timeline.policy_file import PROPERTY, load_policy


def judge_own(storage: Storage, properties: Mapping[str, str], leases: LeaseFolder) -> Iterator[Finding]:
    """
    Findings about files below ``.hoodie/.aux/hudi_py`` without which nothing is deleted, one for each.

    Args:
        storage: Of the table.
        properties: Content of ``hoodie.properties``.
        leases: Of the table.
    """
    for path, problem in leases.damaged():
        yield finding("lease-damaged", path, problem)
    try:
        load_policy(storage, properties)
    except CorruptMetadata as error:
        yield finding("policy-unreadable", f"{PROPERTY}={properties[PROPERTY]}", str(error))
