"""Table version 9, written by Hudi 1.1 and 1.2."""

from __future__ import annotations

from typing import Final

import attrs

from hudi_py.model.records import RequestedReplaceMetadata
from hudi_py.versions.v8 import V8

_INITIAL: Final = {"hoodie.table.initial.version": "9"}

# Version 9 has the layout of version 8, so only what differs is listed.
V9: Final = attrs.evolve(
    V8,
    version=9,
    properties={**V8.properties, **_INITIAL, "hoodie.table.format": "native"},
    requested_drop=RequestedReplaceMetadata(operation_type="DELETE_PARTITION", extra_metadata={}, version=1),
    names_payload=False,
    prefixes_single_key=True,
    avro_widens_floats=False,
    ids_keep_float_texts=False,
    forgets_deleted_keys=True,
    reads_repeated_deletes=True,
    compares_text_deletes=True,
    merges_logs_by_commits=True,
    restores_by_completion=True,
    ranges_come_first=True,
    metadata_table=attrs.evolve(
        V8.metadata_table,
        properties={**V8.metadata_table.properties, **_INITIAL},
        defines_record_index=True,
        leaves_out_wide_decimals=False,
    ),
)
