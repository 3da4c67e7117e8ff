"""Reading a table: `select` (pure) decides which files, `snapshot` reads them with PyArrow, without Spark."""
