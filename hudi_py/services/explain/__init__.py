"""Explains why a file is kept or deleted, and what has to happen before a clean deletes it."""
