"""Object storage that tests start on loopback; they are skipped where its packages are missing."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest


class S3:
    """A server that speaks the protocol of S3 at this machine; it can be stopped and started."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        program = (
            "from moto.server import main; import sys; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                assert self._process.poll() is None
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    pytest.importorskip("s3fs")
    server = S3()
    yield server
    server.stop()


@pytest.fixture
def bucket(s3: S3, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty bucket, whose credentials are in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    url = f"s3://bucket-{os.urandom(6).hex()}/animalcat"
    make_bucket(url)
    return url


def make_bucket(url: str) -> None:
    """Make the bucket of a URL; a server that was stopped has forgotten all that it had."""
    s3fs: Any = importlib.import_module("s3fs")
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(url.split("/")[2])
