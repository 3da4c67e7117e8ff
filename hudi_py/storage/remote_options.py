"""Translates storage options from users' text to what fsspec expects, and removes their secrets from messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hudi_py.errors import ConfigError

# Names that users know from Hadoop (and so from Hudi), and from delta-rs, hudi-rs and obstore.
_S3_ALIASES = {
    "fs.s3a.access.key": "key",
    "fs.s3a.secret.key": "secret",
    "fs.s3a.session.token": "token",
    "fs.s3a.endpoint": "endpoint_url",
    "fs.s3a.endpoint.region": "client_kwargs.region_name",
    "aws_access_key_id": "key",
    "aws_secret_access_key": "secret",
    "aws_session_token": "token",
    "aws_endpoint_url": "endpoint_url",
    "aws_endpoint": "endpoint_url",
    "aws_region": "client_kwargs.region_name",
    "endpoint": "endpoint_url",
    "region": "client_kwargs.region_name",
}
_PATH_STYLE = "fs.s3a.path.style.access"
_BOOLEANS = {"true": True, "false": False}
# Rather too many: a value that is hidden by mistake costs nothing.
_SECRET_NAME = re.compile(r"key|secret|token|passw|credential|sas|signature|connection_string", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_HIDDEN = "***"
_CONNECT_TIMEOUT_S = 10
_READ_TIMEOUT_S = 20


def s3_options(options: Mapping[str, str]) -> dict[str, Any]:
    """
    Translate *options* for s3fs: aliases, dotted names for nested settings, ``true``/``false``.

    Listings are never cached. The libraries below send each request once and time out when no data arrives; only
    `Retry` repeats, because it limits the total time and logs every repetition.

    Raises:
        ConfigError: A Hadoop option has no equivalent here, or a name is both a value and a group of options.
    """
    translated = {}
    for name, value in options.items():
        if name == _PATH_STYLE:
            name, value = "config_kwargs.s3.addressing_style", "path" if value.lower() == "true" else "auto"
        elif name.startswith("fs.") and name not in _S3_ALIASES:
            known = ", ".join(sorted([_PATH_STYLE, *(alias for alias in _S3_ALIASES if alias.startswith("fs."))]))
            raise ConfigError(f"storage option {name} is Hadoop's and has no equivalent here; known: {known}")
        translated[_S3_ALIASES.get(name, _S3_ALIASES.get(name.lower(), name))] = value
    # Hadoop accepts end points without a scheme.
    endpoint = translated.get("endpoint_url")
    if endpoint and "://" not in endpoint:
        translated["endpoint_url"] = f"https://{endpoint}"
    result = nested_options(translated)
    config = result["config_kwargs"] = _with_numbers(result.get("config_kwargs", {}))
    # One attempt, so that only `Retry` repeats, within its total time.
    config.setdefault("retries", {"mode": "standard", "total_max_attempts": 1})
    config.setdefault("connect_timeout", _CONNECT_TIMEOUT_S)
    config.setdefault("read_timeout", _READ_TIMEOUT_S)
    # A cached listing would show a table as it was.
    result["use_listings_cache"] = False
    return result


def _with_numbers(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert texts to numbers where they look like numbers: botocore does not accept timeouts and limits as text."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            found[name] = _with_numbers(value)
        elif isinstance(value, str) and _NUMBER.fullmatch(value):
            found[name] = float(value) if "." in value else int(value)
        else:
            found[name] = value
    return found


def nested_options(options: Mapping[str, str]) -> dict[str, Any]:
    """
    Turn ``{"a.b": "true"}`` into ``{"a": {"b": True}}``.

    Raises:
        ConfigError: A name is both a value and the first part of another name.
    """
    result: dict[str, Any] = {}
    for name, value in options.items():
        *parents, last = name.split(".")
        target = result
        for parent in parents:
            target = target.setdefault(parent, {})
            if not isinstance(target, dict):
                raise ConfigError(f"storage option {name}: {parent} is also given as a value; remove one of the two")
        target[last] = _BOOLEANS.get(value.lower(), value)
    return result


def redact(text: str, options: Mapping[str, str]) -> str:
    """Return *text* with the values of secret options replaced by asterisks; names of options show which are."""
    for name, value in options.items():
        if value and _SECRET_NAME.search(name):
            text = text.replace(str(value), _HIDDEN)
    return text
