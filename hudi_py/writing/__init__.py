"""
Parts of a write: choose the file group of each row (`assign`, `tag`), write a task's files, commit (`transaction`).

Nothing here depends on Spark.
"""
