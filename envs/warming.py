"""Makes a process ready to simulate: imports what that needs, and compiles it by using it once."""

from __future__ import annotations

from functools import cache
from typing import Final

from animalcat.arena_configs.loader import load_text
from animalcat.envs.backends import make_environment
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec

ARENA: Final = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 100
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GoodGoalBounce
      positions: [!Vector3 {x: 20, y: 0, z: 25}]
    - !Item
      name: Wall
      positions: [!Vector3 {x: 10, y: 0, z: 20}]
    - !Item
      name: CylinderTunnel
      positions: [!Vector3 {x: 30, y: 0, z: 20}]
    - !Item
      name: SignPosterboard
      positions: [!Vector3 {x: 20, y: 0, z: 32}]
      symbolNames: ["left-arrow"]
    - !Item
      name: SpawnerTree
      positions: [!Vector3 {x: 12, y: 0, z: 32}]
"""
"""An arena with bodies of every shape that sensors distinguish, and a picture."""


def warm(camera: bool, rays: bool) -> None:
    """Make this process ready for sensors, unless it is; without any, for the simulator alone."""
    if camera:
        _warm(ObservationSpec(CameraSpec(16), None))
    if rays or not camera:
        _warm(ObservationSpec(None, RaySpec(1)))


@cache
def _warm(spec: ObservationSpec) -> None:
    play_briefly(spec)


def play_briefly(spec: ObservationSpec) -> None:
    """Play a few steps in an arena."""
    environment = make_environment("sim", spec)
    try:
        environment.load(load_text(ARENA, "warm").config.first, 0)
        for action in (3, 4, 5):
            environment.step(action)
    finally:
        environment.close()
