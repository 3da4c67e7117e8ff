"""Log compaction: many small blocks of log files become one; base files stay as they are."""
