"""Puts the retention policy of a table in force, and takes it away. What it means is in ``hudi_py.config``."""
