"""Committing: the table's lock, the stages of an action, and the judges of conflicts and of pending actions."""
