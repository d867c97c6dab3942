"""An `animalai` client that plays two builds in turns and prints how quick each was.

`python -m benchmarks.unity_client REQUEST`: a JSON object with `builds`, `arena`,
`options` of `AnimalAIEnvironment`, `chunks` and `steps`; prints for each build `rates` (steps a
second, one for each chunk) and `cpu` (seconds a step, client and build together). For Linux.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

BEHAVIOUR: Final = "AnimalAI?team=0"


def main() -> None:
    """Measure as the command line says."""
    request = json.loads(sys.argv[1])
    environment: Any = import_module("animalai.environment").AnimalAIEnvironment
    chunks: list[list[Chunk]] = [[] for _ in request["builds"]]
    with ExitStack() as opened:
        clients: list[Any] = []
        for build in request["builds"]:
            clients.append(
                environment(
                    file_name=build,
                    arenas_configurations=request["arena"],
                    base_port=_free_port(),
                    **request["options"],
                )
            )
            opened.callback(clients[-1].close)
        chance = np.random.default_rng(0)
        for _ in range(request["chunks"] + 1):
            actions = chance.integers(3, size=(request["steps"], 1, 2), dtype=np.int32)
            for client, played in zip(clients, chunks, strict=True):
                played.append(_play(client, actions))
    told: list[dict[str, Any]] = []
    for played in chunks:
        counted = played[1:]  # the first warms up
        rates = [request["steps"] / chunk.seconds for chunk in counted]
        cpu = sum(chunk.cpu for chunk in counted) / (request["steps"] * len(counted))
        told.append({"rates": rates, "cpu": cpu})
    print(json.dumps(told))


class Chunk(NamedTuple):
    """Some steps: how long they took, and what they cost in CPU, both in seconds."""

    seconds: float
    cpu: float


def _play(client: Any, actions: npt.NDArray[np.int32]) -> Chunk:
    action_tuple: Any = import_module("mlagents_envs.base_env").ActionTuple
    cpu, began = _cpu(client), time.perf_counter()
    for action in actions:
        decisions, _ = client.get_steps(BEHAVIOUR)
        client.set_actions(BEHAVIOUR, action_tuple(discrete=action[: len(decisions)]))
        client.step()
    return Chunk(time.perf_counter() - began, _cpu(client) - cpu)


def _cpu(client: Any) -> float:
    """Seconds of CPU that this process and the client's build have taken."""
    # The clock that Linux's clock_getcpuclockid(3) gives for another process.
    return time.process_time() + time.clock_gettime((~client._process.pid << 3) | 2)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    main()
