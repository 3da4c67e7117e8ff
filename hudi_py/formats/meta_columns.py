"""The columns that Hudi adds in front of the user's. Separate from `record_schema`, so that pyarrow is not imported."""

from typing import Final

META_COLUMNS: Final = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
