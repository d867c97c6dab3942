"""Compares agents that were measured with one layout: ranks, groups, and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.wording import Scale, plain_scale
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import HDI_SHARE, even_hdi
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NodeWords

Floats: TypeAlias = npt.NDArray[np.float64]
Scales: TypeAlias = Mapping[str, Scale]
"""How nodes are read, by name."""

TOLD_APART: Final = 0.95
"""Probability of the larger value from which on two agents are told apart by a node, and of a
difference below the margin from which on they are called alike."""
FEW: Final = 24
"""Agents up to which each has a row and a name of its own; of more, the first and the last."""
_DRAWS: Final = 4000
"""Number of draws on which comparisons are made."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known about one agent, as equally weighted independent draws.

    Attributes:
        name: The agent, or a checkpoint of it.
        layout: Digest of the layout; only posteriors of one layout can be compared.
        nodes: Names of the latent nodes.
        units: Their units.
        draws: (draws, nodes).
        approximate: Whether the draws were made from a mean and a standard deviation only.
    """

    name: str
    layout: str
    nodes: tuple[str, ...]
    units: tuple[str, ...]
    draws: Floats
    approximate: bool = False

    @classmethod
    def of_fit(cls, name: str, fitted: FitResult) -> Posterior:
        """Take the draws of a fit by NUTS."""
        return cls.of_draws(name, fitted.layout, fitted.flat_draws)

    @classmethod
    def of_profile(cls, name: str, profile: Mapping[str, Any]) -> Posterior:
        """Draw from an approximation to a profile's JSON, which holds no draws.

        Each node is approximated independently, with the profile's mean and standard deviation: by
        a Beta distribution on its range, by a gamma distribution if the range has no upper end, and
        by a normal distribution if it has no ends.

        Raises:
            ValueError: The data is not a profile.
        """
        try:
            digest, nodes = str(profile["layout"]["digest"]), dict(profile["nodes"])
            columns = [_draw_from_estimate(node, rng(0, key, 0)) for key, node in nodes.items()]
            units = tuple(str(node["unit"]) for node in nodes.values())
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{name}: no profile: {error!r}") from None
        return cls(name, digest, tuple(nodes), units, np.stack(columns, axis=1), approximate=True)

    @cached_property
    def means(self) -> Floats:
        """(nodes,)."""
        return np.array([self.draws[:, i].mean() for i in range(len(self.nodes))])

    @cached_property
    def ordered(self) -> Floats:
        """(nodes, draws), the draws of each node in ascending order."""
        return np.sort(self.draws.T, axis=1)

    @cached_property
    def intervals(self) -> Floats:
        """(nodes, 2), the 90 % highest-density interval of each node."""
        return even_hdi(self.ordered)

    @classmethod
    def of_draws(cls, name: str, layout: Layout, draws: Floats) -> Posterior:
        """Take draws, (draws, latents), that are equally weighted."""
        units = tuple(node.unit for node in layout.latents)
        return cls(name, layout.digest, layout.latent_names, units, draws)


@dataclass(frozen=True, slots=True)
class NodeDifference:
    """The difference of two agents in one node, first minus second.

    Attributes:
        agent: The first agent.
        than: The second.
        node: Name of the node.
        unit: Its unit.
        mean: Mean of the difference.
        hdi: 90 % highest-density interval of the difference.
        more: Probability that the first agent has the larger value.
        words: The difference and its interval, in the unit in which the node is read.
        alike: Probability that it is less than the margin that was named, in that unit; None where
            none was.
        verdict: "apart", "alike within" the margin, both, or "not yet known".
    """

    agent: str
    than: str
    node: str
    unit: str
    mean: float
    hdi: tuple[float, float]
    more: float
    words: NodeWords
    alike: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class AgentStanding:
    """Where one agent stands by one node.

    Attributes:
        node: The node.
        unit: Its unit.
        agent: The agent.
        mean: Posterior mean.
        hdi: 90 % highest-density interval.
        words: The estimate and its interval, in the unit in which the node is read.
        rank: Expected rank; the agent of rank 1 has the largest value.
        ranks: 90 % interval of the rank.
        most: Probability of rank 1.
        group: Number of the group of agents that are not told apart from the group's first, which
            has less than the first of the group above with a probability of `TOLD_APART` at least.
        behind: By how much the agent that stands first has more; None of that agent itself.
        rising: Whether a larger value is more ability.
    """

    node: str
    unit: str
    agent: str
    mean: float
    hdi: tuple[float, float]
    words: NodeWords
    rank: float
    ranks: tuple[int, int]
    most: float
    group: int
    behind: NodeDifference | None
    rising: bool

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        row = {**asdict(self), "words": self.words._asdict()}
        if self.behind is not None:
            row["behind"] = {**asdict(self.behind), "words": self.behind.words._asdict()}
        return row

    def cells(self) -> dict[str, str]:
        """The cells of a table for people, by column."""
        behind = self.behind
        return {
            "node": self.node,
            "agent": self.agent,
            "estimate": self.words.estimate,
            "90 %": self.words.interval,
            "rank": f"{self.rank:.1f} ({self.ranks[0]} to {self.ranks[1]})",
            "P(most)": f"{self.most:.2f}",
            "group": str(self.group),
            "first has more by": "–" if behind is None else behind.words.estimate,
            "90 % of that": "–" if behind is None else behind.words.interval,
            "P(more)": "–" if behind is None else f"{behind.more:.2f}",
            "verdict": "–" if behind is None else behind.verdict,
        }


def compare_agents(
    posteriors: Sequence[Posterior],
    seed: int = 0,
    *,
    scales: Scales | None = None,
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
    within: Mapping[str, float] | None = None,
) -> list[AgentStanding]:
    """Say of every node where agents stand, and how far each is behind the first.

    Agents come in order of their expected ranks. No two are compared but with the first of all and
    of a group, so that this takes time by the number of agents, and not by its square.

    Args:
        posteriors: One an agent, at least one.
        seed: Seed of the pairing of draws.
        scales: How the values of nodes are read, by name; of those that are not there the unit
            alone is known.
        nodes: The nodes of each agent's profile, as JSON, by agent. What these do not know is not
            said.
        within: By node, the margin below which a difference counts as alike, in the unit in which
            the node is read.

    Raises:
        ValueError: No posterior is given, or the layouts differ.
    """
    _insist_one_layout(posteriors)
    rows = [_pairing(posterior, seed, k) for k, posterior in enumerate(posteriors)]
    found: list[AgentStanding] = []
    for i, (node, unit) in enumerate(zip(posteriors[0].nodes, posteriors[0].units, strict=True)):
        scale = _read(node, unit, scales)
        drawn = np.stack([p.draws[own, i] for p, own in zip(posteriors, rows, strict=True)], axis=1)
        # Rank of each agent in each draw; of equal values, the agent given first comes first.
        order = np.argsort(-drawn, axis=1, kind="stable")
        places = np.empty_like(order)
        np.put_along_axis(places, order, np.arange(1, len(posteriors) + 1)[np.newaxis], axis=1)
        tail = (1.0 - HDI_SHARE) / 2.0
        ends: Any = np.quantile(places, [tail, 1.0 - tail], axis=0, method="inverted_cdf")
        expected: list[float] = places.mean(axis=0).tolist()
        by_rank = sorted(range(len(posteriors)), key=expected.__getitem__)
        best = first = posteriors[by_rank[0]]
        group, margin = 1, (within or {}).get(node)
        for k in by_rank:
            agent = posteriors[k]
            if superiority(first.ordered[i], agent.ordered[i]) >= TOLD_APART:
                group, first = group + 1, agent
            low, high = agent.intervals[i].tolist()
            known = (nodes or {}).get(agent.name, {}).get(node)
            mean = float(agent.means[i])
            words = scale.of_profile(known) if known else scale.brief(mean, low, high)
            found.append(
                AgentStanding(
                    *(node, unit, agent.name, mean, (low, high), words, expected[k]),
                    ranks=(int(ends[0, k]), int(ends[1, k])),
                    most=float((places[:, k] == 1).mean()),
                    group=group,
                    behind=None
                    if agent is best
                    else _difference(best, agent, i, seed, scale, margin),
                    rising=scale.rising,
                )
            )
    return found


def few_standings(standings: Sequence[AgentStanding]) -> list[AgentStanding]:
    """The rows of a table that fits on a screen: of many agents the first and the last ones.

    Args:
        standings: What `compare_agents` returned.
    """
    agents = {row.agent for row in standings}
    by_node: dict[str, list[AgentStanding]] = {}
    for row in standings:
        by_node.setdefault(row.node, []).append(row)
    shown = FEW // 8
    return [
        row
        for rows in by_node.values()
        for row in (rows if len(agents) <= FEW else [*rows[:shown], *rows[-shown:]])
    ]


def _difference(
    first: Posterior, second: Posterior, i: int, seed: int, scale: Scale, margin: float | None
) -> NodeDifference:
    a, b = (one.draws[_pairing(one, seed, side), i] for side, one in enumerate((first, second)))
    low, high = even_hdi(np.sort(a - b)[np.newaxis])[0].tolist()
    apart = scale.converted(a) - scale.converted(b)
    words = scale.difference_words(
        float(apart.mean()), *even_hdi(np.sort(apart)[np.newaxis])[0].tolist()
    )
    more = superiority(first.ordered[i], second.ordered[i])
    alike = None if margin is None else float((abs(apart) < margin).mean())
    told = ["apart"] * (more >= TOLD_APART)
    if alike is not None and alike >= TOLD_APART:
        told.append(f"alike within {margin:g} {scale.unit}".rstrip())
    return NodeDifference(
        *(first.name, second.name, first.nodes[i], first.units[i]),
        *(float(first.means[i] - second.means[i]), (low, high), more, words),
        *(alike, ", but ".join(told) or "not yet known"),
    )


def _insist_one_layout(posteriors: Sequence[Posterior]) -> None:
    if not posteriors:
        raise ValueError("nothing to compare")
    for other in posteriors[1:]:
        if other.layout != posteriors[0].layout:
            raise ValueError(
                f"{posteriors[0].name} was measured with layout {posteriors[0].layout[:12]}, "
                f"{other.name} with {other.layout[:12]}; only profiles of one layout compare"
            )


def _read(node: str, unit: str, scales: Scales | None) -> Scale:
    """How a node is read."""
    found = None if scales is None else scales.get(node)
    return plain_scale(unit) if found is None else found


def _pairing(posterior: Posterior, seed: int, key: int) -> npt.NDArray[np.int64]:
    """Rows of an agent's draws in an independent random order, so that pairs are independent."""
    return rng(seed, "pairs", key).integers(len(posterior.draws), size=_DRAWS)


