"""A map of an arena from above, to scale, with its names and its way."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon

from animalcat.arena_configs.features.start import bearing
from animalcat.arena_configs.features.survey import Survey, nearest_reward
from animalcat.arena_configs.geometry import rotate
from animalcat.arena_configs.model import ARENA_SIDE, Point
from animalcat.arena_configs.placement import AGENT_RADIUS, PlacedObject, Placement
from animalcat.arena_configs.routes import Route
from animalcat.arena_configs.sightlines import SEEN
from animalcat.maps.shapes import FLOOR, Colour, Shape, hex_of, of_solid, of_things

_LABEL = {"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.6}
_REWARD = "#2c6e1f"
_MOST_LABELS = 6
"""More objects of one name are named in a legend."""
_VIEW = 50.0
"""Half of the camera's field of view, in degrees."""


def draw_map(
    placement: Placement, path: Path, *, title: str = "", survey: Survey | None = None
) -> None:
    """Draw everything where it stands: names, headings, rewards.

    Args:
        placement: An arena with everything in its place.
        path: Where to write; its ending says how (png, svg, pdf).
        title: Written above the map.
        survey: The arena with its rewards at rest, of which the way, its turns and choices are
            drawn too; None to leave them out.

    Raises:
        OSError: The file cannot be written.
        ValueError: The ending is not known.
    """
    figure = Figure(figsize=(8.0, 8.4), layout="constrained")
    draw_arena(figure.add_subplot(), placement, title=title, survey=survey)
    figure.savefig(path, dpi=110)


def draw_arena(
    axes: Axes, placement: Placement, *, title: str = "", survey: Survey | None = None
) -> None:
    """Draw an arena from above.

    Args:
        axes: Where.
        placement: An arena with everything in its place.
        title: Written above the map.
        survey: What the way and the choices are taken from; None to draw a straight arrow to the
            nearest reward.
    """
    axes.set(xlim=(-0.6, ARENA_SIDE + 0.6), ylim=(-0.6, ARENA_SIDE + 0.6), aspect="equal")
    axes.set(xlabel="x (m)", ylabel="z (m)", title=_heading(placement, title))
    axes.set(xticks=range(0, 41, 5), yticks=range(0, 41, 5), axisbelow=True)
    axes.grid(color="white", linewidth=1.0)
    axes.set_facecolor(hex_of(FLOOR))
    axes.add_patch(Polygon(_square(), closed=True, fill=False, edgecolor="black", lw=2.0))
    for shape in of_things(placement.objects):
        axes.add_patch(_patch(shape))
    counts = Counter(thing.name for thing in placement.objects if not thing.kind.goal)
    for thing in placement.objects:
        where = (thing.position.x, thing.position.z)
        if thing.kind.goal or counts[thing.name] <= _MOST_LABELS:
            _label(axes, thing)
        if thing.kind.bounce or thing.kind.name == "Ramp":
            _arrow(axes, where, thing.yaw, 2.0, "black")
    _legend(axes, placement, counts)
    reward = nearest_reward(placement)
    if survey is not None:
        _rests(axes, placement, survey)
    if survey is not None and not isinstance(survey.way, str):
        _demands(axes, survey, survey.way)
    elif reward is not None:
        _way(axes, placement, reward)
    start = placement.agent.position
    for edge in (-_VIEW, _VIEW):
        x, z = rotate(0.0, 4.0, placement.agent.yaw + edge)
        axes.plot([start.x, start.x + x], [start.z, start.z + z], color="tab:blue", lw=0.8, ls=":")
    axes.add_patch(Circle((start.x, start.z), AGENT_RADIUS, facecolor="tab:blue", zorder=6))
    _arrow(axes, (start.x, start.z), placement.agent.yaw, 2.5, "tab:blue")
    behind = start.z > 1.5 and math.cos(math.radians(placement.agent.yaw)) >= 0.0
    axes.annotate(
        f"agent {placement.agent.yaw:.0f}°",
        (start.x, start.z),
        xytext=(0, -9 if behind else 9),
        textcoords="offset points",
        ha="center",
        va="top" if behind else "bottom",
        fontsize=8,
        color="tab:blue",
        zorder=7,
        bbox=_LABEL,
    )


def _rests(axes: Axes, placement: Placement, survey: Survey) -> None:
    """Where rewards that roll or fall come to rest: the way is measured to there."""
    places = {thing.source: thing.position for thing in placement.objects}
    for thing in survey.placement.objects:
        here = (thing.position.x, thing.position.z)
        begin = places.get(thing.source)
        if begin is None or math.dist((begin.x, begin.z), here) < thing.size.x / 2:
            continue  # its own label is there
        axes.plot([begin.x, here[0]], [begin.z, here[1]], color=_REWARD, lw=0.8, ls=":")
        circle = Circle(here, thing.size.x / 2, facecolor="none", edgecolor=_REWARD, lw=0.8)
        axes.add_patch(circle)
        axes.annotate("at rest", here, fontsize=7, ha="center", va="center", color=_REWARD)


