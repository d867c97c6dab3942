"""Pictures of a recorded episode: what the agent saw beside a map with its path, and the numbers.

All is drawn from the recording alone, by playing it again. `film` yields the frames, and `video`
writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from animalcat.envs.types import EndedBy, Step
from animalcat.maps.moving import PANEL, Frame, Map
from animalcat.service.recording.about import (
    NOTABLE,
    RGB,
    colour_of,
    labels,
    who,
    words_of_demands,
)
from animalcat.service.recording.reader import Recording
from animalcat.service.recording.verify import other_motion, replay_with_camera, stage

_GAP: Final = 8
_TEXT: Final = 88
WIDTH: Final = 2 * PANEL + 3 * _GAP
HEIGHT: Final = PANEL + 2 * _GAP + _TEXT
"""Size of a frame in pixels; both are even, as video codecs want them."""
_NUMBERS: Final = PANEL + 2 * _GAP + 42
_LINE: Final = 20
"""Where the line of numbers is, and its height."""
_PAGE: Final[RGB] = (24, 27, 31)
_INK: Final[RGB] = (236, 239, 243)
_SOFT: Final[RGB] = (152, 162, 174)
_GAIN: Final[RGB] = (126, 211, 120)
_LOSS: Final[RGB] = (240, 128, 110)


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
    ground = Map(colour_of)
    total = 0.0
    latest = (0.0, 0)
    view, plan = canvas[_GAP:][:PANEL, _GAP:], canvas[_GAP:][:PANEL, PANEL + 2 * _GAP :]
    numbers = canvas[_NUMBERS : _NUMBERS + _LINE]
    for number, step in enumerate(
        replay_with_camera(recording, resolution, backend=backend, state=True)
    ):
        total += step.reward
        if abs(step.reward) > NOTABLE:
            latest = (step.reward, number)
        assert step.observation.camera is not None
        view[:, :PANEL] = _enlarge(step.observation.camera)
        ground.draw(step, plan[:, :PANEL])
        numbers[:] = _PAGE
        _write_numbers(numbers, len(recording.steps), number, step, total, latest)
        yield canvas


def _enlarge(image: Frame) -> Frame:
    """A square image with its pixels as squares, (PANEL, PANEL, 3)."""
    index = np.arange(PANEL) * len(image) // PANEL
    wide = np.repeat(image, np.bincount(index, minlength=len(image)), axis=1)
    return wide[index]


def _write_facts(canvas: Image.Image, recording: Recording, anew: bool) -> None:
    """Write what does not change: who played what, demands, what was predicted, and labels."""
    brush = ImageDraw.Draw(canvas)
    top = PANEL + 2 * _GAP
    _line(brush, (_GAP, top), who(recording.header), _font(13), _INK)
    _line(brush, (_GAP, top + 20), words_of_demands(recording), _font(12), _SOFT)
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
        drawn = _draw_words(part, colour)
        shown = line[:, place : place + drawn.shape[1]]
        shown[:] = drawn[:, : shown.shape[1]]
        place += drawn.shape[1]
    return place - begin


_PARTS: Final = re.compile(r"\d|\D+")


@lru_cache(maxsize=256)
def _draw_words(words: str, colour: RGB) -> Frame:
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
