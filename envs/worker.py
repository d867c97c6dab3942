"""Holds one environment in a separate process, behind a socket; `worker_client` drives it.

The parent makes a pair of connected unix sockets and passes the file descriptor of one end. The
worker ends when the other end is closed, so it never outlives its parent.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.arena_configs.sequence import merge_arenas
from animalcat.envs.backends import plugin_versions
from animalcat.envs.forks import rename, serve_forks
from animalcat.envs.messages import HEADER, MessageKind, pack_steps, spec_from_json
from animalcat.envs.places import watch, watchable
from animalcat.envs.pulse import Pulse
from animalcat.envs.types import Environment, ObservationSpec, Phase, Step

GRACE_SECONDS: Final = 3.0
"""How long closing the environment may take when the parent is gone."""
COMM: Final = "animalcat-sim"
"""What the system calls a worker, for example in `ps -o comm`."""
_SPIN_SECONDS: Final = 0.0005
"""How long to poll for the next request before sleeping."""


class PlayEpisode(Protocol):
    """Plays an episode with its agent, see `animalcat.service.session.player`."""

    def __call__(
        self, connection: socket.socket, environment: Environment, last: Step, terms: bytes
    ) -> bytes:
        """Play until the episode ends, the agent leaves, or the parent stops it.

        Args:
            connection: To the parent; OFFERED and ASK are sent over it.
            environment: In an episode.
            last: The latest step of that.
            terms: Body of the request.

        Returns:
            Body of the answer PLAYED.
        """
        ...


def serve(
    connection: socket.socket,
    make: Callable[[str, ObservationSpec], Environment],
    play: PlayEpisode | None = None,
) -> None:
    """Answer requests until the other side closes.

    Args:
        connection: A connected stream socket.
        make: Makes the environment from a backend's name and a specification.
        play: Answers PLAY; None where nobody asks for it.
    """
    environment: Environment | None = None
    last: Step | None = None
    try:
        while (frame := receive(connection)) is not None:
            kind, body = frame
            if kind in (MessageKind.RECALL, MessageKind.STOP):
                continue  # the play had ended by itself, and PLAYED was on its way
            try:
                if kind is MessageKind.OPEN:
                    request = json.loads(body)
                    if environment is not None:
                        environment.close()
                    created = make(request["backend"], spec_from_json(request["spec"]))
                    environment = watchable(created)
                if kind is MessageKind.PLAY and play and environment and last:
                    answer = MessageKind.PLAYED, play(connection, environment, last, body)
                else:
                    answer, steps = _answer(environment, kind, body)
                    last = steps[-1] if steps else None
            except Exception as error:  # noqa: BLE001  whatever a backend raises is the answer
                answer = MessageKind.ERROR, _error(error)
            send(connection, *answer)
    except (BrokenPipeError, ConnectionResetError):
        pass
    finally:
        if environment is not None:
            environment.close()


def run(
    make_play: Callable[[Pulse], PlayEpisode] | None = None, argv: Sequence[str] | None = None
) -> None:
    """Serve the socket whose descriptor is given on the command line, or fork processes that do.

    Args:
        make_play: Makes what answers PLAY.
        argv: Arguments; None for those of the program.
    """
    parser = argparse.ArgumentParser(prog="animalcat.envs.worker", description=__doc__)
    parser.add_argument("--fd", type=int, help="file descriptor of the socket")
    parser.add_argument("--pulse", type=int, help="file descriptor of the pulse")
    parser.add_argument("--forks", type=int, help="be the fork server of this file descriptor")
    arguments = parser.parse_args(argv)
    # Ctrl-C in the terminal reaches the whole process group; the parent decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if arguments.forks is not None:
        from animalcat.envs.warming import warm

        with socket.socket(fileno=arguments.forks) as connection:
            serve_forks(connection, partial(_work, make_play), warm)
    else:
        _work(make_play, arguments.fd, arguments.pulse)


def _work(make_play: Callable[[Pulse], PlayEpisode] | None, fd: int, pulse: int) -> None:
    # The simulator is imported only where it is played: not by who imports this module.
    from animalcat.envs.backends import make_environment

    rename(COMM)
    with suppress(OSError):  # where memory runs out, the kernel ends a simulator before the server
        Path("/proc/self/oom_score_adj").write_text("300")
    with socket.socket(fileno=fd) as connection:
        threading.Thread(target=_end_with_parent, args=[connection.fileno()], daemon=True).start()
        serve(connection, make_environment, make_play and make_play(Pulse(pulse)))


def _end_with_parent(fd: int) -> None:
    """End this process shortly after its parent, even if its environment is stuck in a step."""
    poll = select.poll()
    poll.register(fd, select.POLLHUP)
    poll.poll()
    time.sleep(GRACE_SECONDS)
    os._exit(1)


def _answer(
    environment: Environment | None, kind: MessageKind, body: bytes
) -> tuple[tuple[MessageKind, bytes], list[Step]]:
    """The answer to a request, and the steps that it holds."""
    if environment is None:
        raise RuntimeError("no environment is open")
    steps: list[Step] = []
    if kind is MessageKind.OPEN:
        # Only backends that use software outside this installation have versions of their own.
        own = getattr(environment, "versions", {})
        versions = {**plugin_versions(json.loads(body)["backend"]), **own}
        return (MessageKind.DONE, json.dumps(versions).encode()), []
    if kind is MessageKind.LOAD:
        request = json.loads(body)
        steps = [_begin(environment, request["arena"], request["seed"])]
        watch(environment, [MarkedPlace(*place) for place in request["places"]])
    elif kind is MessageKind.STEP:
        for action in body:
            steps.append(environment.step(action))
            if steps[-1].phase is Phase.LAST:
                break
    else:
        raise RuntimeError(f"{kind.name} is not asked for here")
    return (MessageKind.STEPS, pack_steps(steps)), steps


def _begin(environment: Environment, text: str, seed: int) -> Step:
    """Begin an episode in an arena."""
    return environment.load(merge_arenas(load_text(text, "worker").config), seed)


def _error(error: Exception) -> bytes:
    message = f"{type(error).__name__}: {error}"
    return json.dumps({"arena": isinstance(error, ArenaError), "message": message}).encode()


def send(connection: socket.socket, kind: MessageKind, body: bytes) -> None:
    """Send a message."""
    connection.sendall(HEADER.pack(len(body), kind) + body)


def receive(connection: socket.socket) -> tuple[MessageKind, bytes] | None:
    """The next message; None when the other side has closed."""
    _await_a_moment(connection)
    header = _receive_exactly(connection, HEADER.size)
    if header is None:
        return None
    length, kind = HEADER.unpack(header)
    body = _receive_exactly(connection, length)
    return None if body is None else (MessageKind(kind), body)


def _await_a_moment(connection: socket.socket) -> None:
    """Poll for the next request for a moment before sleeping.

    Waking a sleeping process, above all on a virtual machine, takes longer than simulating a
    decision; the next action of a quick agent arrives before that.
    """
    end = time.perf_counter() + _SPIN_SECONDS
    while time.perf_counter() < end:
        try:
            connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            os.sched_yield()
        else:
            return


def _receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    data = connection.recv(size) if size else b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            return None
        data += more
    return data


if __name__ == "__main__":
    run()
