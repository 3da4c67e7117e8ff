"""
The metadata table (`.hoodie/metadata`): listing through it, and keeping it in step with what we do to the table.

`changes` and `records` are pure; `keeper` is what writers ask, `listing` what readers ask.
"""
