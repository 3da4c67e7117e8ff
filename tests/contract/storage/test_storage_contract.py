"""What every storage promises, run against each of them."""

from __future__ import annotations

import inspect
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from hudi_py.errors import AlreadyExists, ConfigError, NotFound, RefusedError, StorageError
from hudi_py.model.tag import Tag
from hudi_py.storage.base import MUTATING_VERBS, READING_VERBS, Storage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import ReadOnlyStorage

ODD_NAMES = (
    "country=Österreich/part 1.parquet",
    "city=São Paulo+x/%2F&100%.parquet",
    "日本/ファイル.parquet",
    "a*[b]?/c#d;e'f\"g.parquet",
    ".hoodie/.aux/~tilde@home:8080",
)
BAD_PATHS = ("/etc/passwd", "../outside", "a/../../outside", "a//b", "a/", "./a", "a/.", "a\0b")
VERBS = sorted(name for name, member in vars(Storage).items() if inspect.isfunction(member) and name[0] != "_")


def names(storage: Storage, folder: str = "") -> set[str]:
    return {entry.name for entry in storage.list(folder)}


def invoke(storage: Storage, verb: str, path: str) -> object:
    """Call *verb* with *path* wherever it takes one."""
    values = dict.fromkeys(("path", "folder"), path) | {
        "paths": [path],
        "names": ["a"],
        "data": b"data",
        "version": None,
        "source": "",
        "target": "m",
        "tag": Tag("of", "m"),
    }
    parameters = inspect.signature(getattr(Storage, verb)).parameters
    arguments = [values[name] for name, one in parameters.items() if name != "self" and one.default is one.empty]
    return getattr(storage, verb)(*arguments)


# ---------------------------------------------------------------------- read and write


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 5000], ids=["empty", "one byte", "1.2 MB"])
def test_created_content_is_read_back(storage, data):
    """What create_new wrote is what read, open_read, size and a detailed list give."""
    storage.create_new("a/b/file.bin", data)
    assert storage.read("a/b/file.bin") == data
    with storage.open_read("a/b/file.bin") as stream:
        assert stream.read() == data
    assert storage.size("a/b/file.bin") == len(data)
    (entry,) = storage.list("a/b", details=True)
    assert (entry.name, entry.is_folder, entry.size_bytes) == ("file.bin", False, len(data))
    assert entry.modified_ms is not None
    assert entry.modified_ms > 1_600_000_000_000


@pytest.mark.parametrize("path", ODD_NAMES)
def test_odd_names_survive_a_round_trip(storage, path):
    """Unicode, spaces and characters with a meaning in URLs, shells or globs are plain characters."""
    folder, name = path.rsplit("/", 1)
    storage.create_new(path, b"odd")
    storage.replace(folder + "/other", b"")
    assert storage.read(path) == b"odd"
    assert names(storage, folder) == {name, "other"}
    assert storage.delete_many([path]) == {path: True}
    assert names(storage, folder) == {"other"}
    storage.delete_folder(folder)
    assert storage.list(folder) == []


def test_second_create_is_refused_and_changes_nothing(storage):
    """create_new raises AlreadyExists when the name is taken, whatever the content."""
    storage.create_new("a", b"first")
    for data in (b"second", b"first", b""):
        with pytest.raises(AlreadyExists, match="exists already"):
            storage.create_new("a", data)
    assert storage.read("a") == b"first"
    storage.create_new("empty", b"")
    with pytest.raises(AlreadyExists):
        storage.create_new("empty", b"")  # equal content is no proof that it was ours
    assert names(storage) == {"a", "empty"}


def test_replace_creates_and_replaces(storage):
    """Replace works with and without a former object, longer or shorter."""
    for data in (b"one", b"", b"longer than before"):
        storage.replace("x/y", data)
        assert storage.read("x/y") == data
    assert names(storage, "x") == {"y"}


