"""Comparing agents that were measured with one layout: differences, rankings, trajectories."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.wording import Scale, plain_scale
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import HDI_SHARE, even_hdi, hdi
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NodeWords

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats: TypeAlias = npt.NDArray[np.float64]
Scales: TypeAlias = Mapping[str, Scale]
"""How nodes are read, by name."""

TOLD_APART: Final = 0.95
"""Probability of the larger value from which on two agents are told apart by a node."""
_DRAWS: Final = 4000
"""Number of draws on which comparisons are made."""
_PAIRS: Final = 64
"""Pairs that are compared at a time, which bounds the memory."""


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
    def of_live(cls, name: str, posterior: LivePosterior) -> Posterior:
        """Resample the particles of a live posterior by their weights."""
        places = (np.arange(_DRAWS) + 0.5) / _DRAWS
        rows = np.searchsorted(np.cumsum(posterior.weights), places)
        kept = np.minimum(rows, len(posterior.weights) - 1)
        return cls.of_draws(name, posterior.layout, posterior.particles[kept])

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
            columns = [_standing_for(node, rng(0, key, 0)) for key, node in nodes.items()]
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

    def column(self, node: str) -> Floats:
        """Draws of one node.

        Raises:
            ValueError: There is no such node.
        """
        if node not in self.nodes:
            raise ValueError(f"no node {node!r}; nodes: {', '.join(self.nodes)}")
        return self.draws[:, self.nodes.index(node)]


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
    """

    agent: str
    than: str
    node: str
    unit: str
    mean: float
    hdi: tuple[float, float]
    more: float
    words: NodeWords


def node_differences(
    first: Posterior, second: Posterior, seed: int = 0, scales: Scales | None = None
) -> list[NodeDifference]:
    """Compare two agents, measured independently, node by node.

    Args:
        first: One agent.
        second: The other, whose values are taken from those of the first.
        seed: Seed of the pairing of draws.
        scales: How nodes are read, by name; of those that are not there the unit alone is known.

    Raises:
        ValueError: They were measured with different layouts.
    """
    return list(every_difference((first, second), seed, scales))


def every_difference(
    posteriors: Sequence[Posterior], seed: int = 0, scales: Scales | None = None
) -> Iterator[NodeDifference]:
    """Compare every two agents, measured independently, node by node.

    It takes time and room by the square of the number of agents.

    Args:
        posteriors: One an agent, at least one.
        seed: Seed of the pairing of draws.
        scales: As for `node_differences`.

    Raises:
        ValueError: They were measured with different layouts.
    """
    _insist_one_layout(posteriors)
    for k, first in enumerate(posteriors[:-1]):
        pairs = [(first, other) for other in posteriors[k + 1 :]]
        yield from _differences(pairs, seed, scales)


def differences_from(
    first: Posterior, others: Sequence[Posterior], seed: int = 0, scales: Scales | None = None
) -> Iterator[NodeDifference]:
    """Compare agents, measured independently, with the same one, node by node.

    Args:
        first: The agent whose values are taken from those of the others.
        others: The others.
        seed: Seed of the pairing of draws.
        scales: As for `node_differences`.

    Raises:
        ValueError: They were measured with different layouts.
    """
    _insist_one_layout((first, *others))
    return _differences([(other, first) for other in others], seed, scales)


