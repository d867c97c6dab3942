"""Computerised adaptive testing for agents in Animal-AI.

Measure an agent here, and look at what it can do:

    import animalcat as ac

    class Forward:
        def reset(self, info): ...
        def act(self, observation): return 3

    arenas = {f"{d} m": ac.Arena.goal(distance=d, angle=4) for d in range(3, 36, 4)}
    with ac.local("study") as lab:
        result = lab.measure(Forward(), lab.battery(arenas, name="mine"), max_episodes=20)
    print(result)

`local` gives a `Lab` with a private server, `connect` one with a server elsewhere, and `measure`
measures in this process, without a server. `Arena` makes arenas of a few words, and a `Result` has
what was found out. docs/python.md has the rest by task.

An agent is an `Agent`, or any object like it: it is told an `EpisodeInfo` with its `Allowance`, and
answers an `Observation`, which an `ObservationSpec` with its `RaySpec` and `CameraSpec` describes;
`Rays` reads each `Ray` of it. `Actions` are several actions in one answer; a `Noted` answer has a
`Note` on it. An `AgentFingerprint` tells versions of an agent apart.

`RemoteEnv` is a session as a Gymnasium environment; it raises `SessionOver` at its end. `Client`
has the calls of a server alone, and `aconnect` an `AsyncClient` with the same ones as coroutines.
What goes wrong is an `AnimalcatError`.

`layouts` fits layouts to tables and tests adaptively, `plots` draws, `data` looks after stores, and
`values` has what servers tell: frozen dataclasses. Importing animalcat makes `animalcat/Arena-v0`
known to Gymnasium. All else loads when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if not (Path(__file__).parent / "envs").is_dir():
    # A checkout that keeps no links, as on Windows: the folders stand beside this one.
    __path__.append(str(Path(__file__).parent.parent))

from animalcat.extending.registering import register_with_gymnasium

if TYPE_CHECKING:
    from animalcat import data as data
    from animalcat import layouts as layouts
    from animalcat import plots as plots
    from animalcat import values as values
    from animalcat.client.async_client import AsyncClient, aconnect
    from animalcat.client.blocking_client import Client
    from animalcat.client.remote_env import RemoteEnv
    from animalcat.client.remote_episodes import SessionOver
    from animalcat.envs.agents.base import Agent, Allowance, EpisodeInfo
    from animalcat.envs.agents.fingerprint import AgentFingerprint
    from animalcat.envs.answers import Actions, Note, Noted
    from animalcat.envs.rays import Ray, Rays
    from animalcat.envs.types import CameraSpec, Observation, ObservationSpec, RaySpec
    from animalcat.errors import AnimalcatError
    from animalcat.lab.arena import Arena
    from animalcat.lab.lab import Lab, connect, local
    from animalcat.lab.result import Result
    from animalcat.lab.within import measure

__version__: str

__all__ = [  # noqa: RUF022  in the order in which they are met
    "local",
    "connect",
    "measure",
    "Arena",
    "Lab",
    "Result",
    "Agent",
    "EpisodeInfo",
    "Allowance",
    "Observation",
    "ObservationSpec",
    "RaySpec",
    "CameraSpec",
    "Rays",
    "Ray",
    "Actions",
    "Note",
    "Noted",
    "AgentFingerprint",
    "RemoteEnv",
    "SessionOver",
    "Client",
    "AsyncClient",
    "aconnect",
    "AnimalcatError",
]

_HOME = {
    "local": "lab.lab",
    "connect": "lab.lab",
    "Arena": "lab.arena",
    "Lab": "lab.lab",
    "Result": "lab.result",
    "Agent": "envs.agents.base",
    "EpisodeInfo": "envs.agents.base",
    "Allowance": "envs.agents.base",
    "Observation": "envs.types",
    "ObservationSpec": "envs.types",
    "RaySpec": "envs.types",
    "CameraSpec": "envs.types",
    "Rays": "envs.rays",
    "Ray": "envs.rays",
    "Actions": "envs.answers",
    "Note": "envs.answers",
    "Noted": "envs.answers",
    "AgentFingerprint": "envs.agents.fingerprint",
    "RemoteEnv": "client.remote_env",
    "SessionOver": "client.remote_episodes",
    "Client": "client.blocking_client",
    "AsyncClient": "client.async_client",
    "aconnect": "client.async_client",
    "measure": "lab.within",
    "AnimalcatError": "errors",
}
"""Where each name lives."""
_PACKAGES = ("data", "layouts", "plots", "values")
"""Packages with public names of their own, as `animalcat.layouts.fit`."""


register_with_gymnasium()


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used: layouts must not load gRPC."""
    if name == "__version__":
        from animalcat.wire.protocol import version

        return version()
    if name not in _HOME and name not in _PACKAGES:
        raise AttributeError(f"module 'animalcat' has no attribute {name!r}")
    from animalcat.extending.installing import needing

    if name in _PACKAGES:
        with needing(f"animalcat.{name}", "server"):
            return import_module(f"animalcat.{name}")
    with needing(f"animalcat.{name}", "server"):
        home = import_module(f"animalcat.{_HOME[name]}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    """What there is, for completion: the public names, and not where they live."""
    return [*__all__, *_PACKAGES, "__version__"]
