"""Bytes to values and back: Avro, properties, commit JSON, log blocks, HFile. Pure: no storage, no clock."""
