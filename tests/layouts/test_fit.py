"""Full fits: gated, reproducible, compiled once; and the live posterior agrees with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.inference.backend.engine import Engine, SamplerSettings, Trace
from animalcat.layouts.inference.certificate import certify
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitRequest, FitResult, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout, from_dict, to_dict

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]
Play = Callable[[Floats, list[float], int], Floats]


def test_without_outcomes_the_prior_is_returned_and_said_so(aaio: Layout) -> None:
    result = fit(FitRequest(aaio, np.empty((0, 4)), [], seed=1))
    assert result.diagnostics["prior_only"]
    assert result.diagnostics["engine"] == "prior"
    assert "prior" in result.diagnostics["reasons"][0]
    for node, summary in zip(aaio.latents, result.nodes, strict=True):
        assert summary.mean == pytest.approx(node.prior.mean, abs=0.05 * node.prior.span)
        assert summary.sd == pytest.approx(node.prior.sd, rel=0.05)


@pytest.mark.parametrize(
    ("features", "outcomes", "words"),
    [
        ([[10.0, 1.0, 0.0, 0.0]], [1.0, 0.0], "2,"),
        ([[10.0, 1.0, 0.0, 0.0]], [0.5], "success is 1, failure 0"),
        ([[10.0, float("nan"), 0.0, 0.0]], [1.0], "rewardSize"),
        ([[99.0, 1.0, 0.0, 0.0]], [1.0], "rewardDistance of row 0 is 99 m.*0 to 60"),
        ([[10.0, 1.0], [0.0, 0.0]], [1.0], "wants .instances, 4.: rewardDistance"),
        ([[10.0, 1.0, 0.0, 0.0]], [float("nan")], "outcome 0 is nan"),
    ],
)
def test_bad_data_is_refused(
    aaio: Layout, features: list[list[float]], outcomes: list[float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        fit(FitRequest(aaio, features, outcomes, seed=1))


class Replayed(Engine):
    """Gives a trace that was made before: what a gate does must not hang on luck."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace
        self.accepts: list[float] = []

    def sample(
        self,
        layout: Layout,
        features: Floats,
        outcomes: Floats,
        settings: SamplerSettings,
        weights: Floats | None = None,
    ) -> Trace:
        self.accepts.append(settings.target_accept)
        return self.trace


def good_trace(layout: Layout) -> Trace:
    g = np.random.default_rng(0)
    z = g.standard_normal((4, 1000, len(layout.latents)))
    draws = np.stack(
        [n.prior.from_standard(z[..., i]) for i, n in enumerate(layout.latents)], axis=-1
    )
    return Trace(draws, g.standard_normal((4, 1000)), 0)


def refit(
    layout: Layout, trace: Trace, outcomes: list[float], weights: list[float] | None = None
) -> tuple[FitResult, Replayed]:
    engine = Replayed(trace)
    features = [[10.0, 1.0, 0.0, 0.0]] * len(outcomes)
    return fit(FitRequest(layout, features, outcomes, seed=1, weights=weights), engine), engine


def test_the_gate_refuses_what_has_not_converged_and_tries_again_once(aaio: Layout) -> None:
    good = good_trace(aaio)
    result, engine = refit(aaio, good, [1.0, 0.0] * 10)
    assert result.converged
    assert result.diagnostics["reasons"] == []
    assert engine.accepts == [0.95]

    stuck = good.draws.copy()
    stuck[2, :, 1] = 1.0
    apart = good.draws.copy()
    apart[0, :, 0] += 3.0
    slow = np.cumsum(good.energy, axis=1)
    for trace, words in (
        (replace(good, draws=stuck), "visualAbility: R-hat"),
        (replace(good, draws=apart), "navigationAbility: R-hat"),
        (replace(good, divergences=3), "3 divergences"),
        (replace(good, energy=slow), "E-BFMI 0.0"),
    ):
        result, engine = refit(aaio, trace, [1.0, 0.0] * 10)
        assert not result.converged
        assert any(words in reason for reason in result.diagnostics["reasons"])
        assert engine.accepts == [0.95, 0.99]
        assert result.diagnostics["attempts"] == 2


def test_what_the_outcomes_cannot_tell_is_said(aaio: Layout) -> None:
    trace = good_trace(aaio)
    assert refit(aaio, trace, [1.0, 0.0] * 10)[0].diagnostics["notes"] == []
    (one,) = refit(aaio, trace, [1.0])[0].diagnostics["notes"]
    assert "1 outcomes: this is little more than the prior" in one
    (same,) = refit(aaio, trace, [0.0] * 9)[0].diagnostics["notes"]
    assert "all 9 outcomes are 0" in same


