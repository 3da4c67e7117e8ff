"""Rows into base files: keys, packing, writing, merging. Free of Spark, which only calls it."""