def _label(axes: Axes, thing: PlacedObject) -> None:
    goal = thing.kind.goal
    axes.annotate(
        f"{thing.name} {thing.reward:+.3g}" if goal else thing.name,
        (thing.position.x, thing.position.z + (thing.size.x / 2 if goal else 0.0)),
        xytext=(0, 3 if goal else 0),
        textcoords="offset points",
        ha="center",
        va="bottom" if goal else "center",
        fontsize=7,
        zorder=5,
        bbox=_LABEL,
    )


def _legend(axes: Axes, placement: Placement, counts: Counter[str]) -> None:
    """Says once what there are many of, instead of writing it on each."""
    many = [name for name, number in counts.items() if number > _MOST_LABELS]
    first = {name: next(t for t in placement.objects if t.name == name) for name in many}
    patches = [_patch(of_solid(thing, thing.solids()[0])) for thing in first.values()]
    for name, patch in zip(many, patches, strict=True):
        patch.set_label(f"{counts[name]} {name}")
    if patches:
        axes.legend(handles=patches, loc="upper right", fontsize=7).set_zorder(8)


def _way(axes: Axes, placement: Placement, reward: PlacedObject) -> None:
    """An arrow from the agent to the nearest reward, with distance and bearing."""
    start, end = placement.agent.position, reward.position
    style = {"arrowstyle": "-|>", "color": _REWARD, "lw": 1.0, "ls": "--", "shrinkB": 4.0}
    axes.annotate("", (end.x, end.z), xytext=(start.x, start.z), arrowprops=style, zorder=5)
    axes.annotate(
        f"{math.dist(start, end):.1f} m, {bearing(placement, reward):+.0f}°",
        ((start.x + end.x) / 2, (start.z + end.z) / 2),
        ha="center",
        va="center",
        fontsize=7,
        color=_REWARD,
        zorder=5,
        bbox=_LABEL,
    )


def _demands(axes: Axes, survey: Survey, way: Route) -> None:
    """The way, solid where the goal is in sight from it; its turns; where it is left for good."""
    looks = survey.way_looks
    step = (way.length - way.touch) / max(1, len(looks))
    for one in looks:
        ends = way.at(one.metres - step / 2), way.at(one.metres + step / 2)
        style = "-" if one.look.clear >= SEEN else ":"
        xs, zs = [end.x for end in ends], [end.z for end in ends]
        axes.plot(xs, zs, color=_REWARD, lw=2.0, ls=style, zorder=5)
    for turn in way.turns():
        _mark(axes, turn.at, "o", f"{turn.degrees:+.0f}°", "tab:purple")
    if (choice := survey.choice) is not None:
        words = f"choice: {choice.right} of {choice.ways}"
        _mark(axes, choice.at, "D", words, "tab:red")
    if not isinstance(survey.order, str) and len(survey.order.best) > 1:
        for number, thing in enumerate(survey.order.best, 1):
            axes.annotate(
                str(number),
                (thing.position.x, thing.position.z),
                ha="center",
                va="center",
                fontsize=9,
                fontweight="bold",
                zorder=8,
            )
    middle = way.at(way.length / 2)
    words = f"{way.length:.1f} m, {way.seconds(survey.placement.agent.yaw):.1f} s"
    axes.annotate(
        words,
        (middle.x, middle.z),
        ha="center",
        va="center",
        fontsize=7,
        color=_REWARD,
        zorder=6,
        bbox=_LABEL,
    )


def _mark(axes: Axes, at: Point, marker: str, words: str, color: str) -> None:
    axes.plot([at.x], [at.z], marker=marker, color=color, ms=5, zorder=7)
    axes.annotate(
        words,
        (at.x, at.z),
        xytext=(5, 5),
        textcoords="offset points",
        fontsize=7,
        color=color,
        zorder=7,
        bbox=_LABEL,
    )


def _heading(placement: Placement, title: str) -> str:
    limit = f"{placement.time_limit / 10:g} s" if placement.time_limit else "none"
    facts = f"time limit {limit}, pass mark {placement.pass_mark:g}"
    return f"{title}\n{facts}" if title else facts


def _patch(shape: Shape) -> Circle | Polygon:
    face = (*_colour(shape.colour), shape.opacity)
    if not shape.corners:
        return Circle((shape.x, shape.z), shape.half_x, facecolor=face, edgecolor="black", lw=0.6)
    hatch = {"wedge": "///", "shell": "|||"}.get(shape.kind)
    return Polygon(
        shape.corners, closed=True, facecolor=face, edgecolor="black", lw=0.6, hatch=hatch
    )


def _colour(colour: Colour) -> tuple[float, float, float]:
    """A colour as matplotlib has it, 0 to 1."""
    red, green, blue = colour
    return red / 255, green / 255, blue / 255


def _square() -> list[tuple[float, float]]:
    return [(0.0, 0.0), (0.0, ARENA_SIDE), (ARENA_SIDE, ARENA_SIDE), (ARENA_SIDE, 0.0)]


def _arrow(axes: Axes, where: tuple[float, float], yaw: float, length: float, color: str) -> None:
    angle = math.radians(yaw)
    tip = (where[0] + length * math.sin(angle), where[1] + length * math.cos(angle))
    style = {"arrowstyle": "-|>", "color": color, "lw": 1.2}
    # Without `annotation_clip=False` an arrow whose tip is beyond the map is not drawn at all.
    axes.annotate("", tip, xytext=where, arrowprops=style, zorder=6, annotation_clip=False)
