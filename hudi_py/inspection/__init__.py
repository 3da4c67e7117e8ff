"""The command line: `report` (pure) makes the JSON shapes, `render` the text, `cli` the commands."""
