"""A population over agents and the easiness of instances: an explanatory item response model.

Each agent's latent nodes are drawn from a population. In z-space, where the layout's priors are
standard normal, that is a normal distribution with a location and a scale for each node. The slopes
of margins and the scales of demands are shared by all agents. What demands leave unexplained of an
instance is its easiness in logits, drawn around 0, and its sharpness, a factor of the logit drawn
around 1 (De Boeck and Wilson 2004, Explanatory item response models; residuals of items as in
Janssen, Schepers and Peres 2004). Over the instances of a calibration, easiness and the logarithm
of sharpness sum to 0: that all are easier is the same as that all agents are abler.

Priors are such that without any agent the layout is as it was written: location and scale together
then give every new agent a standard normal value in z-space, and slopes, scales, sharpness and
easiness are centred on 1, 1, 1 and 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.convergence import ess, rhat
from animalcat.layouts.inference.fit import MAX_RHAT, MIN_ESS
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.calibration import TAUGHT
from animalcat.layouts.model.likelihood import LEAST
from animalcat.layouts.model.links import SURE, LogisticMargin
from animalcat.layouts.model.spec import Bernoulli, Layout
from animalcat.text.formulas import Call, Expression

Floats: TypeAlias = npt.NDArray[np.float64]

LEAST_AGENTS: Final = 2
"""Fewest agents of a population; from one alone, agents cannot be told from instances."""
_LOCATION_SD: Final = 0.65
_SCALE_LOG_MEAN: Final = float(np.log(0.65))
_SCALE_LOG_SD: Final = 0.4
"""Priors of location and scale in z-space. 0.65^2 + E[scale^2] is 1: without data, a new agent's
prior is the layout's own."""
_SLOPE_LOG_SD: Final = 0.5
"""Prior of ln(slope / slope as written)."""
_DEMAND_LOG_SD: Final = 0.25
"""Prior of ln(scale of a demand); smaller, since a scale changes what a unit means."""
_EASINESS_SD: Final = 1.0
"""Scale of the half-normal prior of the standard deviation of easiness, in logits."""

_UNLIKE_SD: Final = 0.25
"""Scale of the half-normal prior of the standard deviation of ln(sharpness)."""

_ALONE: Final = 5.0
"""Number of outcomes of an instance that say as much of its easiness as the prior does."""


class CalibrationError(ValueError):
    """A layout cannot be calibrated by these outcomes; the message says why and what to do."""


class NotConvergedError(CalibrationError):
    """The fit of a population did not converge; the message says where and what to do."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to sample.

    Attributes:
        chains: Number of chains.
        draws: Draws of each chain.
        tune: Tuning draws of each chain.
        cores: Chains that run at once; the draws do not depend on it.
        attempts: How often to sample at most; a run that fails the gate is repeated with twice the
            draws and smaller steps.
    """

    chains: int = 4
    draws: int = 1000
    tune: int = 1000
    cores: int = 1
    attempts: int = 2


QUICK: Final = Effort(2, 300, 400, attempts=1)
"""Enough for means, as in cross-validation, and seldom for the gate."""
_ACCEPTANCES: Final = (0.92, 0.98)
"""Acceptance rates that step widths are tuned to, in the first attempt and in later ones."""


@dataclass(frozen=True, eq=False)
class Population:
    """The posterior of a population; the first axis of every array are draws.

    Attributes:
        location: (draws, latents), in z-space.
        scale: (draws, latents), in z-space.
        slopes: Factor of each margin's slope, by node, each (draws,).
        demands: Factor of each margin's demand, by node, each (draws,).
        easiness: (draws, instances), in logits.
        spread: (draws,): standard deviation of easiness over instances.
        sharpness: (draws, instances).
        diagnostics: JSON-ready: `converged`, `reasons`, `rhat`, `ess_bulk`, `divergences`,
            `chains`, `draws`, `attempts`.
    """

    location: Floats
    scale: Floats
    slopes: Mapping[str, Floats]
    demands: Mapping[str, Floats]
    easiness: Floats
    spread: Floats
    sharpness: Floats
    diagnostics: Mapping[str, Any]

    @property
    def converged(self) -> bool:
        """Whether the fit passed the gate."""
        return bool(self.diagnostics["converged"])


