"""Check: compares a table's timeline, files and metadata table with each other; nothing is changed."""