def _differences(
    pairs: Sequence[tuple[Posterior, Posterior]], seed: int, scales: Scales | None
) -> Iterator[NodeDifference]:
    """The differences of pairs in all nodes, some pairs at a time."""
    for begin in range(0, len(pairs), _PAIRS):
        some = pairs[begin : begin + _PAIRS]
        nodes = some[0][0].nodes
        given = [(_paired(first, seed, 0), _paired(second, seed, 1)) for first, second in some]
        ends: list[Floats] = []
        means: list[Floats] = []
        words: list[Floats] = []
        for i, unit in enumerate(some[0][0].units):
            scale = _read(nodes[i], unit, scales)
            a, b = (np.stack([one[side][:, i] for one in given]) for side in (0, 1))
            ends.append(even_hdi(np.sort(a - b, axis=1)))
            apart = scale.converted(a) - scale.converted(b)
            means.append(apart.mean(axis=1))
            words.append(even_hdi(np.sort(apart, axis=1)))
        for k, (first, second) in enumerate(some):
            for i, (node, unit) in enumerate(zip(nodes, first.units, strict=True)):
                said = _read(node, unit, scales).difference_words(
                    float(means[i][k]), *words[i][k].tolist()
                )
                low, high = ends[i][k].tolist()
                mean = float(first.means[i] - second.means[i])
                more = superiority(first.ordered[i], second.ordered[i])
                yield NodeDifference(
                    first.name, second.name, node, unit, mean, (low, high), more, said
                )


