"""Archival: old instants move from the active timeline into log files (layout 1) or the history (layout 2)."""
