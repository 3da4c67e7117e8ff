"""
What a table version changes, as values: one module for each version, `served` for all of them.

Nothing else asks which version a table has: code asks the `TableFormat` for what it needs to know. Pure; imports values
of `hudi_py.model` only. Adding a version: docs/guide/table-version.md.
"""
