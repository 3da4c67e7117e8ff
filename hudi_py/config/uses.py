"""What settings and tables are used for, as far as the verdicts about them differ. Pure."""

from __future__ import annotations

import enum


class Use(enum.Flag):
    """A writer's commits are followed by cleans and archival, so its use is several of these."""

    LOOK = enum.auto()
    READ = enum.auto()
    WRITE = enum.auto()
    CLEAN = enum.auto()
    ARCHIVE = enum.auto()
    ROLLBACK = enum.auto()
    SAVEPOINT = enum.auto()
    SERVICES = CLEAN | ARCHIVE | ROLLBACK | SAVEPOINT
    ALL = LOOK | READ | WRITE | SERVICES

    @property
    def words(self) -> str:
        """As in *refused for ...*."""
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
        }
        return ", ".join(words for use, words in names.items() if use in self)
