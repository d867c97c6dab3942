"""Works out what a session is expected to find out; this takes the server extra."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from animalcat.cli.shared.output import fail
from animalcat.cli.shared.progress import Tell
from animalcat.client import Client
from animalcat.envs.types import PHYSICS_STEP
from animalcat.lab.received import received
from animalcat.layouts.adaptive.plan import PRESETS, Policy
from animalcat.layouts.explaining.wording import Scale, percent, scale_of
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.nodes import Latent
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import learnt
from animalcat.layouts.simulation.planning import (
    Course,
    Ending,
    courses,
    endings,
    less_noisy,
    share_known,
)
from animalcat.service.errors import ServiceError
from animalcat.service.library.layouts import layout_on
from animalcat.service.measuring.measurement import Measurement
from animalcat.values import SessionSpec


def expected(
    client: Client,
    battery: str,
    layout: tuple[str, str],
    policy: Mapping[str, Any],
    preset: str,
    rule: Mapping[str, Any],
    *,
    agents: int,
    seed: int,
    tell: Tell,
) -> dict[str, Any]:
    """What a session would find out of agents of the prior, as JSON values with words.

    Args:
        client: Of the server that has the battery.
        battery: Its id.
        layout: Name or file of the layout, empty for the battery's, and its variant.
        policy: Fields of the policy that differ from the usual ones.
        preset: Name of a stopping rule.
        rule: Fields of it that are to be others.
        agents: How many agents take the test.
        seed: Seed of all chance.
        tell: Told of progress.

    Raises:
        ValueError: The policy or the rule is none.
    """
    name, variant = layout
    known = received(client, battery)
    stop, choice = replace(PRESETS[preset], **rule), Policy(**policy)
    try:
        meant = layout_on(known, name, variant)
        measured = Measurement(SessionSpec("", battery, policy=choice, stop=stop), known, meant)
    except (ServiceError, SpecificationError) as error:
        fail(str(error))
    bank, covered = measured.learner.bank, measured.covers()
    courses_taken = courses(
        bank,
        choice,
        stop,
        agents,
        seed,
        lambda done, total: tell("simulated agents take the test", done, total),
    )
    scales = [scale_of(meant, k, bank.features) for k in range(len(meant.latents))]
    episodes = [course.episodes for course in courses_taken]
    minutes = [course.seconds * PHYSICS_STEP / 60.0 for course in courses_taken]
    reasons = Counter(course.reason for course in courses_taken)
    return {
        "battery": battery,
        "covered": covered["covered"],
        "of": covered["of"],
        "layout": f"{meant.name}, {meant.variant}",
        "variant": covered["variant"],
        "asked": {name: asked["arenas"] for name, asked in covered["asked"].items()},
        "warnings": covered["warnings"],
        "agents": agents,
        "max_episodes": stop.max_episodes,
        "target_sd": stop.target_sd,
        "episodes": _spread(episodes),
        "minutes": _spread(minutes),
        "reasons": dict(reasons.most_common()),
        "nodes": [_row(courses_taken, meant, k, scale) for k, scale in enumerate(scales)],
        "sentences": [
            *filter(None, (covered["variant"],)),
            *covered["warnings"],
            f"Episodes: {_words(episodes, 3)}, of at most {stop.max_episodes}. The layout covers "
            f"{covered['covered']} of {covered['of']} arenas.",
            f"Time of play, if every episode lasts as long as it may: {_words(minutes, 2)} minutes "
            "of the arena's clock. The built-in simulator is faster than that clock; the rest is "
            "what the agent takes to decide.",
            *(
                f"{percent(number / agents)} of the agents: {reason}."
                for reason, number in reasons.most_common()
            ),
        ],
    }


def _spread(values: list[float] | list[int]) -> dict[str, float]:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95], method="nearest").tolist()
    return {"median": middle, "low": low, "high": high}


def _words(values: list[float] | list[int], digits: int) -> str:
    spread = _spread(values)
    low, middle, high = (f"{spread[key]:.{digits}g}" for key in ("low", "median", "high"))
    return middle if low == high else f"{middle} ({low} to {high} for nine agents of ten)"


def _row(tests: list[Course], layout: Layout, index: int, scale: Scale) -> dict[str, Any]:
    """One node: how tests of typical agents end, and of how many agents it gets known."""
    node = layout.latents[index]
    reached = [course.precise[node.name] for course in tests if node.name in course.precise]
    quiet = less_noisy(tests, layout)
    return {
        "node": node.name,
        **{ending.third: _ending(ending, node, scale) for ending in endings(tests, index)},
        "known": share_known(tests, index, node.prior.sd),
        "known_less_noisy": share_known(quiet, index, node.prior.sd) if quiet else None,
        "at_target": float(np.mean(reached)) if reached else None,
    }


def _ending(ending: Ending, node: Latent, scale: Scale) -> str:
    truth, interval = scale.brief(ending.truth, *ending.hdi)
    known = "" if learnt(ending.sd, node.prior.sd) else ", not known"
    return f"{truth}: {interval}{known}"
