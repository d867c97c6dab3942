"""Draws objects.png: what the simulator's camera shows of sixteen objects, each in an arena alone.

Run it where animalcat is installed: `python docs/pictures/objects.py docs/pictures/objects.png`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

from animalcat.arena_configs.loader import load_text
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import CameraSpec, ObservationSpec

SIDE, GAP, COLUMNS = 150, 4, 4
TWO_SECONDS, TEN_SECONDS = 33, 167
"""Decisions of three physics steps, of which 50 make a second."""
NO_ACTION = 0

BLUE = "colors: [!RGB {r: 60, g: 130, b: 200}]"
BROWN = "colors: [!RGB {r: 110, g: 70, b: 40}]"
GREY = "colors: [!RGB {r: 90, g: 100, b: 115}]"

OBJECTS: list[tuple[str, float, float, tuple[float, float, float], str, int]] = [
    ("Wall", 13, 30, (2, 2, 2), BLUE, TWO_SECONDS),
    ("Ramp", 13, 60, (3, 3, 3), BROWN, TWO_SECONDS),
    ("CylinderTunnel", 13.5, 30, (4, 3, 4), GREY, TWO_SECONDS),
    ("UBlock", 12, 30, (2, 1, 2), "", TWO_SECONDS),
    ("GoodGoal", 12, 0, (2, 2, 2), "", TWO_SECONDS),
    ("BadGoal", 12, 0, (2, 2, 2), "", TWO_SECONDS),
    ("DecayGoal", 12, 90, (2, 2, 2), "", TWO_SECONDS),
    ("RipenGoal", 12, 90, (2, 2, 2), "", TWO_SECONDS),
    ("DeathZone", 14, 0, (6, 1, 3), "", TWO_SECONDS),
    ("SpawnerTree", 16, 0, (1, 1, 1), "", TWO_SECONDS),
    ("SpawnerContainerShort", 11.5, 300, (1, 1, 1), "", TWO_SECONDS),
    ("SpawnerButton", 10.5, 20, (1, 1, 1), "", TWO_SECONDS),
    ("DecayGoal", 12, 90, (2, 2, 2), "", TEN_SECONDS),
    ("RipenGoal", 12, 90, (2, 2, 2), "", TEN_SECONDS),
    ("SignBoard", 12.5, 270, (3, 2, 1), "symbolNames: [u-turn-arrow]", TWO_SECONDS),
    ("SignBoard", 12.5, 270, (3, 2, 1), "symbolNames: ['7x7']", TWO_SECONDS),
]
"""Name, metres in z, yaw, size, what else the item says, and decisions until it is drawn."""

ARENA = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 0
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 8.5}}]
      rotations: [0]
    - !Item
      name: {name}
      positions: [!Vector3 {{x: 20, y: 0, z: {z}}}]
      rotations: [{yaw}]
      sizes: [!Vector3 {{x: {size[0]}, y: {size[1]}, z: {size[2]}}}]
      {more}
"""


def draw(
    name: str, z: float, yaw: float, size: tuple[float, ...], more: str, wait: int
) -> Image.Image:
    """What the agent sees of one object after some decisions without action."""
    text = ARENA.format(name=name, z=z, yaw=yaw, size=size, more=more)
    environment = SimEnvironment(ObservationSpec(CameraSpec(SIDE), None))
    try:
        step = environment.load(load_text(text, name).config.first, 0)
        for _ in range(wait):
            step = environment.step(NO_ACTION)
    finally:
        environment.close()
    assert step.observation.camera is not None
    return Image.fromarray(step.observation.camera)


def main(path: Path) -> None:
    """Draw all objects in rows of four, between white lines."""
    whole = COLUMNS * SIDE + (COLUMNS - 1) * GAP
    picture = Image.new("RGB", (whole, whole), "white")
    for place, one in enumerate(OBJECTS):
        row, column = divmod(place, COLUMNS)
        picture.paste(draw(*one), (column * (SIDE + GAP), row * (SIDE + GAP)))
    picture.save(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
