"""An `animalai` client that plays two builds in turns and prints how quick each was.

`python -m animalcat.benchmarks.unity_client REQUEST`: a JSON object with `builds`, `arena`,
`options` of `AnimalAIEnvironment`, `chunks` and `steps`; prints a list of rates for each build.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

BEHAVIOUR: Final = "AnimalAI?team=0"


def main() -> None:
    """Measure as the command line says."""
    request = json.loads(sys.argv[1])
    environment: Any = import_module("animalai.environment").AnimalAIEnvironment
    rates: list[list[float]] = [[] for _ in request["builds"]]
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
            for client, seen in zip(clients, rates, strict=True):
                seen.append(_rate(client, actions))
    print(json.dumps([seen[1:] for seen in rates]))  # the first warms up


def _rate(client: Any, actions: npt.NDArray[np.int32]) -> float:
    """Steps a second."""
    action_tuple: Any = import_module("mlagents_envs.base_env").ActionTuple
    began = time.perf_counter()
    for action in actions:
        decisions, _ = client.get_steps(BEHAVIOUR)
        client.set_actions(BEHAVIOUR, action_tuple(discrete=action[: len(decisions)]))
        client.step()
    return len(actions) / (time.perf_counter() - began)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    main()
