"""Savepoints: protect the files of a commit from cleans, so that a restore can go back to it. Nothing is copied."""
