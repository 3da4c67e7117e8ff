"""The files that savepoints hold, as sets that are made when a partition is asked for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from hudi_py.formats.savepoint_files import SavepointFiles

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
        nothing: Collection[bytes] = ()
        self._asked: tuple[Collection[bytes], tuple[Mapping[str, Iterable[str]], ...]] = (nothing, ())

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

    def among(self, partition_path: str, names: Collection[str], ends: Collection[bytes]) -> frozenset[str]:
        """
        Those of some names of a partition that are held.

        Args:
            partition_path: Path of the partition.
            names: The names asked about.
            ends: How any of them may end, see `SavepointFiles.may_name`; the same collection for as long as it does not
                change, because savepoints are searched for it as a whole. Those without such a name are not decoded.
        """
        asked, parts = self._asked
        if asked is not ends:
            parts = tuple(part for part in self.of if not isinstance(part, SavepointFiles) or part.may_name(ends))
            self._asked = (ends, parts)
        held: set[str] = set()
        for part in parts:
            held.update(part.get(partition_path, ()))
        return frozenset(held.intersection(names)) if held else _NONE
