"""Who creates an object may look once more right before it appears, at a lock for example."""

import pytest

from hudi_py.errors import AlreadyExists, ConflictError


@pytest.mark.parametrize("data", [b"", b"content"], ids=["empty", "content"])
def test_who_creates_may_look_once_more_right_before(storage, data):
    """What is called then sees nothing yet; an error of it goes to the caller, and nothing is created or left."""
    seen = []
    storage.create_new("a/new", data, lambda: seen.append(storage.size("a/new")))
    assert seen == [None]
    assert storage.read("a/new") == data

    def refuse():
        raise ConflictError("refused")

    with pytest.raises(ConflictError, match="refused"):
        storage.create_new("a/refused", data, refuse)
    assert [entry.name for entry in storage.list("a")] == ["new"]
    storage.create_new("a/refused", data)
    with pytest.raises(AlreadyExists):
        storage.create_new("a/new", data, lambda: None)
