"""The kinds of operations that support different settings and tables. Pure."""

from __future__ import annotations

import enum


class Use(enum.Flag):
    """Operations on a table. A writer also cleans and archives after its commits, so it combines several."""

    LOOK = enum.auto()
    READ = enum.auto()
    WRITE = enum.auto()
    CLEAN = enum.auto()
    ARCHIVE = enum.auto()
    ROLLBACK = enum.auto()
    SAVEPOINT = enum.auto()
    REWRITE = enum.auto()
    SERVICES = CLEAN | ARCHIVE | ROLLBACK | SAVEPOINT
    ALL = LOOK | READ | WRITE | SERVICES | REWRITE

    @property
    def words(self) -> str:
        """The operations in words, to follow *refused for*."""
        if Use.ALL in self:
            return "everything"
        names = {
            Use.LOOK: "looking at a table",
            Use.READ: "reading",
            Use.WRITE: "writing",
            Use.CLEAN: "cleaning",
            Use.ARCHIVE: "archival",
            Use.ROLLBACK: "rollback, restore and recovery",
            Use.SAVEPOINT: "savepoints",
            Use.REWRITE: "compaction and clustering",
        }
        return ", ".join(words for use, words in names.items() if use in self)
