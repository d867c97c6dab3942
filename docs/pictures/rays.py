"""Draws rays.svg: an arena from above with the rays that its agent sees, and the numbers of these.

The arena is simulated, and everything drawn is read from the observation. Run it where animalcat is
installed: `python docs/pictures/rays.py docs/pictures/rays.svg`.
"""

from __future__ import annotations

import sys
from math import cos, radians, sin
from pathlib import Path

from animalcat import Rays, RaySpec
from animalcat.arena_configs.model import Arena, Item, Vector3
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import RAY_LENGTH, RAY_RADIUS, ObservationSpec

SPEC = RaySpec()
METRE = 16.0
LEFT, TOP, DEPTH = 44.0, 12.0, 25.0
"""Pixels to the arena's corner, and how many of its 40 metres are drawn in depth."""
COLUMN, ROW, NAMES = 44.0, 22.0, 62.0
COLOURS = {
    "arena": "#8a8f98",
    "Immovable": "#4a5a78",
    "goodGoal": "#2e9e44",
    "badGoal": "#c8342b",
}
AGENT = (20.0, 4.0)
THINGS = [
    ("GoodGoal", 14.0, 14.4, (2.0, 2.0, 2.0)),
    ("Wall", 20.0, 22.0, (8.0, 3.0, 1.0)),
    ("BadGoal", 26.5, 15.3, (3.0, 3.0, 3.0)),
]
"""Name, x, z and size of each object."""


def _item(name: str, x: float, z: float, size: tuple[float, float, float] | None = None) -> Item:
    return Item(
        name=name,
        positions=(Vector3(x=x, y=0.0, z=z),),
        rotations=(0.0,),
        sizes=() if size is None else (Vector3(x=size[0], y=size[1], z=size[2]),),
    )


def see() -> Rays:
    """What the agent sees as the episode begins."""
    items = (_item("Agent", *AGENT), *(_item(*row) for row in THINGS))
    environment = SimEnvironment(ObservationSpec(rays=SPEC))
    step = environment.load(Arena(time_limit=250, items=items), 0)
    return Rays(step.observation.rays, SPEC)


def _at(x: float, z: float) -> tuple[float, float]:
    """Where a place of the arena is in the picture."""
    return LEFT + METRE * x, TOP + METRE * (DEPTH - z)


def _text(x: float, y: float, text: str, more: str = 'text-anchor="middle"') -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{text}</text>'


def _arena() -> list[str]:
    """The floor and the objects from above."""
    wide, deep = METRE * 40.0, METRE * DEPTH
    parts = [
        f'<rect x="{LEFT}" y="{TOP}" width="{wide}" height="{deep}" fill="#f3efe4" '
        'stroke="#8a8f98" stroke-width="2"/>'
    ]
    for name, x, z, (width, _, depth) in THINGS:
        u, v = _at(x, z)
        if name == "Wall":
            parts.append(
                f'<rect x="{u - METRE * width / 2:.1f}" y="{v - METRE * depth / 2:.1f}" '
                f'width="{METRE * width:.1f}" height="{METRE * depth:.1f}" '
                f'fill="{COLOURS["Immovable"]}"/>'
            )
        else:
            colour = COLOURS["goodGoal" if name == "GoodGoal" else "badGoal"]
            parts.append(
                f'<circle cx="{u:.1f}" cy="{v:.1f}" r="{METRE * width / 2:.1f}" fill="{colour}"/>'
            )
        parts.append(_text(u, v - METRE * depth / 2 - 5, name))
    return parts


def _rays(rays: Rays) -> list[str]:
    """Each ray, the sphere at its end, its number and its angle."""
    parts: list[str] = []
    x0, z0 = AGENT
    u0, v0 = _at(x0, z0)
    for number, ray in enumerate(rays):
        s, c = sin(radians(ray.angle)), cos(radians(ray.angle))
        u, v = _at(x0 + s * ray.distance, z0 + c * ray.distance)
        colour = COLOURS[str(ray.kind)]
        parts += [
            f'<line x1="{u0:.1f}" y1="{v0:.1f}" x2="{u:.1f}" y2="{v:.1f}" stroke="{colour}" '
            'stroke-width="2"/>',
            f'<circle cx="{u:.1f}" cy="{v:.1f}" r="{METRE * RAY_RADIUS:.1f}" fill="none" '
            f'stroke="{colour}" stroke-width="2"/>',
        ]
        u, v = _at(x0 + s * 6.5, z0 + c * 6.5)
        parts += [
            f'<circle cx="{u:.1f}" cy="{v:.1f}" r="11" fill="white" stroke="{colour}"/>',
            _text(u, v + 4, str(number)),
            _text(u + 16, v + 4, f"{ray.angle:+g}°" if ray.angle else "0°", ""),
        ]
    parts += [
        f'<circle cx="{u0:.1f}" cy="{v0:.1f}" r="{METRE * RAY_RADIUS:.1f}" fill="#222"/>',
        _text(u0, v0 + 24, "agent, heading up"),
    ]
    return parts


def _table(rays: Rays, top: float) -> list[str]:
    """The numbers of the observation: a row for each ray, a column for each name."""
    parts: list[str] = []
    for j, name in enumerate(SPEC.columns):
        u = LEFT + COLUMN * (j + 0.5)
        parts.append(
            f'<text x="{u:.1f}" y="{top - 6:.1f}" transform="rotate(-38 {u:.1f} {top - 6:.1f})">'
            f"{name}</text>"
        )
    for i, (ray, row) in enumerate(zip(rays, rays.table.tolist(), strict=True)):
        v = top + ROW * i
        parts.append(_text(LEFT - 8, v + 15, str(i), 'text-anchor="end" font-weight="bold"'))
        for j, value in enumerate(row):
            u = LEFT + COLUMN * j
            on = value == 1.0
            fill = COLOURS[str(ray.kind)] if on else "white"
            ink = "white" if on else "#222" if value else "#b5b5b5"
            parts += [
                f'<rect x="{u:.1f}" y="{v:.1f}" width="{COLUMN}" height="{ROW}" fill="{fill}" '
                'stroke="#cccccc"/>',
                _text(u + COLUMN / 2, v + 15, f"{value:.3g}", f'text-anchor="middle" fill="{ink}"'),
            ]
        u = LEFT + COLUMN * len(row) + 8
        parts.append(_text(u, v + 15, f"{ray.distance:.1f} m", ""))
    under, row = top + ROW * len(rays), len(SPEC.columns)
    return [
        *parts,
        _text(
            LEFT,
            under + 18,
            f"observation.rays has these {SPEC.size} numbers, row after row: ray 0 is 0 to "
            f"{row - 1}, ray 1 is {row} to {2 * row - 1}.",
            "",
        ),
        _text(LEFT, under + 36, f"distance is in metres / {RAY_LENGTH:g}.", ""),
    ]


def draw() -> str:
    """The picture as SVG."""
    rays = see()
    top = TOP + METRE * DEPTH + NAMES + 14.0
    width = LEFT + COLUMN * len(SPEC.columns) + 70.0
    height = top + ROW * len(rays) + 46.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="12" '
        'fill="#222">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        *_arena(),
        *_rays(rays),
        *_table(rays, top),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(), "utf-8")
