"""What is called after commits and services, as the settings say. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.http_address import is_http_address
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError

HUDI_KEY: Final = "HUDI-CALLBACK-KEY"
"""Header in which Apache Hudi sends ``hoodie.write.commit.callback.http.api.key``."""
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""What a name of a header is made of (RFC 9110, 5.6.2)."""
AFTER: Final = ("commit", "service")


@attrs.frozen(kw_only=True)
class Address:
    """
    What is sent to by HTTP.

    Args:
        url: Of http or https.
        seconds: Time limit of the whole call.
        headers: Sent besides the usual ones; their values are secrets.
    """

    url: str
    seconds: float
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)


@attrs.frozen(kw_only=True)
class HookConfig:
    """
    Hooks of a table.

    Args:
        after: ``commit``, ``service`` or both.
        address: Is sent what has completed, as JSON; None for none.
        command: Program and arguments; gets it on standard input. Empty for none.
        function: ``module:name`` of a function that is called with it; empty for none.
        seconds: Time limit of the command.
        hudi: Is sent Apache Hudi's message after commits; None for none.
    """

    after: frozenset[str] = frozenset(AFTER)
    address: Address | None = None
    command: tuple[str, ...] = ()
    function: str = ""
    seconds: float = 30.0
    hudi: Address | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is called."""
        return self.address is None and not self.command and not self.function and self.hudi is None


def hook_config(settings: Settings) -> HookConfig:
    """
    Read the settings of hooks.

    Raises:
        ConfigError: One is invalid.
    """
    given: tuple[str, ...] = settings[keys.HOOK_AFTER]
    after = frozenset(given)
    if not after or not after <= set(AFTER):
        raise ConfigError(f"{keys.HOOK_AFTER.name} takes commit, service or both, with a comma between them")
    seconds = settings[keys.HOOK_TIMEOUT].total_seconds()
    url, function = settings[keys.HOOK_URL], settings[keys.HOOK_FUNCTION]
    if function and not all(part.isidentifier() for part in function.replace(":", ".", 1).split(".")):
        raise ConfigError(f"{keys.HOOK_FUNCTION.name}={function} is not of the form package.module:function")
    if function and ":" not in function:
        raise ConfigError(f"{keys.HOOK_FUNCTION.name}={function} names no function; write package.module:function")
    try:
        # Words, not a shell: what a table is called must never become part of a command line.
        command = tuple(shlex.split(settings[keys.HOOK_COMMAND]))
    except ValueError as error:
        raise ConfigError(f"{keys.HOOK_COMMAND.name} cannot be split into words: {error}") from error
    return HookConfig(
        after=after,
        address=_address(keys.HOOK_URL.name, url, seconds, {}) if url else None,
        command=command,
        function=function,
        seconds=seconds,
        hudi=_hudi(settings) if settings[keys.CALLBACK_ON] else None,
    )


def _hudi(settings: Settings) -> Address:
    """Apache Hudi's own callback, by HTTP."""
    url = settings[keys.CALLBACK_URL]
    if not url:
        raise ConfigError(f"{keys.CALLBACK_ON.name}=true needs {keys.CALLBACK_URL.name}")
    key = settings[keys.CALLBACK_KEY]
    if not _fits_header(key):  # refused when it is sent, with the key in the error
        raise ConfigError(f"{keys.CALLBACK_KEY.name} has a line end or another character that no header can have")
    headers = {HUDI_KEY: key}
    # As Apache Hudi: name:value, with a semicolon between two.
    for part in filter(None, settings[keys.CALLBACK_HEADERS].split(";")):
        name, colon, value = part.partition(":")
        if not colon or not _HEADER.fullmatch(name.strip()) or not _fits_header(value):
            raise ConfigError(f"{keys.CALLBACK_HEADERS.name} is not of the form name:value;name:value")
        headers[name.strip()] = value.strip()
    return _address(keys.CALLBACK_URL.name, url, settings[keys.CALLBACK_TIMEOUT_S], headers)


def _fits_header(text: str) -> bool:
    return text.isprintable() and text.isascii()


def _address(name: str, url: str, seconds: float, headers: Mapping[str, str]) -> Address:
    # What only sending would find, too: it would be a warning after every commit. The message does not repeat the
    # address, which may have a password in it.
    if not is_http_address(url) or not url.isascii() or any(ord(char) <= ord(" ") for char in url):
        raise ConfigError(f"{name} is not an address of http or https")
    return Address(url=url, seconds=seconds, headers=headers)