class PopulationModel:
    """The hierarchical model of a layout for some instances and agents, compiled once.

    Fits without some of the agents reuse it: their outcomes then have no weight.
    """

    def __init__(self, layout: Layout, features: npt.ArrayLike, outcomes: npt.ArrayLike) -> None:
        """Check the data.

        Args:
            layout: The layout as written, as `check_layout` lets it pass.
            features: (instances, features).
            outcomes: (agents, instances), 0 or 1, NaN where not played.

        Raises:
            CalibrationError: There are too few agents, or nothing tells them apart.
            ValueError: Features or outcomes do not fit the layout.
        """
        self.layout = layout
        self.features = layout.check_features(features)
        self.outcomes = np.asarray(outcomes, np.float64)
        instances = self.outcomes.shape[1]
        if instances != len(self.features):
            raise ValueError(f"{instances} columns of outcomes for {len(self.features)} instances")
        played = np.isfinite(self.outcomes)
        if not np.isin(self.outcomes[played], (0.0, 1.0)).all():
            raise CalibrationError("outcomes must be 0 and 1: calibration is by success")
        check_agents(self.outcomes)
        self._played = played.astype(np.float64)

    def fit(
        self, seed: int, effort: Effort | None = None, without: Sequence[int] = ()
    ) -> Population:
        """Fit the population by NUTS.

        Args:
            seed: Seed of the fit.
            effort: How long to sample.
            without: Indices of agents whose outcomes are left out.

        Raises:
            CalibrationError: The agents that remain are too few, or nothing tells them apart.
        """
        kept = np.setdiff1d(np.arange(len(self.outcomes)), np.asarray(without, np.int64))
        check_agents(self.outcomes[kept])
        effort = effort or Effort()
        weights = np.zeros_like(self._played)
        weights[kept] = self._played[kept]
        population = None
        for attempt in range(effort.attempts):
            drawn = int(rng(seed, "population", attempt).integers(1 << 31))
            population = self._sample(drawn, effort, attempt, weights)
            if population.converged:
                break
        assert population is not None
        return population

    def _sample(self, seed: int, effort: Effort, attempt: int, weights: Floats) -> Population:
        import nutpie

        from animalcat.layouts.inference.backend import compat

        sample: Any = nutpie.sample  # its overloads do not know the mass matrix
        result = sample(
            self._compiled_model.with_data(weights=weights),
            draws=effort.draws * (attempt + 1),
            tune=effort.tune * (attempt + 1),
            chains=effort.chains,
            cores=effort.cores,
            seed=seed,
            save_warmup=False,
            progress_bar=False,
            # Location, slope and scale of a capability move together, whatever they are called.
            low_rank_modified_mass_matrix=True,
            target_accept=_ACCEPTANCES[min(attempt, 1)],
        )
        posterior: dict[str, Floats] = {
            name: np.asarray(result.posterior[name].values, np.float64)
            for name in self._parameter_names
        }
        divergences = int(compat.statistic(result, "diverging").sum())
        diagnostics = _diagnostics(posterior, divergences, attempt + 1)
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in posterior.items()}
        return Population(
            flat["location"],
            flat["scale"],
            {name: flat[f"slope_{name}"] for name in self._margins},
            {name: flat[f"demand_{name}"] for name in self._margins},
            flat["easiness"],
            flat["spread"],
            flat["sharpness"],
            diagnostics,
        )

    @cached_property
    def _margins(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.layout.ordered if isinstance(n.link, LogisticMargin))

    @property
    def _parameter_names(self) -> list[str]:
        each = [f"{what}_{name}" for what in ("slope", "demand") for name in self._margins]
        return ["location", "scale", "easiness", "spread", "sharpness", *each]

    @cached_property
    def _compiled_model(self) -> Any:
        import nutpie

        return nutpie.compile_pymc_model(
            self._model(), backend="numba", var_names=self._parameter_names
        )

    def _model(self) -> Any:
        import pymc
        import pytensor.tensor

        from animalcat.layouts.inference.backend.graph import quantile

        pm: Any = pymc
        pt: Any = pytensor.tensor
        layout, (agents, instances) = self.layout, self.outcomes.shape
        latents = len(layout.latents)
        with pm.Model() as model:
            # Agents by instances, also those that were not played: their weight is 0. A table of
            # pairs that were played would need gathers, whose gradients are slow.
            weights = pm.Data("weights", self._played)
            location = pm.Normal("location", 0.0, _LOCATION_SD, shape=latents)
            scale = pm.LogNormal("scale", _SCALE_LOG_MEAN, _SCALE_LOG_SD, shape=latents)
            # Outcomes tell of the mean of these agents, from which the location differs by chance.
            mean = pm.Normal("mean", location, scale / np.sqrt(agents), shape=latents)
            slopes = {n: pm.LogNormal(f"slope_{n}", 0.0, _SLOPE_LOG_SD) for n in self._margins}
            demands = {n: pm.LogNormal(f"demand_{n}", 0.0, _DEMAND_LOG_SD) for n in self._margins}
            own: dict[str, Any] = {}
            middle: dict[str, Any] = {}
            for i, node in enumerate(layout.latents):
                # Outcomes of an agent near an end of a range say little of its place, and a few
                # such agents are enough to stop chains whose deviations are centred.
                deviation = scale[i] * pm.ZeroSumNormal(f"deviation_{i}", shape=agents)
                own[node.name] = quantile(node.prior, mean[i] + deviation)[:, np.newaxis]
                middle[node.name] = quantile(node.prior, mean[i])
            p = self._root(own, slopes, demands)
            expected = self._root(middle, slopes, demands)[0]
            # What outcomes tell of an instance is how the middle agent fares on it, and not how
            # much of that its demands explain. So the former is sampled, as far as there are
            # outcomes (partial centring, Papaspiliopoulos, Roberts and Skold 2007).
            spread = pm.HalfNormal("spread", _EASINESS_SD)
            sharper = pm.ZeroSumNormal("sharper", shape=instances)
            sharpness = pm.Deterministic(
                "sharpness", pt.exp(pm.HalfNormal("unlike", _UNLIKE_SD) * sharper)
            )
            explained = self._share_told * sharpness * _logit(expected)
            sampled = pm.Flat("sampled", shape=instances)
            free = sampled - self._level(explained)
            pm.Potential("spreading", pm.logp(pm.Normal.dist(0.0, spread), free).sum())
            # Easier arenas and weaker agents look alike. If residuals had a mean of their own,
            # chains would wander off to where every arena is easier than its demands say.
            easiness = pm.Deterministic("easiness", self._level(free))
            p = pt.clip(pm.math.sigmoid(sharpness * _logit(p) + easiness), LEAST, 1.0 - LEAST)
            chance = pt.switch(self.outcomes == 1.0, p, 1.0 - p)
            pm.Potential("outcomes", pt.sum(weights * pt.log(chance)))
        return model

    def _level(self, values: Any) -> Any:
        """Values less their mean over the instances that were played, (instances,)."""
        there = self._played.any(axis=0).astype(np.float64)
        return values - there * (there / there.sum() * values).sum()

    @property
    def _share_told(self) -> Floats:
        """Share of what is known of each instance that its outcomes say, (instances,)."""
        number = self._played.sum(axis=0)
        return number / (number + _ALONE)

    def _root(
        self, latents: Mapping[str, Any], slopes: Mapping[str, Any], demands: Mapping[str, Any]
    ) -> Any:
        """Symbolic probabilities of success without easiness, (agents, instances)."""
        import pymc

        pm: Any = pymc
        values: dict[str, Any] = {
            name: self.features[np.newaxis, :, i]
            for i, name in enumerate(self.layout.feature_names)
        }
        values.update(latents)
        for node in self.layout.ordered:
            link = node.link
            if isinstance(link, LogisticMargin):
                margin = values[link.ability] - demands[node.name] * values[link.demand]
                if link.shift:
                    margin = margin + values[link.shift]
                values[node.name] = pm.math.sigmoid(link.slope * slopes[node.name] * margin)
            else:
                values[node.name] = symbolic(link.expression, values)
        return pm.math.clip(values[self.layout.outcome.parents[0]], SURE, 1.0 - SURE)


