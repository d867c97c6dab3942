"""Draws how a session runs, what a layout is, a profile with its parts, and core and doors.

`python docs/pictures/parts.py` writes them beside itself. A test compares them with the code.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORE = ("service", "envs", "layouts", "arena_configs")
Words = tuple[str, str]
WIDE, HIGH, DOOR, TALL = 150.0, 46.0, 190.0, 62.0
"""Pixels of a box, how wide one of a door is, and how high one with two lines."""
PROFILE = "scout-path-15@navigation.nc.gz"
"""The profile that is drawn, of those that are shipped."""
STYLE = """
text{fill:#1c2430} .bold{font-weight:bold} .small{font-size:11px} .faint{fill:#5b6676}
.ground{fill:#fff} .line{stroke:#4a5a78} #tip path{fill:#4a5a78} .prior{fill:#d5dae1}
.blue{fill:#eef3fb} .sand{fill:#f6f1e4} .green{fill:#e9f5ea} .main{fill:#2f6fb5}
@media (prefers-color-scheme:dark){ text{fill:#e6e9ee} .faint{fill:#a5afbd}
.ground{fill:#14181e} .line{stroke:#93a4c3} #tip path{fill:#93a4c3} .prior{fill:#3d4653}
.blue{fill:#1f2c42} .sand{fill:#3a3222} .green{fill:#1d3524} .main{fill:#74aef0} }
"""
"""Colours on light and on dark pages."""
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
    x: float,
    y: float,
    title: str,
    below: str = "",
    fill: str = "blue",
    wide: float = WIDE,
    high: float = HIGH,
) -> str:
    """A box with a title, and words below it."""
    lines = wrap(below := below.replace("-", "−"), most := int(wide / 6.2))
    # As few lines as will do, and as even.
    lines = next(them for n in range(most + 1) if len(them := wrap(below, n + 1)) == len(lines))
    middle, top = x + wide / 2, y + high / 2 + 5 - 8 * len(lines)
    words = text(middle, top, title, "bold")
    words += "".join(text(middle, top + 16 * k, line) for k, line in enumerate(lines, 1))
    frame = f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="6"'
    return f'{frame} class="{fill} line"/>{words}'


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> str:
    """A line of text: bold, faint, small or none of these."""
    look = f' class="{kind}"' * bool(kind)
    side = f' text-anchor="{anchor}"' * (anchor != "middle")
    return f'<text x="{x:g}" y="{y:g}"{look}{side}>{escape(words)}</text>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """An arrow from one point to another."""
    line = f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}"'
    return f'{line} class="line" stroke-width="1.5" marker-end="url(#tip)"/>'


def picture(width: float, height: float, parts: Iterable[str]) -> str:
    """An SVG of some parts."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'font-family="sans-serif" font-size="13" text-anchor="middle"><style>{STYLE}</style>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>\n'
        f'<rect width="{width:g}" height="{height:g}" class="ground"/>\n'
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
    parts.append(box(places[4][0], 240.0, "a fit by NUTS", "checks it", "sand"))
    parts.append(arrow(places[4][0] + WIDE / 2, 240.0, places[4][0] + WIDE / 2, 176.0))
    parts.append(box(places[5][0], 240.0, "profile", "with a verdict", "green"))
    parts.append(arrow(places[5][0] + WIDE / 2, 176.0, places[5][0] + WIDE / 2, 240.0))
    parts.append(text(places[5][0] + WIDE / 2 + 16, 212, "yes"))
    parts.append(text(places[5][0] + WIDE / 2 + 14, 102, "no"))
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
        parts.append(box(x, y, name, words or "the client", "sand", DOOR))
    return picture(830, 290 + (HIGH + 12) * -(-len(doors()) // 4), parts)


def draw_layout() -> str:
    """Which demands meet which capabilities, as the layout `aaio` has it."""
    from animalcat.layouts.explaining.wording import scale_of
    from animalcat.layouts.library import load_layout
    from animalcat.layouts.model.links import LogisticMargin

    layout = load_layout("aaio")
    given = {node.name: node.link.parents for node in layout.derived}

    def behind(name: str) -> set[str]:
        return {name}.union(*(behind(parent) for parent in given.get(name, ())))

    def says(row: int) -> str:
        node, scale = layout.latents[row], scale_of(layout, row)
        return scale.phrase.format("…") if scale.feature else node.about.partition(",")[0]

    blocks: list[tuple[str, str, list[Words], list[Words]]] = []
    held = [(node.name, says(row)) for row, node in enumerate(layout.latents)]
    for node in layout.derived:
        if isinstance(node.link, LogisticMargin):
            all_of = behind(node.name)
            asked = [(one.name, one.about) for one in layout.features if one.name in all_of]
            own = [one for one in held if one[0] in all_of]
            blocks.append((node.name, "near 1 where ability exceeds demand", asked, own))
            held = [one for one in held if one not in own]
    blocks.insert(1, ("success", "all chances multiplied, and noise", [], held))

    step, gap = TALL + 12, 55.0
    columns = [20 + k * (DOOR + gap) for k in range(3)]
    heads = ("measured of an arena", "how they meet", "inferred of the agent")
    parts = [text(x + DOOR / 2, 24, head, "faint") for x, head in zip(columns, heads, strict=True)]
    y, tops = 40.0, list[float]()
    for name, words, asked, own in blocks:
        count = max(len(asked), len(own))
        top = y + step * (count - 1) / 2
        parts.append(box(columns[1], top, name, words, "sand", DOOR, TALL))
        for x, fill, boxes in ((columns[0], "blue", asked), (columns[2], "green", own)):
            ends = (x + DOOR, x + DOOR + gap) if x < columns[1] else (x, x - gap)
            for k, (title, below) in enumerate(boxes):
                off = k - (len(boxes) - 1) / 2
                parts.append(box(x, top + step * off, title, below, fill, DOOR, TALL))
                middle = top + TALL / 2
                parts.append(arrow(ends[0], middle + step * off, ends[1], middle + 12 * off))
        tops.append(top)
        y += step * count + 22
    for end, to in ((tops[0] + TALL, tops[1]), (tops[2], tops[1] + TALL)):
        parts.append(arrow(columns[1] + DOOR / 2, end, columns[1] + DOOR / 2, to))
    return picture(columns[2] + DOOR + 20, y - 16, parts)


NAMED = (
    "a capability, a bias or noise, as the layout names it",
    "the estimate: goals so far away are reached in half of the attempts",
    "the interval that holds the true value with a probability of 90 %",
    "grey: what was supposed before the first episode (mean ± SD)",
    "an arrow: the arenas showed no limit, so only a bound is known",
    "the status: why measuring it ended",
    "the success rate, had every covered arena been played",
    "the verdict; its sentences follow in words",
)
"""What the numbers in the picture of a profile stand for."""


def draw_profile() -> str:
    """The profile of a shipped agent, with its parts named."""
    from animalcat.layouts.explaining.wording import scale_of
    from animalcat.plots.readings import NodeReading
    from animalcat.plots.results import read_results

    with tempfile.NamedTemporaryFile(suffix=".nc") as file:
        file.write(gzip.decompress((ROOT / "animalcat" / "references" / PROFILE).read_bytes()))
        file.flush()
        results = read_results(file.name)
    profile: Mapping[str, Any] = results.profile
    about, rate, verdict = (profile[key] for key in ("provenance", "battery_rate", "verdict"))
    left, right, y, end = 160.0, 440.0, 70.0, 740.0
    parts = [
        text(20, 28, f"{about['agent']} on the battery {about['battery']}", "bold", "start"),
        text(end, 28, f"{about['successes']} of {about['episodes']} arenas passed", "", "end"),
    ]
    for row, (name, node) in enumerate(profile["nodes"].items()):
        scale = scale_of(results.layout, row, results.features)
        marks, words = scale.marks(node), scale.of_profile(node)
        middle, spread = node["prior_mean"], node["prior_sd"]
        ends = [float(middle + k * 3 * spread) for k in (-1, 1)]
        low, high = (
            edge if one is None else one for one, edge in zip(node["range"], ends, strict=True)
        )

        def at(value: float, low: float = low, high: float = high) -> float:
            return left + (right - left) * (min(max(value, low), high) - low) / (high - low)

        parts += [
            text(20, y + 5, name, "", "start"),
            bar(left, right, y, 1.5, "prior"),
            bar(at(middle - spread), at(middle + spread), y, 12, "prior"),
            bar(at(marks.low), at(marks.high), y, 4, "main"),
            text(right + 16, y + 5, words.estimate, "", "start"),
            text(end, y + 5, node["status"] or "", "faint", "end"),
        ]
        shape = {"high": "M8 0L-4 6L-4 -6z", "low": "M-8 0L4 6L4 -6z"}.get(marks.open)
        shape = shape or "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z"
        if marks.at is not None:
            place = f'transform="translate({at(marks.at):g} {y:g})"'
            parts.append(f'<path d="{shape}" {place} class="main"/>')
        for place, word in zip(*NodeReading(name, scale).ticks(low, high)[:2], strict=True):
            parts.append(text(at(place), y + 21, word, "small"))
        if row == 0:
            parts += [number(1, 28, y - 20), number(2, at(marks.at or low), y - 20)]
            parts += [number(3, at(marks.high), y - 20), number(4, at(middle + spread), y - 20)]
            parts.append(number(6, end - 8, y - 20))
        elif row == 1:
            parts.append(number(5, at(marks.high) - 8, y - 20))
        y += 48
    share = [f"{100 * rate[key]:.0f}" for key in ("value", "low", "high")]
    parts += [
        number(7, 28, y - 4),
        text(
            44,
            y,
            f"{share[0]} % of {rate['instances']} arenas ({share[1]} to {share[2]} %)",
            "",
            "start",
        ),
        number(8, 388, y - 4),
        text(404, y, f"{verdict['kind']}: {verdict['weakness']}", "", "start"),
    ]
    for k, words in enumerate(NAMED):
        parts += [
            number(k + 1, 28, y + 38 + 24 * k),
            text(44, y + 42 + 24 * k, words, "faint", "start"),
        ]
    return picture(end + 20, y + 42 + 24 * len(NAMED), parts)


def bar(first: float, last: float, y: float, thick: float, kind: str) -> str:
    """A horizontal bar around a height."""
    size = f'width="{last - first:g}" height="{thick:g}"'
    return f'<rect x="{first:g}" y="{y - thick / 2:g}" {size} class="{kind}"/>'


def number(name: int, x: float, y: float) -> str:
    """The number of a part, in a circle."""
    circle = f'<circle cx="{x:g}" cy="{y:g}" r="8" class="sand line"/>'
    return circle + text(x, y + 4, str(name), "small")


DRAWN = {
    "session": draw_session,
    "layout": draw_layout,
    "profile": draw_profile,
    "doors": draw_doors,
}
"""Names of pictures, and what draws each."""

if __name__ == "__main__":
    for name, draw in DRAWN.items():
        (HERE / f"{name}.svg").write_text(draw(), "utf-8")
