"""The files that savepoints hold, as sets that are made when a partition is asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

_NONE: frozenset[str] = frozenset()


class HeldFiles(Mapping[str, frozenset[str]]):
    """
    Partition path to the names that any of the given mappings has for it.

    Savepoints may name millions of files, and most questions are about a few partitions, or about none: a set for each
    partition of each savepoint would take about as long as reading them.

    Args:
        of: Partition path to names; must not change afterwards.
    """

    def __init__(self, *of: Mapping[str, Iterable[str]]) -> None:
        # The sets of one partition are made of the names themselves, not of other sets.
        self.of: tuple[Mapping[str, Iterable[str]], ...] = tuple(
            part for held in of for part in (held.of if isinstance(held, HeldFiles) else (held,))
        )
        self._known: dict[str, frozenset[str]] = {}

    def __getitem__(self, partition_path: str) -> frozenset[str]:
        known = self._known.get(partition_path)
        if known is None:
            if partition_path not in self:
                raise KeyError(partition_path)
            known = _NONE.union(*[held.get(partition_path, ()) for held in self.of])
            self._known[partition_path] = known
        return known

    def __contains__(self, partition_path: object) -> bool:
        # Mapping's own would make the set.
        for held in self.of:  # noqa: SIM110 - asked for each partition, and a generator takes twice as long
            if partition_path in held:
                return True
        return False

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(path for held in self.of for path in held))

    def __len__(self) -> int:
        return len({path for held in self.of for path in held})