def check_layout(layout: Layout) -> None:
    """Refuse a layout that cannot be calibrated.

    Raises:
        CalibrationError: It has another outcome than success, was calibrated before, or has a
            feature or node with a name that calibration needs.
    """
    if len(layout.outcomes) != 1 or not isinstance(layout.outcome, Bernoulli):
        raise CalibrationError(
            f"layout {layout.name} has other outcomes than success "
            f"({', '.join(layout.outcome_names)}); calibration is by success alone"
        )
    if layout.calibration is not None:
        raise CalibrationError(
            f"layout {layout.name} is calibrated already; calibrate {layout.calibration.base[0]} "
            f"({layout.calibration.base[1]}), by all outcomes together"
        )
    taken = {*layout.feature_names, *layout.latent_names, *(n.name for n in layout.derived)}
    for name in TAUGHT:
        if name in taken:
            raise CalibrationError(f"layout {layout.name} has a node {name!r}; rename it")


def check_agents(outcomes: Floats) -> None:
    """Refuse outcomes (agents, instances) from which no population follows.

    Raises:
        CalibrationError: There are fewer than two agents with outcomes, or all outcomes are alike.
    """
    some = int(np.isfinite(outcomes).any(axis=1).sum())
    if some < LEAST_AGENTS:
        raise CalibrationError(
            f"{some} agent{'s' * (some != 1)} with outcomes: a population needs "
            f"{LEAST_AGENTS} at least; measure with the layout as it is until there are more"
        )
    y = outcomes[np.isfinite(outcomes)]
    if (y == y[0]).all():
        kind = "successes" if y[0] else "failures"
        raise CalibrationError(
            f"all {len(y)} outcomes are {kind}: nothing tells agents or instances apart; add "
            "outcomes of other agents, or other instances"
        )


