"""
Spark's errors about files of a table that are gone, in the words of hudi_py: they name what deleted the file.

Spark's own reader knows the names of files only. It reports them through one function of PySpark, which makes errors of
Python of those of Java; that function is asked first, and only where a file of a table is missing another error is
given. Spark has no other place for this: an action of a DataFrame is no call of hudi_py.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import unquote

from pyspark.errors.exceptions import captured

from hudi_py.errors import HudiError, NotFound
from hudi_py.model.files import join_path, parse_base_file
from hudi_py.snapshot.beside_clean import lost_meanwhile
from hudi_py.snapshot.select import slices_of_names
from hudi_py.timeline.contents import Contents

_TABLES_MAX: Final = 64
_CAUSES_MAX: Final = 16
_IS_MISSING: Final = re.compile(r"FILE_NOT_EXIST|does not exist|FileNotFound|NoSuchKey|[Nn]o such file|NOT_FOUND")
_known: OrderedDict[str, Contents] = OrderedDict()
"""Tables that were read, by what the URLs of their files begin with behind the scheme; the newest last."""


def explain_lost_files(contents: Contents) -> None:
    """From now on, errors of Spark about missing files of this table name what deleted them, where that is known."""
    place = _place(contents)
    _known[place] = contents
    _known.move_to_end(place)
    if len(_known) > _TABLES_MAX:
        _known.popitem(last=False)
    told: Any = getattr(captured, "convert_exception", None)
    if told is not None and not hasattr(told, "before_hudi_py"):
        captured.convert_exception = _explaining(told)


def _place(contents: Contents) -> str:
    return contents.store.storage.root.rpartition("://")[2].rstrip("/")


def _explaining(told: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def converted(error: Any) -> Any:
        try:
            found = explained("\n".join(_messages(error)))
        except Exception:  # noqa: BLE001  # whatever it is, Spark's error says more
            found = None
        return told(error) if found is None else found

    converted.before_hudi_py = told  # type: ignore[attr-defined]
    return converted


def explained(text: str) -> NotFound | None:
    """
    The error for a text of Spark about a missing file; None if it is about none, or nothing is known of it.

    Args:
        text: Spark's messages.
    """
    if not _IS_MISSING.search(text):
        return None
    for each in dict.fromkeys((text, unquote(text))):  # as a path, or as a URL
        for place, contents in reversed(_known.items()):
            for path in re.findall(re.escape(place) + r"/(.+?\.parquet)", each):
                partition, _, name = path.rpartition("/")
                if parse_base_file(name) is None:
                    continue
                (slice_,) = slices_of_names({partition: [name]})
                plain = NotFound(f"{join_path(contents.store.storage.root, path)} is missing")
                try:
                    error = lost_meanwhile(contents, slice_, plain)
                except HudiError:  # the table cannot be looked at
                    continue
                if error is not plain:
                    return error
    return None


def _messages(error: Any) -> Iterator[str]:
    for _ in range(_CAUSES_MAX):
        if error is None:
            return
        yield str(error.toString())
        error = error.getCause()
