"""A map of an episode as it is played: everything where it is at a step, and the agent's path."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.arena_configs.placement import PlacedObject
from animalcat.envs.state import Column
from animalcat.envs.types import Step
from animalcat.maps.shapes import AGENT, FLOOR, Colour, Shape, State, of_state, of_things

Frame: TypeAlias = npt.NDArray[np.uint8]

PANEL: Final = 336
"""Side of the map, in pixels."""
_SMALL: Final = 210
"""The same of a map that stands for a whole episode: viewers of logs cut off what is higher."""
_FINE: Final = 2
"""It is drawn so many times larger, so that its lines are smooth."""
_EDGE: Final = 0.6
"""Metres around the arena."""
_STILL: Final = 0.01
"""Metres by which something may move before all is drawn anew."""
_LINE: Final[Colour] = (40, 40, 40)


class Map:
    """The arena from above, with the agent's path so far."""

    def __init__(self, colour_of: Callable[[str], Colour]) -> None:
        """Draw nothing yet.

        Args:
            colour_of: The colour of objects with a tag.
        """
        self._colour_of = colour_of
        self._rows: State | None = None
        self._ground = _ground(())
        self._drawn = np.array(self._ground)
        self._path: list[tuple[float, float]] = []

    def draw(self, step: Step, shown: Frame) -> None:
        """Draw everything where it is at a step into a picture, (PANEL, PANEL, 3)."""
        state = step.observation.state
        x, _, z = map(float, step.observation.position)
        here = _pixel(x, z)
        self._path.append(here)
        if state is not None and _has_moved(self._rows, state[1:]):
            self._rows = state[1:].copy()
            self._ground = _ground(of_state(self._rows, self._colour_of))
            if len(self._path) > 1:
                ImageDraw.Draw(self._ground).line(self._path, fill=AGENT, width=2)
            self._drawn = np.array(self._ground)
        elif len(self._path) > 1:
            ImageDraw.Draw(self._ground).line(self._path[-2:], fill=AGENT, width=2)
            self._copy(self._ground, _box(self._path[-2:], 3))
        shown[:] = self._drawn
        box = _box([here], round(2.5 * _scale(1)))
        patch = self._ground.crop(box)
        brush = ImageDraw.Draw(patch)
        centre = (here[0] - box[0], here[1] - box[1])
        if state is not None:
            turn = state[0, Column.ROTATION : Column.ROTATION + 9]
            tip = _pixel(x + 1.8 * float(turn[2]), z + 1.8 * float(turn[8]))
            brush.line([centre, (tip[0] - box[0], tip[1] - box[1])], fill=AGENT, width=3)
        radius = 0.5 * _scale(1) + 1.0
        brush.ellipse(_around(centre, radius), fill=AGENT, outline=(255, 255, 255))
        shown[box[1] : box[3], box[0] : box[2]] = np.asarray(patch)

    def _copy(self, image: Image.Image, box: tuple[int, int, int, int]) -> None:
        self._drawn[box[1] : box[3], box[0] : box[2]] = np.asarray(image.crop(box))


def _box(points: list[tuple[float, float]], margin: int) -> tuple[int, int, int, int]:
    """The pixels around some points, within the map."""
    xs, ys = zip(*points, strict=True)
    low, high = (min(xs), min(ys)), (max(xs), max(ys))
    left, top = (min(PANEL - 1, max(0, int(one) - margin)) for one in low)
    right, bottom = (max(1, min(PANEL, int(one) + margin + 1)) for one in high)
    return left, top, max(right, left + 1), max(bottom, top + 1)


def _has_moved(before: State | None, now: State) -> bool:
    return (
        before is None or before.shape != now.shape or bool((np.abs(before - now) > _STILL).any())
    )


def draw_walk(things: Iterable[PlacedObject], path: Sequence[tuple[float, float]]) -> bytes:
    """Draw where things are at the start, and the way that an agent took: a PNG.

    Args:
        things: What was placed.
        path: Where the agent was, x and z in metres.
    """
    image = _ground(of_things(things))
    brush = ImageDraw.Draw(image)
    line = [_pixel(x, z) for x, z in path]
    if len(line) > 1:
        brush.line(line, fill=AGENT, width=2)
    for at in line[-1:]:
        brush.ellipse(_around(at, 0.5 * _scale(1) + 1.0), fill=AGENT, outline=(255, 255, 255))
    stored = io.BytesIO()
    small = image.resize((_SMALL, _SMALL), Image.Resampling.LANCZOS)
    small.save(stored, "PNG", optimize=True)
    return stored.getvalue()


def _ground(shapes: Iterable[Shape]) -> Image.Image:
    """The floor and what stands on it, without the agent."""
    image = Image.new("RGB", (_FINE * PANEL, _FINE * PANEL), FLOOR)
    brush = ImageDraw.Draw(image, "RGBA")
    scale = _scale(_FINE)
    corners = [_pixel(0.0, ARENA_SIDE, _FINE), _pixel(ARENA_SIDE, 0.0, _FINE)]
    for metre in range(0, int(ARENA_SIDE) + 1, 10):
        brush.line([_pixel(metre, 0, _FINE), _pixel(metre, ARENA_SIDE, _FINE)], fill="white")
        brush.line([_pixel(0, metre, _FINE), _pixel(ARENA_SIDE, metre, _FINE)], fill="white")
    brush.rectangle([*corners[0], *corners[1]], outline=_LINE, width=2 * _FINE)
    for shape in shapes:
        fill = (*shape.colour, round(255 * shape.opacity))
        if shape.corners:
            points = [_pixel(x, z, _FINE) for x, z in shape.corners]
            brush.polygon(points, fill=fill, outline=_LINE, width=_FINE)
        else:
            around = _around(_pixel(shape.x, shape.z, _FINE), shape.half_x * scale)
            brush.ellipse(around, fill=fill, outline=_LINE, width=_FINE)
    return image.reduce(_FINE)


def _scale(fine: int) -> float:
    """Pixels of a metre."""
    return fine * PANEL / (ARENA_SIDE + 2 * _EDGE)


def _pixel(x: float, z: float, fine: int = 1) -> tuple[float, float]:
    """Where a place of the arena is on the map; z points up."""
    scale = _scale(fine)
    return float((x + _EDGE) * scale), float((ARENA_SIDE + _EDGE - z) * scale)


def _around(at: tuple[float, float], radius: float) -> list[float]:
    return [at[0] - radius, at[1] - radius, at[0] + radius, at[1] + radius]
