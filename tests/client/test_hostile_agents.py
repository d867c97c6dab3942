"""Seven known ways to cheat an evaluation, as agents: none gains."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import animalcat
from animalcat.apart.output import MARK
from animalcat.apart.plan import environment, way
from animalcat.apart.process import AgentProcess, Bounds
from animalcat.client.connection import translated_errors
from animalcat.errors import AnimalcatError
from animalcat.machine.folders import cache_folder, sockets_folder
from animalcat.v1 import gateway_pb2, gateway_pb2_grpc

from .conftest import MakeSession, Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not way().whole, reason=f"processes cannot be put apart here: {way().why}"),
]

AGENTS = Path(__file__).with_name("hostile_agents.py")


@pytest.fixture
def cheat(
    server: Server,
    client: animalcat.Client,
    make_session: MakeSession,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[animalcat.values.Session, dict[str, Any]]]:
    """Runs one of the agents until its process ends, and returns its session and what it got."""
    other = make_session(agent="somebody-else", seed=11)

    def run(
        name: str, times: int = 1, **fields: Any
    ) -> tuple[animalcat.values.Session, dict[str, Any]]:
        monkeypatch.setenv("ANIMALCAT_AGENT_HOME", str(server.home))
        monkeypatch.setenv("ANIMALCAT_AGENT_PORT", server.address.rpartition(":")[2])
        monkeypatch.setenv("ANIMALCAT_AGENT_OTHER", other.id)
        session = make_session(agent=name, **{"lease_seconds": 1.0, **fields})
        output = ""
        for _ in range(times):
            process = AgentProcess(client, session, f"{AGENTS}:{name}")
            end = time.monotonic() + 120
            while not process.ended and time.monotonic() < end:
                time.sleep(0.05)
            process.close()
            output = process.output()
            while client.get_session(session).state == "running":
                time.sleep(0.05)
        said = [line for line in output.splitlines() if line.startswith(f"{MARK}GOT ")]
        return session, json.loads(said[-1].partition("GOT ")[2]) if said else {"output": output}

    return run


def test_the_answers_cannot_be_read(cheat: Any, server: Server) -> None:
    cache_folder("kept").mkdir(parents=True, exist_ok=True)
    _, got = cheat("ReadsAnswers")
    assert got["files"] == []
    assert got["unmount"] is False
    refused = ("database", "key", "batteries", "climb")
    assert all(got[one].startswith("error") for one in refused)
    assert got["through_proc"] == [] or got["through_proc"].startswith("error")


def test_the_results_and_the_program_cannot_be_written(cheat: Any, server: Server) -> None:
    watched = [server.home / "access", Path(animalcat.__file__).parent, cache_folder("").parent]
    before = [sorted(folder.iterdir()) for folder in watched]
    _, got = cheat("WritesResults")
    assert len(got) == 10
    written = {name for name, told in got.items() if not str(told).startswith("error")}
    assert written <= {"batteries", "other_caches", "servers"}  # in folders of its own
    sockets = sockets_folder()
    assert sockets is not None
    assert not sockets.with_name("moved").exists()
    assert [sorted(folder.iterdir()) for folder in watched] == before
    # What it wrote into would be found by those who come afterwards, too.
    assert not (server.home / "mine").exists()
    assert not (cache_folder("") / "mine").exists()


def test_the_evaluator_cannot_be_reached(
    cheat: Any, server: Server, client: animalcat.Client
) -> None:
    session, got = cheat("ReachesEvaluator")
    assert got["memory"].startswith("error")
    assert got["processes"] <= 3
    assert got["end_all"] == 0
    assert got["port"].startswith("error")
    calls = got["calls"]
    assert calls.pop("sessions") == repr([session.id])
    assert calls.pop("capabilities") == "[]"
    assert calls.pop("other").startswith("error: UNKNOWN_SESSION")
    assert all(told.startswith("error: FORBIDDEN") for told in calls.values()), calls
    assert client.get_session(session).state == "waiting"


def test_leaving_at_will_gains_one_more_look_and_then_counts(
    cheat: Any, client: animalcat.Client
) -> None:
    session, _ = cheat("Leaves", times=2, max_episodes=20)
    first, second = client.episodes(session)[:2]
    assert (first.outcome, second.outcome) == ("void", "failure")
    assert first.instance == second.instance
    assert "second time" in second.cause
    assert client.get_session(session).successes == 0


def test_who_stalls_is_let_go(cheat: Any, client: animalcat.Client) -> None:
    session, _ = cheat("Stalls", action_timeout_seconds=0.5, max_episodes=20)
    (first,) = client.episodes(session)
    assert (first.outcome, first.cause_kind) == ("void", "action_timeout")


def test_what_the_parser_could_misread_ends_the_stream(
    server: Server, client: animalcat.Client, make_session: MakeSession
) -> None:
    session = make_session(agent="Misreads", max_episodes=20)
    ticket = client.get_ticket(session)
    frames = [
        gateway_pb2.Action(step=0, list=gateway_pb2.ActionList(actions=bytes([9]))),
        gateway_pb2.Action(step=7, list=gateway_pb2.ActionList(actions=bytes([3]))),
        gateway_pb2.Action(
            step=0, list=gateway_pb2.ActionList(actions=bytes([3] * 100), repeat=2**32 - 1)
        ),
    ]

    async def misread(channel: Any) -> None:
        hello = gateway_pb2.Hello(session=session.name, agent="Misreads", instance="x", protocol=1)
        stub: Any = gateway_pb2_grpc.AgentGatewayStub(channel)
        stream = stub.Evaluate()
        await stream.write(gateway_pb2.EvaluateRequest(hello=hello))
        while not (await stream.read()).HasField("episode_start"):
            pass
        for frame in frames:
            await stream.write(gateway_pb2.EvaluateRequest(action=frame))
        while (await stream.read()).HasField("error"):
            pass

    with (
        animalcat.connect(ticket.local_address, token=ticket.text) as own,
        pytest.raises(AnimalcatError, match="bad frames"),
        translated_errors(own.address),
    ):
        own.run(misread(own.aio.channel))
    while client.get_session(session).state == "running":
        time.sleep(0.05)
    (first,) = client.episodes(session)
    assert (first.outcome, first.cause_kind, first.steps) == ("void", "bad_frames", 0)


def test_errors_tell_nothing(cheat: Any, client: animalcat.Client) -> None:
    session, got = cheat("LearnsFromErrors")
    assert all(told.startswith("error: ") for told in got.values()), got
    other = next(one for one in client.list_sessions() if one.spec.agent == "somebody-else")
    assert got["other"].replace(other.id, "X") == got["nothing"].replace("there-is-none", "X")
    assert got["play_other"] == got["other"]
    secrets = ("somebody", "navigation", "aaio", "success", str(client.address), "/home")
    known = [*secrets, *(one.instance for one in client.episodes(session))]
    for told in got.values():
        said = told.replace(other.id, "what it asked for")
        assert not [one for one in known if one in said], told


def test_an_agent_does_not_inherit_what_is_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKEN", "HOME", "STORE"):
        monkeypatch.setenv(f"ANIMALCAT_{name}", "x")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    kept = environment(ANIMALCAT_TOKEN="ticket")
    assert [name for name in kept if name.startswith("ANIMALCAT_") and kept[name] == "x"] == []
    assert (kept["ANIMALCAT_TOKEN"], kept["OPENAI_API_KEY"]) == ("ticket", "x")


FORGER = """
import json, os, sys, time
from pathlib import Path