@pytest.mark.slow
@pytest.mark.timeout(900)  # compiling takes half a minute where nothing else runs
@pytest.mark.parametrize(
    ("variant", "sampler", "agent", "rows"),
    [
        ("score", "nutpie", [4.0, 8.0], [[d] for d in (0, 2, 3, 4, 6, 8, 10)]),
        ("trials", "pymc", [6.0, 0.2], [[d, n] for d in (2, 5, 7) for n in (1, 5, 20)]),
    ],
)
def test_other_outcomes_and_the_plain_sampler_agree_with_the_live_posterior(
    variant: str, sampler: Literal["nutpie", "pymc"], agent: list[float], rows: list[list[float]]
) -> None:
    layout = load_layout("one-capability", variant)
    evaluator = Evaluator(layout)
    features = np.tile(np.array(rows, np.float64), (4, 1))
    drawn = evaluator.simulate([agent], evaluator.columns(features), np.random.default_rng(3))
    posterior = LivePosterior(layout, 1, particles=8000)
    for i, row in enumerate(features):
        posterior.update(row, drawn[i, 0], i + 1)
    result = fit(FitRequest(layout, features, drawn[:, 0], seed=1, sampler=sampler))
    assert result.converged, result.diagnostics
    assert certify(posterior.summary(), result).passed
    again = fit(FitRequest(layout, features, drawn[:, 0], seed=1, sampler=sampler), cores=1)
    assert (again.draws == result.draws).all()


@pytest.mark.xdist_group("nuts")
def test_nuts_fits(aaio: Layout, draw_instances: Draw, play: Play) -> None:
    """One test for all that needs the compiled model: compiling takes longer than the rest."""
    from animalcat.layouts.inference.backend.engine import default_engine

    truth = [3.0, 1.2, 0.5, 0.1]
    features = draw_instances(300, 11)
    y = play(features, truth, 11)
    request = FitRequest(aaio, features, y, seed=2)
    result = fit(request)
    compiled = default_engine().compiles  # other layouts too, where this process tested them
    assert result.converged
    assert result.draws.shape == (4, 1000, 4)
    assert result.flat_draws.shape == (4000, 4)
    assert result.diagnostics["rhat"] < 1.01
    assert result.diagnostics["ess_bulk"] >= 400
    assert result.diagnostics["divergences"] == 0
    assert result.diagnostics["ebfmi"] > 0.3
    for node, value in zip(result.nodes, truth, strict=True):
        assert abs(node.mean - value) < 3.5 * node.sd

    # Same seed, same draws, whatever the cores; another seed, others.
    assert (fit(request, cores=1).draws == result.draws).all()
    assert (fit(replace(request, seed=3)).draws != result.draws).any()

    # A live posterior of the same outcomes is certified at every checkpoint; one of others fails.
    posterior = LivePosterior(aaio, 1)
    for i in range(128):
        posterior.update(features[i], bool(y[i]), i + 1)
        if i + 1 in (16, 128):
            checked = fit(FitRequest(aaio, features[: i + 1], y[: i + 1], seed=i))
            certificate = certify(posterior.summary(), checked)
            assert certificate.passed, (i + 1, certificate)
    stale = certify(posterior.summary(), result)
    assert not stale.passed
    assert stale.usable

    # All outcomes equal is a posterior like any other.
    certain = fit(FitRequest(aaio, features[:40], np.ones(40), seed=5))
    assert certain.nodes[0].mean > aaio.latents[0].prior.mean

    # A fit that is too short says so, after a second attempt.
    short = fit(replace(request, draws=20, tune=20))
    assert not short.converged
    assert short.diagnostics["attempts"] == 2
    assert any("ESS" in reason for reason in short.diagnostics["reasons"])

    assert default_engine().compiles == compiled, "data of another length must not compile anew"


@pytest.mark.slow
@pytest.mark.xdist_group("nuts")
def test_a_live_posterior_of_several_outcomes_is_certified() -> None:
    data = to_dict(load_layout("one-capability", "trials"))
    del data["outcome"]
    data["outcomes"] = {
        "eaten": {"kind": "count", "probability": "taskPerformance", "trials": "trials"},
        "first": {"kind": "choice", "probability": "performance"},
    }
    layout = from_dict(data)
    evaluator, g = Evaluator(layout), np.random.default_rng(6)
    features = np.column_stack([g.uniform(0, 10, 60), g.integers(1, 9, 60)]).astype(np.float64)
    drawn = evaluator.simulate([[6.0, 0.2]], evaluator.columns(features), g)[:, 0]
    y = drawn.copy()
    y[np.arange(0, 60, 2), g.integers(2, size=30)] = np.nan
    posterior = LivePosterior(layout, 2)
    posterior.update_all(features, y)
    fitted = fit(FitRequest(layout, features, y, seed=1))
    assert fitted.converged, fitted.diagnostics
    assert certify(posterior.summary(), fitted).passed
    # Weights are those of the episodes.
    weights = np.where(np.arange(60) < 30, 1.0, 0.25)
    posterior.reweigh(weights)
    part = fit(FitRequest(layout, features, y, seed=1, weights=weights))
    assert certify(posterior.summary(), part).passed
    # An outcome that was never seen tells nothing, and the fit says so.
    never = np.column_stack([drawn[:, 0], np.full(60, np.nan)])
    alone = fit(FitRequest(layout, features, never, seed=1))
    assert any('no outcomes "first"' in note for note in alone.diagnostics["notes"])
    counts = LivePosterior(load_layout("one-capability", "trials"), 2)
    counts.update_all(features, drawn[:, 0])
    assert certify(counts.summary(), alone).passed
