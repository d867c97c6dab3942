"""Draws arenas made by hand, each with some demands on its map.

- demands.png: the way, sight, rewards;
- demands-more.png: directions, blocks, tunnels, light, time, changing rewards;
- demands-hiding.png: what is measured by playing, with what shows of the goal below each map.

Run it where animalcat is installed: `python docs/pictures/demands.py docs/pictures`.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Wedge

from animalcat.arena_configs.features.registry import measure_features
from animalcat.arena_configs.features.start import BEHIND, CENTRED, IN_FRONT
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.model import RGB, Arena, Item, Vector3
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sightlines import SEEN
from animalcat.envs.measure import gaps, hiding_places, measure_playing, watch
from animalcat.maps.figure import draw_arena

GREY = (120.0, 130.0, 140.0)


def thing(
    name: str,
    x: float,
    z: float,
    size: tuple[float, float, float] | None = None,
    *,
    y: float = 0.0,
    yaw: float = 0.0,
    wait: float = 0.0,
) -> Item:
    """One object."""
    return Item(
        name=name,
        positions=(Vector3(x=x, y=y, z=z),),
        rotations=(yaw,),
        sizes=() if size is None else (Vector3(x=size[0], y=size[1], z=size[2]),),
        colors=(RGB(r=GREY[0], g=GREY[1], b=GREY[2]),) if name in ("Wall", "Ramp") else (),
        frozen_agent_delays=(wait,) if wait else (),
    )


def _arena(*items: Item, blackouts: tuple[int, ...] = ()) -> Arena:
    return Arena(time_limit=250, items=items, blackouts=blackouts)


def goal(x: float, z: float, size: float = 2.0, name: str = "GoodGoal", y: float = 0.0) -> Item:
    """One goal."""
    return thing(name, x, z, (size, size, size), y=y)


PANELS: list[tuple[str, tuple[str, ...], tuple[Item, ...]]] = [
    (
        "way: length, detour and turns",
        ("wayLength", "detour", "wayTurns", "timeNeeded"),
        (
            thing("Agent", 20, 4),
            thing("Wall", 15, 14, (30, 3, 1)),
            thing("Wall", 25, 26, (30, 3, 1)),
            goal(20, 35),
        ),
    ),
    (
        "way: a ramp and a platform are needed",
        ("rampNeeded", "platformNeeded", "wayClimb"),
        (
            thing("Agent", 8, 5),
            thing("Wall", 20, 30, (16, 2, 10)),
            thing("Ramp", 20, 21, (6, 2, 8), yaw=180),
            goal(23, 32, y=2.0),
        ),
    ),
    (
        "way: a choice that cannot be undone",
        ("drops", "choiceWays", "choiceRight", "choiceDistance"),
        (
            thing("Agent", 20, 3, y=1.0),
            thing("Wall", 20, 20, (2, 1, 40)),
            goal(31, 33),
        ),
    ),
    (
        "way: lava on the straight and on the shortest, and the margin",
        ("lavaStraight", "lavaShortest", "lavaDetour", "lavaMargin"),
        (
            thing("Agent", 20, 4),
            thing("DeathZone", 15, 20, (30, 0.5, 8)),
            thing("DeathZone", 37, 20, (6, 0.5, 8)),
            goal(20, 35),
        ),
    ),
    (
        "sight: solid where the goal is in sight from the way",
        ("goalSeen", "goalSeenOnWay", "occluders", "glassInSight"),
        (
            thing("Agent", 12, 4, yaw=20),
            thing("Wall", 14, 20, (22, 4, 1)),
            thing("WallTransparent", 33, 20, (8, 4, 1)),
            goal(16, 34, 3.0),
        ),
    ),
    (
        "rewards: the order that gives most",
        ("bestReturn", "orderGain", "rewardsInBestOrder"),
        (
            thing("Agent", 20, 4),
            goal(20, 12),
            goal(6, 22, 1.0, "GoodGoalMulti"),
            goal(14, 34, 2.0, "GoodGoalMulti"),
            goal(34, 30, 3.0, "GoodGoalMulti"),
        ),
    ),
]
"""Title, demands to name, and what stands in the arena."""


MORE: list[tuple[str, tuple[str, ...], Arena]] = [
    (
        "directions: in front, to a side, behind",
        ("goalBearing", "goalSide", "goalBehind", "wayBearing", "goalDistance"),
        _arena(thing("Agent", 20, 16, yaw=20), goal(32, 26, 3.0), thing("Wall", 27, 20, (1, 3, 5))),
    ),
    (
        "a block in the shortest way; it must be pushed if there is no other",
        ("couldPush", "mustPush", "movables", "wayLength", "detour"),
        _arena(
            thing("Agent", 20, 5),
            thing("Wall", 8.4, 20, (16.8, 3, 1)),
            thing("LightBlock", 20, 20, (6, 1.5, 1.5)),
            goal(20, 35),
        ),
    ),
    (
        "a tunnel, a hot zone, and a bad goal that is gone around",
        ("tunnelNeeded", "hotOnWay", "detour", "badSum"),
        _arena(
            thing("Agent", 20, 4),
            thing("CylinderTunnel", 20, 14, (6, 6, 6)),
            thing("Wall", 8.4, 14, (16.8, 5, 1)),
            thing("Wall", 31.6, 14, (16.8, 5, 1)),
            thing("HotZone", 20, 22, (40, 0.5, 3)),
            goal(20, 28.5, 4.0, "BadGoal"),
            goal(20, 36),
        ),
    ),
]
"""Title, demands to name, and the arena: more of what is measured from where things stand."""

HIDING: list[tuple[str, tuple[str, ...], Arena]] = [
    (
        "it falls behind one of two screens",
        ("hiddenFrom", "hiddenStanding", "goalTravel", "hidingPlaces", "numPositions"),
        _arena(
            thing("Agent", 20, 4, wait=3),
            thing("Wall", 12, 22, (6, 4, 1)),
            thing("Wall", 28, 22, (6, 4, 1)),
            goal(12, 26, y=9),
        ),
    ),
    (
        "it is lost on the way around a glass wall",
        ("hiddenStanding", "hiddenMoving", "timeUnderOcc", "goalSeen"),
        _arena(
            thing("Agent", 20, 12),
            thing("WallTransparent", 20, 20, (14, 4, 1)),
            thing("Wall", 12, 15, (1, 4, 11)),
            thing("Wall", 28, 15, (1, 4, 11)),
            goal(20, 26),
        ),
    ),
    (
        "the light goes out",
        ("darkFrom", "darkLongest", "darkness", "hiddenFrom", "hiddenStanding"),
        _arena(
            thing("Agent", 20, 6),
            goal(14, 26, 3.0),
            blackouts=(20, 55, 70, 80),
        ),
    ),
    (
        "it rolls down a ramp; a decoy falls behind the screen",
        ("goalTravel", "hiddenStanding", "decoysHidden", "wayLength"),
        _arena(
            thing("Agent", 20, 4),
            thing("Ramp", 28, 24, (5, 3, 6), yaw=270),
            thing("Wall", 17, 18, (12, 3, 1)),
            goal(28, 24, y=6),
            goal(19, 22, 1.0, "DecoyGoalMulti", y=8),
        ),
    ),
]
"""The same for what is measured by playing."""


def measure_demands(arena: Arena) -> tuple[Survey, Survey, dict[str, float]]:
    """An arena as it is placed and after the agent stood still, and its demands."""
    survey = Survey(place(arena, np.random.default_rng(0)))
    played = measure_playing(survey)
    return survey, played.at_rest, measure_features(survey, *played).values


def draw_panel(
    axes: Axes, title: str, names: tuple[str, ...], survey: Survey, values: dict[str, float]
) -> None:
    """Draw one arena with what was measured of it above."""
    draw_arena(axes, survey.placement, survey=survey)
    told = [f"{name} {values[name]:.3g}" for name in names]
    lines = "\n".join(", ".join(told[k : k + 3]) for k in range(0, len(told), 3))
    axes.set(xlabel="", ylabel="", xticks=[], yticks=[])
    axes.set_title(f"{title}\n{lines}", fontsize=9)


def draw_sectors(axes: Axes, survey: Survey) -> None:
    """Draw the sectors that count as in front, to a side and behind, and as neither side."""
    agent = survey.placement.agent
    at = (agent.position.x, agent.position.z)
    for middle, half, shade, name in (
        (0.0, IN_FRONT, "tab:green", "in front: 0"),
        (90.0, 40.0, "tab:orange", "to a side: 0.5"),
        (-90.0, 40.0, "tab:orange", "to a side: 0.5"),
        (180.0, 180.0 - BEHIND, "tab:red", "behind: 1"),
    ):
        turn = 90.0 - agent.yaw - middle  # matplotlib counts from +x, anticlockwise
        axes.add_patch(Wedge(at, 9.0, turn - half, turn + half, color=shade, alpha=0.15, zorder=1))
        x, z = (f(math.radians(agent.yaw + middle)) for f in (math.sin, math.cos))
        axes.text(at[0] + 7.5 * x, at[1] + 7.5 * z, name, fontsize=7, ha="center", zorder=9)
    for yaw in (agent.yaw, agent.yaw + 180.0):
        turn = 90.0 - yaw
        axes.add_patch(
            Wedge(at, 14.0, turn - CENTRED, turn + CENTRED, color="tab:blue", alpha=0.15, zorder=1)
        )


def draw_light(axes: Axes) -> None:
    """Draw what a choice in the dark and the agent's freezing are counted from."""
    for off, on in ((2.0, 5.5), (7.0, 8.0)):
        axes.axvspan(off, on, color="black", alpha=0.75)
    axes.axvspan(0.0, 1.5, ymax=0.25, color="tab:blue", alpha=0.4)
    axes.text(0.75, 0.12, "frozenTime", ha="center", va="center", fontsize=8)
    axes.annotate("darkFrom", (2.0, 0.8), (0.6, 0.9), arrowprops={"arrowstyle": "->"}, fontsize=8)
    span = {"arrowstyle": "<->", "color": "white"}
    axes.annotate("", (2.0, 0.5), (5.5, 0.5), arrowprops=span)
    axes.text(3.75, 0.55, "darkLongest", color="white", ha="center", fontsize=8)
    axes.plot([3.75], [0.3], marker="D", color="tab:red")
    axes.text(3.75, 0.18, "choice: darkAtChoice 1", color="white", ha="center", fontsize=8)
    axes.set(xlim=(0, 10), ylim=(0, 1), yticks=[], xlabel="s")
    axes.set_title("light: darkness is the black share of the time limit", fontsize=9)


