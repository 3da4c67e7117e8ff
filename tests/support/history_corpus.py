"""
Short histories that broke a law once, or that somebody feared would; each is played for ever after.

Tables: our own of versions 6 (without a metadata table) and 9 (with one), unless a fixture is named.
"""

from __future__ import annotations

from typing import Any, Final

from support.history_laws import Kind
from support.history_steps import Step


def _write(seed: int, operation: str = "UPSERT", **more: Any) -> Step:
    return ("write", {"operation": operation, "seed": seed, **more})


def _crash(n: int, step: Step, mode: str = "stop before") -> Step:
    return ("crash", {"mode": mode, "n": n}, step)


def _savepoint(back: int = 0, **more: Any) -> Step:
    return ("savepoint", {"back": back, **more})


def _replace(kind: str = "INSERT_OVERWRITE_TABLE") -> Step:
    return ("replace", {"kind": kind, "seed": 3})


_VERSIONS: Final = {"options": {"file_versions_retained": 1}}
_COMMITS: Final = {"options": {"commits_retained": 1}}
_MULTIPLE: Final = {"settings": {"hoodie.clean.multiple.enabled": True}}
_CLEAN: Final[Step] = ("clean", _VERSIONS)
_PLAN: Final[Step] = ("plan_clean", _VERSIONS)
_BACK: Final[Step] = ("rollback", {"back": 0})
_BACK_BY_HUDI: Final[Step] = ("hudi", {}, _BACK)
_RECOVER: Final[Step] = ("recover", {})
_RESTORE: Final[Step] = ("restore", {"back": 0})
_KEEPING_CLEAN: Final[Step] = ("clean", {**_VERSIONS, "settings": {"hoodie_py.clean.quarantine": True}})
_LEASE: Final[Step] = ("lease", {"back": 0, "ttl": 5})
_UNDO: Final[Step] = ("undo", {"back": 0})
_W1, _W2, _W3 = _write(1), _write(2), _write(3)

DELTAS: Final = (Kind(version=6, metadata=False, deltas=True), Kind(version=9, metadata=True, deltas=True))
OURS: Final = (Kind(version=6, metadata=False), Kind(version=9, metadata=True))

