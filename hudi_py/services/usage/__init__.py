"""Usage: every file of a table with its size and what keeps it, and sums by reason, partition and commit."""