def superiority(first: Floats, second: Floats) -> float:
    """P(first > second) over all pairs of draws, a tie counting half.

    Args:
        first: (draws,), in ascending order.
        second: (other draws,), in ascending order.
    """
    if first[0] > second[-1] or first[-1] < second[0]:
        return float(first[0] > second[-1])
    below = np.searchsorted(second, first, side="left")
    tied = second[np.minimum(below, len(second) - 1)] == first
    upto = np.searchsorted(second, first, side="right") if tied.any() else below
    return float((below + upto).mean()) / (2.0 * len(second))


def _draw_from_estimate(node: Mapping[str, Any], generator: np.random.Generator) -> Floats:
    """Draw from the distribution that stands for a mean and a standard deviation, (draws,).

    It is a Beta distribution on a range, a gamma distribution without an upper end, and a normal
    distribution without ends.
    """
    low, high = node["range"]
    mean, sd = float(node["mean"]), float(node["sd"])
    if low is None:
        return generator.normal(mean, sd, _DRAWS)
    if high is None:
        above, narrow = mean - low, max(sd, 1e-9)
        return low + generator.gamma((above / narrow) ** 2, narrow**2 / above, _DRAWS)
    span = high - low
    share, spread = (mean - low) / span, max(sd / span, 1e-9)
    size = share * (1.0 - share) / spread**2 - 1.0
    if not size > 0:
        raise ValueError(f"mean {mean} and sd {sd} do not fit the range {low} to {high}")
    return low + span * generator.beta(share * size, (1.0 - share) * size, _DRAWS)