def draw_time(axes: Axes) -> None:
    """Draw how much time a goal leaves under the pass mark."""
    seconds = np.linspace(0.0, 25.0, 2)
    axes.plot(seconds, 1.0 - seconds / 25.0, color="tab:green")
    axes.axhline(0.4, color="black", ls="--", lw=1)
    axes.text(24.5, 0.42, "pass mark 0.4", ha="right", fontsize=8)
    axes.text(6.0, 0.82, "return of a goal of 1 m, less what time costs", fontsize=8)
    for at, name in ((3.8, "timeNeeded"), (15.0, "timeAllowed"), (25.0, "timeLimit")):
        axes.axvline(at, color="tab:blue", lw=1)
        axes.text(at - 0.2, 0.04, name, rotation=90, ha="right", fontsize=8, color="tab:blue")
    axes.text(9.4, 0.25, "timeShare =\n3.8 / 15", ha="center", fontsize=8)
    axes.set(xlim=(0, 26), ylim=(0, 1.05), xlabel="s", ylabel="return")
    axes.set_title("time: needed, allowed, and their share", fontsize=9)


def draw_values(axes: Axes) -> None:
    """Draw what waiting changes about rewards."""
    axes.plot([0, 2, 10, 14], [1, 1, 3, 3], color="tab:green", label="grows")
    axes.plot([0, 8, 14], [2.5, 0.5, 0.5], color="tab:olive", label="decays")
    arrow = {"arrowstyle": "<->"}
    axes.annotate("", (13.2, 1), (13.2, 3), arrowprops=arrow)
    axes.text(13.0, 1.5, "gainByWaiting 2", ha="right", fontsize=8)
    axes.annotate("", (9.2, 0.5), (9.2, 2.5), arrowprops=arrow)
    axes.text(9.4, 0.7, "lossByWaiting 2", fontsize=8)
    axes.plot([0, 14], [1, 1], color="tab:green", lw=0.5, ls=":")
    axes.plot([0, 14], [2.5, 2.5], color="tab:olive", lw=0.5, ls=":")
    axes.text(3.4, 2.1, "valueRate: the steepest slope", fontsize=8)
    axes.set(xlim=(0, 14), ylim=(0, 3.4), xlabel="s", ylabel="value")
    axes.set_title("changing rewards: what waiting gains and loses", fontsize=9)
    axes.legend(loc="upper left", fontsize=8)


