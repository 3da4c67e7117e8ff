"""Notes of one clean for the next, in files of hudi_py below ``.aux``."""
