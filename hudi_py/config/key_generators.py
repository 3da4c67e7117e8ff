"""The supported key generators: their types, and the Java classes of Hudi with the same behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, UnsupportedTable

KEY_GENERATOR_PACKAGE: Final = "org.apache.hudi.keygen."
KEY_GENERATOR_TYPES: Final[Mapping[str, str]] = {
    "SimpleKeyGenerator": "SIMPLE",
    "SimpleAvroKeyGenerator": "SIMPLE",
    "NonpartitionedKeyGenerator": "NON_PARTITION",
    "NonpartitionedAvroKeyGenerator": "NON_PARTITION",
    "ComplexKeyGenerator": "COMPLEX",
    "ComplexAvroKeyGenerator": "COMPLEX",
    "TimestampBasedKeyGenerator": "TIMESTAMP",
    "TimestampBasedAvroKeyGenerator": "TIMESTAMP",
    "CustomKeyGenerator": "CUSTOM",
    "CustomAvroKeyGenerator": "CUSTOM",
}
"""Class name without package → type."""


def key_generator_asked_for(settings: Settings) -> str | None:
    """
    Return the type of key generator that *settings* name, by type or by class; None if they name none.

    Raises:
        UnsupportedTable: hudi_py does not support it: it would compute other keys and partitions.
        ConfigError: Type and class are given and differ.
    """
    by_type = settings[keys.KEY_GENERATOR_TYPE].strip().upper().removesuffix("_AVRO")
    name = settings[keys.KEY_GENERATOR_CLASS].strip()
    by_class = KEY_GENERATOR_TYPES.get(name.removeprefix(KEY_GENERATOR_PACKAGE), name)
    if by_type and by_class and by_type != by_class:
        raise ConfigError(
            f"{keys.KEY_GENERATOR_TYPE.name}={by_type} and {keys.KEY_GENERATOR_CLASS.name}={name} are two key "
            "generators; keep one"
        )
    asked = by_type or by_class
    if asked and asked not in KEY_GENERATOR_TYPES.values():
        supported = ", ".join(sorted(set(KEY_GENERATOR_TYPES.values())))
        raise UnsupportedTable(f"key generator {asked} is not supported for writing; supported are {supported}")
    return asked or None