def symbolic(expression: Expression, values: Mapping[str, Any]) -> Any:
    """The symbolic value of an expression.

    Args:
        expression: The expression.
        values: A symbolic value or an array for every name in it.
    """
    from animalcat.layouts.inference.backend.graph import FOLDS, ONE_ARGUMENT

    match expression:
        case str():
            return values[expression]
        case Call("pow", (base, float() as exponent)):
            return symbolic(base, values) ** exponent
        case Call(function, arguments):
            given = [symbolic(a, values) for a in arguments]
            if function in ONE_ARGUMENT:
                return ONE_ARGUMENT[function](given[0])
            return reduce(FOLDS[function], given)
        case _:
            return float(expression)


def _logit(p: Any) -> Any:
    import pytensor.tensor

    pt: Any = pytensor.tensor
    return pt.log(p) - pt.log1p(-p)


def _diagnostics(
    posterior: Mapping[str, Floats], divergences: int, attempts: int
) -> dict[str, Any]:
    """Judge convergence of all population parameters, each (chains, draws, ...)."""
    worst_rhat, least_ess, reasons = 1.0, float("inf"), list[str]()
    for name, values in posterior.items():
        flat = values.reshape(*values.shape[:2], -1)
        for i in range(flat.shape[2]):
            draws = flat[:, :, i]
            mixed, size = rhat(draws), ess(draws, "bulk")
            worst_rhat, least_ess = max(worst_rhat, mixed), min(least_ess, size)
            where = f"{name}[{i}]" if flat.shape[2] > 1 else name
            if not mixed < MAX_RHAT:
                reasons.append(f"{where}: R-hat {mixed:.3f} is not below {MAX_RHAT}")
            if not size >= MIN_ESS:
                reasons.append(f"{where}: ESS {size:.0f} is below {MIN_ESS:.0f}")
    if divergences:
        reasons.append(f"{divergences} divergences")
    return {
        "converged": not reasons,
        "reasons": reasons,
        "rhat": worst_rhat,
        "ess_bulk": least_ess,
        "divergences": divergences,
        "chains": posterior["location"].shape[0],
        "draws": posterior["location"].shape[1],
        "attempts": attempts,
    }
