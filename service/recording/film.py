"""Pictures of a recorded episode: what the agent saw beside a map with its path, and the numbers.

All is drawn from the recording alone, by playing it again. `film` yields the frames, and `video`
writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.arena_configs.tags import LOGGED_TAGS
from animalcat.envs.state import Column
from animalcat.envs.types import EndedBy, Step
from animalcat.service.recording.about import (
    AGENT_COLOUR,
    NOTABLE,
    RGB,
    ZONES,
    asked_for,
    colour_of,
    labels,
    who,
)
from animalcat.service.recording.reader import Recording
from animalcat.service.recording.verify import other_motion, seen_again, stage

Frame: TypeAlias = npt.NDArray[np.uint8]
State: TypeAlias = npt.NDArray[np.float32]

PANEL: Final = 336
"""Side of the camera's picture and of the map, in pixels."""
_GAP: Final = 8
_TEXT: Final = 88
WIDTH: Final = 2 * PANEL + 3 * _GAP
HEIGHT: Final = PANEL + 2 * _GAP + _TEXT
"""Size of a frame in pixels; both are even, as video codecs want them."""
_NUMBERS: Final = PANEL + 2 * _GAP + 42
_LINE: Final = 20
"""Where the line of numbers is, and its height."""
_FINE: Final = 2
"""The map is drawn so many times larger, so that its lines are smooth."""
_EDGE: Final = 0.6
"""Metres around the arena on the map."""

_PAGE: Final[RGB] = (24, 27, 31)
_INK: Final[RGB] = (236, 239, 243)
_SOFT: Final[RGB] = (152, 162, 174)
_FLOOR: Final[RGB] = (243, 234, 217)
_GAIN: Final[RGB] = (126, 211, 120)
_LOSS: Final[RGB] = (240, 128, 110)
_SPHERE: Final = 1
"""The number of a ball among the shapes of `envs.sim.scene.Shape`."""


def film(recording: Recording, resolution: int = 84, backend: str = "") -> Iterator[Frame]:
    """Play an episode again and draw every step.

    Args:
        recording: The episode; a cut one is drawn as far as it goes.
        resolution: Side of the camera's square images in pixels, 4 to 512.
        backend: What plays it again; empty for the default of `verify.stage`.

    Yields:
        Pictures, uint8 (HEIGHT, WIDTH, 3), one for each observation. Each is drawn over the one
        before: copy what you keep.

    Raises:
        ArenaError: The recorded arena cannot be built.
        ValueError: The backend is unknown here, or the resolution is out of range.
    """
    header = recording.header
    anew = other_motion(header, stage(header, backend)) is not None
    facts = Image.new("RGB", (WIDTH, HEIGHT), _PAGE)
    _write_facts(facts, recording, anew)
    canvas = np.array(facts)
    ground = Map()
    total = 0.0
    latest = (0.0, 0)
    view, plan = canvas[_GAP:][:PANEL, _GAP:], canvas[_GAP:][:PANEL, PANEL + 2 * _GAP :]
    numbers = canvas[_NUMBERS : _NUMBERS + _LINE]
    for number, step in enumerate(seen_again(recording, resolution, backend=backend, state=True)):
        total += step.reward
        if abs(step.reward) > NOTABLE:
            latest = (step.reward, number)
        assert step.observation.camera is not None
        view[:, :PANEL] = _enlarged(step.observation.camera)
        ground.draw(step, plan[:, :PANEL])
        numbers[:] = _PAGE
        _write_numbers(numbers, len(recording.steps), number, step, total, latest)
        yield canvas


def _enlarged(image: Frame) -> Frame:
    """A square image with its pixels as squares, (PANEL, PANEL, 3)."""
    index = np.arange(PANEL) * len(image) // PANEL
    wide = np.repeat(image, np.bincount(index, minlength=len(image)), axis=1)
    return wide[index]