def test_absent_things(storage):
    """Reading what is not there raises NotFound, its size is None, its listing empty; a folder is no object."""
    storage.create_new("folder/file", b"x")
    for path in ("nothing", "nothing/at/all", "folder", "folder/file/below"):
        with pytest.raises(NotFound):
            storage.read(path)
        with pytest.raises(NotFound):
            storage.open_read(path)
        assert storage.size(path) is None
    assert storage.list("nothing") == storage.list("folder/file") == []


def test_sizes_of_named_files_of_one_folder(storage):
    """In one go; what is absent is left out, in a folder that is absent everything; other folders are out of reach."""
    for path, data in {"p/a": b"abc", "p/empty": b"", "p/in/a": b"x", "b": b"xy"}.items():
        storage.replace(path, data)
    assert storage.sizes("p", ["a", "empty", "none"]) == {"a": 3, "empty": 0}
    assert storage.sizes("p", ["a"]) == {"a": 3}
    assert storage.sizes("", ["b"]) == {"b": 2}
    assert storage.sizes("p", ["none"]) == storage.sizes("p", []) == storage.sizes("nothing", ["a", "b"]) == {}
    for folder, name in (("p", "../b"), ("p", "in/a"), ("..", "a"), ("p", ""), ("p", "..")):
        with pytest.raises(ConfigError):
            storage.sizes(folder, [name, "a"])


def test_open_read_seeks(storage):
    """Parquet readers jump: from the end, from here, beyond buffers and beyond the end."""
    data = bytes(range(256)) * 10_000
    storage.replace("data", data)
    with storage.open_read("data") as stream:
        assert stream.seek(-8, 2) == len(data) - 8
        assert stream.read() == data[-8:]
        assert stream.seek(1_000_003) == 1_000_003
        assert stream.read(5) == data[1_000_003:1_000_008]
        stream.seek(10, 1)
        assert stream.tell() == 1_000_018
        assert stream.read(1_200_000) == data[1_000_018:2_200_018]
        stream.seek(len(data) + 5)
        assert stream.read() == b""


def test_open_write_streams(storage):
    """A closed stream is complete; it replaces what was there."""
    storage.replace("p/data", b"former content that is longer")
    with storage.open_write("p/data") as stream:
        stream.write(b"one ")
        stream.write(memoryview(b"two"))
    assert storage.read("p/data") == b"one two"
    with storage.open_write("p/none"):
        pass
    assert storage.read("p/none") == b""


def test_open_write_left_by_an_exception_keeps_at_most_what_was_written(storage):
    """An aborted stream leaves a torn file or none, or the former one; the exception gets through."""
    storage.replace("data", b"former")
    written = b"0123456789" * 20_000
    with pytest.raises(KeyError, match="stop"), storage.open_write("data") as stream:
        stream.write(written)
        raise KeyError("stop")
    assert stream.closed
    if storage.capabilities.has_folders or isinstance(storage, MemoryStorage):
        assert written.startswith(storage.read("data"))  # visible early: the former content is gone
    else:
        assert storage.read("data") == b"former"  # visible late: nothing has happened
    storage.replace("data", b"again")
    assert storage.read("data") == b"again"


def test_dropped_stream_publishes_nothing_later(storage):
    """A finaliser must not bring back an upload that was given up."""
    try:
        with storage.open_write("data") as stream:
            stream.write(b"torn")
            raise ValueError("stop")
    except ValueError:
        storage.delete("data")
    del stream
    assert storage.size("data") is None


# ---------------------------------------------------------------------- listing


def test_list_shows_names_directly_inside(storage):
    """Files and folders of one level, each once, with their kind; siblings with a common prefix stay apart."""
    for path in ("r", "a/1", "a/2", "a/deep/er/3", "ab/4", "a.b"):
        storage.create_new(path, b"x")
    assert {(entry.name, entry.is_folder) for entry in storage.list("")} == {
        ("r", False), ("a", True), ("ab", True), ("a.b", False),
    }  # fmt: skip
    assert {(entry.name, entry.is_folder) for entry in storage.list("a")} == {
        ("1", False),
        ("2", False),
        ("deep", True),
    }
    assert {entry.name: entry.is_folder for entry in storage.list("a", details=True)} == {
        "1": False, "2": False, "deep": True,
    }  # fmt: skip


