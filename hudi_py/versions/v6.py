"""Table version 6, written by Hudi 0.14 and 0.15."""

from __future__ import annotations

from typing import Final

from hudi_py.model.records import RequestedReplaceMetadata
from hudi_py.versions.format import ArchiveForm, LogNaming, MetadataTableFormat, TableFormat
from hudi_py.versions.layout import LAYOUT_V1

_TIMELINE: Final = {"hoodie.timeline.layout.version": "1", "hoodie.archivelog.folder": "archived"}

V6: Final = TableFormat(
    version=6,
    layout=LAYOUT_V1,
    properties=_TIMELINE,
    timeline_folder=".hoodie",
    history_folder=".hoodie/{archive}",
    archive=ArchiveForm.LOGS,
    commits_are_json=True,
    # Hudi takes an empty file for one without a workload profile, which hudi_py does not make.
    inflight_commit=None,
    requested_drop=RequestedReplaceMetadata(),
    log_naming=LogNaming.BY_SLICE,
    has_merge_mode=False,
    names_payload=True,
    prefixes_single_key=False,
    restores_by_completion=False,
    ranges_come_first=False,
    # See `hudi_py.rows.time_partitions`: Hudi 0.15 shows the text of the path in snapshots.
    shows_time_paths=True,
    avro_widens_floats=True,
    ids_keep_float_texts=True,
    forgets_deleted_keys=False,
    merges_logs_by_commits=False,
    reads_repeated_deletes=True,
    compares_text_deletes=False,
    tells_positions=False,
    splits_bucket_keys=True,
    metadata_table=MetadataTableFormat(
        properties={
            **_TIMELINE,
            "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
            "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        },
        # Suffixes instead of new times: in layout 1 an instant of the metadata table belongs to the instant of the
        # data table whose time it begins with (rules/timeline 2.2).
        init_suffix="010",
        compaction_suffix="001",
        clean_suffix="002",
        plan_extras=False,
        tells_tight_bounds=False,
        indexes_all_columns=True,
    ),
)
