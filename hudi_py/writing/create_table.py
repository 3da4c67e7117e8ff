"""Creates a table: its folders and properties, where no files of another table are in the way."""

from __future__ import annotations

from contextlib import suppress

from hudi_py.config.new_table import new_table_properties, table_folders
from hudi_py.config.settings import Settings
from hudi_py.errors import AlreadyExists, ConflictError, CorruptMetadata
from hudi_py.fsview.listing import FolderListing
from hudi_py.model.files import is_data_file, join_path
from hudi_py.runtime.clock import Clock
from hudi_py.storage.base import Storage
from hudi_py.timeline.properties_file import PROPERTIES_FILE, create_properties


def create_table(storage: Storage, settings: Settings, clock: Clock) -> None:
    """
    Create an empty table.

    Raises:
        ConfigError: A setting is missing or invalid.
        ConflictError: Another process has created it at this moment.
        CorruptMetadata: There are data files.
    """
    _refuse_data_of_another(storage)
    properties = new_table_properties(settings)
    # The properties come last: only with them is it a table, so after a crash before that it is created again. A
    # storage has no verb for folders: creating and deleting a file leaves one behind where folders exist.
    for folder in table_folders(properties):
        with suppress(AlreadyExists):  # of a process that creates the table, too, or of one that crashed meanwhile
            storage.create_new(f"{folder}/.keep", b"")
        storage.delete(f"{folder}/.keep")
    create_properties(storage, properties, clock)


def _refuse_data_of_another(storage: Storage) -> None:
    """Raise if there are data files: in a new table, files older than its first instant count as committed."""
    for path, entries in FolderListing(storage).walk():
        for entry in entries:
            if is_data_file(entry.name):
                # Properties come before the first file of a table, so one that is new has them by now.
                if storage.size(PROPERTIES_FILE) is not None:
                    raise ConflictError(f"another process has just created {storage.root}; write again")
                raise CorruptMetadata(
                    f"{storage.root} is not a table, but {join_path(path, entry.name)} is a data file of one: in a new "
                    "table its rows would count as committed; nothing was changed; restore the .hoodie folder of that "
                    "table, or write to an empty folder"
                )
