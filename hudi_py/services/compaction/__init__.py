"""Compaction: log files of merge-on-read tables become part of new base files."""
