"""Clean: deletes file slices that no query can still need. The plan is stored before anything is deleted."""
