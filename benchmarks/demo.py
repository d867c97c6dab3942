"""`python -m benchmarks demo`: how often the demo finds what it planted, with other seeds."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from rich.progress import Progress

from animalcat.arena_configs.batteries.library import RECIPES, load_recipe
from animalcat.cli.demo import DEMOS, Demonstration, agent_observation
from animalcat.cli.shared.output import progress_console
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.reporting.profile import Profile
from animalcat.service.batteries.battery import build_family
from animalcat.service.batteries.recipes import build_recipe
from animalcat.service.library.batteries import FAMILY_SIZE
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.measuring.report import irrelevant
from animalcat.values import SessionSpec
from benchmarks.recovery_agents import interval_of_share
from benchmarks.recovery_sessions import Place

SEEDS: Final = 50
"""Sessions of each demonstration."""
QUICK_SEEDS: Final = 3
PROCESSES: Final = 2
"""That measure the arenas of a battery."""


class Found(NamedTuple):
    """What a session found.

    Attributes:
        node: The capability that was limited.
        episodes: How many were played.
        end: Why it ended, in a word.
        named: Whether the verdict names this capability as the single weakness.
    """

    node: NodeSummary
    episodes: int
    end: str
    named: bool


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Run sessions like those of the demo.

    Args:
        quick: Run fewer.
    """
    seeds = range(1, 1 + (QUICK_SEEDS if quick else SEEDS))
    rows: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(console=progress_console()) as bar,
    ):
        task = bar.add_task("sessions", total=len(DEMOS) * len(seeds))
        for demo in DEMOS:
            place = _place(demo, Path(folder))
            found: list[Found] = []
            for seed in seeds:
                found.append(session(demo, place, seed))
                bar.advance(task)
            rows += _rows(demo, found)
    return rows


def session(demo: Demonstration, place: Place, seed: int) -> Found:
    """Play as the demo does until both posteriors have enough, and judge by the last fit.

    Every arena is played once, and all sessions use its outcome again.
    """
    battery = place.battery
    stop = StoppingRule(demo.episodes, target_sd=demo.target_sd)
    spec = SessionSpec(
        demo.agent, battery.digest, battery.digest, demo.layout, demo.variant, stop=stop, seed=seed
    )
    measurement = Measurement(spec, battery)
    learner = measurement.learner
    while True:
        if measurement.verdict(0.0).stop:
            data = learner.data()
            fitted = fit(FitRequest(learner.layout, data.features, data.outcomes, seed))
            last = measurement.last_verdict(0.0, fitted)
            if last.stop:
                break
        choice = learner.ask(episode=learner.n)
        assert choice is not None, "the demo's batteries have more arenas than it plays"
        passed = place.outcome(demo.agent, choice.instance, seed, learner.n)
        learner.tell(choice.instance, float(passed), learner.n)
    profile = Profile.of_fit(fitted, last.status)
    told = verdict_of(learner, profile, fitted.flat_draws, irrelevant(learner))[1].found
    node = next(one for one in fitted.nodes if one.name == demo.node)
    named = told.kind == "single weakness" and told.weakness == demo.node
    return Found(node, learner.n, str(last.end), named)


def _place(demo: Demonstration, folder: Path) -> Place:
    if demo.battery in RECIPES:
        battery = build_recipe(load_recipe(demo.battery), folder, processes=PROCESSES)
    else:
        battery = build_family(demo.battery, FAMILY_SIZE, 0, folder, processes=PROCESSES)
    shown = agent_observation(demo.agent)
    return Place(folder, battery.digest, demo.layout, demo.variant, shown=shown)


def _rows(demo: Demonstration, found: list[Found]) -> list[dict[str, Any]]:
    """How often the interval holds what was planted, and what else is worth knowing."""
    lows, highs = np.array([one.node.hdi for one in found]).T
    means = np.array([one.node.mean for one in found])
    held = int(((lows <= demo.planted) & (demo.planted <= highs)).sum())
    low, high = interval_of_share(held, len(found))
    named = sum(one.named for one in found)
    ends = Counter(one.end for one in found)
    return [
        {
            "name": f"{demo.agent}: the 90 % interval holds {demo.planted:g} {demo.unit}",
            "value": held / len(found),
            "low": low,
            "high": high,
            "note": f"{held} of {len(found)} sessions; the verdict names it in {named}",
        },
        {
            "name": f"{demo.agent}: found, median",
            "value": float(np.median(means)),
            "low": float(means.min()),
            "high": float(means.max()),
            "unit": demo.unit,
            "note": f"90 % intervals are {float(np.median(highs - lows)):.1f} {demo.unit} wide",
        },
        {
            "name": f"{demo.agent}: episodes, median",
            "value": float(np.median([one.episodes for one in found])),
            "low": min(one.episodes for one in found),
            "high": max(one.episodes for one in found),
            "note": ", ".join(f"{number} {end}" for end, number in ends.most_common()),
        },
    ]
