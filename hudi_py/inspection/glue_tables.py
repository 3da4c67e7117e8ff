"""
Finds the Apache Hudi tables of a database in the catalog of AWS Glue, through boto3.

The catalog of Hive has no client for Python that is kept well by itself, so it is asked by other programs; the file of
locations that they write is a source, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from hudi_py.errors import ConfigError, StorageError
from hudi_py.model.store_names import store_of

SCHEME: Final = "glue://"
PAGE_SIZE: Final = 100
"""Tables in an answer of the catalog: as many as it allows."""
_CLIENT_OPTIONS: Final = {"key": "aws_access_key_id", "secret": "aws_secret_access_key", "token": "aws_session_token",
                          "region": "region_name"}  # fmt: skip


def tables_in_glue(source: str, options: Mapping[str, str]) -> Iterator[str]:
    """
    Yield the locations of Hudi's tables, by name; the two tables that Hudi makes of a merge-on-read table have one.

    Args:
        source: ``glue://DATABASE`` or ``glue://DATABASE/PATTERN``; the pattern is one of table names.
        options: Options of the storage library; those of S3 hold for the catalog, too. Without them boto3 looks where
            it always does.

    Raises:
        ConfigError: There is no such database, or boto3 is not installed.
        StorageError: The catalog cannot be asked.
    """
    database, _, pattern = source.removeprefix(SCHEME).partition("/")
    if not database:
        raise ConfigError(f"{source} names no database: give glue://DATABASE or glue://DATABASE/PATTERN")
    for table in _listed(database, source, options):
        location = str((table.get("StorageDescriptor") or {}).get("Location") or "").rstrip("/")
        if _is_hudi(table) and location and fnmatchcase(str(table.get("Name")), pattern or "*"):
            scheme, separator, rest = location.partition("://")
            yield f"{store_of(scheme)}{separator}{rest}"


def _listed(database: str, source: str, options: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError, NoRegionError
    except ModuleNotFoundError as error:
        raise ConfigError(f"{source} needs boto3; pip install 'hudi_py[glue]'") from error
    given = {name: options[option] for option, name in _CLIENT_OPTIONS.items() if option in options}
    try:
        # A session of its own: the default one is not made for threads.
        client = boto3.session.Session().client("glue", **given)
        for page in client.get_paginator("get_tables").paginate(
            DatabaseName=database, PaginationConfig={"PageSize": PAGE_SIZE}
        ):
            yield from page["TableList"]
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "EntityNotFoundException":
            raise ConfigError(f"{source}: the catalog has no database {database}") from error
        raise StorageError(f"{source}: {error}") from error
    except NoRegionError as error:
        raise ConfigError(
            f"{source}: no region is known; set AWS_DEFAULT_REGION or --storage-option region=..."
        ) from error
    except BotoCoreError as error:
        raise StorageError(f"{source}: {error}") from error


def _is_hudi(table: Mapping[str, Any]) -> bool:
    """By what Hudi's own synchronization writes: the provider of Spark's tables, or the input format of Hive's."""
    provider = str((table.get("Parameters") or {}).get("spark.sql.sources.provider", ""))
    form = str((table.get("StorageDescriptor") or {}).get("InputFormat") or "")
    return provider.lower() == "hudi" or form.startswith("org.apache.hudi.")
