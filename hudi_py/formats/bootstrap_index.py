"""
The index of a bootstrapped table: which file outside of the table has the columns of which file of the table. Pure.

It is an HFile with one entry per partition, ``part=<path>``, whose value is an Avro file with a single record.

Source: tables of Hudi 0.15.0, 1.0.2 and 1.1.1; ``HFileBootstrapIndex``, ``HoodieBootstrapPartitionMetadata.avsc``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_file import decode_avro_file
from hudi_py.model.files import SourceFile

FOLDER: Final = ".hoodie/.aux/.bootstrap/.partitions"
NAME: Final = "00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"


def sources_of(entries: Iterable[tuple[bytes, bytes]], source: str) -> dict[tuple[str, str], SourceFile]:
    """
    Args:
        entries: Keys and values of the HFile.
        source: Its path, for messages.

    Returns:
        Partition path and file id to the file outside of the table.

    Raises:
        CorruptMetadata: An entry is damaged.
    """
    found = {}
    for _, value in entries:
        for record in decode_avro_file(value, source).records:
            try:
                partition, files = record["partitionPath"], record["fileIdToBootstrapFile"]
                for file_id, status in files.items():
                    found[partition, file_id] = SourceFile(status["path"]["uri"], status["length"])
            except (KeyError, TypeError, AttributeError) as error:
                raise CorruptMetadata(f"{source}: an entry of the bootstrap index is damaged: {error!r}") from error
    return found
