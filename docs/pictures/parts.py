"""Draws session.svg, doors.svg: how a session runs, and core and doors as the code has them.

`python docs/pictures/parts.py` writes both beside itself. A test compares them with the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORE = ("service", "envs", "layouts", "arena_configs")
WIDE, HIGH, DOOR = 150.0, 46.0, 190.0
"""Pixels of a box, and how wide one of a door is."""
IMPORT = re.compile(r"^ *(?:from|import) animalcat\.(\w+)", re.MULTILINE)
STEPS = (
    ("choose", "an informative arena"),
    ("store the choice", "with its probability"),
    ("play", "the agent acts"),
    ("store the outcome", "success or failure"),
    ("update", "what is believed"),
    ("enough?", "or not knowable?"),
)
"""What a session does for each episode, in this order (DESIGN: an episode, as data flows)."""


def box(
    x: float, y: float, title: str, below: str = "", fill: str = "#eef3fb", wide: float = WIDE
) -> str:
    """A box with a title, and words below it."""
    middle, top = x + wide / 2, y + (20 if below else 28)
    words = f'<text x="{middle:g}" y="{top:g}" font-weight="bold">{escape(title)}</text>'
    if below:
        words += f'<text x="{middle:g}" y="{y + 37:g}">{escape(below)}</text>'
    frame = f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{HIGH:g}" rx="6"'
    return f'{frame} fill="{fill}" stroke="#4a5a78"/>{words}'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """An arrow from one point to another."""
    line = f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}"'
    return f'{line} stroke="#4a5a78" stroke-width="1.5" marker-end="url(#tip)"/>'


def picture(width: float, height: float, parts: Iterable[str]) -> str:
    """An SVG of some parts on white."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        'font-family="sans-serif" font-size="13" text-anchor="middle" fill="#1c2430">\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#4a5a78"/></marker></defs>\n'
        f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def draw_session() -> str:
    """The loop of a session, and what watches it."""
    gap, parts = 40.0, list[str]()
    places = [(20 + (WIDE + gap) * k, 20.0) for k in range(3)]
    places += [(x, 130.0) for x, _ in reversed(places)]
    for (x, y), (title, below) in zip(places, STEPS, strict=True):
        parts.append(box(x, y, title, below))
    for (x, y), (nx, ny) in zip(places, [*places[1:], places[0]], strict=True):
        if y == ny:
            ends = (x + WIDE, nx) if nx > x else (x, nx + WIDE)
            parts.append(arrow(ends[0], y + HIGH / 2, ends[1], y + HIGH / 2))
        else:
            ends = (y + HIGH, ny) if ny > y else (y, ny + HIGH)
            parts.append(arrow(x + WIDE / 2, ends[0], x + WIDE / 2, ends[1]))
    parts.append(box(places[4][0], 240.0, "a fit by NUTS", "checks it", "#f6f1e4"))
    parts.append(arrow(places[4][0] + WIDE / 2, 240.0, places[4][0] + WIDE / 2, 176.0))
    parts.append(box(places[5][0], 240.0, "profile", "with a verdict", "#e9f5ea"))
    parts.append(arrow(places[5][0] + WIDE / 2, 176.0, places[5][0] + WIDE / 2, 240.0))
    parts.append(f'<text x="{places[5][0] + WIDE / 2 + 16:g}" y="212">yes</text>')
    parts.append(f'<text x="{places[5][0] + WIDE / 2 + 14:g}" y="102">no</text>')
    return picture(places[2][0] + WIDE + 20, 306, parts)


def imports_of(folder: Path) -> set[str]:
    """The packages of the core that the files of a folder import."""
    texts = (file.read_text("utf-8") for file in folder.rglob("*.py"))
    found = {name for text in texts for name in IMPORT.findall(text)}
    return {name for name in CORE if name in found and name != folder.name}


def doors() -> Mapping[str, set[str]]:
    """Each door with the packages of the core that it imports."""
    folders = sorted(file.parent for file in (ROOT / "doors").glob("*/__init__.py"))
    return {folder.name: imports_of(folder) for folder in folders}


def draw_doors() -> str:
    """The packages of the core with their imports, and the doors around them."""
    places = {
        "service": (315.0, 20.0),
        "envs": (215.0, 110.0),
        "layouts": (415.0, 110.0),
        "arena_configs": (315.0, 200.0),
    }
    parts = [box(x, y, name) for name, (x, y) in places.items()]
    for name, (x, y) in places.items():
        for other in sorted(imports_of(ROOT / name)):
            nx, ny = places[other]
            parts.append(arrow(x + WIDE / 2, y + HIGH, nx + WIDE / 2, ny))
    for k, (name, seen) in enumerate(doors().items()):
        x, y = 20 + (DOOR + 10) * (k % 4), 280.0 + (HIGH + 12) * (k // 4)
        words = "all four" if len(seen) == len(CORE) else ", ".join(sorted(seen))
        parts.append(box(x, y, name, words or "the client", "#f6f1e4", DOOR))
    return picture(830, 290 + (HIGH + 12) * -(-len(doors()) // 4), parts)


if __name__ == "__main__":
    for name, text in (("session", draw_session()), ("doors", draw_doors())):
        (HERE / f"{name}.svg").write_text(text, "utf-8")
