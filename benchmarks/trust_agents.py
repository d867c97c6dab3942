"""Agents that a layout does not describe, each by name: what `benchmarks trust` and the docs show.

`KNOWN` are the kinds that were in view when the alarm and the rules were designed, or that have
served to compare rules since. `UNSEEN` were written down, and committed, before any of them was
run once. So were `ENDS`, on which the check before a session ends is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.bench.sessions import Player, World
from animalcat.layouts.simulation.simulate import LayoutAgent

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

POOR: Final = 0.1
"""Success where such an agent fails."""


def agent_at(world: World, level: float, noise: float = 0.05) -> LayoutAgent:
    """An agent that the layout describes, with every capability at this share of its range."""
    values = {"capability": level, "robustness": noise, "bias": 0.0}
    theta = [
        values[node.kind] * (node.prior.span if node.kind == "capability" else 1.0)
        for node in world.layout.latents
    ]
    return LayoutAgent(world.layout, np.array(theta))


def able(world: World, level: float = 0.9, noise: float = 0.05) -> Player:
    """An agent that is near the top of every range."""
    agent = agent_at(world, level, noise)
    return Player("able", agent.probability(world.instances), theta=agent.theta)


def players_of(world: World, kinds: Mapping[str, Callable[[World], Player]]) -> list[Player]:
    """One player of each kind; the world is that of object permanence (`op_battery`)."""
    return [make(world) for make in kinds.values()]


def _good(world: World) -> Floats:
    return agent_at(world, 0.9).probability(world.instances)


def _poor(world: World) -> Floats:
    return agent_at(world, 0.3).probability(world.instances)


def _column(world: World, name: str) -> Floats:
    return world.instances.column(name)


def _failing(name: str, where: Callable[[World], Mask]) -> Callable[[World], Player]:
    """An able agent that fails on some instances."""

    def make(world: World) -> Player:
        good = _good(world)
        return Player(name, np.where(where(world), np.minimum(good, POOR), good))

    return make


def _moving(world: World) -> Player:
    return Player("stops", _good(world), np.zeros(len(world.instances)), start=14, episodes=1)


def _drifting(world: World) -> Player:
    return Player("drifts", _good(world), _poor(world), start=0, episodes=120)


def _days(world: World) -> Player:
    return Player("days", _good(world), np.minimum(_good(world), 0.25), days=12)


def _upset(world: World) -> Player:
    return Player("upset", _good(world), np.minimum(_good(world), 0.25), upset=True)


def _waking(world: World) -> Player:
    return Player("wakes", np.zeros(len(world.instances)), _good(world), start=30, episodes=1)


def _steps(world: World) -> Player:
    """All or nothing: it passes what the layout predicts at half or more, and nothing else."""
    middle = agent_at(world, 0.6, 0.0).probability(world.instances)
    return Player("all-or-nothing", np.where(middle >= 0.5, 0.97, 0.03))


def _relapsing(world: World) -> Player:
    return Player("relapses", _good(world), _poor(world), days=35)


KNOWN: Final[Mapping[str, Callable[[World], Player]]] = {
    "lava-ramp": _failing(
        "lava-ramp",
        lambda w: (_column(w, "lavaPresence") > 0) & (_column(w, "rampPresence") > 0),
    ),
    "one-sided-memory": _failing(
        "one-sided-memory",
        lambda w: (_column(w, "timeUnderOcc") > 0) & (_column(w, "rightLeftPosition") > 0),
    ),
    "stops": _moving,
    "drifts": _drifting,
    "days": _days,
    "upset": _upset,
    "colour": _failing("colour", lambda w: _column(w, "occluderBlueness") > 120),
    "near-goals": _failing("near-goals", lambda w: _column(w, "goalDistance") < 14),
    "platform-left": _failing(
        "platform-left",
        lambda w: (_column(w, "platformPresence") > 0) & (_column(w, "rightLeftPosition") < 0),
    ),
    "large-goals-behind-lava": _failing(
        "large-goals-behind-lava",
        lambda w: (_column(w, "lavaPresence") > 0) & (_column(w, "goalSize") >= 2),
    ),
    "red-and-hidden": _failing(
        "red-and-hidden",
        lambda w: (_column(w, "occluderRedness") > 90) & (_column(w, "occluderPresence") > 0),
    ),
    "short-hiding": _failing(
        "short-hiding",
        lambda w: (_column(w, "timeUnderOcc") > 0) & (_column(w, "timeUnderOcc") <= 2),
    ),
    "wakes": _waking,
    "all-or-nothing": _steps,
    "relapses": _relapsing,
}
"""Interaction of lava and ramps, memory on one side only, an agent that stops moving after 14
episodes, one that gets worse over 120, good and bad days, upset after a failure, and one that fails
by a colour. Fails near goals; platforms on the left; large goals behind lava; red occluders that
hide; short hiding; does nothing for 30 episodes; has steps for slopes; changes every 35
episodes."""


def _learning(world: World) -> Player:
    return Player("learns-slowly", _poor(world), _good(world), start=0, episodes=150)


def _breaking(world: World) -> Player:
    return Player("breaks-late", _good(world), _poor(world), start=120, episodes=1)


def _careless(world: World) -> Player:
    """Worse unless it has just failed."""
    return Player("careless", np.minimum(_good(world), 0.4), _good(world), upset=True)


def _two_minded(world: World) -> Player:
    """Good or poor at everything, as chance has it in each episode."""
    return Player("two-minded", (_good(world) + _poor(world)) / 2.0)


def _compensating(world: World) -> Player:
    """Good at one thing makes up for poor at another, where the layout asks for all."""
    layout = world.layout
    weak = agent_at(world, 0.35).theta
    strong = agent_at(world, 0.95).theta
    alone = [
        LayoutAgent(layout, np.where(np.arange(len(strong)) == i, weak, strong)).probability(
            world.instances
        )
        for i, node in enumerate(layout.latents)
        if node.kind == "capability"
    ]
    return Player("compensates", np.mean(alone, axis=0))


UNSEEN: Final[Mapping[str, Callable[[World], Player]]] = {
    "far-and-hidden": _failing(
        "far-and-hidden",
        lambda w: (_column(w, "timeUnderOcc") > 0) & (_column(w, "goalDistance") > 30),
    ),
    "not-ahead": _failing("not-ahead", lambda w: _column(w, "rightLeftPosition") != 0),
    "small-on-platforms": _failing(
        "small-on-platforms",
        lambda w: (_column(w, "platformPresence") > 0) & (_column(w, "goalSize") < 1.5),
    ),
    "learns-slowly": _learning,
    "breaks-late": _breaking,
    "careless": _careless,
    "two-minded": _two_minded,
    "compensates": _compensating,
}
"""Fails at what is far and hidden; at goals that are not ahead; at small goals on platforms; learns
over 150 episodes; breaks after 120; is worse unless it has just failed; is good or poor by chance
in every episode; makes up for one weakness by other strengths."""


def _breaking_early(world: World) -> Player:
    return Player("breaks-at-40", _good(world), _poor(world), start=40, episodes=1)


def _every_other(world: World) -> Player:
    return Player("every-other", _good(world), np.minimum(_good(world), POOR), days=1)


def _adding(world: World) -> Player:
    """Passes as long as its difficulties together are few, whichever they are."""
    most = {"goalDistance": 56.0, "timeUnderOcc": 4.0, "numPositions": 11.0}
    alone = ("lavaPresence", "rampPresence", "platformPresence")
    shares = [_column(world, name) / high for name, high in most.items()]
    whole = np.sum([*shares, *(_column(world, name) / 2.0 for name in alone)], axis=0)
    return Player("adds-up", np.where(whole <= np.median(whole), 0.9, POOR))


def _chick(world: World) -> Mask:
    return np.array([name.startswith("chick") for name in world.instances.paradigms])


ENDS: Final[Mapping[str, Callable[[World], Player]]] = {
    "lava-on-the-right": _failing(
        "lava-on-the-right",
        lambda w: (_column(w, "lavaPresence") > 0) & (_column(w, "rightLeftPosition") > 0),
    ),
    "large-and-far": _failing(
        "large-and-far",
        lambda w: (_column(w, "goalSize") >= 2.5) & (_column(w, "goalDistance") > 25),
    ),
    "few-places": _failing(
        "few-places",
        lambda w: (_column(w, "numPositions") > 1) & (_column(w, "numPositions") <= 3),
    ),
    "green": _failing("green", lambda w: _column(w, "occluderGreenness") > 100),
    "chick": _failing("chick", _chick),
    "breaks-at-40": _breaking_early,
    "every-other": _every_other,
    "adds-up": _adding,
}
"""Fails where lava is and the goal on the right; at large goals that are far; where there are two
or three places; by another colour; in the two paradigms of chicks; breaks after 40 episodes; is
poor in every second episode; passes as long as its difficulties together are few."""

NAMES: Final[Mapping[str, frozenset[str]]] = {
    "lava-ramp": frozenset({"rampPresence and lavaPresence"}),
    "one-sided-memory": frozenset(
        {
            "rightLeftPosition and occluderPresence",
            "rightLeftPosition and timeUnderOcc",
            "rightLeftPosition and numPositions",
        }
    ),
    "stops": frozenset({"time"}),
    "drifts": frozenset({"time"}),
    "days": frozenset({"time"}),
    "upset": frozenset({"the outcome before"}),
    "colour": frozenset({"occluderBlueness"}),
    "near-goals": frozenset({"goalDistance"}),
    "platform-left": frozenset({"platformPresence and rightLeftPosition"}),
    "large-goals-behind-lava": frozenset({"lavaPresence and goalSize"}),
    "red-and-hidden": frozenset({"occluderRedness"}),
    "short-hiding": frozenset({"timeUnderOcc"}),
    "wakes": frozenset({"time"}),
    "all-or-nothing": frozenset(),
    "relapses": frozenset({"time"}),
    "far-and-hidden": frozenset(
        {
            "goalDistance and occluderPresence",
            "goalDistance and timeUnderOcc",
            "goalDistance and numPositions",
        }
    ),
    "not-ahead": frozenset({"rightLeftPosition"}),
    "small-on-platforms": frozenset({"platformPresence and goalSize"}),
    "learns-slowly": frozenset({"time"}),
    "breaks-late": frozenset({"time"}),
    "careless": frozenset({"the outcome before"}),
    "two-minded": frozenset(),
    "compensates": frozenset(),
}
"""By which stratifications each kind would be named rightly; "time" are changes from an episode on.
It is empty where no stratum of ours says what is wrong."""
