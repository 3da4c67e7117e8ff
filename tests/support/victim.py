"""
Processes to be killed: ``victim.py TABLE JOURNAL``.

Everything is imported once; for each line ``WHAT NUMBER`` on standard input a child is forked and its process id
printed, and after a second line its end is waited for. The child works until it is killed or done, and tells in the
journal how far it is:

write: upserts batch after batch from NUMBER on, each followed by a clean and an archival; calm: two of those;
clean: cleans more than the writers do, and archives; recover: recovers the table.
"""

import os
import sys

from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support.writes import upsert

SETTINGS = {
    "hoodie.clean.commits.retained": 2,
    "hoodie.keep.min.commits": 4,
    "hoodie.keep.max.commits": 6,
}
REGIONS = ("ap", "eu", "us")


def batch(number):
    """Rows of the *number*-th write: one that is there in each region, and a new one."""
    rows = [{"id": f"{region}{number % 3}", "region": region, "ts": number} for region in REGIONS]
    return [*rows, {"id": f"new{number}", "region": REGIONS[number % 3], "ts": number}]


def opened(path):
    """The table, as each process opens it."""
    return Table(LocalStorage(path), settings=SETTINGS)


def work(what, number, path, journal):
    """What the child does."""
    if what == "recover":
        opened(path).recover()
        return
    if what == "clean":
        opened(path).clean(commits_retained=1)
        opened(path).archive()
        return
    end = number + 2 if what == "calm" else None
    while number != end:
        os.write(journal, f"begin {number}\n".encode())
        upsert(LocalStorage(path), batch(number), opened(path))
        os.write(journal, f"done {number}\n".encode())
        opened(path).clean()
        opened(path).archive()
        number += 1


def main(path, journal_path):
    """Fork a child for each line."""
    journal = os.open(journal_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for line in iter(sys.stdin.readline, ""):
        what, number = line.split()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work(what, int(number), path, journal)
                code = 0
            finally:
                os._exit(code)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        sys.stdin.readline()  # "reap": until then the number stays the child's
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
