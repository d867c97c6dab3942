"""Full fits: gated, reproducible, compiled once; and the live posterior agrees with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.certificate import certify
from animalcat.layouts.fit import FitRequest, fit
from animalcat.layouts.live import LivePosterior
from animalcat.layouts.spec import Layout

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
    ],
)
def test_bad_data_is_refused(
    aaio: Layout, features: list[list[float]], outcomes: list[float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        fit(FitRequest(aaio, features, outcomes, seed=1))


@pytest.mark.slow
def test_nuts_fits(aaio: Layout, draw_instances: Draw, play: Play) -> None:
    """One test for all that needs the compiled model: compiling takes longer than the rest."""
    from animalcat.layouts.backend.engine import default_engine

    truth = [3.0, 1.2, 0.5, 0.1]
    features = draw_instances(300, 11)
    y = play(features, truth, 11)
    request = FitRequest(aaio, features, y, seed=2)

    result = fit(request)
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
        if i + 1 in (16, 32, 64, 128):
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

    assert default_engine().compiles == 1, "data of another length must not compile anew"
