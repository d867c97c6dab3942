"""Comparing agents that were measured with one layout: differences, rankings, trajectories."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.wording import Scale
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import HDI_SHARE, hdi
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NodeWords

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats: TypeAlias = npt.NDArray[np.float64]

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
        return cls._of(name, fitted.layout, fitted.flat_draws)

    @classmethod
    def of_live(cls, name: str, posterior: LivePosterior) -> Posterior:
        """Resample the particles of a live posterior by their weights."""
        places = (np.arange(_DRAWS) + 0.5) / _DRAWS
        rows = np.searchsorted(np.cumsum(posterior.weights), places)
        kept = np.minimum(rows, len(posterior.weights) - 1)
        return cls._of(name, posterior.layout, posterior.particles[kept])

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

    @classmethod
    def _of(cls, name: str, layout: Layout, draws: Floats) -> Posterior:
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
        node: Name of the node.
        unit: Its unit.
        mean: Mean of the difference.
        hdi: 90 % highest-density interval of the difference.
        more: Probability that the first agent has the larger value.
    """

    node: str
    unit: str
    mean: float
    hdi: tuple[float, float]
    more: float


def node_differences(first: Posterior, second: Posterior, seed: int = 0) -> list[NodeDifference]:
    """Compare two agents, measured independently, node by node.

    Raises:
        ValueError: They were measured with different layouts.
    """
    _insist_one_layout((first, second))
    a, b = _paired(first, seed, 0), _paired(second, seed, 1)
    equal = np.full(len(a), 1.0 / len(a))
    return [
        NodeDifference(
            node,
            unit,
            float(first.column(node).mean() - second.column(node).mean()),
            hdi(a[:, i] - b[:, i], equal),
            _more(first.column(node), second.column(node)),
        )
        for i, (node, unit) in enumerate(zip(first.nodes, first.units, strict=True))
    ]


def difference_words(
    first: Posterior, second: Posterior, node: str, scale: Scale, seed: int = 0
) -> NodeWords:
    """Say how two agents differ in one node, in the unit in which it is read.

    Args:
        first: One agent.
        second: The other, whose value is taken from that of the first.
        node: The node.
        scale: How its values are read.
        seed: Seed of the pairing of draws.
    """
    i = _place(first, node)
    return scale.difference(_paired(first, seed, 0)[:, i], _paired(second, seed, 1)[:, i])


@dataclass(frozen=True, slots=True)
class Rank:
    """One agent's rank among several; rank 1 has the largest value.

    Attributes:
        name: The agent.
        mean: Posterior mean of the node.
        rank: Expected rank.
        interval: 90 % interval of the rank.
        probabilities: Probabilities of rank 1, 2, ...
    """

    name: str
    mean: float
    rank: float
    interval: tuple[int, int]
    probabilities: tuple[float, ...]


def ranking(posteriors: Sequence[Posterior], node: str, seed: int = 0) -> list[Rank]:
    """Rank agents by one node, the largest first, with the uncertainty of every rank.

    Raises:
        ValueError: There is no such node, no posterior is given, or the layouts differ.
    """
    _insist_one_layout(posteriors)
    i = _place(posteriors[0], node)
    drawn = np.stack([_paired(p, seed, k)[:, i] for k, p in enumerate(posteriors)])
    # Rank of each agent in each draw; of equal values, the agent given first comes first.
    order = np.argsort(-drawn, axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, len(posteriors) + 1)[:, np.newaxis], axis=0)
    tail = (1.0 - HDI_SHARE) / 2.0
    rows = [
        Rank(
            posterior.name,
            float(posterior.column(node).mean()),
            float(row.mean()),
            (
                int(np.quantile(row, tail, method="inverted_cdf")),
                int(np.quantile(row, 1.0 - tail, method="inverted_cdf")),
            ),
            _shares(row, len(posteriors)),
        )
        for posterior, row in zip(posteriors, ranks, strict=True)
    ]
    return sorted(rows, key=lambda entry: entry.rank)


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
        rises = [_more(b, a) for a, b in itertools.pairwise(columns)]
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


def _paired(posterior: Posterior, seed: int, key: int) -> Floats:
    """Draws in an independent random order, so that pairs of agents are independent."""
    return posterior.draws[rng(seed, "pairs", key).integers(len(posterior.draws), size=_DRAWS)]


def _shares(ranks: npt.NDArray[np.int64], count: int) -> tuple[float, ...]:
    """Relative frequency of each rank from 1 to `count`."""
    shares = np.bincount(ranks, minlength=count + 1)[1:] / len(ranks)
    return tuple(shares.tolist())


def _more(a: Floats, b: Floats) -> float:
    """P(a > b) over all pairs of draws, a tie counting half."""
    ordered = np.sort(b)
    below = np.searchsorted(ordered, a, side="left") + np.searchsorted(ordered, a, side="right")
    return float(below.mean()) / (2.0 * len(b))


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