class Forges:
    def reset(self, info):
        told = []
        for name in ("/dev/tty", os.environ["ANIMALCAT_AGENT_TTY"], "/proc/1/fd/1", "/dev/pts/0"):
            try:
                with open(name, "w") as file:
                    file.write("Verdict: forged\\n")
                told.append(name)
            except OSError:
                pass
        print("reached", told)
        print("Verdict: forged", "\x1b]0;title\x07", "\x1b]52;c;Y2xpcA==\x07", "\x9b2J")
        for name in ("animalcat", "beside", "secret"):
            try:
                print(name, (Path(__file__).parent / name).exists(), os.path.exists(name))
            except OSError as error:
                print(name, error)
        raise ValueError("over \\x1b]0;title\\x07")

    def act(self, observation):
        return 3

class Waits(Forges):
    def __init__(self):  # before it asks the server for anything, which may be busy with fits
        if not os.fork():
            os.setsid()
        time.sleep(600)
"""


def _command(server: Server, agent: Path, name: str) -> list[str]:
    options = ["--server", server.address, "--battery", "navigation", "--max-episodes", "2"]
    command = [sys.executable, "-m", "animalcat", "session", "run", *options]
    return [*command, "--no-certify", "--agent", f"{agent}:{name}"]


def _read_terminal(terminal: int, process: subprocess.Popen[bytes]) -> str:
    """What a command prints to its terminal until it ends."""
    said = b""
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            with suppress(OSError):  # nobody has the other end any more
                said += os.read(terminal, 65536)
                continue
        if process.poll() is not None:
            return said.decode(errors="replace")


def test_an_agent_has_no_terminal_and_cannot_forge_what_is_printed(
    server: Server, tmp_path: Path
) -> None:
    # What lies in the working folder is nothing that an agent, or a command of ours, would run.
    (tmp_path / "animalcat.py").write_text("raise SystemExit('planted')")
    agent = tmp_path / "agent" / "forger.py"
    agent.parent.mkdir()
    agent.write_text(FORGER)
    (agent.parent / "beside").write_text("x")
    (tmp_path / "secret").write_text("x")
    terminal, inner = pty.openpty()
    environment = {**os.environ, "ANIMALCAT_AGENT_TTY": os.ttyname(inner), "TERM": "dumb"}
    environment["PYTHONSAFEPATH"] = "1"  # the command is one of an installed package
    with subprocess.Popen(
        _command(server, agent, "Forges"),
        stdin=inner,
        stdout=inner,
        stderr=inner,
        cwd=tmp_path,
        env=environment,
        preexec_fn=lambda: os.login_tty(0),
    ) as process:
        os.close(inner)
        said = _read_terminal(terminal, process)
    os.close(terminal)
    assert process.returncode == 1, said
    lines = said.replace("\r\n", "\n").splitlines()
    assert f"{MARK}reached []" in lines, said
    assert f"{MARK}beside True False" in lines
    assert f"{MARK}secret False False" in lines
    forged = [line for line in lines if "forged" in line]
    told = [line for line in forged if not line.startswith(MARK)]
    assert forged
    assert not told
    assert "\x1b]" not in said
    assert "\x9b" not in said
    assert "planted" not in said


def test_an_agent_ends_with_the_command_that_is_killed(server: Server, tmp_path: Path) -> None:
    agent = tmp_path / "waiter.py"
    agent.write_text(FORGER)
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"

    def running() -> list[str]:
        found: list[str] = []
        for one in Path("/proc").iterdir():
            with suppress(OSError):
                words = (one / "cmdline").read_bytes() if one.name.isdigit() else b""
                told = (one / "environ").read_bytes() if b"waiter.py" in words else b""
                if mark.encode() in told and b"\0run\0--connect" in words:
                    found.append(one.name)
        return found

    environment = {**os.environ, "ANIMALCAT_AGENT_MARK": mark}
    with subprocess.Popen(_command(server, agent, "Waits"), env=environment) as command:
        end = time.monotonic() + 60
        while len(running()) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        before = running()
        command.send_signal(signal.SIGKILL)
    assert len(before) >= 2  # itself, and what it left in a session of its own
    end = time.monotonic() + 20
    while running() and time.monotonic() < end:
        time.sleep(0.1)
    assert running() == []


@pytest.mark.parametrize(("bytes_wanted", "told"), [(1 << 50, True), (1, False)])
def test_an_honest_agent_that_has_too_little_memory_is_told_what_it_may_take(
    client: animalcat.Client,
    make_session: MakeSession,
    tmp_path: Path,
    bytes_wanted: int,
    told: bool,
) -> None:
    agent = tmp_path / "large.py"
    agent.write_text(f"class Plays:\n    weights = bytearray({bytes_wanted})\nprint('loaded')\n")
    process = AgentProcess(client, make_session(agent="large"), f"{agent}:Plays")
    end = time.monotonic() + 60
    while not process.ended and time.monotonic() < end:
        time.sleep(0.05)
    process.close()
    assert ("GiB of memory here, together and each" in process.output()) is told
    assert ("loaded" in process.output()) is not told


HONEST = """
import multiprocessing, os, subprocess, sys, tempfile, threading
from pathlib import Path
from helper import half