def draw_shown(axes: Axes, survey: Survey, at_rest: Survey) -> None:
    """Draw how much of the goal's disc shows: in time to who stands still, then along the way."""
    things = [thing for thing in survey.placement.objects if thing.kind.goal]
    seen = watch(survey, things)
    end = max(float(seen.seconds[-1]), 4.0)
    for k, thing in enumerate(things):
        color = "tab:green" if thing.reward > 0 else "grey"
        axes.step(seen.seconds, seen.shown[:, k], where="post", color=color, label=thing.name)
        for gap in gaps(seen.seconds, seen.shown[:, k] >= SEEN):
            axes.axvspan(gap.start, min(gap.end, end), color=color, alpha=0.2)
    axes.axhline(SEEN, color="black", lw=0.5, ls=":")
    way = at_rest.way_looks
    if way and gaps(np.arange(len(way)), np.array([one.look.clear >= SEEN for one in way])):
        along = axes.twiny()
        metres = [one.metres for one in way]
        along.plot(metres, [one.look.clear for one in way], color="tab:purple", ls="--")
        along.set_xlabel("metres along the way (dashed)", fontsize=8, color="tab:purple")
    axes.set(xlim=(0, end), ylim=(-0.05, 1.1), xlabel="s, the agent standing still")
    axes.set_ylabel("share that shows", fontsize=8)
    axes.legend(loc="center right", fontsize=7)


