"""A worker whose arena is a line: the agent moves on it, and one action makes it misbehave.

Run as a program it serves a socket as `animalcat.envs.worker` does.
"""

from __future__ import annotations

import os
import socket
import sys
import time

import numpy as np

from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.envs.types import EndedBy, Environment, Observation, ObservationSpec, Phase, Step
from animalcat.envs.worker import serve

LOOP, WORK, DIE, HANG, RAISE = 1, 2, 6, 7, 8
"""Actions that a backend may be brought down by."""
WORK_SECONDS = 1.5
"""CPU time of the action that works, as a compiler does."""
GOAL = 5
"""Steps to the right that reach the goal."""


class PointEnvironment:
    """Action 3 moves one metre forward; the goal is `GOAL` metres off."""

    def __init__(self, spec: ObservationSpec) -> None:
        self.spec = spec
        self._at = 0
        self._seed = 0

    def load(self, arena: Arena, seed: int) -> Step:
        if arena.pass_mark < 0:
            raise ArenaError("the pass mark is negative")
        self._at, self._seed = 0, seed
        return Step(Phase.FIRST, 0.0, None, self._see())

    def step(self, action: int) -> Step:
        if action == DIE:
            print("dying now", file=sys.stderr, flush=True)
            os._exit(7)
        while action == LOOP:
            pass
        if action == WORK:
            end = time.process_time() + WORK_SECONDS
            while time.process_time() < end:
                pass
        if action == HANG:
            time.sleep(60)
        if action == RAISE:
            raise RuntimeError("the backend is upset")
        self._at += action == 3
        if self._at == GOAL:
            return Step(Phase.LAST, 1.0, EndedBy.GOAL, self._see())
        return Step(Phase.MID, -0.1, None, self._see())

    def close(self) -> None:
        pass

    def _see(self) -> Observation:
        rng = np.random.default_rng([self._seed, self._at])
        rays, camera = self.spec.rays, self.spec.camera
        return Observation(
            health=100.0 - self._at / 3,
            velocity=rng.random(3, dtype=np.float32),
            position=np.array([0, 0, self._at], np.float32),
            rays=rng.random(rays.size, dtype=np.float32) if rays else None,
            camera=rng.integers(0, 256, camera.shape, np.uint8) if camera else None,
        )


def make(backend: str, spec: ObservationSpec) -> Environment:
    if backend != "point":
        raise ValueError(f"no backend {backend!r}")
    return PointEnvironment(spec)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[2])) as connection:
        serve(connection, make)
