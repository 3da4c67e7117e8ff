"""
How a row file is made and read, for every service: base files, keys, which row wins, merging, conditions, bounds.

Free of Spark; nothing here knows the timeline or decides which files count.
"""
