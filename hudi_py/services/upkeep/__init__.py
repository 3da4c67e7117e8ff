"""Cleaning and archiving the metadata table, which is a table itself."""
