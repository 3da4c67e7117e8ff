"""Rows in this process, as Arrow tables: an engine for writes that needs neither Spark nor a JVM."""
