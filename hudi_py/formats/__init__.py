"""
Bytes to values and back, pure: no storage, no clock, no chance. Whoever calls says where the bytes came from.

Instant files (`avro_file`, `commit_json`, `records_codec`, ...), properties, archives, log blocks, filters, schemas.
"""
