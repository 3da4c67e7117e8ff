"""Ctrl-C between any two steps of Python in the storage of a local disk: no descriptor is closed twice."""

from __future__ import annotations

import os
import sys
from itertools import count

import pytest

from hudi_py.storage.local import LocalStorage

ACTIONS = {
    "read": lambda storage: storage.read("a/b/kept"),
    "create": lambda storage: storage.create_new("a/b/c/new", b"x"),
    "create empty": lambda storage: storage.create_new("a/b/empty", b""),
    "replace": lambda storage: storage.replace("a/b/kept", b"x"),
    "sizes": lambda storage: storage.sizes("a/b", ["kept"]),
    "delete": lambda storage: storage.delete("a/b/kept"),
    "delete many": lambda storage: storage.delete_many(["a/b/kept", "a/b/absent"]),
    "delete folder": lambda storage: storage.delete_folder("a"),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what was opened is closed all the same
@pytest.mark.parametrize("name", ACTIONS)
def test_no_descriptor_is_closed_twice(tmp_path, monkeypatch, name):
    """The second time it may be that of a file which another thread has opened since, and its rows go elsewhere."""
    close, twice = os.close, []

    def closed(descriptor):
        try:
            close(descriptor)
        except OSError as error:
            twice.append(error)
            raise

    monkeypatch.setattr(os, "close", closed)
    for n in count():
        storage = LocalStorage(tmp_path / str(n))
        storage.replace("a/b/kept", b"rows")
        if not interrupted(lambda storage=storage: ACTIONS[name](storage), n):
            break
        assert twice == [], n
    assert n > 50


def interrupted(action, n):
    """Run it, and raise at its *n*-th step; false if it had no more."""
    left = n

    def trace(frame, event, _argument):
        nonlocal left
        if f"{os.sep}hudi_py{os.sep}storage{os.sep}" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == -1:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False
