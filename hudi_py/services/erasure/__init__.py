"""Erasure: which files still hold bytes of a partition or of record keys, why, and since when none does."""
