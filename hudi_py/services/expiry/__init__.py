"""Finds the partitions that are older than they may be. They are dropped by a commit; a clean deletes their files."""
