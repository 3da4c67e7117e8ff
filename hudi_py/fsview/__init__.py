"""
The file-system view: which files make which slices of which file groups.

`build` (pure) turns file names into groups, `loader` reads what it needs from storage.
"""
