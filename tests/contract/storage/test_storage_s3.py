"""What only a remote store can do wrong: pages, lost answers, throttling, forks, secrets."""

from __future__ import annotations

import os
import pickle
import socket
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from hudi_py.errors import AlreadyExists, ConflictError, CorruptMetadata, NotFound, OutcomeUnknown, StorageError
from hudi_py.storage import remote_backends
from hudi_py.storage.base import StorageFailure
from hudi_py.storage.factory import open_storage
from hudi_py.storage.remote import RemoteStorage
from hudi_py.storage.remote_backends import S3Backend
from hudi_py.storage.retry import Retry


def no_sleep(seconds: float) -> None:
    """Instead of waiting."""


NO_WAIT = Retry(attempts_max=4, sleep=no_sleep)


@pytest.fixture
def url() -> str:
    return f"s3://contract/{uuid4()}"


@pytest.fixture
def storage(url: str, s3_options: dict[str, str]) -> RemoteStorage:
    return RemoteStorage(url, s3_options, retry=NO_WAIT)


class Answer(Exception):
    """A refusal as the service words it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code, "Message": "said the test"}}


@pytest.fixture
def interfere(monkeypatch: pytest.MonkeyPatch):
    """
    Set what happens to requests: a function of method name and 0-based number of that request.

    It returns None to let it pass, an error to raise instead of it, or ("after", error) to raise once it is done.
    The fixture's value also has `counts`, the requests by method.
    """
    original = S3Backend._call

    class Control:
        counts: ClassVar[Counter[str]] = Counter()
        rule: Any = staticmethod(lambda method, number: None)

    control = Control()
    control.counts = Counter()

    def call(self: S3Backend, method: str, **arguments: Any) -> Any:
        number = control.counts[method]
        control.counts[method] += 1
        what = control.rule(method, number)
        if isinstance(what, Exception):
            raise what
        result = original(self, method, **arguments)
        if what is not None:
            raise what[1]
        return result

    monkeypatch.setattr(S3Backend, "_call", call)
    return control


def prove(storage: RemoteStorage) -> None:
    """Have the trial of the conditional create behind us."""
    storage.create_new("trial", b"")
    storage.delete("trial")


# ---------------------------------------------------------------------- pages


def test_listing_and_deletion_go_through_all_pages(storage, interfere):
    """1,100 objects: more than one listing page (1,000) and five deletion requests (250 each)."""
    names = {f"{number:04d}.parquet" for number in range(1100)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: storage.replace(f"p/{name}", b""), names))
    interfere.counts.clear()
    assert {entry.name for entry in storage.list("p")} == names
    assert interfere.counts == {"list_objects_v2": 2}
    doomed = [f"p/{name}" for name in sorted(names)[:1050]]
    assert storage.delete_many(doomed) == dict.fromkeys(doomed, True)
    assert interfere.counts["delete_objects"] == 5
    assert len(storage.list("p")) == 50
    assert storage.delete_many(doomed) == dict.fromkeys(doomed, True)  # gone now; S3 cannot tell since when
    storage.delete_folder("p")
    assert storage.list("p") == []


def test_folder_deletion_goes_through_all_pages(storage, interfere, monkeypatch):
    """60 objects below a folder need three rounds of 25."""
    monkeypatch.setattr(remote_backends, "KEYS_PER_DELETE", 25)
    for number in range(60):
        storage.replace(f"p/{number % 7}/{number}", b"")
    storage.replace("pp", b"")
    interfere.counts.clear()
    storage.delete_folder("p")
    assert interfere.counts["delete_objects"] == 3
    assert [entry.name for entry in storage.list("")] == ["pp"]


def test_folder_markers_of_other_tools_are_no_files(storage, s3_options):
    """Consoles and some writers store an empty object called ``folder/``."""
    bucket, prefix = storage.root.removeprefix("s3://").split("/")
    storage.replace("p/file", b"x")
    client = storage._backend()._fs
    client.call_s3("put_object", Bucket=bucket, Key=f"{prefix}/p/", Body=b"")
    assert [entry.name for entry in storage.list("p")] == ["file"]
    storage.delete_folder("p")
    assert client.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix).get("KeyCount") == 0


# ---------------------------------------------------------------------- lost answers


def test_creation_whose_answer_was_lost_is_recognised_as_ours(storage, interfere):
    """The object was written, the answer lost, the repetition refused: that is success."""
    prove(storage)
    interfere.counts.clear()
    interfere.rule = lambda method, number: (
        ("after", TimeoutError("no answer")) if method == "put_object" and number == 0 else None
    )
    storage.create_new("a", b"x")
    assert storage.read("a") == b"x"
    assert interfere.counts["put_object"] == 2


def test_lost_answer_of_a_lost_race_is_still_a_lost_race(storage, interfere):
    """The rival's object has equal content, but not our mark."""
    prove(storage)
    storage.create_new("a", b"")
    interfere.counts.clear()
    interfere.rule = lambda method, number: (
        TimeoutError("no answer") if method == "put_object" and number == 0 else None
    )
    with pytest.raises(AlreadyExists):
        storage.create_new("a", b"")


