"""Restore: go back to a savepoint, as a sequence of rollbacks that can be interrupted and resumed."""
