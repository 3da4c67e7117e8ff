"""Carrying out a stored plan, judged once more before its files are deleted."""
