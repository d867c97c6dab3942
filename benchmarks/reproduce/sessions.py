"""Adaptive sessions on the entrants' outcomes, beside the profiles that Figure 9 prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import spearmanr

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.checking.predict import FittedLayout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout
from benchmarks.reproduce.chance import average_chance, with_chance
from benchmarks.reproduce.olympics import Floats
from benchmarks.reproduce.printed import burden2023

METRES: Final = 15.0
"""Metres of one unit of navigationAbility in `metres-15`."""
CENTRE: Final = 28.15
SPREAD: Final = 11.24
"""Mean and standard deviation of the distances of the 69 instances in metres: zero and unit of the
abilities of Figure 9, as `figure-9` has them."""
ABILITY: Final = "navigationAbility"
SIGHT: Final = "visualAbility"


@dataclass(frozen=True, slots=True)
class SessionProfile:
    """What one adaptive session found of an entrant.

    Attributes:
        name: The entrant.
        success: Its success rate on all instances.
        episodes: Number of episodes that the session took.
        navigation: Posterior mean of navigationAbility, in metres straight ahead.
        visual: Posterior mean of visualAbility, in the layout's unit.
        printed_navigation: The printed mean, in metres by the zero and unit of `figure-9`.
        printed_visual: The printed mean of visualAbility.
        printed_unit: The printed mean of navigationAbility less ours, both as they are.
        expected: Share of all instances that the session's posterior expects it to pass.
        printed_expected: Share that the printed means expect by `figure-9`.
    """

    name: str
    success: float
    episodes: int
    navigation: float
    visual: float
    printed_navigation: float
    printed_visual: float
    printed_unit: float
    expected: float
    printed_expected: float


@dataclass(frozen=True, slots=True)
class SessionsBeside:
    """Sessions beside Figure 9, over the entrants.

    Attributes:
        entrants: Number of entrants.
        episodes: Mean number of episodes.
        rank_navigation: Rank correlation of the means of navigationAbility (Spearman).
        rank_visual: The same of visualAbility.
        apart: Root mean squared difference of navigationAbility, each in its own unit.
        ours: Root mean squared difference of the share that the session expects from what the
            entrant passed, for entrants below a success rate of 0.3.
        printed: The same of the share that the printed means expect.
        poor: Number of these entrants.
    """

    entrants: int
    episodes: float
    rank_navigation: float
    rank_visual: float
    apart: float
    ours: float
    printed: float
    poor: int


_POOR: Final = 0.3
"""Success rate below which an entrant is compared in `SessionsBeside.ours`."""


def session_profiles(
    layout: Layout,
    printed_by: Layout,
    table: OutcomeTable,
    seed: int,
    *,
    done: Callable[[], object] | None = None,
) -> list[SessionProfile]:
    """Let every entrant of Figure 9 play one session, by the usual rules, from its outcomes.

    Args:
        layout: `aaio` in the variant of new sessions, with abilities in units of 15 m.
        printed_by: Its variant `figure-9`, which says what the printed means expect.
        table: Outcomes of the entrants, by the names of the instances.
        seed: Seed of the sessions.
        done: Called after each entrant.
    """
    profiles: list[SessionProfile] = []
    printed = burden2023().figure_9
    for agent in table.agents:
        instances, outcomes = table.of(agent)
        row = printed.get(agent)
        if row is not None:
            learner, episodes = _played(layout, instances, outcomes, seed)
            mean = {node.name: node.mean for node in learner.summary()}
            posterior = learner.posterior
            ours = FittedLayout(layout, posterior.particles, posterior.weights)
            theirs = FittedLayout(
                printed_by,
                np.array([[row.mean[node.name] for node in printed_by.latents]]),
                np.ones(1),
            )
            told = with_chance(instances, average_chance(outcomes))
            profiles.append(
                SessionProfile(
                    agent,
                    float(outcomes.mean()),
                    episodes,
                    METRES * mean[ABILITY],
                    mean[SIGHT],
                    CENTRE + SPREAD * row.mean[ABILITY],
                    row.mean[SIGHT],
                    row.mean[ABILITY] - mean[ABILITY],
                    float(ours.predict(instances).mean()),
                    float(theirs.predict(told).mean()),
                )
            )
        if done is not None:
            done()
    return profiles


def _played(
    layout: Layout, instances: Instances, outcomes: Floats, seed: int
) -> tuple[Learner, int]:
    """A session to its own end, answered from the outcomes."""
    answers = dict(zip(instances.names, outcomes.tolist(), strict=True))
    learner = Learner(Bank.of(layout, instances), rule=StoppingRule(), seed=seed)
    episodes = 0
    while not learner.verdict().stop and (choice := learner.ask()) is not None:
        learner.tell(choice.instance, answers[choice.instance])
        episodes += 1
    return learner, episodes


def beside(profiles: Sequence[SessionProfile]) -> SessionsBeside:
    """Compare the sessions with Figure 9."""
    poor = [p for p in profiles if p.success < _POOR]
    return SessionsBeside(
        len(profiles),
        float(np.mean([p.episodes for p in profiles])),
        _rank([p.navigation for p in profiles], [p.printed_navigation for p in profiles]),
        _rank([p.visual for p in profiles], [p.printed_visual for p in profiles]),
        _rms([p.printed_unit for p in profiles]),
        _rms([p.expected - p.success for p in poor]),
        _rms([p.printed_expected - p.success for p in poor]),
        len(poor),
    )


def _rank(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return float(spearmanr(ours, theirs).statistic)


def _rms(errors: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors)))) if errors else float("nan")
