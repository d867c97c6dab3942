"""Computerised adaptive testing for agents in Animal-AI.

Measure an agent on a server, which `animalcat serve` starts:

    import animalcat

    class MyAgent:
        def reset(self, info): ...
        def act(self, observation): return 3  # forward

    with animalcat.connect("localhost:50051") as client:
        session = client.create_session(agent="mine", battery="navigation", max_episodes=20)
        client.evaluate(MyAgent(), session)
        for capability in client.get_session(session).capabilities:
            print(capability.name, capability.mean, capability.sd, capability.unit)

`connect` gives a `Client`, for programs and for notebooks; `aconnect` gives an `AsyncClient`, which
has the same methods as coroutines. `RemoteEnv` is a session as a Gymnasium environment; it raises
`SessionOver` at its end. `measure` measures an agent or a policy in this process, without a server.
What goes wrong is an `AnimalcatError`.

An agent is an `Agent` or an `AsyncAgent`: it is told an `EpisodeInfo`, and answers an
`Observation`, which an `ObservationSpec` with its `CameraSpec` and `RaySpec` describes; `Rays`
reads each `Ray` of it. `Actions` are several actions in one answer; a `Noted` answer has a `Note`
on it. `evaluate` gives an `EvaluationSummary` of each `PlayedEpisode`.

The other names are what a server tells: frozen dataclasses, documented in
`animalcat.values`.

Importing it makes `animalcat/Arena-v0` known to Gymnasium. The names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if not (Path(__file__).parent / "envs").is_dir():
    # A checkout that keeps no links, as on Windows: the folders stand beside this one.
    __path__.append(str(Path(__file__).parent.parent))

from animalcat.registering import register_with_gymnasium

if TYPE_CHECKING:
    from animalcat.client.async_client import AsyncClient, aconnect
    from animalcat.client.blocking_client import Client
    from animalcat.client.evaluation import AsyncAgent, EvaluationSummary, PlayedEpisode
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
    from animalcat.values import (
        Battery,
        Campaign,
        CampaignSpec,
        CapabilityStatus,
        Decision,
        Episode,
        EpisodeFooter,
        EpisodeHeader,
        Feature,
        Instance,
        Layout,
        Operation,
        Policy,
        RecordedStep,
        Session,
        SessionEvent,
        SessionSpec,
        Spent,
        StoppingRule,
        Verdict,
    )

__version__: str

__all__ = [
    "Actions",
    "Agent",
    "AgentFingerprint",
    "Allowance",
    "AnimalcatError",
    "Arena",
    "AsyncAgent",
    "AsyncClient",
    "Battery",
    "CameraSpec",
    "Campaign",
    "CampaignSpec",
    "CapabilityStatus",
    "Client",
    "Decision",
    "Episode",
    "EpisodeFooter",
    "EpisodeHeader",
    "EpisodeInfo",
    "EvaluationSummary",
    "Feature",
    "Instance",
    "Lab",
    "Layout",
    "Note",
    "Noted",
    "Observation",
    "ObservationSpec",
    "Operation",
    "PlayedEpisode",
    "Policy",
    "Ray",
    "RaySpec",
    "Rays",
    "RecordedStep",
    "RemoteEnv",
    "Result",
    "Session",
    "SessionEvent",
    "SessionOver",
    "SessionSpec",
    "Spent",
    "StoppingRule",
    "Verdict",
    "aconnect",
    "connect",
    "local",
    "measure",
]

_HOME = {
    "Actions": "envs.answers",
    "Agent": "envs.agents.base",
    "AgentFingerprint": "envs.agents.fingerprint",
    "Allowance": "envs.agents.base",
    "AnimalcatError": "errors",
    "AsyncAgent": "client.evaluation",
    "AsyncClient": "client.async_client",
    "CameraSpec": "envs.types",
    "Client": "client.blocking_client",
    "EpisodeInfo": "envs.agents.base",
    "EvaluationSummary": "client.evaluation",
    "Note": "envs.answers",
    "Noted": "envs.answers",
    "Observation": "envs.types",
    "ObservationSpec": "envs.types",
    "PlayedEpisode": "client.evaluation",
    "Ray": "envs.rays",
    "RaySpec": "envs.types",
    "Rays": "envs.rays",
    "RemoteEnv": "client.remote_env",
    "SessionOver": "client.remote_episodes",
    "aconnect": "client.async_client",
    "connect": "lab.lab",
    "local": "lab.lab",
    "Lab": "lab.lab",
    "Arena": "lab.arena",
    "Result": "lab.result",
    "measure": "lab.within",
}
"""Where a public name lives; what is not here is one of `animalcat.values`."""


register_with_gymnasium()


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used: layouts must not load gRPC."""
    if name == "__version__":
        from animalcat.protocol import version

        return version()
    if name not in __all__:
        raise AttributeError(f"module 'animalcat' has no attribute {name!r}")
    home = import_module(f"animalcat.{_HOME.get(name, 'values')}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    """What there is, also before it is loaded, for completion."""
    return sorted({*globals(), *__all__, "__version__"})
