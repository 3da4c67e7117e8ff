"""Upkeep: compacts, cleans and archives the metadata table, which is a table itself."""
