"""Savepoints: pin the files of one commit, so that no clean takes them and a restore can go back. Nothing is copied."""
