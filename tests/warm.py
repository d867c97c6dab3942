"""Compiles once, before the tests begin, what each of their processes would otherwise compile.

Numba keeps it beside the modules. In a fresh clone that is half a minute of work, which every
process that starts before it is done would repeat.
"""

from __future__ import annotations

import subprocess
import sys

from animalcat.arena_configs.loader import load_text
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.load import load_agent
from animalcat.envs.agents.planner.solving import solve
from animalcat.envs.backends import make_environment
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from animalcat.envs.warming import ARENA
from animalcat.service.host import warming


def agents() -> None:
    """Let the agents that compile something play an arena."""
    arena = load_text(ARENA, "warm").config.first
    solve(arena, 0)
    spec = ObservationSpec(CameraSpec(16), RaySpec(1))
    environment, agent = make_environment("sim", spec), load_agent("builtin:scout")
    try:
        step = environment.load(arena, 0)
        agent.reset(EpisodeInfo(0, 0, spec, 100))
        for _ in range(30):
            action = agent.act(step.observation)
            assert isinstance(action, int)
            step = environment.step(action)
    finally:
        environment.close()


def main(of: str) -> None:
    """Compile the half that concerns layouts, or the other one."""
    for part in warming.parts():
        if part.name.startswith("layout") == (of == "layouts"):
            part.use()
    if of != "layouts":
        agents()


def warm() -> None:
    """Compile both halves side by side."""
    halves = [
        subprocess.Popen([sys.executable, "-m", "tests.warm", of]) for of in ("layouts", "others")
    ]
    codes = [half.wait() for half in halves]
    if any(codes):
        raise RuntimeError("compiling ahead of the tests failed; the reason is above")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        warm()
