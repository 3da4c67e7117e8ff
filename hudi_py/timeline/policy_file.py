"""
The retention policy of a table on storage: below ``.hoodie/.aux/hudi_py/policies``, which Apache Hudi does not read.

The property ``hoodie_py.retention.policy`` names the document in force by its mark, so that a table without a policy
costs no request, and a crash while a policy is applied leaves the old one or the new one. If the document is missing or
damaged, it is unknown what is to be kept: then no data is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hudi_py.errors import ConfigError, CorruptMetadata, NotFound
from hudi_py.model.files import OWN_FOLDER
from hudi_py.storage.base import Storage

if TYPE_CHECKING:
    from hudi_py.config.retention_policy import RetentionPolicy

PROPERTY: Final = "hoodie_py.retention.policy"
_FOLDER: Final = f"{OWN_FOLDER}/policies"


def load_policy(storage: Storage, properties: Mapping[str, str]) -> RetentionPolicy | None:
    """
    The policy in force; None if there is none.

    Raises:
        CorruptMetadata: The document is missing, or not the one that was applied.
    """
    from hudi_py.config.retention_policy import parse_policy

    mark = properties.get(PROPERTY, "")
    if not mark:
        return None
    path = path_of(mark)
    try:
        policy = parse_policy(storage.read(path).decode(), path)
        # The mark is a hash of the text, so a change by hand is noticed.
        if policy.mark != mark:
            raise ConfigError("it was changed after it was applied")
    except (NotFound, UnicodeDecodeError, ConfigError) as error:
        raise CorruptMetadata(
            f"{storage.root}/{path}, the retention policy, cannot be used: {error}. Apply a policy again: hudi-py "
            "policy apply TABLE --file policy.toml"
        ) from error
    return policy


def store_policy(storage: Storage, policy: RetentionPolicy) -> None:
    """Write the document; the property puts it in force."""
    storage.replace(path_of(policy.mark), policy.text.encode())


def forget_policy(storage: Storage, mark: str) -> None:
    """Delete the document of a policy that is not in force any more."""
    if mark.isalnum():
        storage.delete(path_of(mark))


def path_of(mark: str) -> str:
    """Path of a document, relative to the table."""
    # The mark becomes part of a path, and the properties may come from anywhere.
    if not mark.isalnum():
        raise CorruptMetadata(f"{PROPERTY}={mark!r} in hoodie.properties is not the name of a policy")
    return f"{_FOLDER}/{mark}.toml"
