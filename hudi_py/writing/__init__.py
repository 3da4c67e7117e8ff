"""
The way of a write: which file group gets which row (`assign`, `tag`), the files of a task, the commit (`transaction`).

Free of Spark.
"""