def test_list_is_fresh(storage):
    """Each change shows in the next listing, by this object and by an unpickled twin."""
    twin = pickle.loads(pickle.dumps(storage))
    for round_ in range(3):
        path = f"f/{round_}"
        assert str(round_) not in names(twin, "f")
        storage.create_new(path, b"x")
        assert str(round_) in names(storage, "f") & names(twin, "f")
        storage.delete(path)
        assert str(round_) not in names(storage, "f") | names(twin, "f")


def test_list_hides_temporary_and_checksum_files(storage):
    """Left-overs of atomic creation and Hadoop's checksums are not shown; folders and data of such names are."""
    shown = {"001.commit", ".crc-notes", "x.crc", f"{uuid4()}-0_1-0-1_001.parquet", f".{uuid4()}_001.log.1_0-1-0"}
    for name in shown | {f"001.clean.{uuid4()}", ".001.commit.crc", f"..001.commit.{uuid4()}.crc"}:
        storage.create_new(f"t/{name}", b"x")
    user = f"user.{uuid4()}"
    storage.create_new(f"t/{user}/data", b"x")
    assert names(storage, "t") == shown | {user}
    assert {entry.name for entry in storage.list("t", details=True)} == shown | {user}
    storage.delete_folder("t")
    assert storage.list("t") == []


# ---------------------------------------------------------------------- deleting


def test_delete_is_idempotent(storage):
    """True once, then False; also below a folder that never was or is a file."""
    storage.create_new("a/b", b"x")
    assert storage.delete("a/b") is True
    assert storage.delete("a/b") is False
    storage.create_new("file", b"x")
    assert storage.delete("no/such/folder") is storage.delete("file/below") is False
    assert storage.size("a/b") is None


def test_delete_many_reports_each_path(storage):
    """Each path is reported once; what was not there is False where the backend can tell."""
    storage.create_new("a/1", b"x")
    storage.create_new("a/2", b"x")
    storage.create_new("a/keep", b"x")
    missing = not storage.capabilities.reports_missing
    outcome = storage.delete_many(["a/1", "b/none", "a/2", "a/1"])
    assert outcome == {"a/1": True, "b/none": missing, "a/2": True}
    assert names(storage, "a") == {"keep"}
    assert storage.delete_many([]) == {}
    assert set(storage.delete_many(iter(["a/1", "a/2"])).values()) == {missing}


def test_delete_folder_takes_all_below_and_nothing_beside(storage):
    """Recursive, idempotent, and not fooled by names that begin alike or look like patterns."""
    for path in ("p=1/a", "p=1/b/c/d", "p=1*/x", "p=10/y", "p=1.txt"):
        storage.create_new(path, b"x")
    for _ in range(2):
        storage.delete_folder("p=1")
        assert names(storage) == {"p=1*", "p=10", "p=1.txt"}
    storage.delete_folder("p=1*")
    assert names(storage) == {"p=10", "p=1.txt"}
    storage.delete_folder("p=1.txt")  # a file is no folder
    assert names(storage) == {"p=10", "p=1.txt"}


# ---------------------------------------------------------------------- paths


@pytest.mark.parametrize("path", BAD_PATHS)
@pytest.mark.parametrize("verb", VERBS)
def test_path_that_leaves_the_root_is_refused(storage, verb, path):
    """Every verb refuses it before any effect."""
    storage.replace("a", b"x")
    with pytest.raises(ConfigError, match="nothing was touched"):
        invoke(storage, verb, path)
    assert names(storage) == {"a"}


def test_bulk_deletion_with_one_bad_path_deletes_nothing(storage):
    """The whole call is refused before the first effect."""
    storage.create_new("a", b"x")
    with pytest.raises(ConfigError):
        storage.delete_many(["a", "../a"])
    assert storage.read("a") == b"x"


@pytest.mark.parametrize("verb", [verb for verb in VERBS if not verb.startswith(("list", "sizes", "barrier"))])
def test_root_itself_is_neither_object_nor_deletable(storage, verb):
    """The empty path can be listed, names in it be asked for, and nothing else."""
    storage.create_new("a", b"x")
    with pytest.raises(ConfigError):
        invoke(storage, verb, "")
    assert storage.read("a") == b"x"


