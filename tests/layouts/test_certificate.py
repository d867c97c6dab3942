"""Certificates: what passes, what fails, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from animalcat.layouts.inference.certificate import certify
from animalcat.layouts.inference.fit import FitRequest, FitResult, fit
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.spec import Layout


@pytest.fixture
def prior(aaio: Layout) -> FitResult:
    return fit(FitRequest(aaio, [], [], seed=4))


def shift_node(nodes: list[NodeSummary], index: int, means: float, sds: float) -> list[NodeSummary]:
    node = nodes[index]
    changed = replace(node, mean=node.mean + means * node.sd, sd=node.sd * sds)
    return [*nodes[:index], changed, *nodes[index + 1 :]]


def test_equal_posteriors_pass(prior: FitResult) -> None:
    certificate = certify(prior.nodes, prior)
    assert certificate.passed
    assert certificate.usable
    assert certificate.reasons == ()
    assert certificate.max_mean_error == 0.0
    assert certificate.to_dict()["reasons"] == []


@pytest.mark.parametrize(
    ("means", "sds", "passed"),
    [
        (0.14, 1.0, True),
        (0.16, 1.0, False),
        (-0.16, 1.0, False),
        (0.0, 1.15, True),
        (0.0, 1.17, False),
        (0.0, 0.85, False),
    ],
)
def test_limits(prior: FitResult, means: float, sds: float, passed: bool) -> None:
    certificate = certify(shift_node(prior.nodes, 1, means, sds), prior)
    assert certificate.passed is passed
    assert certificate.max_mean_error == pytest.approx(abs(means))
    assert certificate.usable
    if not passed:
        assert all("visualAbility" in reason for reason in certificate.reasons)


@pytest.mark.parametrize("bad", [{"rhat": 1.02}, {"rhat": float("nan")}, {"ess_tail": 399.0}])
def test_a_bad_fit_certifies_nothing(prior: FitResult, bad: dict[str, float]) -> None:
    certificate = certify(prior.nodes, replace(prior, diagnostics={**prior.diagnostics, **bad}))
    assert not certificate.passed
    assert not certificate.usable
    assert len(certificate.reasons) == 1


def test_other_nodes_are_refused(prior: FitResult) -> None:
    with pytest.raises(ValueError, match="different layouts"):
        certify(prior.nodes[1:], prior)
