"""Runs a function for many items: on threads here, on Spark executors in `hudi_py.spark.engine`."""
