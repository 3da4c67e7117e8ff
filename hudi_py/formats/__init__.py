"""
Bytes and values: pure pairs of ``decode_*``/``encode_*`` and ``parse_*``/``format_*``.

Nothing here knows storage, time or chance; whatever does not parse raises `CorruptMetadata` and nothing else.
"""
