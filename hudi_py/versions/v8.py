"""Table version 8, written by Hudi 1.0."""

from __future__ import annotations

from typing import Final

from hudi_py.model.records import CommitMetadata, RequestedReplaceMetadata
from hudi_py.versions.format import ArchiveForm, LogNaming, MetadataTableFormat, TableFormat
from hudi_py.versions.layout import LAYOUT_V2

V8: Final = TableFormat(
    version=8,
    layout=LAYOUT_V2,
    properties={
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.initial.version": "8",
        "hoodie.table.multiple.base.file.formats.enable": "false",
    },
    timeline_folder=".hoodie/{timeline}",
    history_folder=".hoodie/{timeline}/{history}",
    archive=ArchiveForm.HISTORY,
    commits_are_json=False,
    # Avro metadata without content: unlike JSON, Avro has no empty document.
    inflight_commit=CommitMetadata(),
    requested_drop=RequestedReplaceMetadata(),
    log_naming=LogNaming.BY_WRITE,
    has_merge_mode=True,
    names_payload=True,
    prefixes_single_key=False,
    restores_by_completion=False,
    ranges_come_first=False,
    shows_time_paths=False,
    avro_widens_floats=True,
    ids_keep_float_texts=False,
    forgets_deleted_keys=False,
    merges_logs_by_commits=False,
    reads_repeated_deletes=False,
    compares_text_deletes=False,
    tells_positions=True,
    splits_bucket_keys=False,
    metadata_table=MetadataTableFormat(
        properties={
            "hoodie.timeline.layout.version": "2",
            "hoodie.archivelog.folder": "history",
            "hoodie.timeline.path": "timeline",
            "hoodie.timeline.history.path": "history",
            "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
            "hoodie.record.merge.mode": "CUSTOM",
            # The id that stands for a payload class of one's own; the metadata table has such a payload in each
            # version.
            "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
            "hoodie.table.initial.version": "8",
        },
        leaves_out_wide_decimals=True,
    ),
)
