"""Judges the settings and the health of a table: what will go wrong, and what to change."""
