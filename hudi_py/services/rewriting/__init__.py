"""What services that rewrite file slices have in common: the task, the commit, the result."""
