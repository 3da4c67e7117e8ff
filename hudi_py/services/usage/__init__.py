"""Where the bytes of a table are: every file with who holds it, and sums by reason, partition and commit."""
