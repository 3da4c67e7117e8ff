"""The clock and the log: effects that are not storage."""
