"""Writes rows of Arrow tables in this process, without Spark or a JVM."""
