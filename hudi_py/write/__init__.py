"""
Writing rows: pure parts (`keys`, `assign`), base files (`base_file`), and the commit (`transaction`). Free of pyspark.
"""
