"""What an adaptive test is to be expected to find out: agents of the prior take it beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import learnt

Floats: TypeAlias = npt.NDArray[np.float64]

AGENTS: Final = 20
"""Agents that take a test beforehand unless another number is asked for."""
THIRDS: Final = ("low", "middle", "high")
"""Parts of the prior's agents by what is true of them."""


@dataclass(frozen=True, eq=False)
class Course:
    """How the test of one agent went.

    Attributes:
        truth: (latents,): what is true of the agent.
        episodes: Number of episodes until the test ended.
        seconds: Sum of their expected durations.
        reason: Why it ended.
        nodes: What was known of it in the end, in the layout's order.
        precise: Whether each capability was at its target, or bounded where the battery ends.
    """

    truth: Floats
    episodes: int
    seconds: float
    reason: str
    nodes: Sequence[NodeSummary]
    precise: Mapping[str, bool]


class Ending(NamedTuple):
    """How the tests of one third of the agents ended for one node: medians over these agents.

    Attributes:
        third: Which third, by what is true of them.
        truth: What is true of them, in the node's unit.
        sd: Posterior standard deviation.
        hdi: Ends of the interval.
    """

    third: str
    truth: float
    sd: float
    hdi: tuple[float, float]


def courses(
    bank: Bank,
    policy: Policy,
    rule: StoppingRule,
    agents: int = AGENTS,
    seed: int = 0,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> list[Course]:
    """Let agents of the prior take an adaptive test, as sessions with these settings go.

    They play in the layout's own words. So what is found holds for agents that it describes.

    Args:
        bank: The instances, with the layout. Their seconds are the episodes' durations.
        policy: How to choose.
        rule: When to stop.
        agents: Number of agents.
        seed: Seed of agents, outcomes and choices.
        tick: Told how many agents are done, of how many.
    """
    made: list[Course] = []
    for k in range(agents):
        tick(k, agents)
        made.append(_course(bank, policy, rule, k, seed))
    return made


def _course(bank: Bank, policy: Policy, rule: StoppingRule, agent: int, seed: int) -> Course:
    generator = rng(seed, "planned", agent)
    truth = bank.layout.from_standard(generator.standard_normal(len(bank.layout.latents)))
    learner = Learner(bank, policy, rule, seed=seed + agent)
    rows = {name: row for row, name in enumerate(bank.names)}
    seconds = 0.0
    while not (verdict := learner.verdict(seconds)).stop and (choice := learner.ask()):
        row = rows[choice.instance]
        columns = bank.evaluator.columns(learner.bank.features[[row]])
        outcome = bank.evaluator.simulate([truth], columns, generator)[0, 0]
        if np.ndim(outcome):
            learner.tell(
                choice.instance, np.where(bank.gives[bank.place[row]], outcome, np.nan).tolist()
            )
        else:
            learner.tell(choice.instance, float(outcome))
        seconds += float(bank.seconds[row])
    assert verdict.facts is not None  # a rule's stopper has facts
    precise = {name: known != "open" for name, known in verdict.facts.live.items()}
    return Course(truth, learner.n, seconds, verdict.reason, learner.summary(), precise)


def endings(found: Sequence[Course], index: int) -> list[Ending]:
    """How tests of agents with low, middling and high values of one node ended.

    Args:
        found: What `courses` returned, of three agents at least.
        index: Column of the node.
    """
    values = np.array(
        [
            (one.truth[index], one.nodes[index].sd, *one.nodes[index].hdi)
            for one in sorted(found, key=lambda one: one.truth[index])
        ]
    )
    made: list[Ending] = []
    for third, part in zip(THIRDS, np.array_split(values, 3), strict=True):
        truth, sd, low, high = np.median(part, axis=0).tolist()
        made.append(Ending(third, truth, sd, (low, high)))
    return made


def share_known(found: Sequence[Course], index: int, prior_sd: float) -> float:
    """Share of agents of whom enough was learnt of a node for its estimate to be said."""
    return float(np.mean([learnt(one.nodes[index].sd, prior_sd) for one in found]))


def less_noisy(found: Sequence[Course], layout: Layout) -> list[Course]:
    """The half of the agents that chance decides less for; empty where no node is such a share.

    A prior that knows nothing of noise has many agents that are mostly noise, of whom next to
    nothing can be learnt.

    Args:
        found: What `courses` returned.
        layout: The layout.
    """
    noise = [
        k
        for k, node in enumerate(layout.latents)
        if node.kind == "robustness" and (node.prior.low, node.prior.high) == (0.0, 1.0)
    ]
    if not noise:
        return []
    return sorted(found, key=lambda one: one.truth[noise[0]])[: len(found) // 2]