def test_last_answer_lost_is_looked_up(storage, interfere):
    """All attempts time out, the first had arrived."""
    prove(storage)
    interfere.counts.clear()
    interfere.rule = lambda method, number: (
        (("after", TimeoutError()) if number == 0 else TimeoutError()) if method == "put_object" else None
    )
    storage.create_new("a", b"x")
    assert interfere.counts["put_object"] == NO_WAIT.attempts_max


@pytest.mark.parametrize("can_look", [True, False])
def test_creation_that_cannot_be_resolved_is_unknown(storage, interfere, can_look):
    """Neither present nor surely refused: the request may still be on its way."""
    prove(storage)
    interfere.rule = lambda method, number: TimeoutError() if method == "put_object" or not can_look else None
    with pytest.raises(OutcomeUnknown, match="may or may not"):
        storage.create_new("a", b"x")
    with pytest.raises(OutcomeUnknown, match="may or may not"):
        storage.replace("a", b"x")


def test_throttled_creation_is_a_plain_failure(storage, interfere):
    """A throttled request was not executed: nothing is in doubt, a retry may help."""
    prove(storage)
    interfere.counts.clear()
    interfere.rule = lambda method, number: Answer("SlowDown") if method == "put_object" else None
    with pytest.raises(StorageError, match="SlowDown") as caught:
        storage.create_new("a", b"x")
    assert caught.value.retryable
    assert interfere.counts == {"put_object": NO_WAIT.attempts_max}


def test_two_conditional_requests_at_once_are_sorted_out(storage, interfere):
    """S3 answers 409 to one of them; it is repeated."""
    prove(storage)
    interfere.counts.clear()
    interfere.rule = lambda method, number: (
        Answer("ConditionalRequestConflict") if method == "put_object" and number < 2 else None
    )
    storage.create_new("a", b"x")
    assert storage.read("a") == b"x"


def test_server_that_ignores_the_condition_is_refused(storage, interfere, monkeypatch):
    """Some overwrite silently: two writers would both win."""
    monkeypatch.setattr(S3Backend, "put_new", lambda self, path, data, creator: self.put(path, data))
    with pytest.raises(StorageError, match="ignores If-None-Match"):
        storage.create_new("a", b"x")
    assert storage.list("") == []


def test_conditional_create_is_tried_once(storage, interfere):
    """The trial costs two writes, once, and leaves nothing; an unpickled twin does not repeat it."""
    storage.create_new("a", b"x")
    assert interfere.counts["put_object"] == 3
    storage.create_new("b", b"x")
    pickle.loads(pickle.dumps(storage)).create_new("c", b"x")
    assert interfere.counts["put_object"] == 5
    assert {entry.name for entry in storage.list("")} == {"a", "b", "c"}


@pytest.mark.parametrize("version_is_known", [False, True])
def test_swap_whose_answer_was_lost_is_recognised_as_ours(storage, interfere, version_is_known):
    """The object was written, the answer lost, the repetition refused: that is success."""
    version = storage.swap("a", b"before", None) if version_is_known else None
    storage.swap("trial", b"", None)
    interfere.counts.clear()
    interfere.rule = lambda method, number: (
        ("after", TimeoutError("no answer")) if method == "put_object" and number == 0 else None
    )
    assert storage.swap("a", b"ours", version) == storage.read_version("a").version
    assert storage.read("a") == b"ours"


@pytest.mark.parametrize("is_carried_out", [True, False])
def test_who_may_not_go_on_after_a_lost_answer_is_told_what_became_of_it(storage, interfere, is_carried_out):
    """The look before the repetition refuses, but the first request may be carried out: no error says otherwise."""
    prove(storage)
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        if len(looks) > 1:
            raise ConflictError("the lock is gone")

    lost: Any = TimeoutError("no answer")
    interfere.counts.clear()
    interfere.rule = lambda method, number: (
        (("after", lost) if is_carried_out else lost) if (method, number) == ("put_object", 0) else None
    )
    if is_carried_out:
        storage.create_new("a", b"ours", look)
        assert storage.read("a") == b"ours"
    else:
        with pytest.raises(OutcomeUnknown, match="may or may not"):
            storage.create_new("a", b"ours", look)
    assert looks == [1, 1]


