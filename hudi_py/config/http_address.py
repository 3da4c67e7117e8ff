"""Which texts are addresses of http, in settings of different kinds. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_http_address(text: str) -> bool:
    """Whether the text is an address of http or https with a host and, if it has one, a possible port."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its port is no number, or too large
        return False
