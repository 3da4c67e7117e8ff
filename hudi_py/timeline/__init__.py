"""
The timeline: what happened to a table, in order.

`layout` (pure) knows file names, `timeline` (pure) answers questions, `store` reads and writes instant files.
"""
