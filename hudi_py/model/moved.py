"""Where columns that a file stores under the names of its time are in the table of today."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class StoredNames:
    """
    The names of today of the columns of a file, or of the fields below one of them.

    Args:
        names: Stored name to today's name. What is not named here is no column of today, whatever its name: it was
            dropped, and a column of that name is another one, which the file lacks.
        inside: Stored name to the same for the fields below: of a struct by their names, of a list under ``element``,
            of a map under ``value``. Where all fields kept their names there is nothing.
    """

    names: Mapping[str, str]
    inside: Mapping[str, StoredNames] = attrs.field(factory=dict)