class Map:
    """The arena from above, with the agent's path so far."""

    def __init__(self) -> None:
        self._rows: State | None = None
        self._ground = _ground(None)
        self._drawn = np.array(self._ground)
        self._path: list[tuple[float, float]] = []

    def draw(self, step: Step, shown: Frame) -> None:
        """Draw everything where it is at a step into a picture, (PANEL, PANEL, 3)."""
        state = step.observation.state
        x, _, z = map(float, step.observation.position)
        here = _pixel(x, z)
        self._path.append(here)
        if state is not None and _moved(self._rows, state[1:]):
            self._rows = state[1:].copy()
            self._ground = _ground(self._rows)
            if len(self._path) > 1:
                ImageDraw.Draw(self._ground).line(self._path, fill=AGENT_COLOUR, width=2)
            self._drawn = np.array(self._ground)
        elif len(self._path) > 1:
            ImageDraw.Draw(self._ground).line(self._path[-2:], fill=AGENT_COLOUR, width=2)
            self._copy(self._ground, _box(self._path[-2:], 3))
        shown[:] = self._drawn
        box = _box([here], round(2.5 * _scale(1)))
        patch = self._ground.crop(box)
        brush = ImageDraw.Draw(patch)
        centre = (here[0] - box[0], here[1] - box[1])
        if state is not None:
            turn = state[0, Column.ROTATION : Column.ROTATION + 9]
            tip = _pixel(x + 1.8 * float(turn[2]), z + 1.8 * float(turn[8]))
            brush.line([centre, (tip[0] - box[0], tip[1] - box[1])], fill=AGENT_COLOUR, width=3)
        radius = 0.5 * _scale(1) + 1.0
        brush.ellipse(_around(centre, radius), fill=AGENT_COLOUR, outline=(255, 255, 255))
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


def _moved(before: State | None, now: State) -> bool:
    return (
        before is None or before.shape != now.shape or bool((np.abs(before - now) > _STILL).any())
    )


_STILL: Final = 0.01
"""Metres by which something may move before the map is drawn anew."""


def _ground(rows: State | None) -> Image.Image:
    """The floor and what stands on it, without the agent."""
    image = Image.new("RGB", (_FINE * PANEL, _FINE * PANEL), _FLOOR)
    brush = ImageDraw.Draw(image, "RGBA")
    scale = _scale(_FINE)
    corners = [_pixel(0.0, ARENA_SIDE, _FINE), _pixel(ARENA_SIDE, 0.0, _FINE)]
    for metre in range(0, int(ARENA_SIDE) + 1, 10):
        brush.line([_pixel(metre, 0, _FINE), _pixel(metre, ARENA_SIDE, _FINE)], fill="white")
        brush.line([_pixel(0, metre, _FINE), _pixel(ARENA_SIDE, metre, _FINE)], fill="white")
    brush.rectangle([*corners[0], *corners[1]], outline=(40, 40, 40), width=2 * _FINE)
    for row in sorted([] if rows is None else list(rows), key=_layer):
        fill = (*colour_of(_tag(row)), 150 if _tag(row) in ZONES else 225)
        x, z = float(row[Column.CENTER]), float(row[Column.CENTER + 2])
        half = row[Column.HALF : Column.HALF + 3]
        if round(float(row[Column.SHAPE])) == _SPHERE:
            around = _around(_pixel(x, z, _FINE), float(half[0]) * scale)
            brush.ellipse(around, fill=fill, outline=(40, 40, 40), width=_FINE)
            continue
        turn = row[Column.ROTATION : Column.ROTATION + 9]
        points = [
            _pixel(
                x + a * half[0] * turn[0] + b * half[2] * turn[2],
                z + a * half[0] * turn[6] + b * half[2] * turn[8],
                _FINE,
            )
            for a, b in ((-1, -1), (-1, 1), (1, 1), (1, -1))
        ]
        brush.polygon(points, fill=fill, outline=(40, 40, 40), width=_FINE)
    return image.reduce(_FINE)


def _layer(row: State) -> tuple[bool, float]:
    """Zones lie below; else what is higher hides what is lower."""
    return _tag(row) not in ZONES, float(row[Column.CENTER + 1] + row[Column.HALF + 1])


