"""
Conversion between bytes and values. Pure: no storage, no clock, no randomness; callers name the source for messages.

Instant files (`avro_file`, `commit_json`, `records_codec`, ...), properties, archives, log blocks, filters, schemas.
"""
