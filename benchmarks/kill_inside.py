"""What runs inside the processes that `benchmarks kill` strikes: they stop at named moments.

`python -m benchmarks.kill_inside server SOCKET ...` is `animalcat ...`, and `... agent
SOCKET SESSION NAME FILE` an agent. At planned moments they ask the socket of `kill.Stage`, which
strikes or lets them go on.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc
import numpy as np
from sqlalchemy import event
from sqlalchemy.engine import Engine

from animalcat.client.stream import EvaluationStream
from animalcat.envs.agents.base import Agent, EpisodeInfo
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.types import Observation
from animalcat.errors import AnimalcatError
from animalcat.service.session import play as playing
from animalcat.service.session.final_fits import FinalFits
from animalcat.service.storage.sql import SqlStore

EPISODES: Final = 22
"""Episodes of a session that are compared; the first and the last are not struck."""
PAUSE_SECONDS: Final = 0.05
"""How long an agent waits before it connects again."""
AGENT: Final = AgentFingerprint.declared("kill", version="1")
"""What the agent says of itself, so that its next process is known to be the same agent."""
FORWARD: Final = (3, 3, 3, 4, 5)
"""Actions of the agent: mostly forward."""


class Gate:
    """Asks at the socket whether to go on, at the moments that the file `plan` beside it names."""

    def __init__(self, path: str) -> None:
        """Take the path of the socket."""
        self._path = path
        planned: list[tuple[str, int]] = json.loads(Path(path).with_name("plan").read_text())
        self._planned = {(moment, episode) for moment, episode in planned}

    def ask(self, **question: Any) -> str:
        """Ask, and wait for the answer, which is `go` or an address."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(self._path)
            with connection.makefile("rw") as lines:
                lines.write(f"{json.dumps(question)}\n")
                lines.flush()
                return lines.readline().strip()

    def moment(self, moment: str, episode: int, step: int = 0) -> None:
        """Come to a moment; waits if it is planned."""
        if (moment, episode) in self._planned:
            self.ask(moment=moment, episode=episode, step=step)


def serve(path: str, arguments: list[str]) -> None:
    """Serve as `animalcat serve` does, and stop at each moment of storing."""
    gate, inside = Gate(path), threading.local()

    def stopping(owner: Any, name: str, number: Callable[..., int]) -> None:
        plain = getattr(owner, name)

        def wrap_call(self: Any, *args: Any, **kwargs: Any) -> Any:
            episode = number(self, *args)
            gate.moment(f"before {name}", episode)
            inside.moment = (f"commit of {name}", episode)
            try:
                done = plain(self, *args, **kwargs)
            finally:
                inside.moment = None
            gate.moment(f"after {name}", episode)
            return done

        setattr(owner, name, wrap_call)

    def committing(_: Any) -> None:
        if getattr(inside, "moment", None) is not None:
            gate.moment(*inside.moment)

    def number_attempted(_: Any, episode: Any, *rest: Any) -> int:
        return int(episode.number)

    def number_recorded(recording: Path, *rest: Any) -> int:
        return int(recording.stem.partition("-")[0])

    stopping(SqlStore, "open_episode", number_attempted)
    stopping(SqlStore, "finish_episode", number_attempted)
    stopping(playing, "finish_recording", number_recorded)
    event.listen(Engine, "commit", committing)
    # Nothing is killed after the last episode, so nothing need be compiled for the fit.
    FinalFits.warm = lambda self, layout: None

    from animalcat.cli.main import main

    sys.argv = ["animalcat", *arguments]
    main()


async def play(path: str, session: str, name: str, file: Path) -> None:
    """Play a session to its end, whatever becomes of the server meanwhile.

    What the server acknowledges is written to a file at once, a line for each episode.
    """
    gate, process = Gate(path), uuid.uuid4().hex
    with file.open("a", buffering=1) as acknowledged:
        while True:
            address = gate.ask(where=True)
            async with grpc.aio.insecure_channel(address) as channel:
                stream = EvaluationStream(channel, process, AGENT)
                try:
                    await stream.open(session, name, None)
                    await _episodes(
                        stream, gate, lambda told: print(json.dumps(told), file=acknowledged)
                    )
                    return
                except AnimalcatError as error:
                    if error.code == "SESSION_OVER":
                        return
                    print(f"{error.code}: {error}", file=sys.stderr, flush=True)
                except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    pass
                finally:
                    stream.cancel()
            await asyncio.sleep(PAUSE_SECONDS)


async def _episodes(
    stream: EvaluationStream, gate: Gate, tell: Callable[[dict[str, Any]], None]
) -> None:
    rng, episode, total, step = np.random.default_rng(0), -1, 0.0, 0
    while True:
        frame = await stream.receive()
        if frame.HasField("session_end"):
            return
        if frame.HasField("episode_end"):
            end = frame.episode_end
            if not end.fault:
                tell({"episode": end.episode, "steps": end.step, "return": total + end.reward})
            gate.moment("end", end.episode)
            if end.episode >= EPISODES - 1:
                return
            continue
        if frame.HasField("episode_start"):
            start = frame.episode_start
            rng, episode, total, step = (
                np.random.default_rng(start.agent_seed),
                start.episode,
                0.0,
                0,
            )
            gate.moment("start", episode)
        else:
            total, step = total + frame.ask.reward, frame.ask.step
        gate.moment("step", episode, step)
        await stream.act(0, step, bytes([int(rng.choice(FORWARD))]))
        gate.moment("acted", episode, step)


class StoppingAgent(Agent):
    """The same agent for `animalcat session resume`; a subclass says where its files are."""

    socket = ""
    acknowledged = ""

    def __init__(self) -> None:
        """Ask for nothing yet."""
        self._gate = Gate(self.socket)
        self._episode, self._step = -1, 0

    def reset(self, info: EpisodeInfo) -> None:
        """Come to the end of one episode, if it was not broken off, and the start of the next."""
        if 0 <= self._episode < info.episode:
            with open(self.acknowledged, "a") as file:
                file.write(f"{json.dumps({'episode': self._episode, 'steps': self._step})}\n")
            self._gate.moment("end", self._episode)
        if info.episode >= EPISODES:
            sys.exit(1)  # all that is looked at is played
        self._rng = np.random.default_rng(info.seed)
        self._episode, self._step = info.episode, 0
        self._gate.moment("start", self._episode)

    def act(self, observation: Observation) -> int:
        """Come to a step."""
        if self._step:
            self._gate.moment("acted", self._episode, self._step - 1)
        self._gate.moment("step", self._episode, self._step)
        self._step += 1
        return int(self._rng.choice(FORWARD))


if __name__ == "__main__":
    role, socket_path, *rest = sys.argv[1:]
    if role == "server":
        serve(socket_path, rest)
    else:
        asyncio.run(play(socket_path, rest[0], rest[1], Path(rest[2])))
