"""Frozen values: instants, files, records. Touches no storage and imports only `errors` and attrs."""
