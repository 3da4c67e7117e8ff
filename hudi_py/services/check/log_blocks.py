"""Reads the blocks of log files for a check: whose they are, and how many rows they hold; rows are not merged."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from hudi_py.errors import CorruptMetadata, NotFound, UnsupportedTable
from hudi_py.formats.avro_file import decode_record
from hudi_py.formats.delete_block import decode_delete_block
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, split_data_block
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.fsview.listing import listing_threads
from hudi_py.model.files import LogFile
from hudi_py.rows.log_scan import read_log_blocks, with_content
from hudi_py.services.check.footers import bounds
from hudi_py.services.check.judge_contents import Block
from hudi_py.storage.base import Storage

_FILE_NAME = META_COLUMNS[4]


def read_blocks(
    storage: Storage, files: Iterable[tuple[str, LogFile]]
) -> Iterator[tuple[str, LogFile, tuple[Block, ...] | str]]:
    """
    Read the blocks of log files, several files at once where the storage answers slowly.

    Args:
        storage: Of the table.
        files: Path in the table, and the file by its name.

    Returns:
        Path, file, and its data and delete blocks, or why they cannot be read; files that are missing by now are left
        out. Bytes that do not form a block are passed over: a writer that died in the middle leaves some, and readers
        pass over them, too.

    Raises:
        StorageError: The storage refused or cannot be reached.
    """

    def read(file: tuple[str, LogFile]) -> tuple[str, LogFile, tuple[Block, ...] | str] | None:
        try:
            return (*file, tuple(_blocks(storage, file[0])))
        except NotFound:
            return None
        except CorruptMetadata as error:
            return (*file, str(error))

    with ThreadPoolExecutor(listing_threads(storage)) as pool:
        yield from (each for each in pool.map(read, files) if each is not None)


def _blocks(storage: Storage, path: str) -> Iterator[Block]:
    source = f"{storage.root}/{path}"
    for block in read_log_blocks(storage, path, source):
        # Neither holds rows.
        if block.block_type in (BlockType.CORRUPT, BlockType.COMMAND):
            continue
        is_merged = HeaderKey.COMPACTED_BLOCK_TIMES in block.header
        time = block.header.get(HeaderKey.INSTANT_TIME, "")
        if block.block_type in (BlockType.AVRO_DATA, BlockType.PARQUET_DATA):
            rows, groups = _rows(with_content(storage, path, block, source), source)
            yield Block(time, rows=rows, file_ids=groups, is_merged=is_merged)
        elif block.block_type is BlockType.DELETE:
            yield Block(time, rows=0, partitions=_partitions(storage, path, block, source), is_merged=is_merged)
        else:
            yield Block(time, rows=None, is_merged=is_merged)


def _partitions(storage: Storage, path: str, block: LogBlock, source: str) -> frozenset[str]:
    """Partition paths that a delete block names."""
    try:
        deleted = decode_delete_block(with_content(storage, path, block, source).content, source)
    except UnsupportedTable:  # of a release before 0.13: a read names it
        return frozenset()
    return frozenset(each.partition_path for each in deleted if each.partition_path)


def _rows(block: LogBlock, source: str) -> tuple[int, frozenset[str]]:
    """Number of rows of a data block, and the file groups that some of them name."""
    if block.block_type is BlockType.PARQUET_DATA:
        return _rows_of_parquet(block.content, source)
    bodies = split_data_block(block.content, source)
    if not bodies:
        return 0, frozenset()
    # All rows of a block are of one file, so the first one tells.
    first = decode_record(bodies[0], block.header.get(HeaderKey.SCHEMA, ""), source).get(_FILE_NAME)
    return len(bodies), frozenset() if first is None else frozenset({str(first)})


def _rows_of_parquet(content: bytes, source: str) -> tuple[int, frozenset[str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = pq.ParquetFile(io.BytesIO(content)).metadata
        return footer.num_rows, frozenset(bounds(footer, _FILE_NAME) or ())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptMetadata(f"{source}: a block is not readable Parquet: {error}") from error
