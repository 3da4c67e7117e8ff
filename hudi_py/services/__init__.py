"""Table services. Each is a folder: pure `policy`/`plan`, then `execute` (effects), then `service` (entry)."""
