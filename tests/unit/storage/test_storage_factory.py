"""From a location to a storage."""

from __future__ import annotations

import os
import subprocess
import sys
from urllib.parse import unquote

import pytest

from hudi_py.errors import ConfigError
from hudi_py.storage.factory import open_storage
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.remote_options import nested_options, redact, s3_options


@pytest.mark.parametrize(
    ("location", "root"),
    [
        ("/data/t", "/data/t"),
        ("/data/t/", "/data/t"),
        ("file:///data/t/", "/data/t"),
        ("file:/data/a b%20c", "/data/a b%20c"),
        ("FILE://localhost/data", "/data"),
        ("/data/a:b", "/data/a:b"),
    ],
)
def test_local_locations(location, root):
    """Paths and file URLs, which like Hadoop's are not percent-decoded."""
    storage = open_storage(location)
    assert isinstance(storage, LocalStorage)
    assert storage.root == root


@pytest.mark.parametrize("name", ["a b", "100%", "ü#?", "a%20b"])
def test_file_urls_are_taken_quoted_and_plain(tmp_path, name):
    """Python quotes a path in a URL, Hadoop does not: what is there is meant, and the plain reading wins."""
    folder = tmp_path / name
    folder.mkdir()
    assert str(folder) == open_storage(folder.as_uri()).root == open_storage(f"file://{folder}").root
    assert str(folder) == open_storage(folder).root
    (tmp_path / unquote(name)).mkdir(exist_ok=True)
    assert str(folder) == open_storage(f"file://{folder}").root


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("s3:/bucket/t", "did you mean s3://"),
        ("s3:///", "not a URL of a folder"),
        ("s3:///no-bucket", "not a URL of a folder"),
        ("nonsense://x/y", "not supported by fsspec"),
        ("simplecache::s3://b/t", "chained"),
        ("file://host/share", "not name an absolute local path"),
        ("sftp://me:hunter22@host/t", "holds a password"),
        ("", "is empty"),
        (" ", "is empty"),
    ],
)
def test_bad_locations_are_explained(location, message):
    """The message says what to write instead, and repeats no password."""
    pytest.importorskip("fsspec", reason="URLs need fsspec")
    with pytest.raises(ConfigError, match=message) as caught:
        open_storage(location)
    assert "hunter22" not in str(caught.value)


def test_missing_package_is_named(monkeypatch):
    """Instead of an ImportError from the depth of a library; what to install is all the advice."""
    fsspec = pytest.importorskip("fsspec", reason="URLs need fsspec")

    def missing(scheme: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(ConfigError) as refused:
        open_storage("s3a://bucket/table")
    assert refused.value.fix == "pip install 'hudi_py[s3]'"
    with pytest.raises(ConfigError) as refused:
        open_storage("gs://bucket/table")
    assert refused.value.fix == "pip install gcsfs"


def test_pyarrow_says_what_hdfs_lacks_as_it_is_recognized():
    """On a machine without Hadoop; the host is never asked, because the client is not even loaded."""
    code = (
        "from hudi_py.storage.factory import open_storage\n"
        "from hudi_py.errors import StorageError\n"
        "try:\n"
        "    open_storage('hdfs://127.0.0.1:1/t').read('x')\n"
        "except StorageError as error:\n"
        "    print(error)\n"
    )
    env = {**os.environ, "HADOOP_HOME": "/nowhere", "ARROW_LIBHDFS_DIR": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    if "libhdfs" not in done.stdout and "libjvm" not in done.stdout:
        pytest.skip("this machine has Hadoop's client")
    assert "HDFS is reached through Hadoop's own client, which needs Java" in done.stdout
    assert "dlopen" not in done.stdout


def test_local_storage_imports_no_remote_library():
    """Starting a task on a local table must not pay for S3."""
    code = (
        "import sys, hudi_py.storage.factory as f; f.open_storage('/x'); "
        "print([name for name in ('fsspec', 's3fs', 'botocore', 'obstore') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert output.stdout.strip() == "[]"


def test_s3_options_are_translated():
    """Aliases, nesting and booleans; never a cached listing."""
    found = s3_options(
        {"AWS_ACCESS_KEY_ID": "k", "fs.s3a.endpoint": "minio:9000", "anon": "False", "client_kwargs.verify": "/ca.pem",
         "fs.s3a.path.style.access": "true", "aws_region": "eu-central-1"}
    )  # fmt: skip
    assert found == {
        "key": "k",
        "endpoint_url": "https://minio:9000",
        "anon": False,
        "client_kwargs": {"verify": "/ca.pem", "region_name": "eu-central-1"},
        "config_kwargs": {
            "s3": {"addressing_style": "path"},
            "retries": {"mode": "standard", "total_max_attempts": 1},
            "connect_timeout": 10,
            "read_timeout": 20,
        },
        "use_listings_cache": False,
    }


def test_contradicting_and_unknown_options_are_refused():
    """A typo must not be dropped silently."""
    with pytest.raises(ConfigError, match="also given as a value"):
        nested_options({"a": "1", "a.b": "2"})
    with pytest.raises(ConfigError, match="no equivalent here"):
        s3_options({"fs.s3a.acess.key": "typo"})


def test_redaction_covers_what_sounds_secret():
    """By the option's name; harmless values stay readable."""
    options = {"secret": "s3cr3t", "fs.s3a.access.key": "AKIA", "endpoint_url": "http://host", "password": ""}
    assert redact("s3cr3t AKIA http://host", options) == "*** *** http://host"
