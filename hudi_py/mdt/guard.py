"""
Keeping a table that has a metadata table correct although its metadata table is not maintained here.

A commit or clean that bypasses the metadata table is lost at Apache Hudi's next write, so the choice is to refuse or,
where the user allows it with ``hoodie.metadata.enable=false``, to drop the metadata table first; the next Apache Hudi
writer builds it again. Source: format/data-files 10.3.
"""

from __future__ import annotations

import attrs

from hudi_py.config import keys
from hudi_py.config.keys import Settings
from hudi_py.errors import RefusedError
from hudi_py.runtime.clock import Clock
from hudi_py.storage.base import Storage
from hudi_py.timeline.properties_file import BACKUP_FILE, read_table_config, recover_properties, update_properties

_FOLDER = ".hoodie/metadata"
_PARTITIONS = "hoodie.table.metadata.partitions"
_PARTITIONS_INFLIGHT = "hoodie.table.metadata.partitions.inflight"


@attrs.frozen
class MetadataTableGuard:
    """Asked before each first instant of ours; the answer is never cached, since other writers build the table anew."""

    storage: Storage
    settings: Settings
    clock: Clock

    def prepare(self) -> None:
        """
        Make sure no metadata table can be left behind by what follows.

        The order property, folder, instant gives a correct table after a crash at any point.

        Raises:
            RefusedError: There is one, and dropping it was not allowed.
        """
        if self.storage.size(BACKUP_FILE) is not None:  # a crash while the properties were rewritten
            recover_properties(self.storage)
        config = read_table_config(self.storage)
        may_drop = self.settings[keys.METADATA_ENABLED] is False
        if not config.has_metadata_table:
            if may_drop and self.storage.list(_FOLDER):  # a crash between the two steps below
                self.storage.delete_folder(_FOLDER)
            return
        partitions = ", ".join((*config.metadata_partitions, *config.metadata_partitions_inflight))
        if not may_drop:
            raise RefusedError(
                f"{self.storage.root} has a metadata table ({partitions}), which hudi_py does not maintain yet; "
                "nothing was changed. With hoodie.metadata.enable=false it is dropped first (Apache Hudi's next writer "
                "builds it again, indexes included)"
            )
        update_properties(self.storage, {_PARTITIONS: None, _PARTITIONS_INFLIGHT: None}, self.clock)
        self.storage.delete_folder(_FOLDER)
