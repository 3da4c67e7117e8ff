"""
When a partition expires, as a typed value.

By the strategies of Apache Hudi, or by a date in the partition's value, which is a setting of hudi_py alone.

Source: Hudi ``HoodieTTLConfig``, ``PartitionTTLStrategyType``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypedDict

import attrs

from hudi_py.config import keys
from hudi_py.config.arguments import check_kinds, check_known, chosen_of, count_of
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import Unpack

_PACKAGE: Final = "org.apache.hudi.table.action.ttl.strategy."
_UNITS: Final = "YmdHM"
"""Directives of a format, from the longest time to the shortest."""


class ExpiryBy(enum.Enum):
    """What the age of a partition is counted from; values are the words on the command line."""

    LAST_CHANGE = "last-change"
    CREATION = "creation"
    VALUE = "value"


_TYPES: Final = {"KEEP_BY_TIME": ExpiryBy.LAST_CHANGE, "KEEP_BY_CREATION_TIME": ExpiryBy.CREATION}
_CLASSES: Final = {"KeepByTimeStrategy": ExpiryBy.LAST_CHANGE, "KeepByCreationTimeStrategy": ExpiryBy.CREATION}


@attrs.frozen(kw_only=True)
class ExpiryConfig:
    """
    Args:
        by: What the age is counted from.
        days: Age in days from which a partition expires; 0 or less for never.
        selected: Paths of the partitions that may expire; empty for all.
        partitions_max: Largest number of partitions of one run, the oldest first.
        value_format: For `ExpiryBy.VALUE`: form of the date in the value, such as ``%Y-%m-%d``.
        value_field: For `ExpiryBy.VALUE`: partition column with the date; empty for the whole path.
    """

    by: ExpiryBy = ExpiryBy.LAST_CHANGE
    days: int = -1
    selected: tuple[str, ...] = ()
    partitions_max: int = 1000
    value_format: str = ""
    value_field: str = ""


def expiry_config(settings: Settings) -> ExpiryConfig:
    """
    Return the configuration of expiry in *settings*.

    Raises:
        ConfigError: A value is invalid, names a class that decides in another way, or two values contradict each other.
    """
    by = _by(settings)
    text = settings[keys.PARTITION_TTL_FORMAT]
    if text:
        given = [key.name for key in (keys.PARTITION_TTL_TYPE, keys.PARTITION_TTL_CLASS) if key in settings]
        if given:
            raise ConfigError(
                f"{keys.PARTITION_TTL_FORMAT.name} lets partitions expire by their value, and {given[0]} by a time of "
                "the table; leave one of them out"
            )
        by = ExpiryBy.VALUE
    if settings[keys.PARTITION_TTL_FIELD] and not text:
        raise ConfigError(f"{keys.PARTITION_TTL_FIELD.name} is given without {keys.PARTITION_TTL_FORMAT.name}")
    return checked(
        ExpiryConfig(
            by=by,
            days=settings[keys.PARTITION_TTL_DAYS],
            selected=settings[keys.PARTITION_TTL_SELECTED],
            partitions_max=settings[keys.PARTITION_TTL_MAX],
            value_format=text,
            value_field=settings[keys.PARTITION_TTL_FIELD],
        )
    )


class ExpiryOptions(TypedDict, total=False):
    """
    Which partitions expire in one run; what is left out, or None, is as the settings say.

    - ``days``: age in days; by default ``hoodie.partition.ttl.strategy.days.retain``, and none expires without it.
    - ``by``: what the age is counted from: ``last-change``, ``creation``, or ``value`` with ``value_format``; by
      default the strategy that the settings name.
    - ``value_format``: form of the time in the partition's value, such as ``%Y-%m-%d``.
    - ``value_field``: partition column with that time; by default the whole path.
    - ``partitions``: paths of the partitions that may expire; by default all.
    - ``max_partitions``: largest number of partitions, the oldest first.
    """

    days: int | None
    by: str | None
    value_format: str | None
    value_field: str | None
    partitions: Sequence[str] | None
    max_partitions: int | None


def expiry_config_with(settings: Settings, **options: Unpack[ExpiryOptions]) -> ExpiryConfig:
    """
    Return the configuration in *settings*, overridden by *options*.

    Raises:
        ConfigError: A value is invalid, or two contradict each other.
        TypeError: An option is unknown.
    """
    check_known(options, ExpiryOptions.__annotations__)
    config = expiry_config(settings)
    by, days = options.get("by"), count_of("days", options.get("days"), least=0)
    partitions = chosen_of("partitions", options.get("partitions"))
    value_format, value_field = options.get("value_format"), options.get("value_field")
    check_kinds(str, "a text", by=by, value_format=value_format, value_field=value_field)
    max_partitions = count_of("max_partitions", options.get("max_partitions"), least=1)
    if by is not None and by not in {each.value for each in ExpiryBy}:
        raise ConfigError(f"by={by}: use one of {', '.join(each.value for each in ExpiryBy)}")
    # A format has a meaning for no other way.
    if by is None and value_format:
        by = ExpiryBy.VALUE.value
    chosen = config.by if by is None else ExpiryBy(by)
    about_values = {"value_format (--format)": value_format, "value_field (--field)": value_field}
    overlooked = [name for name, value in about_values.items() if value]
    if overlooked and chosen is not ExpiryBy.VALUE:
        raise ConfigError(
            f"{' and '.join(overlooked)} would have no effect, because partitions expire by {chosen.value}; give a "
            "format and no other way of counting, or leave it out"
        )
    return checked(
        attrs.evolve(
            config,
            by=chosen,
            days=config.days if days is None else days,
            selected=partitions or config.selected,
            partitions_max=config.partitions_max if max_partitions is None else max_partitions,
            value_format=config.value_format if value_format is None else value_format,
            value_field=config.value_field if value_field is None else value_field,
        )
    )


def checked(config: ExpiryConfig) -> ExpiryConfig:
    """
    Return *config* if its values fit together.

    Raises:
        ConfigError: They do not.
    """
    if config.by is not ExpiryBy.VALUE:
        return config
    given = re.findall(r"%(.)", config.value_format)
    # Without a year a value comes again, and without the units between a date is not one.
    if not given or sorted(given, key=_UNITS.find) != list(_UNITS[: len(given)]):
        raise ConfigError(
            f"expiry by value needs a format with a year and the units below it, such as %Y, %Y-%m, %Y/%m/%d or "
            f"%Y%m%d%H, not {config.value_format!r} ({keys.PARTITION_TTL_FORMAT.name}, --format)"
        )
    return config


def _by(settings: Settings) -> ExpiryBy:
    name = settings[keys.PARTITION_TTL_CLASS].strip()
    if not name:
        return _TYPES[settings[keys.PARTITION_TTL_TYPE]]
    by = _CLASSES.get(name.removeprefix(_PACKAGE))
    if by is None:
        raise ConfigError(
            f"{keys.PARTITION_TTL_CLASS.name}={name} is a Java class that decides in another way; hudi_py does as "
            f"{' and '.join(_CLASSES)}, or by value ({keys.PARTITION_TTL_FORMAT.name})"
        )
    return by
