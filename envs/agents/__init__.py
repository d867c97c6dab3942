"""Reference agents, and loading an agent from `builtin:NAME` or `path.py:Class`, with limits.

`base` is the contract of an agent and `load` loads one. `simple` has two agents that ignore
observations, `braitenberg` one that steers by its rays, `scout` one with a map and a memory, and
`planner` one that is shown the arena's true state. `limits` takes abilities away from any of them.
`fingerprint` is what an agent is beside its name; `watching` finds it out in its process, and
`objects` of an object of a notebook.
"""

from animalcat.envs.agents.base import Agent, EpisodeInfo
from animalcat.envs.agents.braitenberg import BraitenbergAgent
from animalcat.envs.agents.load import BUILTIN, AgentLoadError, load_agent, make_agent
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
    "make_agent",
]
