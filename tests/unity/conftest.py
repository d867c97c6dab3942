"""The stand-in, the clients that `make env-unity` made, and a way to drive them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / ".clients"
LOST = 5
"""Exit code of a build whose client went without a word, as `animalcat-unity --help` tells it."""
SCRIPTS = Path(__file__).resolve().parent / "clients"
VERSIONS = ("6.2.0", "6.2.0-python3.14", "5.0.1", "4.1.0")
ENDS = (VERSIONS[0], VERSIONS[-1])
PATIENCE = 150
"""Seconds after which a client that does not come back fails its test."""


@dataclass(frozen=True)
class Client:
    """An unmodified `animalai` in an interpreter of its own."""

    version: str

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return CLIENTS / f"animalai-{self.version}" / "bin" / "python"

    @property
    def channels_first(self) -> bool:
        """Whether its images are (channels, height, width)."""
        return self.version != "4.1.0"

    def start(self, script: str, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start one of the scripts of the folder `clients`."""
        return subprocess.Popen(
            [self.python, SCRIPTS / script, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, script: str, *arguments: str | Path) -> str:
        """What a script prints; the test fails where it fails."""
        process = self.start(script, *arguments)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        assert process.returncode == 0, err
        return out


class Steps(NamedTuple):
    """One agent's part of a message, as the client decoded it."""

    observations: list[npt.NDArray[np.float32]]
    reward: float
    agent_id: int
    interrupted: bool


class Seen(NamedTuple):
    """One message as the client saw it."""

    decision: Steps | None
    terminal: Steps | None


@dataclass(frozen=True)
class Record:
    """What a client saw of a plan: the reset in its constructor, then every command."""

    report: dict[str, Any]
    messages: list[Seen]

    @property
    def behaviour(self) -> dict[str, Any]:
        """The one behaviour that the client understood there to be."""
        return self.report["behaviours"]["AnimalAI?team=0"]


Drive = Callable[..., Record]
Command = tuple[str | int | Path, ...]


def available(version: str) -> Client:
    """A client, or the test is skipped with what to do."""
    client = Client(version)
    if not client.python.exists():
        pytest.skip(f"animalai {version} is not set up here: make env-unity")
    return client


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No session is named, and logs that no test asks for stay out of the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("ANIMALCAT_SERVER", "ANIMALCAT_SESSION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(
    params=[
        pytest.param(version, marks=() if version in ENDS else pytest.mark.slow)
        for version in VERSIONS
    ]
)
def client(request: pytest.FixtureRequest) -> Client:
    """Every client in turn; those between the newest and the oldest are slow tests."""
    return available(request.param)


@pytest.fixture
def newest() -> Client:
    """animalai 6.2.0 on the default Python."""
    return available("6.2.0")


@pytest.fixture(scope="session")
def executable() -> str:
    """The installed stand-in, as a user names it in `file_name`."""
    path = Path(sysconfig.get_path("scripts")) / "animalcat-unity"
    assert path.exists(), f"{path} is not installed: make setup"
    assert Path(sys.prefix) in path.parents
    return str(path)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("localhost", 0))
        return int(sock.getsockname()[1])


@pytest.fixture
def drive(executable: str, tmp_path: Path) -> Drive:
    """Has a client play a plan (see clients/drive.py)."""

    def run(
        client: Client,
        commands: Iterable[Command] = (),
        *,
        plan: dict[str, Any] | None = None,
        **environment: Any,
    ) -> Record:
        defaults = {"file_name": executable, "base_port": free_port(), "resolution": 16}
        if "arenas_configurations" in environment:
            environment["arenas_configurations"] = str(environment["arenas_configurations"])
        whole = {
            **(plan or {}),
            "environment": {**defaults, **environment},
            "commands": [[str(c) if isinstance(c, Path) else c for c in row] for row in commands],
        }
        plan_path, seen_path = tmp_path / "plan.json", tmp_path / "seen.npz"
        plan_path.write_text(json.dumps(whole))
        out = client.run("drive.py", plan_path, seen_path)
        return Record(json.loads(out.splitlines()[-1]), _messages(seen_path))

    return run


def _messages(path: Path) -> list[Seen]:
    """The diary of clients/drive.py."""
    with np.load(path) as arrays:
        names = arrays.files
        assert not any("/1/" in name for name in names), "there is one agent"
        last = max((int(name.split("/")[0]) for name in names), default=-1)
        return [
            Seen(_steps(arrays, f"{i}/decision/0"), _steps(arrays, f"{i}/terminal/0"))
            for i in range(last + 1)
        ]


def _steps(arrays: Any, name: str) -> Steps | None:
    if f"{name}/reward" not in arrays.files:
        return None
    count = sum(file.startswith(f"{name}/obs/") for file in arrays.files)
    return Steps(
        [arrays[f"{name}/obs/{index}"] for index in range(count)],
        float(arrays[f"{name}/reward"]),
        int(arrays[f"{name}/agent_id"]),
        bool(arrays.get(f"{name}/interrupted", False)),
    )
