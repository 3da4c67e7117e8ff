"""From what tasks wrote to the write stats of a commit. Pure. Source: rules/data-files 8."""

from __future__ import annotations

from hudi_py.model.records import RuntimeStats, WriteStat
from hudi_py.rows.base_file import FileWriteResult


def write_stat(result: FileWriteResult) -> WriteStat:
    """The stat of one base file; that it names the replaced file is left out in JSON, which has no such field."""
    return WriteStat(
        file_id=result.file_id,
        path=result.path,
        partition_path=result.partition_path,
        prev_commit=result.prev_commit or "null",
        prev_base_file=result.prev_base_file,
        num_writes=result.num_writes,
        num_deletes=result.num_deletes,
        num_update_writes=result.num_update_writes,
        num_inserts=result.num_inserts,
        total_write_bytes=result.size_bytes,
        file_size_in_bytes=result.size_bytes,
        runtime_stats=RuntimeStats(total_create_time=result.create_ms, total_upsert_time=result.upsert_ms),
    )
