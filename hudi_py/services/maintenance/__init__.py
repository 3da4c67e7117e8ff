"""Everything that is due on a table, in one run."""
