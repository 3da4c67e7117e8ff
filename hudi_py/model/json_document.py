"""Parses the JSON documents in a table: whatever they hold, the only error is that of a document that is no JSON."""

from __future__ import annotations

import json
from typing import Any


def parse_json(data: bytes | str) -> Any:
    """
    Parse one document.

    Raises:
        ValueError: It is no JSON, or nested so deeply that Python's parser gives up.
    """
    try:
        return json.loads(data)
    except RecursionError as error:  # no ValueError, so it would pass every handler of damaged documents
        raise ValueError("it is nested too deeply") from error