def test_hidden_files_are_listed_when_they_are_asked_for(storage):
    """What an interrupted creation left can be found, with size and time, and checksum files; nothing else."""
    left = f"001.commit.{uuid4()}"
    for name in (left, "001.commit", ".001.commit.crc", f"below/002.commit.{uuid4()}"):
        storage.replace(f"f/{name}", b"1234")
    side, entry = sorted(storage.list_hidden("f"))
    assert (side.name, side.is_folder) == (".001.commit.crc", False)
    assert (entry.name, entry.is_folder, entry.size_bytes) == (left, False, 4)
    assert entry.modified_ms is not None
    assert storage.list_hidden("absent") == []


# ---------------------------------------------------------------------- races


def test_racing_creators_have_exactly_one_winner(storage):
    """Of threads that create the same name at once, one wins, the others get AlreadyExists, nothing is mixed."""
    contestants = 8
    for round_, size in enumerate((0, 1, 300_000)):
        barrier = threading.Barrier(contestants)

        def contest(number: int, path: str = f"race/{round_}", size: int = size, barrier=barrier) -> int | None:
            barrier.wait()
            try:
                storage.create_new(path, bytes([65 + number]) * size)
            except AlreadyExists:
                return None
            return number

        with ThreadPoolExecutor(contestants) as pool:
            winners = [number for number in pool.map(contest, range(contestants)) if number is not None]
        assert len(winners) == 1
        assert storage.read(f"race/{round_}") == bytes([65 + winners[0]]) * size
    assert names(storage, "race") == {"0", "1", "2"}


def test_reader_never_sees_part_of_a_creation_or_replacement(storage):
    """While one thread creates and replaces, a reader sees nothing or one whole content."""
    contents = [bytes([48 + number]) * 200_000 for number in range(6)]
    finished = threading.Event()

    def write() -> None:
        try:
            storage.create_new("f", contents[0])
            for content in contents[1:]:
                storage.replace("f", content)
        finally:
            finished.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    while not finished.is_set() or not seen:
        try:
            seen.append(storage.read("f"))
        except NotFound:
            assert not seen, "a replacement showed a gap"
    writer.join()
    assert all(content in contents for content in seen)
    assert storage.read("f") == contents[-1]


# ---------------------------------------------------------------------- conditional replacement


@pytest.fixture
def swapping(storage):
    """A storage that can, or the proof that it says so and does nothing."""
    if storage.capabilities.conditional_replace:
        return storage
    with pytest.raises(ConfigError, match="nothing was changed"):
        storage.swap("a", b"1", None)
    assert names(storage) == set()
    pytest.skip("cannot, and says so")


def test_swap_replaces_the_version_that_is_there_and_no_other(swapping):
    """Of any other nothing is changed, nor is anything created in the place of an object that is gone."""
    first = swapping.swap("f/a", b"1", None)
    assert first is not None
    assert swapping.read_version("f/a") == (b"1", first)
    assert swapping.swap("f/a", b"2", None) is None
    second = swapping.swap("f/a", b"2", first)
    assert second not in (None, first)
    assert swapping.swap("f/a", b"3", first) is None
    assert swapping.read_version("f/a") == (b"2", second)
    swapping.delete("f/a")
    assert swapping.swap("f/a", b"3", second) is None
    assert swapping.size("f/a") is None
    with pytest.raises(NotFound):
        swapping.read_version("f/a")


def test_swap_sees_what_the_other_verbs_write(swapping):
    """Whoever created or replaced it, by whichever verb."""
    swapping.create_new("a", b"1")
    version = swapping.read_version("a").version
    swapping.replace("a", b"2")
    assert swapping.swap("a", b"3", version) is None
    assert swapping.swap("a", b"3", swapping.read_version("a").version) is not None
    assert swapping.read("a") == b"3"


