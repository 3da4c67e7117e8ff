"""What a table shows at one time: `select` (pure) says which files count, `rows` reads them, `snapshot` has both."""
