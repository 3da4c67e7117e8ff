"""The files that must exist, asked for by several threads, as folders are listed by several."""

from __future__ import annotations

import threading

from hudi_py.fsview.needed import NeededFiles
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from support.tables import TableBuilder, at


class Watched(DelegatingStorage):
    """Calls a function before each file is read."""

    before = staticmethod(lambda: None)

    def read(self, path):
        self.before()
        return self.inner.read(path)


def test_a_thread_may_ask_while_another_one_reads_the_commits():
    """It waits for the other one, and gets the same answer."""
    builder = TableBuilder(2)
    for number in range(1, 6):
        builder.commit(at(number), {"p": ["a", f"b{number}"]})
    storage = Watched(builder.storage)
    table = Table(storage, clock=builder.clock)
    needed, answers, others = NeededFiles(table.contents, table.timeline), [], []

    def ask():
        answers.append(needed.are_newest("p", [], ()))

    def meanwhile():
        storage.before = lambda: None
        others.append(threading.Thread(target=ask))
        others[0].start()
        others[0].join(0.05)  # as long as it would take to fail

    storage.before = meanwhile
    assert len(needed.by_partition["p"]) == 6
    others[0].join()
    assert answers == [False]
