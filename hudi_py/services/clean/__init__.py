"""Cleaning: removing file slices that no query may still need. The plan is stored before anything is deleted."""
