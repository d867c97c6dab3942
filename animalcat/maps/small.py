"""Small maps of arenas as SVG, for contact sheets: shapes and colours from above, no words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

import numpy as np

from animalcat.arena_configs.geometry import rotate
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ARENA_SIDE, ArenaError
from animalcat.arena_configs.placement import Placement, place
from animalcat.maps.shapes import FLOOR, Shape, hex_of, of_things

LEAST_RADIUS: Final = 0.6
"""Metres: least radius with which a goal is drawn, so that small ones are seen."""
GAP: Final = 2.0
"""Metres between arenas that merge."""
MOST: Final = 250
"""Most objects that are drawn, the largest ones."""
_AGENT: Final = "#1f77b4"
_REWARD: Final = "#1d5c12"


def arena_map(text: str, name: str) -> str:
    """Draw the map of a battery's arena.

    Args:
        text: The arena with every value fixed, YAML.
        name: Name of the instance.

    Returns:
        An SVG element with an alternative text; empty if the arena cannot be read.
    """
    try:
        arenas = load_text(text, name).config.arenas.values()
        # A fixed arena leaves nothing to chance.
        placements = [place(arena, np.random.default_rng(0)) for arena in arenas]
    except (ArenaError, ValueError):
        return ""
    return draw_small(placements, name)


def draw_small(placements: Sequence[Placement], name: str) -> str:
    """Draw placed arenas without words: an SVG element, 40 by 40 metres for each, side by side."""
    size, apart = f"{ARENA_SIDE:g}", ARENA_SIDE + GAP
    width = f"{apart * len(placements) - GAP:g}"
    words = "; then ".join(describe_map(one, name) for one in placements)
    drawn = [
        f"<svg class='map' viewBox='0 0 {width} {size}' role='img' "
        f"aria-label='{escape(words, quote=True)}'>"
    ]
    for number, placement in enumerate(placements):
        moved = f" transform='translate({apart * number:g} 0)'" * bool(number)
        drawn += [
            f"<g{moved}>" * bool(number),
            f"<rect width='{size}' height='{size}' fill='{hex_of(FLOOR)}'/>",
            *_shapes(placement),
            _agent(placement),
            "</g>" * bool(number),
        ]
    return "".join([*drawn, "</svg>"])


def draw_things(shapes: Iterable[Shape]) -> str:
    """Draw shapes as parts of such a map, without floor and agent."""
    return "".join(map(_draw_shape, shapes))


def describe_map(placement: Placement, name: str) -> str:
    """What a map shows, in a sentence."""
    counts = Counter(thing.name for thing in placement.objects)
    things = ", ".join(f"{n} {what}" if n > 1 else what for what, n in sorted(counts.items()))
    start = placement.agent.position
    where = f"the agent at {start.x:.0f}, {start.z:.0f} m, heading {placement.agent.yaw % 360:.0f}°"
    return f"Map of {name}: {where}; {things or 'nothing else'}"


def _shapes(placement: Placement) -> Iterator[str]:
    things = sorted(placement.objects, key=lambda t: t.size.x * t.size.z)[-MOST:]
    for shape in of_things(things):
        yield _draw_shape(shape)
    for thing in things:
        if thing.kind.goal:  # also where something stands on it
            at = thing.position
            radius = max(LEAST_RADIUS, thing.size.x / 2)
            yield (
                f"<circle {_at(at.x, at.z)} r='{_number(radius)}' fill='none' "
                f"stroke='{_REWARD if thing.reward > 0 else '#333'}' stroke-width='.35'/>"
            )


def _draw_shape(shape: Shape) -> str:
    look = f"fill='{hex_of(shape.colour)}' stroke='#222' stroke-width='.15'"
    if shape.opacity < 1.0:
        look += f" fill-opacity='{shape.opacity:.2g}'"
    if not shape.corners:
        radius = max(LEAST_RADIUS, shape.half_x) if shape.goal else shape.half_x
        return f"<circle {_at(shape.x, shape.z)} r='{_number(radius)}' {look}/>"
    points = " ".join(f"{_number(x)},{_number(ARENA_SIDE - z)}" for x, z in shape.corners)
    drawn = f"<polygon points='{points}' {look}/>"
    return drawn + _uphill(shape) if shape.kind == "wedge" else drawn


def _uphill(shape: Shape) -> str:
    """An arrowhead that points to the high end of a ramp."""
    length, width = 0.6 * shape.half_z, 0.6 * shape.half_x
    spots = [(0.0, length), (width, -length), (-width, -length)]
    return _polygon(shape.x, shape.z, spots, shape.yaw, "#222", opacity=0.35)


def _agent(placement: Placement) -> str:
    """A disc, and an arrow ahead of it that shows its heading."""
    at, yaw = placement.agent.position, placement.agent.yaw
    arrow = _polygon(at.x, at.z, [(0.0, 3.4), (0.9, 0.9), (-0.9, 0.9)], yaw, _AGENT)
    return f"<circle {_at(at.x, at.z)} r='.9' fill='{_AGENT}'/>{arrow}"


def _polygon(
    x: float, z: float, spots: list[tuple[float, float]], yaw: float, fill: str, opacity: float = 1
) -> str:
    turned = (rotate(right, ahead, yaw) for right, ahead in spots)
    points = " ".join(f"{_number(x + a)},{_number(ARENA_SIDE - z - b)}" for a, b in turned)
    return f"<polygon points='{points}' fill='{fill}' fill-opacity='{opacity:g}'/>"


def _at(x: float, z: float) -> str:
    return f"cx='{_number(x)}' cy='{_number(ARENA_SIDE - z)}'"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if math.isfinite(value) else "0"
