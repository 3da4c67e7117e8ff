"""Puts back what a removal into quarantine took out of a table."""
