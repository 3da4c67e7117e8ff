"""Holding a table's timeline, its files and its metadata table against each other; nothing is changed."""
