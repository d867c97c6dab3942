"""Campaigns: which of several agents plays next, so that overlapping agents are told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from animalcat.layouts.adaptive.plan import Allocation

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What is known of one agent; all values are shares of the capabilities' ranges.

    Attributes:
        mean: (capabilities,), posterior means.
        sd: (capabilities,), posterior standard deviations.
        prior: (capabilities,), standard deviations before the first episode.
        episodes: How many episodes were played.
        open: Whether the agent can still play.
    """

    mean: Floats
    sd: Floats
    prior: Floats
    episodes: int
    open: bool = True

    def movement(self, more: int) -> Floats:
        """Standard deviation of the change that more episodes are expected to make to each mean.

        What has been learnt is measured as precision, and each further episode is assumed to add as
        much as the episodes so far did on average. So a capability about which the battery tells
        nothing does not move.

        Returns:
            (capabilities,).
        """
        gained = np.maximum(self.sd**-2.0 - self.prior**-2.0, 0.0)
        odds = gained * more / max(1, self.episodes) * self.sd**2
        return self.sd * np.sqrt(odds / (1.0 + odds))


def overlapping(standings: Sequence[Standing], rule: Allocation) -> Mask:
    """Which pairs of agents are neither told apart nor known to be equivalent.

    Returns:
        (agents, agents, capabilities).
    """
    mean = np.stack([s.mean for s in standings])
    variance = np.stack([s.sd**2 for s in standings])
    gap = mean[:, np.newaxis] - mean
    sd = np.sqrt(np.maximum(variance[:, np.newaxis] + variance, 1e-300))
    apart = ndtr(np.abs(gap) / sd) >= rule.confidence
    alike = ndtr((rule.alike - gap) / sd) - ndtr((-rule.alike - gap) / sd) >= rule.confidence
    unsettled = ~(apart | alike)
    unsettled[np.arange(len(standings)), np.arange(len(standings))] = False
    return unsettled


def worth(standings: Sequence[Standing], rule: Allocation, more: int) -> Floats:
    """Expected gain from further episodes of each agent, (agents,).

    The loss of a pair, for one capability, is by how much the agent that is ranked first is the
    worse one. The expected reduction of this loss from observing one of the two has a closed form,
    the knowledge gradient (Frazier, Powell & Dayanik 2008): m psi(|gap| / m) with psi(z) = phi(z) -
    z Phi(-z), where m is the standard deviation of the expected movement of its mean. Settled pairs
    are left out.

    Args:
        standings: One for each agent.
        rule: Says which pairs are settled.
        more: How many more episodes each agent would play.
    """
    mean = np.stack([s.mean for s in standings])
    move = np.stack([s.movement(more) for s in standings])[:, np.newaxis]
    gap = np.abs(mean[:, np.newaxis] - mean)
    z = np.divide(gap, move, out=np.full(gap.shape, np.inf), where=move > 0.0)
    density = np.exp(-(np.minimum(z, 38.0) ** 2) / 2.0) / np.sqrt(2.0 * np.pi)
    psi = np.where(np.isfinite(z), density - np.minimum(z, 38.0) * ndtr(-z), 0.0)
    gains = np.where(overlapping(standings, rule), move * psi, 0.0).sum(axis=(1, 2))
    return np.where([s.open for s in standings], gains, 0.0)


def next_round(standings: Sequence[Standing], rule: Allocation, left: int) -> dict[int, int]:
    """Decide which agents are given how many episodes next.

    Args:
        standings: One for each agent; none of them is playing.
        rule: How episodes are allocated.
        left: Episodes that have not been allocated yet.

    Returns:
        Number of episodes by the agent's index. Empty if the budget is used up, every pair is
        settled, or no overlapping agent can play.
    """
    unsettled: Mask = np.any(overlapping(standings, rule), axis=(1, 2))
    able = [i for i, s in enumerate(standings) if s.open and unsettled[i]]
    # Look as far ahead as the budget allows: a single block rarely reverses an order, though
    # several would.
    gains = worth(standings, rule, max(rule.block, left // max(1, len(able))))
    able.sort(key=lambda i: (-gains[i], standings[i].episodes, i))
    given: dict[int, int] = {}
    for i in able[: rule.at_once]:
        given[i] = min(rule.block, left)
        left -= given[i]
    return {i: episodes for i, episodes in given.items() if episodes > 0}


def common_instances(
    paradigms: Sequence[str], count: int, generator: np.random.Generator
) -> list[int]:
    """Draw random instances that all agents play, paradigms in proportion to the battery.

    Args:
        paradigms: The paradigm of each instance.
        count: How many to draw; all instances if there are fewer.
        generator: Source of randomness.

    Returns:
        Their rows, in the order in which they are to be played.
    """
    shuffled = [int(row) for row in generator.permutation(len(paradigms))]
    rows: dict[str, list[int]] = {}
    for row in shuffled:
        rows.setdefault(paradigms[row], []).append(row)
    shares = {name: Fraction(len(members), len(shuffled)) for name, members in rows.items()}
    taken: Counter[str] = Counter()
    drawn: list[int] = []
    while len(drawn) < min(count, len(shuffled)):
        owed = [name for name in rows if rows[name]]
        most = max(owed, key=lambda name: shares[name] * (len(drawn) + 1) - taken[name])
        taken[most] += 1
        drawn.append(rows[most].pop())
    return drawn
