"""Recovery: finds and judges what a crash left in a table, and lets the services concerned finish or undo it."""
