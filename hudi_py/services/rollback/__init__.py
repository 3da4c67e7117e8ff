"""Rollback: undoing one write that did not complete. The plan is stored before anything is deleted."""
