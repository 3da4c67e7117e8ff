"""The command line: `cli` and the `*_command` modules define commands, `report` builds JSON, `render` prints tables."""