@dataclass(frozen=True, slots=True)
class Rank:
    """One agent's rank among several; rank 1 has the largest value.

    Attributes:
        name: The agent.
        mean: Posterior mean of the node.
        rank: Expected rank.
        interval: 90 % interval of the rank.
        most: Probability of rank 1.
        least: Probability of the last rank.
        probabilities: Probabilities of rank 1, 2, ...; empty where they were not asked for.
    """

    name: str
    mean: float
    rank: float
    interval: tuple[int, int]
    most: float
    least: float
    probabilities: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """Agents that cannot be told apart from the first of them by one node.

    Attributes:
        agents: Their names, in order of rank.
        above: Probability that the first has a larger value than the first of the next cluster;
            None for the last cluster.
    """

    agents: tuple[str, ...]
    above: float | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where agents stand by one node.

    Attributes:
        node: The node.
        unit: Its unit.
        ranks: The agents in order of rank, the largest value first.
        clusters: The same agents as they can be told apart.
        apart: The two that are told apart most clearly: those with the widest gap between their
            90 % intervals, or the least overlap. None of one agent alone.
    """

    node: str
    unit: str
    ranks: tuple[Rank, ...]
    clusters: tuple[Cluster, ...]
    apart: NodeDifference | None


def standings(
    posteriors: Sequence[Posterior],
    seed: int = 0,
    scales: Scales | None = None,
    *,
    every_rank: bool = False,
) -> list[Standing]:
    """Say of every node where agents stand: ranks, and who can be told apart.

    An agent begins a new cluster if the first of the cluster above has the larger value with a
    probability of `TOLD_APART` at least. Agents come in order of their expected ranks. No two
    agents are compared but with the first of a cluster, so that this takes time by the number of
    agents, and not by its square.

    Args:
        posteriors: One an agent, at least one.
        seed: Seed of the pairing of draws.
        scales: As for `node_differences`.
        every_rank: Whether the probability of every rank is wanted, which takes room by the square
            of the number of agents.

    Raises:
        ValueError: No posterior is given, or the layouts differ.
    """
    _insist_one_layout(posteriors)
    rows = [_pairing(p, seed, k) for k, p in enumerate(posteriors)]
    found: list[Standing] = []
    for i, (node, unit) in enumerate(zip(posteriors[0].nodes, posteriors[0].units, strict=True)):
        ranks = _ranked(posteriors, rows, i, every=every_rank)
        own = {posterior.name: posterior for posterior in posteriors}
        ordered = [own[rank.name] for rank in ranks]
        found.append(
            Standing(
                node,
                unit,
                tuple(ranks),
                _clusters(ordered, i),
                _most_apart(ordered, i, seed, scales),
            )
        )
    return found


def ranking(posteriors: Sequence[Posterior], node: str, seed: int = 0) -> list[Rank]:
    """Rank agents by one node, the largest first, with the uncertainty of every rank.

    Raises:
        ValueError: There is no such node, no posterior is given, or the layouts differ.
    """
    _insist_one_layout(posteriors)
    rows = [_pairing(p, seed, k) for k, p in enumerate(posteriors)]
    return _ranked(posteriors, rows, _place(posteriors[0], node), every=True)


def _ranked(
    posteriors: Sequence[Posterior], rows: Sequence[npt.NDArray[np.int64]], i: int, *, every: bool
) -> list[Rank]:
    drawn = np.stack([p.draws[own, i] for p, own in zip(posteriors, rows, strict=True)], axis=1)
    # Rank of each agent in each draw; of equal values, the agent given first comes first.
    order = np.argsort(-drawn, axis=1, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(1, len(posteriors) + 1)[np.newaxis], axis=1)
    tail = (1.0 - HDI_SHARE) / 2.0
    ends: Any = np.quantile(places, [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    ranks = [
        Rank(
            posterior.name,
            float(posterior.means[i]),
            float(row.mean()),
            (int(ends[0, k]), int(ends[1, k])),
            float((row == 1).mean()),
            float((row == len(posteriors)).mean()),
            _shares(row, len(posteriors)) if every else (),
        )
        for k, posterior in enumerate(posteriors)
        for row in [places[:, k]]
    ]
    return sorted(ranks, key=lambda entry: entry.rank)


def _clusters(ordered: Sequence[Posterior], i: int) -> tuple[Cluster, ...]:
    """Clusters of agents that come in order of rank."""
    members: list[list[Posterior]] = []
    above: list[float | None] = []
    for posterior in ordered:
        if members:
            more = superiority(members[-1][0].ordered[i], posterior.ordered[i])
            if more < TOLD_APART:
                members[-1].append(posterior)
                continue
            above.append(more)
        members.append([posterior])
    return tuple(
        Cluster(tuple(one.name for one in each), more)
        for each, more in zip(members, [*above, None], strict=True)
    )


def _most_apart(
    ordered: Sequence[Posterior], i: int, seed: int, scales: Scales | None
) -> NodeDifference | None:
    """The two agents whose intervals are farthest apart, the one with the larger value first."""
    if len(ordered) < 2:
        return None
    low, high = np.array([posterior.intervals[i] for posterior in ordered]).T
    tops: list[int] = np.argsort(-low, kind="stable")[:2].tolist()
    bottoms: list[int] = np.argsort(high, kind="stable")[:2].tolist()
    # The two extremes may be one agent, of which much is known while all intervals overlap.
    pairs = [(a, b) for a in tops for b in bottoms if a != b]
    first, second = max(pairs, key=lambda pair: float(low[pair[0]] - high[pair[1]]))
    a, b = (
        replace(one, nodes=(one.nodes[i],), units=(one.units[i],), draws=one.draws[:, [i]])
        for one in (ordered[first], ordered[second])
    )
    (found,) = node_differences(a, b, seed, scales)
    return found


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One node over the checkpoints of an agent.

    Attributes:
        node: Name of the node.
        unit: Its unit.
        steps: When each checkpoint was taken, for example in training steps.
        mean: Posterior mean at each checkpoint.
        low: Lower end of the 90 % highest-density interval at each checkpoint.
        high: Upper end of that interval.
        rise: Probability that the value is larger than at the previous checkpoint; None for the
            first.
    """

    node: str
    unit: str
    steps: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    rise: tuple[float | None, ...]