SEQUENCES: Final[dict[str, tuple[Step, ...]]] = {
    # --- a clean that was right when it was planned
    "plan, rollback, clean": (_W1, _W2, _W3, _PLAN, _BACK, _CLEAN),
    "plan by commits, two rollbacks, clean": (
        _W1, _W2, _W3, _write(4), ("plan_clean", _COMMITS), _BACK, _BACK, ("clean", _COMMITS),
    ),
    "plan, rollback, recover": (_W1, _W2, _W3, _PLAN, _BACK, _RECOVER),
    "plan, rollback, write that cleans": (_W1, _W2, _W3, _PLAN, _BACK, _write(4, services={"commits_retained": 1})),
    "clean begun, rollback, clean": (_W1, _W2, _W3, _crash(4, _CLEAN), _BACK, _CLEAN),
    "clean half done, rollback, clean": (_W1, _W2, _W3, _crash(5, _CLEAN, "tear"), _BACK, _CLEAN),
    "clean half done, rollback by Hudi, recover": (_W1, _W2, _W3, _crash(5, _CLEAN, "tear"), _BACK_BY_HUDI, _RECOVER),
    "plan, rollback by Hudi, clean": (_W1, _W2, _W3, _PLAN, _BACK_BY_HUDI, _CLEAN),
    "plan, rollback by Hudi, recover": (_W1, _W2, _W3, _PLAN, _BACK_BY_HUDI, _RECOVER),
    "plan, rollback by Hudi, same groups written again, clean": (_W1, _W2, _W3, _PLAN, _BACK_BY_HUDI, _W3, _CLEAN),
    "plan, restore by Hudi, savepoint deleted, clean": (
        _W1, _W2, _savepoint(), _W3, _write(4), _PLAN, ("hudi", {}, _RESTORE), ("release", {"back": 0}), _CLEAN,
    ),
    "plan, savepoint by Hudi, clean": (
        _W1, _W2, _W3, ("plan_clean", _COMMITS), ("hudi", {}, _savepoint(1)), ("clean", _COMMITS),
    ),
    "plan, rollback by Hudi, write, savepoint by Hudi, archive, clean": (
        _W1, _W2, _W3, _PLAN, _BACK_BY_HUDI, _W3, ("hudi", {}, _savepoint(1)),
        ("archive", {"keep": 1, "beyond": False}), _CLEAN,
    ),
    # --- groups that live again
    "overwrite, plan, rollback, clean": (_W1, _W2, _replace(), _PLAN, _BACK, _CLEAN),
    "overwrite, plan, rollback by Hudi, clean": (_W1, _W2, _replace(), _PLAN, _BACK_BY_HUDI, _CLEAN),
    "overwrite, plan by commits, all undone by Hudi, clean": (
        _W1, _W2, _replace(), _write(4), _write(5), _write(6), ("plan_clean", _COMMITS),
        _BACK_BY_HUDI, _BACK_BY_HUDI, _BACK_BY_HUDI, _BACK_BY_HUDI, ("clean", _COMMITS),
    ),
    "partition dropped, plan, rollback by Hudi, clean": (
        _W1, _W2, _replace("DELETE_PARTITION"), _PLAN, _BACK_BY_HUDI, _CLEAN,
    ),
    "clustering, plan, rollback by Hudi, clean": (
        _W1, _W2, ("plan_clustering", {"seed": 1}), ("cluster", {}), _PLAN, _BACK_BY_HUDI, _CLEAN,
    ),
    "overwrite, clean, rollback": (_W1, _W2, _replace(), _CLEAN, _BACK),
    # --- rollbacks and restores
    "rollback to a slice that only a savepoint holds": (_W1, _savepoint(), _W1, _W1, _CLEAN, _BACK),
    "restore below a newer savepoint": (_W1, _savepoint(), _W2, _savepoint(), ("restore", {"back": 1})),
    "restore to a savepoint whose commit is undone": (
        _W1, _savepoint(), _W2, _savepoint(), ("restore", {"back": 1}), _RESTORE,
    ),
    "rollback of the only commit that is not archived": (
        _W1, _W2, _W3, ("clean", _COMMITS), _write(4), ("clean", _COMMITS), ("archive", {"keep": 1, "beyond": False}),
        _BACK, _BACK, _BACK,
    ),
    "rollback interrupted, clean": (_W1, _W2, _W3, _crash(5, _BACK), _CLEAN),
    "restore interrupted, clean": (_W1, _savepoint(), _W2, _W3, _crash(9, _RESTORE), _CLEAN),
    "restore interrupted twice, write": (_W1, _savepoint(), _W2, _W3, _crash(3, _RESTORE), _crash(2, _RESTORE), _W2),
    # --- done twice, or without files
    "clustering that failed, done again": (
        _W1, ("plan_clustering", {"seed": 1}), _crash(4, ("cluster", {}), "fail once"), ("cluster", {}),
    ),
    "a partition's drop that died when the metadata table knew it": (
        _write(259, small_files=False),
        _crash(11, ("replace", {"kind": "DELETE_PARTITION", "seed": 847}), "stop after"), _RECOVER, _W2,
    ),
    # --- those who keep what others would delete
    "lease on a savepoint, then a restore that removes the record of a rollback": (
        _write(174), _write(462), _BACK, _savepoint(), _LEASE, _RESTORE, _W3,
    ),
    "lease beside a planned clean, clean": (_W1, _W2, _PLAN, _W3, ("lease", {"back": 1, "ttl": 5}), _CLEAN),
    "lease between another one and the window of a planned clean, which takes none of its files": (
        _W1, _W1, ("lease", {"back": 0, "ttl": 50}), _W2, _write(3, "BULK_INSERT"), _write(4, "BULK_INSERT"),
        ("plan_clean", _COMMITS), ("lease", {"back": 2, "ttl": 5}), _RECOVER,
    ),
    "clean counted from a commit that is undone, lease": (
        _W1, _W2, _W3, ("clean", _COMMITS), _BACK, _LEASE, _W2, ("clean", _COMMITS),
    ),
    "clean kept, undo cut short, recover": (_W1, _W2, _W3, _KEEPING_CLEAN, _crash(4, _UNDO), _RECOVER, _UNDO),
    "clean kept, undo cut short, clean": (_W1, _W2, _W3, _KEEPING_CLEAN, _crash(4, _UNDO), _CLEAN, _UNDO, _CLEAN),
    "replaced files kept, replacement undone by Hudi, undo": (
        _W1, _W2, _replace(), _KEEPING_CLEAN, _BACK_BY_HUDI, _UNDO, _CLEAN,
    ),
    # --- earlier times
    "earlier times of a partition that a clean removed": (_W1, _replace("DELETE_PARTITION"), _CLEAN),
    "earlier times after a clean cut short": (
        _W1, _W1, _W2, _W2, ("clean", {"options": {"file_versions_retained": 1, "max_partitions": 1}}),
    ),
}  # fmt: skip

