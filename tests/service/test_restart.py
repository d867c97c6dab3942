"""A server that is killed loses nothing that it acknowledged, and chooses on as if it had lived."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from animalcat.service.recording.reader import RecordingError, read_episode
from animalcat.service.storage.sql import SqlStore
from animalcat.v1 import results_pb2, sessions_pb2, types_pb2
from animalcat.wire.codec import encode
from tests.service import held_agent

QUICK = """!ArenaConfig
arenas:
  0: !Arena
    pass_mark: 0
    t: 30
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 3}}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {{x: {x}, y: 0, z: {z}}}]
      sizes: [!Vector3 {{x: 1, y: 1, z: 1}}]
"""


class Server:
    """A server in a process of its own."""

    def __init__(self, data: Path, **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "animalcat", "serve", "--port", "0", "--json", "--data", data],
            stdout=subprocess.PIPE,
            env=os.environ | variables,
        )
        assert self.process.stdout is not None
        self.address: str = json.loads(self.process.stdout.readline())["address"]

    def stop(self, number: int) -> int:
        self.process.send_signal(number)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def battery(n: int) -> list[tuple[str, bytes]]:
    return [
        (f"navigation-{k:02}.yaml", QUICK.format(x=14 + 3 * (k % 5), z=5 + k % 7).encode())
        for k in range(n)
    ]


def counted_episodes(episodes: list[Any]) -> list[Any]:
    """What the law is about: which instance was chosen why, and what came of it."""
    return [
        (e.episode, e.instance, e.decision, e.outcome, e.episode_return, e.steps)
        for e in episodes
        if e.outcome in (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
    ]


def agent(address: str, session: str, **variables: str) -> subprocess.Popen[bytes]:
    """The random agent, or with variables the one that is held."""
    reference = f"{held_agent.__file__}:HeldAgent" if variables else "builtin:random"
    command = [sys.executable, "-m", "animalcat", "agent", "run", "--connect", address]
    command.append("--same-agent")  # the one that is held acts as the other does
    return subprocess.Popen(
        [*command, "--session", session, "--agent", reference, "--name", "builtin:random"],
        stdout=subprocess.DEVNULL,
        env=os.environ | variables,
    )


@contextmanager
def hold_episode(
    address: str, session: str, episode: int, folder: Path, slots: int = 1
) -> Generator[None]:
    """Let agents play, and hold one of them in the middle of an episode within the block.

    The server is to be gone at the end of the block: the agents go on then, and must end.
    """
    folder.mkdir()
    variables = {held_agent.FOLDER: str(folder), held_agent.EPISODE: str(episode)}
    playing = [agent(address, session, **variables) for _ in range(slots)]
    try:
        wait_for((folder / "held").exists)
        yield
    finally:
        (folder / "go").touch()
        for one in playing:
            one.wait(300)


async def create(
    service: Any, files: list[tuple[str, bytes]], n: int, slots: int, **fields: Any
) -> str:
    await service.import_files(files, "quick")
    return await service.create(
        n,
        agent="builtin:random",
        battery="batteries/quick",
        slots=slots,
        lease_seconds=1.0,  # an agent whose server was killed waits no longer for it
        **fields,
    )


async def finish(service: Any, session: str, slots: int) -> tuple[list[Any], dict[str, Any]]:
    """Play on to the end; the episodes and the profile."""
    for playing in [agent(service.running.address, session) for _ in range(slots)]:
        assert await asyncio.to_thread(playing.wait, 900) == 0
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    return await service.list_episodes(session), profile


async def killed_in_mid_session(
    start: Callable[[Path], Any],
    tmp_path: Path,
    n: int,
    *,
    kill_at: list[int],
    slots: int = 1,
    **fields: Any,
) -> list[Any]:
    """Play a session whole, and again with the server killed while episodes play."""
    files = battery(n + 4)
    async with start(tmp_path / "whole") as service:
        session = await create(service, files, n, slots, **fields)
        whole, profile = await finish(service, session, slots)

    data = tmp_path / "killed"
    async with start(data) as service:
        assert await create(service, files, n, slots, **fields) == session
    recordings = data / "recordings" / session.split("/")[1]
    for reached in kill_at:
        server = Server(data)
        with hold_episode(server.address, session, reached, tmp_path / f"held-{reached}", slots):
            known = stored_rows(data, session)
            acknowledged = counted_episodes(known)
            whole_files = {f"{e.episode}-{e.attempt}" for e in known if counted_episodes([e])}
            server.stop(signal.SIGKILL)
        kept = counted_episodes(stored_rows(data, session))  # others may have ended meanwhile
        assert [one for one in kept if one in acknowledged] == acknowledged
        for path in recordings.glob("*.mcap"):
            try:
                read_episode(path)  # whatever was cut can be read as far as it goes
            except RecordingError:  # cut within its header; none that was acknowledged
                assert path.stem not in whole_files
    async with start(data) as service:
        again, resumed = await finish(service, session, slots)

    assert counted_episodes(again) == counted_episodes(whole)
    assert len(counted_episodes(again)) == n
    faults = [e.cause for e in again if e.outcome == types_pb2.OUTCOME_FAULT]
    assert set(faults) == {"the server stopped"}
    assert len(kill_at) <= len(faults) <= len(kill_at) * slots
    assert resumed["nodes"] == profile["nodes"]
    assert resumed["provenance"]["certificates"] == profile["provenance"]["certificates"]
    return again


def stored_rows(data: Path, session: str) -> list[Any]:
    store = SqlStore.in_directory(data)
    try:
        return [encode(e) for e in store.episodes(session.split("/")[1])]
    finally:
        store.close()


def wait_for(condition: Any, seconds: float = 900.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_killed_twice_with_certificates(start: Callable[[Path], Any], tmp_path: Path) -> None:
    await killed_in_mid_session(start, tmp_path, 25, certify=True, kill_at=[5, 20])


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_killed_while_two_play(start: Callable[[Path], Any], tmp_path: Path) -> None:
    await killed_in_mid_session(start, tmp_path, 9, certify=False, kill_at=[5], slots=2)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_killed_while_arenas_are_made_and_repeated(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    """What was made on demand is made again from the store, and repeats count as they did."""
    policy = sessions_pb2.SelectionPolicy(
        random_share=0.2, exposures=0, probes=0.5, generate=True, enough=1.0
    )
    played = await killed_in_mid_session(
        start, tmp_path, 10, certify=False, kill_at=[6], policy=policy
    )
    assert {sessions_pb2.REASON_GENERATED, sessions_pb2.REASON_PROBE} <= {
        e.decision.reason for e in played
    }


@pytest.mark.slow
def test_a_second_server_says_who_has_the_directory(tmp_path: Path) -> None:
    server = Server(tmp_path)
    command = [sys.executable, "-m", "animalcat", "serve"]
    try:
        done = subprocess.run(
            [*command, "--port", "0", "--data", tmp_path], capture_output=True, text=True
        )
        assert done.returncode == 4
        assert server.address in done.stderr
        port = server.address.rpartition(":")[2]
        done = subprocess.run(
            [*command, "--port", port, "--data", tmp_path / "other"], capture_output=True, text=True
        )
        assert done.returncode == 4
        assert done.stderr.startswith("error: cannot listen at")
        assert "--port" in done.stderr
    finally:
        assert server.stop(signal.SIGINT) == 0
    assert not (tmp_path / "server.lock").read_bytes()


def test_a_private_server_ends_with_its_command(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from animalcat.service.host.private import server_for\n"
        "with server_for(None, Path(sys.argv[1])) as address:\n"
        "    print(address, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
    assert done.stdout.startswith("127.0.0.1:")
    # The command was killed; its server notices and leaves the directory.
    wait_for(lambda: not (tmp_path / "server.lock").read_bytes())
    assert os.path.exists(tmp_path / "animalcat.sqlite")
