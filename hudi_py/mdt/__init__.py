"""
The metadata table (``.hoodie/metadata``): reading its `files` partition, and keeping it in step with our own commits.

Boundary: knows HFiles, log blocks and the table's two timelines; knows nothing of plans, rows or services.
"""