def trajectory(posteriors: Sequence[Posterior], steps: Sequence[float]) -> list[Trajectory]:
    """Follow a profile over checkpoints that were measured independently.

    Args:
        posteriors: One for each checkpoint.
        steps: When each was taken, in ascending order.

    Raises:
        ValueError: The numbers differ, steps do not ascend, or the layouts differ.
    """
    _insist_one_layout(posteriors)
    if len(steps) != len(posteriors) or any(b <= a for a, b in itertools.pairwise(steps)):
        raise ValueError(f"{len(posteriors)} checkpoints want as many rising steps: {steps}")
    paths: list[Trajectory] = []
    for node, unit in zip(posteriors[0].nodes, posteriors[0].units, strict=True):
        columns = [posterior.column(node) for posterior in posteriors]
        intervals = [hdi(c, np.full(len(c), 1.0 / len(c))) for c in columns]
        rises = [superiority(b, a) for a, b in itertools.pairwise(map(np.sort, columns))]
        paths.append(
            Trajectory(
                node,
                unit,
                tuple(float(step) for step in steps),
                tuple(float(c.mean()) for c in columns),
                tuple(low for low, _ in intervals),
                tuple(high for _, high in intervals),
                (None, *rises),
            )
        )
    return paths


def plot_trajectory(paths: Sequence[Trajectory], xlabel: str = "training steps") -> Figure:
    """Draw trajectories, one panel per node: means with 90 % intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 1.6 * len(paths) + 0.8), layout="constrained")
    for i, path in enumerate(paths):
        axes = figure.add_subplot(len(paths), 1, i + 1)
        axes.fill_between(path.steps, path.low, path.high, color="#4477aa", alpha=0.25, lw=0)
        axes.plot(path.steps, path.mean, color="#4477aa", lw=1.8, ls="-", marker="o")
        unit = f" ({path.unit})" if path.unit != "1" else ""
        axes.set_title(f"{path.node}{unit}", loc="left", fontsize=10)
        axes.grid(color="#dddddd", linewidth=0.6)
        if i == len(paths) - 1:
            axes.set(xlabel=xlabel)
    return figure


def _insist_one_layout(posteriors: Sequence[Posterior]) -> None:
    if not posteriors:
        raise ValueError("nothing to compare")
    for other in posteriors[1:]:
        if other.layout != posteriors[0].layout:
            raise ValueError(
                f"{posteriors[0].name} was measured with layout {posteriors[0].layout[:12]}, "
                f"{other.name} with {other.layout[:12]}; only profiles of one layout compare"
            )


def _place(posterior: Posterior, node: str) -> int:
    posterior.column(node)
    return posterior.nodes.index(node)


def _read(node: str, unit: str, scales: Scales | None) -> Scale:
    """How a node is read."""
    found = None if scales is None else scales.get(node)
    return plain_scale(unit) if found is None else found


def _shares(ranks: npt.NDArray[np.int64], count: int) -> tuple[float, ...]:
    """Relative frequency of each rank from 1 to `count`."""
    shares = np.bincount(ranks, minlength=count + 1)[1:] / len(ranks)
    return tuple(shares.tolist())


def _pairing(posterior: Posterior, seed: int, key: int) -> npt.NDArray[np.int64]:
    """Rows of an agent's draws in an independent random order, so that pairs are independent."""
    return _rows(len(posterior.draws), seed, key)


@lru_cache(maxsize=512)
def _rows(count: int, seed: int, key: int) -> npt.NDArray[np.int64]:
    return rng(seed, "pairs", key).integers(count, size=_DRAWS)


def _paired(posterior: Posterior, seed: int, key: int) -> Floats:
    return posterior.draws[_pairing(posterior, seed, key)]


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


def _standing_for(node: Mapping[str, Any], generator: np.random.Generator) -> Floats:
    low, high = node["range"]
    return drawn_for(float(node["mean"]), float(node["sd"]), low, high, generator)


def drawn_for(
    mean: float, sd: float, low: float | None, high: float | None, generator: np.random.Generator
) -> Floats:
    """Draw from the distribution that stands for a mean and a standard deviation, (draws,).

    It is a Beta distribution on a range, a gamma distribution without an upper end, and a normal
    distribution without ends.

    Args:
        mean: The mean.
        sd: The standard deviation.
        low: Lower end of the range; None if there is none.
        high: Upper end of the range; None if there is none.
        generator: Source of randomness.

    Raises:
        ValueError: Mean and standard deviation do not fit the range.
    """
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
