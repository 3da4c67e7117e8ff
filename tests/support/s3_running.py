"""Runs the S3 server of `s3_server` in a process of its own; it speaks DynamoDB, too."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def running_s3() -> Iterator[dict[str, str]]:
    """Storage options for a running server with a bucket ``contract``; ``HUDI_PY_TEST_S3`` names one that runs."""
    given = os.environ.get("HUDI_PY_TEST_S3")
    if given:
        key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        options = {"key": key, "secret": secret, "endpoint_url": given, "region": "us-east-1"}
        create_bucket(options, "contract")
        yield options
        return
    pytest.importorskip("moto.server", reason="the S3 part needs moto[server]")
    command = [sys.executable, str(Path(__file__).with_name("s3_server.py"))]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stderr is not None
            line = next((line for line in server.stderr if "Running on http" in line), None)
            assert line is not None, "moto ended before it listened"
            # It logs every request; a full pipe would stop it.
            threading.Thread(target=server.stderr.read, daemon=True).start()
            endpoint = line.split("Running on ")[1].split()[0]
            options = {"key": "test", "secret": "test-secret-value", "endpoint_url": endpoint, "region": "us-east-1"}
            create_bucket(options, "contract")
            yield options
        finally:
            server.terminate()


def create_bucket(options: dict[str, str], name: str) -> None:
    import s3fs

    client = s3fs.S3FileSystem(
        key=options["key"], secret=options["secret"], endpoint_url=options["endpoint_url"], skip_instance_cache=True
    )
    if not client.exists(name):
        client.call_s3("create_bucket", Bucket=name)
