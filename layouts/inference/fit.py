"""Full fits by NUTS with a convergence gate: a fit that has not converged says so."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.convergence import ess, rhat
from animalcat.layouts.inference.counting import equal_rows
from animalcat.layouts.inference.evidence import evidence_digest
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import NodeSummary, summarise
from animalcat.layouts.model.spec import Layout

if TYPE_CHECKING:
    from xarray import Dataset

    from animalcat.layouts.inference.arviz_data import Sampled
    from animalcat.layouts.inference.backend.engine import Engine, Trace

Floats: TypeAlias = npt.NDArray[np.float64]

MAX_RHAT: Final = 1.01
"""A fit with a larger R-hat has not converged (Vehtari et al. 2021)."""
MIN_ESS: Final = 400.0
"""A fit with fewer effective draws, in bulk or tail, has not converged (Vehtari et al. 2021)."""
_MIN_EBFMI: Final = 0.3
"""A fit with a lower E-BFMI explores the posterior's tails badly (Betancourt 2016)."""
FEW: Final = 5
"""With fewer outcomes, a fit notes that it is little more than the prior."""

_LEAST: Final = {"seed": 0, "chains": 1, "draws": 4, "tune": 1}
"""Least numbers with which there is a fit; of fewer draws there is no R-hat."""


class FitError(RuntimeError):
    """The request was refused, and would be on any other machine."""


class FitInterruptedError(FitError):
    """The fit failed because of the machine; asking again may well succeed.

    The fitting process crashed, was killed, hung, ran out of memory or could not be started.

    Attributes:
        died_of: "memory" where it could get none, "kill" where it was killed, perhaps for want of
            memory; else empty.
    """

    def __init__(self, message: str, died_of: str = "") -> None:
        super().__init__(message)
        self.died_of = died_of


@dataclass(frozen=True, slots=True, eq=False)
class FitRequest:
    """What to fit, and how to sample.

    Every row is one episode, even if rows have equal features; the repeat of an instance can be
    given a smaller weight.

    Attributes:
        layout: The layout that is measured.
        features: (instances, features), in the layout's order and units.
        outcomes: (instances,): 1 for success or 0 for failure, numbers of successful trials, or
            scores. For a layout with several outcomes (instances, outcomes), NaN where one is
            missing.
        seed: Seed of the fit.
        chains: Number of chains.
        draws: Draws of each chain.
        tune: Tuning draws of each chain, which are discarded.
        target_accept: Acceptance rate that the step width is tuned to.
        sampler: "nutpie"; or "pymc", PyMC's own, slower and compiled for every run.
        weights: (instances,), in [0, 1]: how many outcomes each counts as; None for one each.
    """

    layout: Layout
    features: npt.ArrayLike
    outcomes: npt.ArrayLike
    seed: int
    chains: int = 4
    draws: int = 1000
    tune: int = 1000
    target_accept: float = 0.95
    sampler: Literal["nutpie", "pymc"] = "nutpie"
    weights: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        if self.sampler not in ("nutpie", "pymc"):
            raise ValueError(f"sampler {self.sampler!r} is unknown; valid: nutpie, pymc")
        for name, least in _LEAST.items():
            value: object = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or int(cast("int", value)) < least:
                raise ValueError(f"{name} is {value!r}; give a whole number from {least} on")