def test_lost_answer_of_a_lost_swap_is_still_lost(storage, interfere):
    """The rival's content is not ours."""
    version = storage.swap("a", b"before", None)
    storage.replace("a", b"rival")
    interfere.counts.clear()
    interfere.rule = lambda method, number: (
        TimeoutError("no answer") if method == "put_object" and number == 0 else None
    )
    assert storage.swap("a", b"ours", version) is None
    assert storage.read("a") == b"rival"


def test_swap_that_cannot_be_resolved_is_unknown(storage, interfere):
    """Neither there nor surely refused: the request may still be on its way."""
    version = storage.swap("a", b"before", None)
    interfere.rule = lambda method, number: TimeoutError() if method == "put_object" else None
    with pytest.raises(OutcomeUnknown, match="may or may not"):
        storage.swap("a", b"ours", version)


def test_server_that_ignores_the_version_is_refused(storage, monkeypatch):
    """Some know If-None-Match and not If-Match."""
    honest = S3Backend.put_if

    def careless(self: S3Backend, path: str, data: bytes, version: str | None) -> str:
        if version is None:
            return honest(self, path, data, None)
        return str(self._call("put_object", Key=self._key(path), Body=data)["ETag"])

    monkeypatch.setattr(S3Backend, "put_if", careless)
    with pytest.raises(StorageError, match="ignores If-Match"):
        storage.swap("a", b"x", None)
    assert storage.list("") == []


# ---------------------------------------------------------------------- trouble


def test_passing_trouble_is_ridden_out(storage, interfere):
    """Throttling, time-outs and broken connections before each verb are repeated, within bounds."""
    storage.replace("p/a", b"x")
    errors = [Answer("SlowDown"), TimeoutError(), ConnectionResetError("reset")]
    for action, method in (
        (lambda: storage.list("p"), "list_objects_v2"),
        (lambda: storage.size("p/a"), "head_object"),
        (lambda: storage.replace("p/b", b"y"), "put_object"),
        (lambda: storage.delete_many(["p/b"]), "delete_objects"),
        (lambda: storage.delete("p/a"), "delete_object"),
    ):
        interfere.counts.clear()
        interfere.rule = lambda called, number, method=method: (
            errors[number] if called == method and number < len(errors) else None
        )
        action()
        assert interfere.counts[method] == 4
    assert storage.list("p") == []


def test_bulk_deletion_repeats_only_what_may_succeed(storage, monkeypatch):
    """Single keys fail: throttled ones are repeated, a refused one is reported, the rest is done."""
    sent: list[list[str]] = []

    def delete_keys(self: S3Backend, keys: list[str]) -> dict[str, StorageFailure]:
        sent.append([key.rsplit("/")[-1] for key in keys])
        failures = {"slow": StorageFailure("SlowDown", True), "locked": StorageFailure("AccessDenied", False)}
        return {key: failures[name] for key in keys if (name := key.rsplit("/")[-1]) in failures and len(sent) < 3}

    monkeypatch.setattr(S3Backend, "_delete_keys", delete_keys)
    assert storage.delete_many(["ok", "slow", "locked"]) == {
        "ok": True, "slow": True, "locked": StorageFailure("AccessDenied", False),
    }  # fmt: skip
    assert sent == [["ok", "slow", "locked"], ["slow"], ["slow"]]


def test_bulk_deletion_gives_up_after_a_page_that_fails_as_a_whole(storage, interfere):
    """The other pages would only take the same time; each path says why."""
    interfere.rule = lambda method, number: Answer("AccessDenied") if method == "delete_objects" else None
    paths = [f"p/{number}" for number in range(600)]
    outcome = storage.delete_many(paths)
    assert list(outcome) == paths
    assert all(isinstance(one, StorageFailure) and "AccessDenied" in one.message for one in outcome.values())
    assert interfere.counts == {"delete_objects": 1}


def test_missing_bucket_is_no_empty_table(s3_options):
    """A wrong bucket must not look like a table without files."""
    storage = RemoteStorage(f"s3://nobody-has-this-{uuid4()}/t", s3_options, retry=NO_WAIT)
    for action in (lambda: storage.list(""), lambda: storage.read("a"), lambda: storage.replace("a", b"")):
        with pytest.raises(StorageError, match="the bucket does not exist") as caught:
            action()
        assert not isinstance(caught.value, NotFound)
        assert not caught.value.retryable


