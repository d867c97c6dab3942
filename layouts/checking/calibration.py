"""Simulation-based calibration: whether intervals cover the truth as often as they claim.

Agents are drawn from the prior, play, and are measured. If a layout's posterior is right, the rank
of the truth within the posterior is uniform, and a 90 % interval covers it for 90 % of the agents
(Talts et al. 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.checks import holm
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import HDI_SHARE, NodeSummary
from animalcat.layouts.model.spec import Binomial, Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
EngineName: TypeAlias = Literal["live", "nuts"]

_POOLED: Final = (0.88, 0.92)
"""Range in which the pooled coverage of all nodes has to lie."""
_CONFIDENCE: Final = 0.99
"""Level of the exact interval that is shown for a node's coverage."""
_LEAST_COVERED: Final = 0.05
"""P-value of a node's coverage, corrected for all nodes of a run, below which it fails."""
_DEVIATIONS: Final = 2.58
"""Half the width of a 99 % interval in standard errors."""
_LEAST_P: Final = 1e-3
"""P-value of uniformity, corrected for all nodes of a run, below which a node fails."""


@dataclass(frozen=True, eq=False)
class SimulationBasedCalibration:
    """The results of simulation-based calibration of one layout: where the truth lay, per agent.

    Attributes:
        layout: The layout.
        engine: What measured them: the live posterior, or NUTS.
        outcomes: Number of episodes of each agent.
        seed: Seed of the agents.
        places: (agents, latents): posterior probability below the truth.
        covered: (agents, latents): whether the reported 90 % interval covers the truth.
        left_out: Number of agents whose fit did not converge; they are in neither array.
        missing: Share of outcomes that were missing, if an episode has several.
    """

    layout: Layout
    engine: EngineName
    outcomes: int
    seed: int
    places: Floats
    covered: Bools
    left_out: int = 0
    missing: float = 0.0

    @property
    def coverage(self) -> Floats:
        """Share of the agents whose interval covers the truth, (latents,)."""
        return self.covered.mean(axis=0)

    @property
    def central(self) -> Floats:
        """Coverage of the equal-tailed intervals, (latents,).

        With few draws and a flat posterior the shortest interval is too short; equal-tailed ones
        are not.
        """
        tail = (1.0 - HDI_SHARE) / 2.0
        return ((self.places >= tail) & (self.places <= 1.0 - tail)).mean(axis=0)

    @property
    def pooled(self) -> float:
        """Coverage of all nodes together."""
        return float(self.covered.mean())

    @property
    def uniformity(self) -> Floats:
        """P-values of the Kolmogorov-Smirnov test that the places are uniform, (latents,)."""
        from scipy.stats import kstest  # two thirds of this module's import time, if at the top

        return np.array([kstest(column, "uniform").pvalue for column in self.places.T])

    def interval(self, latent: int) -> tuple[float, float]:
        """The exact 99 % interval of a node's coverage (Clopper and Pearson)."""
        from scipy.stats import binomtest

        hits = int(self.covered[:, latent].sum())
        interval = binomtest(hits, len(self.covered)).proportion_ci(_CONFIDENCE, method="exact")
        return interval.low, interval.high

    @property
    def misses(self) -> Floats:
        """Exact p-values of the hypothesis that coverage is as claimed, (latents,)."""
        from scipy.stats import binomtest

        agents = len(self.covered)
        hits = self.covered.sum(axis=0).tolist()
        return np.array([binomtest(int(k), agents, HDI_SHARE).pvalue for k in hits])

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, if this is the only calibration of the run; empty if calibrated."""
        return problems([self])[0]

    def of_nodes(self, misses: Floats, uniformity: Floats) -> list[str]:
        """Describe the nodes that are not calibrated.

        Args:
            misses: (latents,): p-values of the coverage, corrected for all nodes of the run.
            uniformity: (latents,): p-values of uniformity, corrected in the same way.
        """
        faults: list[str] = []
        for i, name in enumerate(self.layout.latent_names):
            if misses[i] < _LEAST_COVERED:
                low, high = self.interval(i)
                faults.append(
                    f"{name}: intervals contain the true value in {self.coverage[i]:.1%} of "
                    f"the agents ({low:.3f} to {high:.3f}), not in {HDI_SHARE:.0%} (corrected p "
                    f"{misses[i]:.1g})"
                )
            if uniformity[i] < _LEAST_P:
                faults.append(
                    f"{name}: the rank of the true value in the posterior is uneven (corrected p "
                    f"{uniformity[i]:.1g})"
                )
        return faults

    def of_pooled(self) -> list[str]:
        """Describe what is wrong with the pooled coverage, if anything is."""
        low, high = _POOLED
        # With few agents the pooled coverage wanders further than that by chance; the nodes of one
        # agent are not independent.
        agents = len(self.covered)
        alone = np.sqrt(HDI_SHARE * (1.0 - HDI_SHARE) / self.covered.size)
        error = max(alone, self.covered.mean(axis=1).std() / np.sqrt(agents))
        slack = _DEVIATIONS * error
        if min(low, HDI_SHARE - slack) <= self.pooled <= max(high, HDI_SHARE + slack):
            return []
        return [f"pooled coverage {self.pooled:.3f} is not within {low} and {high}"]

    def to_dict(self) -> dict[str, Any]:
        """Summarise as JSON values; p-values are corrected within this calibration alone."""
        misses, uneven = holm(self.misses), holm(self.uniformity)
        nodes = {
            name: {
                "coverage": float(self.coverage[i]),
                "interval": list(self.interval(i)),
                "central": float(self.central[i]),
                "uniformity": float(self.uniformity[i]),
                "corrected": {"coverage": float(misses[i]), "uniformity": float(uneven[i])},
            }
            for i, name in enumerate(self.layout.latent_names)
        }
        return {
            "layout": {
                "name": self.layout.name,
                "variant": self.layout.variant,
                "digest": self.layout.digest,
            },
            "engine": self.engine,
            "agents": len(self.covered),
            "left_out": self.left_out,
            "outcomes": self.outcomes,
            "missing": self.missing,
            "seed": self.seed,
            "pooled": self.pooled,
            "nodes": nodes,
            "problems": list(self.problems),
        }


def problems(run: Sequence[SimulationBasedCalibration]) -> list[tuple[str, ...]]:
    """What is wrong with each calibration of a run; empty if calibrated.

    The more nodes are tested, the more deviate by chance. So p-values are corrected for all nodes
    of the run by Holm's method; a correct run is called wrong in at most 5 % of cases.
    """
    ends = np.cumsum([len(calibration.layout.latents) for calibration in run])[:-1]
    misses = np.split(holm(np.concatenate([calibration.misses for calibration in run])), ends)
    uneven = np.split(holm(np.concatenate([calibration.uniformity for calibration in run])), ends)
    return [
        (*calibration.of_nodes(misses[i], uneven[i]), *calibration.of_pooled())
        for i, calibration in enumerate(run)
    ]


def simulate_calibration(
    layout: Layout,
    instances: npt.ArrayLike,
    *,
    agents: int,
    outcomes: int,
    seed: int,
    engine: EngineName = "live",
    particles: int = 2000,
    missing: float = 0.0,
    done: Callable[[], object] | None = None,
) -> SimulationBasedCalibration:
    """Draw agents from the prior, measure them, and compare with the truth.

    Args:
        layout: The layout.
        instances: (instances, features), from which each agent plays random ones, none twice.
        agents: Number of agents.
        outcomes: Number of instances that each agent plays.
        seed: Agents, instances and outcomes depend on it and on the layout, so that one unlucky
            seed does not affect all layouts. Agent i is the same for any number of agents.
        engine: What measures the agents: `live`, or `nuts` (4 x 500 draws; slower).
        particles: Number of particles of the live posterior.
        missing: Share of outcomes that are dropped at random, if an episode has several.
        done: Called after each agent.

    Raises:
        ValueError: There are fewer instances than `outcomes`, or the share is not in [0, 1).
    """
    if not 0.0 <= missing < 1.0:
        raise ValueError(f"share {missing:g} of missing outcomes is not in [0, 1)")
    features = layout.check_features(instances)
    if not 0 < outcomes <= len(features):
        raise ValueError(f"{outcomes} outcomes of {len(features)} instances")
    evaluator = Evaluator(layout)
    places: list[Floats] = []
    covered: list[list[bool]] = []
    for agent in range(agents):
        generator = rng(seed, f"calibration of {layout.digest}", agent)
        z = generator.standard_normal((1, len(layout.latents)))
        truth = layout.from_standard(z)[0]
        rows = features[generator.permutation(len(features))[:outcomes]]
        y = evaluator.simulate(truth[np.newaxis], evaluator.columns(rows), generator)[:, 0]
        if y.ndim == 2:
            y = lose(y, missing, generator)
        measured = (_live if engine == "live" else _nuts)(layout, rows, y, agent, particles)
        if measured is not None:
            draws, weights, nodes = measured
            places.append(weights @ (draws < truth))
            covered.append([n.hdi[0] <= t <= n.hdi[1] for n, t in zip(nodes, truth, strict=True)])
        if done is not None:
            done()
    return SimulationBasedCalibration(
        layout,
        engine,
        outcomes,
        seed,
        np.array(places),
        np.array(covered),
        agents - len(places),
        missing if len(layout.outcomes) > 1 else 0.0,
    )


def lose(outcomes: Floats, missing: float, generator: np.random.Generator) -> Floats:
    """Drop a share of outcomes, (episodes, outcomes), at random, but never all of an episode."""
    if not missing:
        return outcomes
    lost = generator.random(outcomes.shape) < missing
    lost[np.arange(len(lost)), generator.integers(outcomes.shape[1], size=len(lost))] = False
    return np.where(lost, np.nan, outcomes)


def spread(layout: Layout, count: int, generator: np.random.Generator) -> Floats:
    """Draw instances over the declared ranges of the features, (count, features).

    Features of gates are 0 or 1, trials are whole numbers up to 10, and the rest is uniform.
    """
    likelihoods = [outcome.likelihood for outcome in layout.outcomes]
    trials = {likelihood.trials for likelihood in likelihoods if isinstance(likelihood, Binomial)}
    columns: list[Floats] = []
    for feature in layout.features:
        if feature.name in layout.gates:
            columns.append(generator.choice(np.array([0.0, 1.0]), count))
        elif feature.name in trials:
            most = min(feature.high, 10.0)
            columns.append(np.floor(generator.uniform(feature.low, most + 1.0, count)))
        else:
            columns.append(generator.uniform(feature.low, feature.high, count))
    return np.stack(columns, axis=1)


_Measured: TypeAlias = tuple[Floats, Floats, list[NodeSummary]] | None


def _live(layout: Layout, rows: Floats, y: Floats, seed: int, particles: int) -> _Measured:
    posterior = LivePosterior(layout, seed, particles)
    for episode, (row, outcome) in enumerate(zip(rows, y, strict=True), 1):
        posterior.update(row, outcome, episode)
    return posterior.particles, posterior.weights, posterior.summary()


def _nuts(layout: Layout, rows: Floats, y: Floats, seed: int, particles: int) -> _Measured:
    result = fit(FitRequest(layout, rows, y, seed, draws=500, tune=500), cores=1)
    if not result.converged:
        return None
    draws = result.flat_draws
    return draws, np.full(len(draws), 1.0 / len(draws)), result.nodes
