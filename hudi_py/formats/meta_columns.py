"""The columns that Hudi puts before those of the user. Apart from `record_schema`: naming them loads no pyarrow."""

from typing import Final

META_COLUMNS: Final = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
