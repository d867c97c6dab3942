"""How precisely sessions of some lengths know each capability: standard errors and reliability.

The standard error is the root of the mean posterior variance over agents of the layout's prior. The
reliability is 1 - that variance / the prior's variance: 0 if nothing is learnt, 1 if all is known.
It is the marginal reliability of adaptive tests (Green, Bock, Humphreys, Linn and Reckase 1984,
Technical guidelines for assessing computerized adaptive tests), for estimates that are posterior
means the squared correlation of estimates with true values (Kim 2012, A note on the reliability
coefficients for item response model-based ability estimates).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.service.reporting.demands import Floats

Ints: TypeAlias = npt.NDArray[np.int64]

LENGTHS: Final = (20, 40, 80)
"""Numbers of episodes of the sessions; beside them, the whole battery."""
CHOOSING: Final = 40
"""Number of agents for whom arenas are chosen; the first of all."""
PARTICLES: Final = 500
"""Number of particles of a posterior."""


class Reliability(NamedTuple):
    """How precisely a capability is known.

    Attributes:
        sd: Standard error, in the capability's unit.
        reliability: 1 - its square / the prior's variance; not below 0.
    """

    sd: float
    reliability: float


class LengthReliability(NamedTuple):
    """A capability after sessions of one length.

    Attributes:
        episodes: How many arenas are played.
        chosen: If the default policy chooses them; None of the whole battery, where all are played.
        at_random: If they come in a random order.
    """

    episodes: int
    chosen: Reliability | None
    at_random: Reliability


class NodeReliability(NamedTuple):
    """A capability after sessions of several lengths.

    Attributes:
        name: The capability.
        lengths: By length, ascending.
    """

    name: str
    lengths: tuple[LengthReliability, ...]


def lengths_of(size: int) -> tuple[int, ...]:
    """Lengths of sessions on a battery of this many instances, the whole of it last."""
    return (*(n for n in LENGTHS if n < size), size)


def drawn_outcomes(bank: Bank, truth: Floats, agent: int) -> tuple[Ints, Floats]:
    """Let an agent play every instance once, in an order drawn for it.

    Args:
        bank: The instances.
        truth: (nodes,): the agent's true values.
        agent: Its number, by which chance is drawn.

    Returns:
        The order, as rows of the bank, and the outcomes in this order.
    """
    generator = rng(0, "played", agent)
    order = generator.permutation(len(bank.place))
    rows = bank.place[order]
    columns = bank.distinct[rows]
    if bank.layout.counted:
        columns = bank.evaluator.columns(bank.in_order(order))
    outcomes = bank.evaluator.simulate([truth], columns, generator)[:, 0]
    if outcomes.ndim == 2:
        outcomes = np.where(bank.gives[rows], outcomes, np.nan)
    return order, np.asarray(outcomes, np.float64)


def _variances(posterior: LivePosterior) -> Floats:
    """Variances of a posterior, (nodes,)."""
    mean = posterior.weights @ posterior.particles
    return posterior.weights @ (posterior.particles - mean) ** 2


def variances_at_random(posterior: LivePosterior, bank: Bank, truth: Floats) -> Floats:
    """Play the whole battery in a random order; the posterior then knows all of it.

    Args:
        posterior: The prior; its seed is the agent's number.
        bank: The instances.
        truth: (nodes,): the agent's true values.

    Returns:
        (lengths, nodes): posterior variances after each of `lengths_of`.
    """
    order, outcomes = drawn_outcomes(bank, truth, posterior.seed)
    features = bank.in_order(order)
    made: list[Floats] = []
    start = 0
    for end in lengths_of(len(order)):
        posterior.update_all(features[start:end], outcomes[start:end], start + 1)
        made.append(_variances(posterior))
        start = end
    return np.array(made)


def variances_if_chosen(
    bank: Bank, truths: Sequence[Floats], tick: Callable[[], object] = lambda: None
) -> Floats:
    """Let the default policy choose for agents, whose outcomes are those of the random order.

    Where the layout counts what was played before, an instance counts as in that order.

    Args:
        bank: The instances.
        truths: The true values of each agent, by its number.
        tick: Called after each agent.

    Returns:
        (agents, lengths, nodes): posterior variances after each of `lengths_of`, but for the last.
    """
    chooser, lengths = Chooser(bank), lengths_of(len(bank))[:-1]
    made = np.zeros((len(truths), len(lengths), len(bank.layout.latents)))
    for agent, truth in enumerate(truths):
        order, outcomes = drawn_outcomes(bank, truth, agent)
        of_row = dict(zip(order.tolist(), outcomes, strict=True))
        features = bank.in_order(order)[np.argsort(order)]
        posterior = LivePosterior(bank.layout, agent, particles=PARTICLES)
        played: list[int] = []
        for number in range(1, max(lengths, default=0) + 1):
            choice = chooser.choose(posterior, History(played), number)
            if choice is None:
                break
            posterior.update(features[choice.index], of_row[choice.index], number)
            played.append(choice.index)
            if number in lengths:
                made[agent, lengths.index(number)] = _variances(posterior)
        tick()
    return made


def reliabilities(bank: Bank, at_random: Floats, chosen: Floats) -> tuple[NodeReliability, ...]:
    """Average over agents.

    Fewer agents are chosen for than play in a random order. So that it does not matter which these
    are, what choosing makes of their variances is applied to those of all.

    Args:
        bank: The instances.
        at_random: (agents, lengths, nodes), as `variances_at_random` has them.
        chosen: (agents, lengths but the last, nodes), of the first of these agents.
    """
    layout = bank.layout
    every = at_random.mean(axis=0)
    factor = chosen.mean(axis=0) / at_random[: len(chosen), :-1].mean(axis=0)

    def reliability_of(variance: float, node: int) -> Reliability:
        prior = layout.latents[node].prior.sd ** 2
        return Reliability(float(np.sqrt(variance)), max(0.0, 1.0 - float(variance) / prior))

    def after(k: int, episodes: int, node: int) -> LengthReliability:
        shorter = k < len(factor)
        picked = reliability_of(factor[k, node] * every[k, node], node) if shorter else None
        return LengthReliability(episodes, picked, reliability_of(every[k, node], node))

    return tuple(
        NodeReliability(
            layout.latents[node].name,
            tuple(after(k, n, node) for k, n in enumerate(lengths_of(len(bank)))),
        )
        for node in layout.capabilities
    )
