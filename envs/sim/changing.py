"""Goals that change while the arena is played: in size, or in value and colour."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.catalogue import RAY_TAGS, SIZE_ADJUSTMENT
from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.envs.sim.physics import CONTACT_GAP
from animalcat.envs.sim.scene import Shape

if TYPE_CHECKING:
    import numpy.typing as npt

    from animalcat.envs.sim.scene import Scene
    from animalcat.envs.sim.stage import Prop, Stage
    from animalcat.envs.sim.vector import Vector

_IMMOVABLE: Final = RAY_TAGS.index("Immovable")
_LARGEST: Final = 8.0
_GLEAM: Final = 0.1


class Growing:
    """A Grow or Shrink goal: its diameter is its value, and changes at every physics step.

    After `delays` steps each one adds the rate and multiplies by 0.999, until the final value is
    reached (section 2.1). Growth waits while something is right above the goal or the goal
    touches an arena wall or something immovable. The floor is tagged like the walls, yet does
    not count (inferred: no goal could grow that lies on it).
    """

    def __init__(self, stage: Stage, prop: Prop) -> None:
        """Change from now on, by the values of the goal's item."""
        item = prop.thing.item
        self._stage, self._prop = stage, prop
        self._size = prop.thing.size.x
        self._rate = item.change_rates[0]
        self._final = min(max(item.final_values[0], 0.0), _LARGEST)
        self._wait = item.delays[0]
        self._done = False

    def step(self) -> None:
        """Change for one physics step, if the delay is over and there is room."""
        self._wait -= 1
        body = self._prop.bodies[0]
        if self._wait >= 0 or self._done or body not in self._stage.goals:
            return
        if self._rate > 0 and held(self._stage, self._prop.rows[0], body):
            return
        raw = self._size + self._rate
        self._done = raw >= self._final if self._rate > 0 else raw <= self._final
        self._size = (self._final if self._done else raw) * SIZE_ADJUSTMENT
        self._stage.resize(self._prop, self._size)


class Aging:
    """A Decay or Ripen goal: its value, and its colour with it, changes at every physics step.

    After `delays` steps (rounded) each one adds the rate until the final value is reached, in
    float32 with one rounding an operation. A RipenGoal loses value like a DecayGoal, as build
    4.3.1 ships it; a final value above the initial one becomes that one.
    Its emission goes from one colour to the other in linear light, a little brighter on the way.
    """

    def __init__(self, stage: Stage, prop: Prop) -> None:
        """Change from now on, by the values of the goal's item."""
        kind, item = prop.thing.kind, prop.thing.item
        self._stage, self._prop = stage, prop
        self._value = np.float32(prop.thing.reward)
        self._final = np.float32(min(max(item.final_values[0], 0.0), prop.thing.reward))
        self._rate = np.float32(-min(abs(item.change_rates[0]), kind.size_max.x))
        self._span = self._value - self._final
        self._wait = round(item.delays[0])
        self._done = False
        self._colors = tuple(zip(kind.color, kind.end_color or kind.color, strict=True))

    def step(self) -> None:
        """Change for one physics step, if the delay is over."""
        self._wait -= 1
        body = self._prop.bodies[0]
        if self._wait >= 0 or self._done or body not in self._stage.goals:
            return
        self._value = max(self._value + self._rate, self._final)
        self._done = self._value == self._final
        goals = self._stage.goals
        goals[body] = replace(goals[body], reward=float(self._value))
        left = float((self._value - self._final) / self._span) if self._span > 0 else 0.0
        between = _GLEAM * (0.5 - abs(left - 0.5))
        mixed = [left * first + (1.0 - left) * last + between for first, last in self._colors]
        self._stage.scene.color[self._prop.rows[0]] = (*mixed, left)


def held(stage: Stage, row: int, body: int) -> bool:
    """Whether a ball has something right above it, or touches a wall or an immovable object.

    Args:
        stage: The stage.
        row: The ball's row of the scene.
        body: Index of its body.
    """
    scene = stage.scene
    x, y, z = stage.physics.position(body)
    radius = float(scene.half[row, 0])
    if min(x, z) - radius < CONTACT_GAP or max(x, z) + radius > ARENA_SIDE - CONTACT_GAP:
        return True
    others = scene.active & ~scene.overlap_ok
    others[row] = False
    immovable = others & (scene.tag == _IMMOVABLE)
    touched = _gaps(scene, (x, y, z))[immovable] < radius + CONTACT_GAP
    above = _gaps(scene, (x, y + radius + CONTACT_GAP, z))[others] <= 0.0
    return bool(touched.any() or above.any())


def _gaps(scene: Scene, point: Vector) -> npt.NDArray[np.float32]:
    """Distance of a point to each row's solid, in metres; wedges and tunnels count as their box.

    The inside of a tunnel is free: its distance is that to the shell.
    """
    away = np.array(point, np.float32) - scene.center
    local = (scene.rotation * away[:, :, None]).sum(1)
    ball = np.sqrt((away**2).sum(1)) - scene.half[:, 0]
    box = np.sqrt((np.maximum(np.abs(local) - scene.half, 0.0) ** 2).sum(1))
    along = np.maximum(np.abs(local[:, 2]) - scene.half[:, 2], 0.0)
    around = np.abs(np.hypot(local[:, 0], local[:, 1]) - scene.half[:, 0])
    shell = np.hypot(along, around)
    kinds = [scene.kind == Shape.SPHERE, scene.kind == Shape.SHELL]
    return np.select(kinds, [ball, shell], box).astype(np.float32)
