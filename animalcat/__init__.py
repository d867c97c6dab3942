"""Computerised adaptive testing for agents in Animal-AI.

Importing it makes `animalcat/Arena-v0` known to Gymnasium.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if not (Path(__file__).parent / "envs").is_dir():
    # A checkout that keeps no links, as on Windows: the folders stand beside this one.
    __path__.append(str(Path(__file__).parent.parent))

from animalcat.envs.register import register_environments

if TYPE_CHECKING:
    from animalcat.client import Client, connect
    from animalcat.envs.agents.base import Agent, EpisodeInfo
    from animalcat.envs.types import CameraSpec, Observation, ObservationSpec, RaySpec
    from animalcat.errors import AnimalcatError
    from animalcat.evaluation import EvaluationSummary, PlayedEpisode
    from animalcat.remote_env import RemoteEnv
    from animalcat.remote_episodes import SessionOver

__version__: str

__all__ = [
    "Agent",
    "AnimalcatError",
    "CameraSpec",
    "Client",
    "EpisodeInfo",
    "EvaluationSummary",
    "Observation",
    "ObservationSpec",
    "PlayedEpisode",
    "RaySpec",
    "RemoteEnv",
    "SessionOver",
    "connect",
]

_HOME = {
    "Agent": "envs.agents.base",
    "AnimalcatError": "errors",
    "CameraSpec": "envs.types",
    "Client": "client",
    "EpisodeInfo": "envs.agents.base",
    "EvaluationSummary": "evaluation",
    "Observation": "envs.types",
    "ObservationSpec": "envs.types",
    "PlayedEpisode": "evaluation",
    "RaySpec": "envs.types",
    "RemoteEnv": "remote_env",
    "SessionOver": "remote_episodes",
    "connect": "client",
}


register_environments()


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used: layouts must not load gRPC."""
    if name == "__version__":
        return version("animalcat")
    if name not in _HOME:
        raise AttributeError(f"module 'animalcat' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"animalcat.{_HOME[name]}"), name)
    return value