CORPUS: Final[dict[str, tuple[tuple[Kind, tuple[Step, ...]], ...]]] = {
    **{name: tuple((kind, steps) for kind in OURS) for name, steps in SEQUENCES.items()},
    **{
        name: tuple((kind, steps) for kind in DELTAS)
        for name, steps in {
            "written beside a pending compaction": (
                _W1,
                _W2,
                ("plan_compaction", {"seed": 633}),
                _W3,
                ("compact", {}),
                _PLAN,
                _BACK_BY_HUDI,
                _CLEAN,
            ),
            "compaction that failed, done again": (
                _W1,
                _W2,
                ("plan_compaction", {"seed": 1}),
                _crash(4, ("compact", {})),
                _W3,
                ("compact", {}),
                _CLEAN,
            ),
        }.items()
    },
    "deletes requested before a compaction that completed meanwhile, record index": (
        (
            Kind(version=9, metadata=True, deltas=True, rows=True, indexes=True, global_index="GLOBAL_BLOOM"),
            (
                _write(991, small_files=False),
                _write(126),
                _write(562, "DELETE", small_files=False),
                _write(300, "DELETE"),
                ("meanwhile", {"n": 11}, ("statement", {"what": "merge", "seed": 822}), ("compact", {})),
            ),
        ),
    ),
    "restore below a newer savepoint, table of Hudi": (
        (Kind(fixture="cow_savepoints-1.0.2"), (("restore", {"back": 1}),)),
        (Kind(fixture="cow_savepoints-0.15.0"), (("restore", {"back": 1}),)),
    ),
    "earlier times once the commit that a clean counted from is rolled back and what came before is archived": (
        (
            Kind(version=8, metadata=False),
            (
                _write(650),
                _write(254),
                _write(52),
                _PLAN,
                _BACK_BY_HUDI,
                _write(665, small_files=False),
                ("archive", {"keep": 1, "beyond": True}),
                _RECOVER,
            ),
        ),
    ),
    "earlier times of commits whose cleans are archived, after an archival cut short, table of Hudi": (
        (
            Kind(fixture="cow_many-0.15.0", metadata=False),
            (
                _write(389, operation="DELETE"),
                _CLEAN,
                _crash(23, ("archive", {"keep": 2, "beyond": False}), "fail from now on"),
            ),
        ),
    ),
    "rollback of a commit cut short, write that rolls back no failed writes": (
        (
            Kind(version=9, metadata=False, lazy=True),
            (_write(732), _crash(4, _BACK), _write(355), _RECOVER),
        ),
        (
            Kind(version=6, metadata=True, lazy=True),
            (_write(732), _crash(4, _BACK), _write(355), _RECOVER),
        ),
    ),
    "earlier times once the cleans that took them are archived, table of Hudi": (
        (
            Kind(fixture="cow_clean_requested-1.0.2", metadata=False),
            (
                ("clean", {"options": {"file_versions_retained": 2}}),
                _W1,
                _W2,
                ("archive", {"keep": 1, "beyond": True}),
            ),
        ),
    ),
    "savepoint made before a clustering of an earlier time completes, table of Hudi": (
        (
            Kind(fixture="cow_pending_clustering-0.15.0", metadata=False),
            (_savepoint(0), ("cluster", {}), _write(915, operation="DELETE")),
        ),
    ),
    "rollback of the only commit that is not archived, table of Hudi": (
        (
            Kind(fixture="cow_savepoint_deleted-0.15.0"),
            (("archive", {"keep": 1, "beyond": False}), ("rollback", {"back": 0})),
        ),
    ),
    "rollback to rows that archival left behind a savepoint, table of Hudi": (
        (
            Kind(version=6, fixture="cow_savepoints-1.2.0", metadata=False),
            (_write(955, small_files=True), ("archive", {"keep": 2, "beyond": True}), ("rollback", {"back": 0})),
        ),
    ),
    "restore to rows that archival left behind an older savepoint, table of Hudi": (
        (
            Kind(version=6, fixture="cow_savepoints-1.2.0", metadata=False),
            (
                _savepoint(),
                _write(955, small_files=True),
                ("archive", {"keep": 2, "beyond": True}),
                ("restore", {"back": 0}),
            ),
        ),
    ),
    "write after all commits with a schema are archived or rolled back, table of Hudi": (
        (
            Kind(fixture="cow_clustered-1.2.0"),
            (("archive", {"keep": 2, "beyond": False}), ("rollback", {"back": 0}), ("rollback", {"back": 0})),
        ),
    ),
    "restore stopped where a clean took what is the latest halfway, table of Hudi": (
        (
            Kind(version=8, fixture="cow_savepoints-1.2.0", metadata=False),
            (
                ("clean", {"options": {"hours_retained": 1, "keep_weekly": 2, "keep_daily": 2}, "settings": {}}),
                ("rollback", {"back": 0}),
                _crash(10, _RESTORE, "tear"),
            ),
        ),
    ),
    "restore of which only a rollback was finished, then recovery stopped, merge-on-read": (
        (
            Kind(version=6, metadata=True, deltas=True),
            (
                _write(142, small_files=True),
                _savepoint(),
                _write(897, small_files=True),
                _crash(17, _RESTORE, "succeed but report failure"),
                ("rollback_failed", {}),
                _crash(1, _RECOVER),
            ),
        ),
    ),
    "statistics dropped by a write that takes back what a clean cut short recorded, table of Hudi": (
        (
            Kind(fixture="cow_rolled_back-1.2.0"),
            (
                _crash(5, ("clean", {"options": {"commits_retained": 2}}), "stop after"),
                _write(78, "BULK_INSERT", services={"file_versions_retained": 1}),
            ),
        ),
    ),
    "undo of a search for orphans, of which nobody could tell by now whether they are committed": (
        (
            Kind(version=6, metadata=False, deltas=True, rows=True),
            (
                _write(524),
                _write(273),
                ("orphans", {"seed": 1, "delete": False}),
                _savepoint(1),
                ("undo", {"back": 1}),
            ),
        ),
    ),
    "clean by versions beside a lease whose floor is a pending compaction: what it left whole begins at its window": (
        (
            Kind(fixture="mor_compacted_pending-1.0.2", rows=True),
            (
                _write(192),
                ("cluster", {"own": 3}),
                ("lease", {"back": 0, "ttl": 50}),
                ("clean", {"options": {"file_versions_retained": 2}, "settings": {}}),
            ),
        ),
    ),
    "restore that is half done, beyond a clean of what its last commits had replaced, with a metadata table": (
        (
            Kind(version=9, metadata=True, lock=True, lazy=True),
            (
                _write(879, small_files=False),
                _write(179),
                _write(809, small_files=False),
                _savepoint(2),
                ("replace", {"kind": "INSERT_OVERWRITE_TABLE", "seed": 296}),
                _CLEAN,
                _crash(6, _RESTORE, "succeed but report failure"),
                _crash(7, _RESTORE, "fail once"),
            ),
        ),
    ),
    "savepoint beside a compaction that has written its files and is not completed": (
        (Kind(fixture="mor_compacted_pending-1.1.1"), (_crash(5, ("compact", {})), _savepoint())),
    ),
    "savepoint of a commit that logged on the slice of a compaction which was planned meanwhile": (
        (
            Kind(version=8, metadata=False, deltas=True, rows=True, buckets=True),
            (
                _write(81, small_files=False),
                _write(560),
                ("meanwhile", {"n": 7}, _write(161, "INSERT", small_files=False), ("plan_compaction", {"seed": 551})),
                _savepoint(3),
            ),
        ),
    ),
    "restore to a savepoint of a compaction that completed after a later write, which it does not show": (
        (
            Kind(version=9, metadata=True, lock=True, lazy=True, deltas=True, rows=True),
            (
                _write(767),
                _write(103, "DELETE", small_files=False),
                ("plan_compaction", {"seed": 660}),
                _write(562, "BULK_INSERT"),
                ("compact", {}),
                _savepoint(1),
                _RESTORE,
            ),
        ),
    ),
    "restore to a savepoint whose commit is undone, merge-on-read": (
        (
            Kind(fixture="mor_logs-0.15.0"),
            (_savepoint(2), _savepoint(3), ("restore", {"back": 1}), _RESTORE),
        ),
    ),
    "log files of an undone write, which is older than the active timeline": (
        (
            Kind(fixture="rows/mor_rolled_back_logs-0.15.0", metadata=False, rows=True),
            (("compact", {}), ("archive", {"keep": 3, "beyond": False})),
        ),
    ),
    "lease after a restore to a savepoint that undid the begin of a clean's window, and a later write": (
        (
            Kind(fixture="cow_mixed-0.15.0", metadata=False),
            (
                ("maintain", {"retained": 1, "quarantine": False, "max": None}),
                ("archive", {"keep": 4, "beyond": False}),
                ("hudi", {}, _RESTORE),
                ("lease", {"back": 0, "ttl": 50}),
            ),
        ),
    ),
    "lease on the commit before a clustering that was undone and is planned again, after a clean": (
        (
            Kind(version=6, metadata=False),
            (
                _write(465, key=5),
                ("replace", {"kind": "INSERT_OVERWRITE", "seed": 618}),
                ("plan_clustering", {"seed": 396, "own": 1}),
                _write(812, "BULK_INSERT", small_files=False),
                ("cluster", {"own": 2}),
                _BACK,
                ("clean", {"options": {"commits_retained": 1, "keep_daily": 3}, "settings": {}}),
                _BACK,
                ("lease", {"back": 0, "ttl": 50}),
            ),
        ),
    ),
    "the same savepoint restored again after a rollback of the first write to a partition": (
        (
            Kind(version=6, metadata=True, rows=True),
            (
                _write(354, small_files=True),
                _savepoint(3),
                _RESTORE,
                ("statement", {"what": "merge", "seed": 937}),
                ("plan_clustering", {"seed": 606, "own": 0}),
                ("rollback", {"back": 1}),
                ("restore", {"back": 1}),
                ("lease", {"back": 1, "ttl": 50}),
            ),
        ),
    ),
    "delete beside the base file of a write that died": (
        (
            Kind(version=9, metadata=False, lazy=True, deltas=True, rows=True, global_index="GLOBAL_BLOOM"),
            (
                _write(871, small_files=True),
                _crash(7, _write(224, small_files=True), "stop after"),
                _write(766, "DELETE", small_files=True),
            ),
        ),
    ),
    "plan of a clustering beside a restore that is half done": tuple(
        (
            Kind(version=version, metadata=version > 6, rows=True),
            (_W1, _savepoint(), _W2, _W3, _crash(n, _RESTORE), ("plan_clustering", {"seed": 1, "own": 0})),
        )
        for version in (6, 9)
        for n in range(4, 12)
    ),
    "rollback that died when all but its own instant was done, merge-on-read": (
        (
            Kind(version=6, metadata=True, deltas=True, rows=True),
            (
                _write(690),
                _write(442, small_files=True),
                _write(346, "DELETE"),
                _crash(19, _BACK, "succeed but report failure"),
            ),
        ),
    ),
    "statistics dropped while a compaction of the metadata table is planned that names them": (
        (
            Kind(version=8, fixture="cow_partitioned-1.0.2", metadata=None, deltas=True),
            (
                _write(607, "BULK_INSERT", small_files=True, services={"age_retained": "30m"}),
                _crash(3, ("replace", {"kind": "INSERT_OVERWRITE", "seed": 395}), "succeed but report failure"),
                _BACK,
            ),
        ),
    ),
    "record index created again while a compaction of the metadata table is planned that names its files before": (
        *(
            (
                Kind(version=version, metadata=True, rows=True, indexes=True),
                (
                    _write(647, small_files=True, services={"older_than": "1h", "min_file_versions": 2}),
                    _write(366, small_files=False),
                    ("statement", {"what": "delete", "seed": 59}),
                    ("clock", {"hours": 1}),
                    _crash(2, ("allow", {}), "succeed but report failure"),
                    ("plan_clean", {"options": {"commits_retained": 1, "min_file_versions": 2}, **_MULTIPLE}),
                    ("clean", {"options": {"older_than": "1h", "min_file_versions": 2}, **_MULTIPLE}),
                    ("plan_clean", {"options": {"hours_retained": 1, "max_commits": 2}}),
                    _write(101, small_files=False),
                    _write(152, small_files=True),
                    ("plan_compaction", {"seed": 900}),
                    _write(217, small_files=False),
                    _write(949, "BULK_INSERT", small_files=False),
                    _crash(10, _write(400, small_files=True), "fail once"),
                    _BACK,
                ),
            )
            for version in (8, 9)
        ),
    ),
    "earlier time of a delta commit that completed after a later compaction": (
        (
            Kind(fixture="rows/mor_cdc-1.0.2", metadata=False, rows=True),
            (("meanwhile", {"n": 6}, _write(838, small_files=True), ("compact", {})),),
        ),
    ),
    "log files of a rollback that a metadata table lists": (
        (Kind(version=8, fixture="rows/mor_rolled_back_logs-0.15.0", metadata=True, rows=True), ()),
    ),
}
