"""Replays a timeline under other settings of cleaning: bytes over time, the window, deletions per run."""
