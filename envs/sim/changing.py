"""Goals that change while the arena is played: in size, or in value and colour."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.catalogue import SIZE_ADJUSTMENT
from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.arena_configs.tags import RAY_TAGS
from animalcat.envs.sim.physics import FLOOR_TOP
from animalcat.envs.sim.scene import Shape

if TYPE_CHECKING:
    import numpy.typing as npt

    from animalcat.envs.sim.scene import Scene
    from animalcat.envs.sim.stage import Prop, Stage
    from animalcat.envs.sim.vector import Vector

_IMMOVABLE: Final = RAY_TAGS.index("Immovable")
_LARGEST: Final = 8.0
_GLEAM: Final = 0.1
_DEEP: Final = 0.05
"""Metres that a ball may be in what keeps it from growing."""


class GrowingGoal:
    """A Grow or Shrink goal: its diameter is its value, and changes at every physics step.

    It gets its first diameter when Unity starts its script. From then on, after `delays` steps,
    each step adds the rate and multiplies by 0.999, until the final value is reached (section
    2.1). Which way it changes follows from the two values. Growth waits while it is `is_held`.
    """

    def __init__(self, stage: Stage, prop: Prop, *, late: bool) -> None:
        """Change by the values of the goal's item.

        Args:
            stage: The stage.
            prop: The goal.
            late: Whether its script starts only in the second step, as for `Physics`.
        """
        item = prop.thing.item
        self._stage, self._prop = stage, prop
        self._size = prop.thing.size.x
        first, final = self._size / SIZE_ADJUSTMENT, min(max(item.final_values[0], 0.0), _LARGEST)
        self._least, self._greatest = min(first, final), max(first, final)
        self._rate = math.copysign(item.change_rates[0], final - first or -1.0)
        self._wait = round(item.delays[0])
        self._script = _Script(late)

    def step(self) -> None:
        """Change for one physics step, if the delay is over and there is room."""
        body = self._prop.bodies[0]
        if not self._script.runs() or body not in self._stage.goals:
            return
        if self._script.starts():
            self._become(self._size)
        self._wait -= 1
        if self._wait >= 0 or (self._rate > 0 and is_held(self._stage, self._prop, self._rate)):
            return
        raw = min(max(self._size + self._rate, self._least), self._greatest)
        size = raw * SIZE_ADJUSTMENT
        if self._rate < 0:
            size = max(size, self._least * SIZE_ADJUSTMENT)
        if size != self._size:
            self._become(size)

    def _become(self, size: float) -> None:
        self._size = size
        self._stage.resize(self._prop, size)
        self._stage.value(self._prop, size)


class AgingGoal:
    """A Decay or Ripen goal: its value, and its colour with it, changes at every physics step.

    It gets its size when Unity starts its script. From then on, after `delays` steps (rounded),
    each one adds the rate until the final value is reached, in float32 with one rounding an
    operation. A RipenGoal loses value like a DecayGoal, as build 4.3.1 ships it; a final value
    above the initial one becomes that one.
    Its emission goes from one colour to the other in linear light, a little brighter on the way.
    """

    def __init__(self, stage: Stage, prop: Prop, *, late: bool) -> None:
        """Change by the values of the goal's item; arguments as for `GrowingGoal`."""
        kind, item = prop.thing.kind, prop.thing.item
        self._stage, self._prop = stage, prop
        self._value = np.float32(prop.thing.reward)
        self._final = np.float32(min(max(item.final_values[0], 0.0), prop.thing.reward))
        self._rate = np.float32(-min(abs(item.change_rates[0]), kind.size_max.x))
        self._span = self._value - self._final
        self._wait = round(item.delays[0])
        self._done = False
        self._script = _Script(late)
        self._colors = tuple(zip(kind.color, kind.end_color or kind.color, strict=True))

    def step(self) -> None:
        """Change for one physics step, if the delay is over."""
        prop = self._prop
        if not self._script.runs() or prop.bodies[0] not in self._stage.goals:
            return
        if self._script.starts():
            self._stage.resize(prop, prop.thing.size.x)
        self._wait -= 1
        if self._wait >= 0 or self._done:
            return
        self._value = max(self._value + self._rate, self._final)
        self._done = self._value == self._final
        self._stage.value(prop, float(self._value))
        left = float((self._value - self._final) / self._span) if self._span > 0 else 0.0
        between = _GLEAM * (0.5 - abs(left - 0.5))
        mixed = [left * first + (1.0 - left) * last + between for first, last in self._colors]
        self._stage.scene.color[prop.rows[0]] = (*mixed, left)


class _Script:
    """When Unity runs a script: what a reset builds is started only by the second step."""

    def __init__(self, late: bool) -> None:
        self._late, self._started = late, False

    def runs(self) -> bool:
        """Whether it runs in this step."""
        late, self._late = self._late, False
        return not late

    def starts(self) -> bool:
        """Whether it runs for the first time."""
        started, self._started = self._started, True
        return not started


def is_held(stage: Stage, prop: Prop, rate: float) -> bool:
    """Whether a ball may not grow.

    So it is when something is right above it, or when it is deeper than 0.05 m in the floor, a wall
    or something immovable.

    Args:
        stage: The stage.
        prop: The ball.
        rate: Metres by which it wants to grow.
    """
    scene, row = stage.scene, prop.rows[0]
    x, y, z = stage.physics.position(prop.bodies[0])
    radius = float(scene.half[row, 0])
    inner = radius - _DEEP
    if min(x, z, y - FLOOR_TOP) < inner or max(x, z) > ARENA_SIDE - inner:
        return True
    others = scene.active & ~scene.overlap_ok
    others[row] = False
    immovable = others & (scene.tag == _IMMOVABLE)
    within = _gaps(scene, (x, y, z))[immovable] < inner
    above = _gaps(scene, (x, y + radius + rate, z))[others] <= 0.0
    return bool(within.any() or above.any())


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