def draw_places(axes: Axes, survey: Survey) -> None:
    """Mark the places where the hidden goal could be."""
    goals = [thing for thing in survey.placement.objects if thing.reward > 0 and thing.kind.goal]
    seen = watch(survey, goals)
    if not gaps(seen.seconds, seen.shown[:, 0] >= SEEN):
        return
    points = hiding_places(survey, seen, 0, seen.eye)
    for point in () if isinstance(points, str) else points:
        axes.plot([point.x], [point.z], marker="x", color="black", ms=9, mew=2, zorder=9)


def geometry(path: Path) -> None:
    """Draw demands.png."""
    figure = Figure(figsize=(15.0, 11.9), layout="constrained")
    for number, (title, names, items) in enumerate(PANELS, 1):
        survey, _, values = measure_demands(_arena(*items))
        draw_panel(figure.add_subplot(2, 3, number), title, names, survey, values)
    figure.savefig(path, dpi=60)


def more(path: Path) -> None:
    """Draw demands-more.png."""
    figure = Figure(figsize=(15.0, 9.3), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(2, 1))
    for number, (title, names, arena) in enumerate(MORE, 1):
        survey, _, values = measure_demands(arena)
        axes = above.add_subplot(1, 3, number)
        draw_panel(axes, title, names, survey, values)
        if number == 1:
            draw_sectors(axes, survey)
    for number, draw in enumerate((draw_light, draw_time, draw_values), 1):
        draw(below.add_subplot(1, 3, number))
    figure.savefig(path, dpi=60)


def hiding(path: Path) -> None:
    """Draw demands-hiding.png."""
    figure = Figure(figsize=(18.0, 7.2), layout="constrained")
    panels = figure.subplots(2, len(HIDING), height_ratios=(3, 1))
    for column, (title, names, arena) in enumerate(HIDING):
        survey, at_rest, values = measure_demands(arena)
        above, below = panels[:, column]
        draw_panel(above, title, names, at_rest, values)
        draw_places(above, survey)
        draw_shown(below, survey, at_rest)
    figure.savefig(path, dpi=60)


def main(folder: Path) -> None:
    """Draw all of them."""
    geometry(folder / "demands.png")
    more(folder / "demands-more.png")
    hiding(folder / "demands-hiding.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