def test_swap_has_one_winner_among_many(swapping):
    """Racing threads count up; no step is lost."""
    swapping.create_new("n", b"0 -")

    def count(name: int) -> None:
        for _ in range(5):
            while True:
                content, version = swapping.read_version("n")
                number = int(content.split()[0]) + 1
                if swapping.swap("n", b"%d %d" % (number, name), version) is not None:
                    break

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    assert int(swapping.read("n").split()[0]) == 20


# ---------------------------------------------------------------------- objects themselves


def test_pickling_keeps_the_place(storage):
    """An unpickled storage reads and writes the same table."""
    storage.create_new("a", b"1")
    twin = pickle.loads(pickle.dumps(storage))
    assert twin.root == storage.root
    assert twin.capabilities == storage.capabilities
    assert twin.read("a") == b"1"
    twin.create_new("b", b"2")
    assert storage.read("b") == b"2"


def test_every_verb_is_either_reading_or_mutating():
    """A new verb of the protocol must be classified, or dry runs and crash tests would pass it by."""
    assert set(VERBS) == READING_VERBS | MUTATING_VERBS
    assert not READING_VERBS & MUTATING_VERBS


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in READING_VERBS])
def test_read_only_storage_refuses_every_mutation(storage, verb):
    """Whatever the protocol has beyond the reading verbs is refused without effect."""
    storage.create_new("a", b"x")
    with pytest.raises(RefusedError, match="nothing was changed"):
        invoke(ReadOnlyStorage(storage), verb, "a")
    assert storage.read("a") == b"x"
    assert names(storage) == {"a"}


def test_read_only_storage_reads(storage):
    """Reading passes through."""
    storage.create_new("a/b", b"x")
    reader = pickle.loads(pickle.dumps(ReadOnlyStorage(storage)))
    with reader.open_read("a/b") as stream:
        assert reader.read("a/b") == stream.read() == b"x"
    assert reader.size("a/b") == 1
    assert names(reader, "a") == {"b"}
    assert (reader.root, reader.capabilities) == (storage.root, storage.capabilities)


def test_errors_survive_pickling(storage):
    """Errors raised on an executor arrive at the driver with their kind, message and verdict on retrying."""
    with pytest.raises(StorageError) as caught:
        storage.read("nothing")
    twin = pickle.loads(pickle.dumps(caught.value))
    assert (type(twin), str(twin), twin.retryable) == (NotFound, str(caught.value), False)


# ---------------------------------------------------------------------- moving


def test_moved_files_keep_their_path_below_another_folder(storage):
    """Content and relative path stay; an absent file is reported, one that is there already is replaced."""
    for path, data in (("p/a", b"1"), ("p/q=1/b", b"2"), ("m/p/a", b"old")):
        storage.replace(path, data)
    outcome = storage.move_many(["p/a", "p/q=1/b", "p/none"], "", "m")
    assert outcome == {"p/a": True, "p/q=1/b": True, "p/none": False}
    assert (storage.read("m/p/a"), storage.read("m/p/q=1/b")) == (b"1", b"2")
    assert storage.size("p/a") is None
    assert storage.move_many(["p/a"], "m", "") == {"p/a": True}
    assert storage.read("p/a") == b"1"
    assert storage.move_many([], "m", "") == {}


def test_a_move_out_of_the_table_is_refused_and_moves_nothing(storage):
    """One bad path, or the same folder twice: no file is moved."""
    storage.replace("a", b"1")
    for paths, source, target in ((["a", "../b"], "", "m"), (["a"], "", "../m"), (["a"], "", "")):
        with pytest.raises(ConfigError):
            storage.move_many(paths, source, target)
    assert storage.read("a") == b"1"


def test_only_empty_folders_are_removed_as_empty(storage):
    """A folder with anything in it stays; where folders exist by themselves, an empty one goes."""
    storage.replace("p/q/a", b"1")
    assert storage.delete_empty("p/q") is False
    assert storage.read("p/q/a") == b"1"
    storage.delete("p/q/a")
    assert storage.delete_empty("p/q") is storage.capabilities.has_folders
    assert storage.delete_empty("none") is False
