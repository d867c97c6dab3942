"""Reference agents, and loading an agent from `builtin:NAME` or `path.py:Class`."""

from animalcat.envs.agents.base import Agent, EpisodeInfo
from animalcat.envs.agents.braitenberg import BraitenbergAgent
from animalcat.envs.agents.load import BUILTIN, AgentLoadError, load_agent
from animalcat.envs.agents.simple import ForwardAgent, RandomAgent

__all__ = [
    "BUILTIN",
    "Agent",
    "AgentLoadError",
    "BraitenbergAgent",
    "EpisodeInfo",
    "ForwardAgent",
    "RandomAgent",
    "load_agent",
]