WEIGHTS = Path(os.environ["ANIMALCAT_AGENT_WEIGHTS"]).read_text()
BESIDE = (Path(__file__).parent / "net" / "beside.txt").read_text()

class Plays:
    def reset(self, info):
        with tempfile.TemporaryFile() as file:
            file.write(b"x")
        if (child := os.fork()) == 0:
            os._exit(0)
        os.waitpid(child, 0)
        with multiprocessing.get_context("spawn").Pool(2) as pool:  # a fork of threads may hang
            assert pool.map(half, [4, 8]) == [2, 4]
        one = threading.Thread(target=lambda: None)
        one.start()
        done = subprocess.run([sys.executable, "-c", "print(7)"], capture_output=True, text=True)
        assert (done.stdout, WEIGHTS, BESIDE) == ("7\\n", "weights", "beside")
        Path("notes").write_text("x")

    def act(self, observation):
        return 3
"""


def test_an_honest_agent_plays_and_is_the_same_agent_outside(
    client: animalcat.Client,
    make_session: MakeSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = tmp_path / "mine" / "agent.py"
    (agent.parent / "net").mkdir(parents=True)
    agent.write_text(HONEST)
    (agent.parent / "helper.py").write_text("def half(number):\n    return number / 2\n")
    (agent.parent / "net" / "beside.txt").write_text("beside")
    weights = tmp_path / "weights.txt"
    weights.write_text("weights")
    monkeypatch.setenv("ANIMALCAT_AGENT_WEIGHTS", str(weights))
    monkeypatch.chdir(agent.parent)
    played = {"max_episodes": 50}

    def first(session: animalcat.values.Session, ended: Callable[[], bool]) -> None:
        """Wait until it has played an episode; the fit at the end would take longer."""
        while not client.get_session(session).episodes and not ended():
            time.sleep(0.05)

    apart = make_session(agent="apart", **played)
    process = AgentProcess(client, apart, "agent.py:Plays", Bounds(sees=(weights,)))
    first(apart, lambda: process.ended)
    process.close()
    assert client.get_session(apart).episodes, process.output()
    outside = make_session(agent="outside", **played)
    command = ["agent", "run", "--connect", client.address, "--session", outside.name]
    command += ["--agent", "agent.py:Plays", "--name", "outside"]
    with subprocess.Popen([sys.executable, "-P", "-m", "animalcat", *command]) as runs:
        first(outside, lambda: runs.poll() is not None)
        runs.terminate()
    known = [client.get_session(one).identity.fingerprint for one in (apart, outside)]
    assert known[0] == known[1]
    assert known[0] is not None
    assert set(known[0].files) == {"agent.py", "helper.py", "net/beside.txt", "../weights.txt"}
    assert sorted(one.name for one in agent.parent.iterdir() if one.name != "__pycache__") == [
        "agent.py",
        "helper.py",
        "net",
        "notes",  # of the one outside
    ]