def _tag(row: State) -> str:
    number = round(float(row[Column.TAG]))
    return LOGGED_TAGS[number] if number >= 0 else ""


def _scale(fine: int) -> float:
    """Pixels of a metre."""
    return fine * PANEL / (ARENA_SIDE + 2 * _EDGE)


def _pixel(x: float, z: float, fine: int = 1) -> tuple[float, float]:
    """Where a place of the arena is on the map; z points up."""
    scale = _scale(fine)
    return float((x + _EDGE) * scale), float((ARENA_SIDE + _EDGE - z) * scale)


def _around(at: tuple[float, float], radius: float) -> list[float]:
    return [at[0] - radius, at[1] - radius, at[0] + radius, at[1] + radius]


def _write_facts(canvas: Image.Image, recording: Recording, anew: bool) -> None:
    """Write what does not change: who played what, demands, what was predicted, and labels."""
    brush = ImageDraw.Draw(canvas)
    top = PANEL + 2 * _GAP
    _line(brush, (_GAP, top), who(recording.header), _font(13), _INK)
    _line(brush, (_GAP, top + 20), asked_for(recording), _font(12), _SOFT)
    _line(brush, (_GAP, top + 64), "; ".join(labels(recording, anew)), _font(12), _LOSS)


def _write_numbers(
    line: Frame, steps: int, number: int, step: Step, total: float, latest: tuple[float, int]
) -> None:
    """Write what changes with every step into its line."""
    place = _GAP
    for words in (
        f"step {number} of {max(0, steps - 1)}",
        f"return {total:+.3f}",
        f"health {step.observation.health:.0f}",
    ):
        place += _paste(line, place, words, _INK) + 12
    reward, when = latest
    if reward and number - when < _SHOWN:
        colour = _GAIN if reward > 0.0 else _LOSS
        _paste(line, PANEL + 2 * _GAP, f"reward {reward:+.3f}", colour)
    if step.ended_by is not None:
        _paste(line, WIDTH - 190, f"ended by {_end(step.ended_by)}", _INK)


def _paste(line: Frame, place: int, words: str, colour: RGB) -> int:
    """Write words at a place of a line; how wide they are.

    Digits are drawn one by one: they are as wide as each other, and then all is known from before.
    """
    begin = place
    for part in _PARTS.findall(words):
        drawn = _drawn(part, colour)
        shown = line[:, place : place + drawn.shape[1]]
        shown[:] = drawn[:, : shown.shape[1]]
        place += drawn.shape[1]
    return place - begin


_PARTS: Final = re.compile(r"\d|\D+")


@lru_cache(maxsize=256)
def _drawn(words: str, colour: RGB) -> Frame:
    """Words in a line's height."""
    font = _font(13)
    image = Image.new("RGB", (max(1, round(font.getlength(words))), _LINE), _PAGE)
    ImageDraw.Draw(image).text((0, 0), words, font=font, fill=colour)
    return np.array(image)


_SHOWN: Final = 15
"""For so many steps a reward is shown."""


def _end(ended_by: EndedBy) -> str:
    return ended_by.name.lower().replace("_", " ")


def _line(
    brush: ImageDraw.ImageDraw,
    at: tuple[int, int],
    words: str,
    font: Any,
    colour: RGB,
) -> None:
    """Write one line; what is too long ends in an ellipsis, and line breaks are spaces."""
    words = " ".join(words.split())
    room = WIDTH - _GAP - at[0]
    if brush.textlength(words, font=font) > room:
        while words and brush.textlength(f"{words}…", font=font) > room:
            words = words[:-1]
        words += "…"
    brush.text(at, words, font=font, fill=colour)


@cache
def _font(size: int) -> Any:
    """A font that has most of the world's letters; matplotlib brings it."""
    fonts: Any = import_module("matplotlib.font_manager")
    return ImageFont.truetype(fonts.findfont("DejaVu Sans"), size)
