"""
The differences between table versions, as values: one module per version; `served` lists them all.

No other code checks the version of a table: it reads the property it needs from the `TableFormat`. Pure; imports only
values of `hudi_py.model`. How to add a version: docs/guide/table-version.md.
"""