def test_unreachable_server_says_so(s3_options):
    """Nothing was sent: no unknown outcome, a retry may help."""
    options = {**s3_options, "endpoint_url": "http://127.0.0.1:9"}
    storage = RemoteStorage("s3://contract/t", options, retry=NO_WAIT._replace(attempts_max=1))
    with pytest.raises(StorageError, match="check the endpoint") as caught:
        storage.list("")
    assert caught.value.retryable


def test_a_server_that_never_answers_is_given_up(s3_options, caplog):
    """It takes the connection and says nothing: told while waiting, then an error that says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {
            **s3_options,
            "endpoint_url": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "config_kwargs.read_timeout": "0.1",
            "config_kwargs.retries.total_max_attempts": "1",
        }
        storage = RemoteStorage("s3://contract/t", options, retry=NO_WAIT)
        with pytest.raises(StorageError, match="did not answer in time") as caught:
            storage.list("")
    assert caught.value.retryable
    assert len([each for each in caplog.records if "storage.call.repeated" in each.getMessage()]) == 3


def test_secrets_stay_out_of_messages(storage, interfere, s3_options):
    """Even when the library repeats them."""
    secret = s3_options["secret"]
    interfere.rule = lambda method, number: OSError(f"bad signature made with {secret}")
    with pytest.raises(StorageError) as caught:
        storage.list("")
    assert secret not in str(caught.value)
    assert "***" in str(caught.value)
    assert secret not in repr(storage)


# ---------------------------------------------------------------------- streams and processes


def test_big_upload_goes_in_parts_and_an_aborted_one_leaves_none(storage, url):
    """Beyond 16 MiB a multi-part upload; given up, neither the object nor parts remain."""
    block = os.urandom(1 << 20)
    with storage.open_write("big") as stream:
        for _ in range(20):
            stream.write(block)
    assert storage.size("big") == 20 << 20
    with storage.open_read("big") as stream:
        stream.seek(19 << 20)
        assert stream.read() == block
    with pytest.raises(KeyError), storage.open_write("torn") as stream:
        for _ in range(20):
            stream.write(block)
        raise KeyError
    bucket, prefix = url.removeprefix("s3://").split("/")
    uploads = storage._backend()._fs.call_s3("list_multipart_uploads", Bucket=bucket).get("Uploads", [])
    assert [one for one in uploads if one["Key"].startswith(prefix)] == []
    assert storage.size("torn") is None


def test_dropped_upload_is_not_published(storage):
    """Fsspec's own file would write what it has when it is collected."""
    stream = storage.open_write("torn")
    stream.write(b"half")
    del stream
    assert storage.size("torn") is None


def test_storage_works_in_a_forked_child(storage):
    """The parent's client is not used there; s3fs would raise or hang."""
    storage.replace("a", b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking with threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            storage.replace("b", storage.read("a") + b"y")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert storage.read("b") == b"xy"


def test_pickle_is_small_and_holds_no_client(storage):
    """Shipped with every task, so it must be nothing but URL and options."""
    storage.replace("a", b"x")
    assert len(pickle.dumps(storage)) < 1000


def test_s3a_urls_and_hadoop_options_are_understood(storage, url, s3_options):
    """A user of Hudi brings both along; the root keeps the scheme it was given, as plans would."""
    options = {
        "fs.s3a.access.key": s3_options["key"],
        "fs.s3a.secret.key": s3_options["secret"],
        "fs.s3a.endpoint": s3_options["endpoint_url"],
        "fs.s3a.path.style.access": "true",
    }
    other = open_storage(url.replace("s3://", "s3a://") + "/", options)
    storage.replace("a", b"x")
    assert other.read("a") == b"x"
    assert other.root == url.replace("s3://", "s3a://")


def test_no_more_than_the_bound_is_read_at_once(storage, url, s3_options, monkeypatch):
    """One request as ever: the head of its answer tells the size, and a larger content is never taken."""
    bounded = RemoteStorage(url, s3_options, retry=NO_WAIT, read_bytes_max=1000)
    storage.replace("just", bytes(1000))
    storage.replace("more", bytes(1001))
    kind = type(bounded._backend()._fs)
    requests, call = [], kind._call_s3

    async def counted(self, method, *arguments, **more):
        requests.append(method)
        return await call(self, method, *arguments, **more)

    monkeypatch.setattr(kind, "_call_s3", counted)
    assert bounded.read("just") == bounded.read_version("just").content == bytes(1000)
    for read in (bounded.read, bounded.read_version):
        with pytest.raises(CorruptMetadata, match=r"/more: 1001 bytes, .*hoodie_py\.read\.max\.bytes"):
            read("more")
    assert requests == ["get_object"] * 4
    assert len(storage.read("more")) == 1001, "the connection is as good as before"
