"""Bytes to values and back: pure, free of storage, clocks and engines."""
