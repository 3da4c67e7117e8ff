"""Settings and options that a list of files to remove was made under, and that hold when it is approved. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from hudi_py.config.clean_options import CleanOptions
from hudi_py.config.keys import key_by_name
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError

# What is kept, and where removed files go. Names of locks, hooks and credentials begin otherwise, and stay out of a
# file that people hand around.
_PREFIXES: Final = (
    "hoodie.clean.",
    "hoodie.cleaner.",
    "hoodie_py.clean.",
    "hoodie_py.quarantine.",
    "hoodie_py.orphans.",
)
OF_ORPHANS: Final[Mapping[str, type]] = {"older_than": str, "max_deletes": int, "inventory": str}
_OF_CLEANS: Final[Mapping[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(CleanOptions.__annotations__, (str, int)),
    "policy": str,
    "instants": list,
}


def settings_to_list(settings: Settings, from_policy: AbstractSet[str]) -> dict[str, str]:
    """
    Return the given settings that decide what a removal takes, and where to.

    Args:
        settings: Those that the list is made under.
        from_policy: Names that the table's policy gave: whoever approves is under that policy, too, as it is then.
    """
    return {
        name: settings.text(name) for name in sorted(settings) if name.startswith(_PREFIXES) and name not in from_policy
    }


def under_listed_settings(settings: Settings, listed: Mapping[str, str], from_policy: AbstractSet[str]) -> Settings:
    """
    Return the settings of whoever approves, with those that the list was made under.

    Args:
        settings: Those of whoever approves.
        listed: From `settings_to_list`.
        from_policy: As there; for these names the policy holds.

    Raises:
        ConfigError: A setting is given with another value than the list was made under, or the list has others than
            such settings.
    """
    taken: dict[str, str] = {}
    for name, text in listed.items():
        key = key_by_name(name)
        if not name.startswith(_PREFIXES) or not isinstance(text, str):
            raise ConfigError(f"the list has the setting {name}, which lists do not have; nothing was removed")
        if key is None or not from_policy.isdisjoint(key.names):
            continue
        given = settings.raw(key)
        if given is not None and given != text:
            raise ConfigError(
                f"{name}={given}, but the list was made under {name}={text}; leave the setting out, or make a new "
                "list; nothing was removed"
            )
        taken[name] = text
    return settings.merged(taken)


def check_listed_options(options: Mapping[str, Any], *, of_orphans: bool) -> None:
    """
    Check the options in a list that a person may have edited.

    Args:
        options: Name to value, as they are in the file.
        of_orphans: Whether the list is of a search for orphans, or of a clean.

    Raises:
        ConfigError: Such lists do not have one of them, or not with such a value.
    """
    known = OF_ORPHANS if of_orphans else _OF_CLEANS
    for name, value in options.items():
        if not isinstance(value, known.get(name, ())):
            raise ConfigError(f"the list has the option {name}={value!r}, which lists do not have; nothing was removed")
