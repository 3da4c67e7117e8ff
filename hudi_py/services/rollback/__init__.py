"""Rollback: undoes one write, failed or completed. The plan is stored before anything is deleted."""