class FitData(NamedTuple):
    """What a posterior was fitted to.

    Attributes:
        features: (instances, features), in the layout's order and units.
        outcomes: (instances,) or (instances, outcomes), NaN where one is missing.
        weights: (instances,): how many outcomes each counts as; None for one each.
        episodes: Number of each instance's episode; empty where they have none.
    """

    features: Floats
    outcomes: Floats
    weights: Floats | None = None
    episodes: tuple[int, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of the evidence, which is the same by whatever route it came."""
        return evidence_digest(self.features, self.outcomes, self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class FitResult:
    """The posterior of a fit.

    Attributes:
        layout: The layout that was measured.
        draws: (chains, draws, latents).
        nodes: Every node of the profile, in the layout's order.
        diagnostics: JSON-ready: `engine`, `converged`, `reasons` (why not), `notes` (what else to
            bear in mind), `outcomes` (how many episodes), `evidence` (their digest), `prior_only`,
            `rhat`, `ess_bulk`, `ess_tail`, `ebfmi` (worst over nodes or chains), `divergences`,
            `chains`, `draws`, `tune`, `attempts`.
        data: What was fitted; None if that is not known.
        statistics: (chains, draws) each: the sampler's statistics, by ArviZ's names for them.
    """

    layout: Layout
    draws: Floats
    nodes: list[NodeSummary]
    diagnostics: Mapping[str, Any]
    data: FitData | None = None
    statistics: Mapping[str, Floats] = field(default_factory=dict[str, Floats])

    @property
    def flat_draws(self) -> Floats:
        """All chains one after another, (draws, latents)."""
        return self.draws.reshape(-1, self.draws.shape[-1])

    def to_arviz(self) -> Any:
        """Return the fit as ArviZ has it: an `InferenceData`, or a `DataTree` from ArviZ 1 on.

        It holds prior and posterior with their predictions, log likelihood, sample statistics,
        observed outcomes, and features and weights as constant data.
        """
        from animalcat.layouts.inference.arviz_data import to_arviz

        return to_arviz(self.datasets())

    def datasets(
        self,
        constants: Mapping[str, Sequence[Any]] | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> dict[str, Dataset]:
        """Return the groups of `to_arviz`, as xarray has them.

        Args:
            constants: What else is known of each episode, by name.
            attributes: Facts about the whole, as text.
        """
        return self.sampled(constants, attributes).groups()

    def sampled(
        self,
        constants: Mapping[str, Sequence[Any]] | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> Sampled:
        """Return what these groups are made of, for those who make them in blocks.

        Args:
            constants: What else is known of each episode, by name.
            attributes: Facts about the whole, as text.
        """
        from animalcat.layouts.inference.arviz_data import Sampled

        data = self.data or FitData(np.empty((0, len(self.layout.features))), np.empty(0))
        return Sampled(
            self.layout,
            self.draws,
            data.features,
            data.outcomes,
            data.weights,
            self.statistics,
            data.episodes,
            constants or {},
            attributes or {},
        )

    @property
    def converged(self) -> bool:
        """Whether the fit passed the convergence gate."""
        return bool(self.diagnostics["converged"])


def fit(request: FitRequest, engine: Engine | None = None, cores: int | None = None) -> FitResult:
    """Fit a layout by NUTS.

    A run that fails the gate is repeated once with twice the draws and smaller steps. Without
    outcomes, the result is the prior and says so.

    Args:
        request: What to fit.
        engine: Holds compiled models; by default the one shared within this process.
        cores: Number of chains that run at once; by default as many as the machine has cores.

    Raises:
        ValueError: Features or outcomes do not fit the layout.
    """
    layout = request.layout
    values = np.asarray(request.features, dtype=np.float64)
    features = layout.check_features(values if values.size else np.empty((0, len(layout.features))))
    outcomes = layout.check_outcomes(request.outcomes, features)
    weights = _weights(request, len(outcomes))
    if not len(outcomes):
        return replace(_prior(request), data=FitData(features, outcomes))
    rows, counts = (features, outcomes), weights
    if (counted := equal_rows(features, outcomes, weights)) is not None:
        rows, counts = (features[counted.rows], outcomes[counted.rows]), counted.weights
    from animalcat.layouts.inference.backend.engine import SamplerSettings, default_engine

    engine = engine or default_engine()
    sample = engine.sample if request.sampler == "nutpie" else engine.sample_plainly
    result = None
    for attempt in range(2):
        factor = 1 + attempt
        settings = SamplerSettings(
            seed=_seed(request.seed, attempt),
            chains=request.chains,
            draws=request.draws * factor,
            tune=request.tune * factor,
            target_accept=request.target_accept if attempt == 0 else 0.99,
            cores=cores or os.cpu_count() or 1,
        )
        trace = sample(layout, *rows, settings, counts)
        result = _result(request, trace, FitData(features, outcomes, weights), attempt + 1)
        if result.converged:
            break
    assert result is not None  # two attempts were made
    return result


def _weights(request: FitRequest, count: int) -> Floats | None:
    """The weights of outcomes; None where all count as one."""
    if request.weights is None:
        return None
    weights = np.asarray(request.weights, dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"weights have shape {weights.shape}; there are {count} outcomes")
    if not ((weights >= 0.0) & (weights <= 1.0)).all():
        raise ValueError("weights of outcomes must be in [0, 1]")
    return weights if (weights != 1.0).any() else None


def _seed(seed: int, attempt: int) -> int:
    return int(rng(seed, "nuts", attempt).integers(2**31))


def _result(request: FitRequest, trace: Trace, data: FitData, attempts: int) -> FitResult:
    outcomes, weights = data.outcomes, data.weights
    latents = range(len(request.layout.latents))
    mixed = np.array([rhat(trace.draws[..., i]) for i in latents])
    bulk = np.array([ess(trace.draws[..., i], "bulk") for i in latents])
    tail = np.array([ess(trace.draws[..., i], "tail") for i in latents])
    reasons = [
        f"{name}: {text}"
        for i, name in enumerate(request.layout.latent_names)
        for bad, text in (
            # Written so that NaN (a chain that never moved) fails.
            (not mixed[i] < MAX_RHAT, f"R-hat {mixed[i]:.3f} is not below {MAX_RHAT}"),
            (not bulk[i] >= MIN_ESS, f"bulk ESS {bulk[i]:.0f} is below {MIN_ESS:.0f}"),
            (not tail[i] >= MIN_ESS, f"tail ESS {tail[i]:.0f} is below {MIN_ESS:.0f}"),
        )
        if bad
    ]
    if trace.divergences:
        reasons.append(f"{trace.divergences} divergences")
    ebfmi = float(_ebfmi(trace.energy).min())
    if not ebfmi >= _MIN_EBFMI:
        reasons.append(f"E-BFMI {ebfmi:.2f} is below {_MIN_EBFMI}")
    chains, draws = trace.energy.shape
    diagnostics: dict[str, Any] = {
        "engine": "nuts",
        "converged": not reasons,
        "reasons": reasons,
        "notes": _notes(request.layout, outcomes, weights),
        "outcomes": len(outcomes),
        "evidence": data.digest,
        "prior_only": False,
        "rhat": float(mixed.max()),
        "ess_bulk": float(bulk.min()),
        "ess_tail": float(tail.min()),
        "ebfmi": ebfmi,
        "divergences": trace.divergences,
        "chains": chains,
        "draws": draws,
        "tune": request.tune * attempts,
        "attempts": attempts,
    }
    fitted = _summarise(request.layout, trace.draws, bulk, diagnostics)
    return replace(fitted, data=data, statistics=trace.statistics)


def _prior(request: FitRequest) -> FitResult:
    """Independent draws of the prior, in the shape of a fit."""
    layout = request.layout
    z = rng(request.seed, "prior", 0).standard_normal(
        (request.chains, request.draws, len(layout.latents))
    )
    draws = layout.from_standard(z)
    size = float(request.chains * request.draws)
    diagnostics: dict[str, Any] = {
        "engine": "prior",
        "converged": True,
        "reasons": ["no outcomes: this is the prior"],
        "notes": [],
        "outcomes": 0,
        "evidence": evidence_digest((), ()),
        "prior_only": True,
        "rhat": 1.0,
        "ess_bulk": size,
        "ess_tail": size,
        "ebfmi": 1.0,
        "divergences": 0,
        "chains": request.chains,
        "draws": request.draws,
        "tune": 0,
        "attempts": 0,
    }
    return _summarise(layout, draws, np.full(len(layout.latents), size), diagnostics)


def _summarise(
    layout: Layout, draws: Floats, ess: Floats, diagnostics: Mapping[str, Any]
) -> FitResult:
    flat = draws.reshape(-1, draws.shape[-1])
    nodes = summarise(layout, flat, np.full(len(flat), 1.0 / len(flat)), ess)
    return FitResult(layout, draws, nodes, diagnostics)


def _notes(layout: Layout, outcomes: Floats, weights: Floats | None) -> list[str]:
    """Caveats that the outcomes themselves do not show."""
    notes: list[str] = []
    if weights is not None:
        seen = weights > 0.0
        if not seen.all():
            notes.append(f"{np.count_nonzero(~seen)} of {len(outcomes)} episodes count for nothing")
        outcomes, weights = outcomes[seen], weights[seen]
        if repeats := np.count_nonzero(weights < 1.0):
            notes.append(
                f"{repeats} of {len(outcomes)} outcomes are repeats that count less: all "
                f"{len(outcomes)} count as {weights.sum():.1f}"
            )
    if len(outcomes) < FEW:
        notes.append(f"{len(outcomes)} outcomes: this is little more than the prior")
    for name, column in zip(
        layout.outcome_names, outcomes.reshape(len(outcomes), -1).T, strict=True
    ):
        y = column[~np.isnan(column)]
        which = "outcomes" if outcomes.ndim == 1 else f'outcomes "{name}"'
        if len(y) > 1 and (y == y[0]).all():
            notes.append(
                f"all {len(y)} {which} are {y[0]:g}: the evidence is from one side only, and "
                "means depend on the priors"
            )
        if not len(y):
            notes.append(f"no {which}: they are not informative here")
    return notes


def _ebfmi(energy: Floats) -> Floats:
    """Energy Bayesian fraction of missing information of each chain (Betancourt 2016)."""
    return np.mean(np.diff(energy, axis=1) ** 2, axis=1) / np.var(energy, axis=1)
