"""Tags of objects: where the store has them, and refused by name where it has none."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConfigError
from hudi_py.model.tag import Tag
from hudi_py.storage.folder import FolderStorage
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage

EXPIRED = Tag("state", "removed")


@pytest.fixture
def tagging(make_storage):
    """A storage of each backend that has tags, and a function that reads them from the store itself."""

    def of(backend):
        storage = make_storage(backend)
        if isinstance(storage, MemoryStorage):
            return storage, lambda path: dict(storage.tags(path))
        backend_ = storage._backend()

        def read(path):
            answer = backend_._call("get_object_tagging", Key=backend_._key(path))
            return {each["Key"]: each["Value"] for each in answer["TagSet"]}

        return storage, read

    return of


@pytest.mark.parametrize("backend", ["memory", "s3"])
def test_a_tag_is_put_on_and_taken_off_and_other_tags_stay(tagging, backend):
    """One result for each path; twice is once; an absent object is reported."""
    storage, tags = tagging(backend)
    storage.replace("p/a", b"1")
    storage.tag_many(["p/a"], Tag("owner", "me"))
    for _ in range(2):
        assert storage.tag_many(["p/a", "p/none"], EXPIRED) == {"p/a": True, "p/none": False}
    assert tags("p/a") == {"owner": "me", "state": "removed"}
    assert FolderStorage(storage, "p").tag_many(["a"], EXPIRED, remove=True) == {"a": True}
    assert tags("p/a") == {"owner": "me"}


@pytest.mark.parametrize("backend", ["memory", "s3"])
def test_the_only_tag_is_taken_off(tagging, backend):
    """As an undo does with each file; twice is once."""
    storage, tags = tagging(backend)
    storage.replace("p/a", b"1")
    storage.tag_many(["p/a"], EXPIRED)
    for _ in range(2):
        assert storage.tag_many(["p/a"], EXPIRED, remove=True) == {"p/a": True}
    assert tags("p/a") == {}


@pytest.mark.parametrize("backend", ["memory", "s3"])
def test_a_moved_object_keeps_its_tags_and_one_written_again_has_none(tagging, backend):
    """So a tag has to be taken off before a file is put back into a table."""
    storage, tags = tagging(backend)
    storage.replace("a", b"1")
    storage.tag_many(["a"], EXPIRED)
    storage.move_many(["a"], "", "m")
    assert tags("m/a") == {"state": "removed"}
    storage.replace("m/a", b"2")
    assert tags("m/a") == {}


def test_a_disk_has_no_tags(tmp_path):
    """Refused by name, nothing is changed."""
    with pytest.raises(ConfigError, match="only objects in S3 have tags"):
        LocalStorage(tmp_path).tag_many(["a"], EXPIRED)
