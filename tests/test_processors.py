"""Decisions and recordings are the same bits on every x86-64 processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import special

from animalcat.portable import arrays, scalars
from tests import processors


def test_the_oldest_processor_decides_and_plays_the_same(tmp_path: Path) -> None:
    learner, service = processors.GOLDEN
    older = {name: value for name, value in processors.OLDEST.items() if "NUMBA" not in name}
    for variant, tests, titles in (
        (processors.OLDEST, learner, "went and benchmark and random or variance"),
        (older, service, "slots"),  # what the simulator compiles takes long to compile anew
    ):
        done = processors.run(variant, tmp_path, [tests, "-k", titles])
        assert done.returncode == 0, done.stdout[-3000:]
        assert " passed" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", processors.VARIANTS)
def test_every_processor_decides_and_plays_the_same(name: str, tmp_path: Path) -> None:
    if missing := processors.lacks(name):
        pytest.skip(f"this machine lacks {', '.join(sorted(missing))}")
    done = processors.run(processors.VARIANTS[name], tmp_path, processors.GOLDEN)
    assert done.returncode == 0, done.stdout[-3000:]


def test_functions_are_those_of_other_libraries() -> None:
    generator = np.random.default_rng(0)
    x, p = generator.normal(0.0, 5.0, 2000), generator.random(2000)
    close = {"rtol": 2e-13, "atol": 2e-14}
    for ours, theirs in (
        (arrays.exp(x), np.exp(x)),
        (arrays.log(p), np.log(p)),
        (arrays.log1p(-p), np.log1p(-p)),
        (arrays.expm1(x), np.expm1(x)),
        (arrays.expit(x), special.expit(x)),
        (arrays.logit(p), special.logit(p)),
        (arrays.log_expit(x), special.log_expit(x)),
        (arrays.logaddexp(x, p), np.logaddexp(x, p)),
        (arrays.logsumexp(x), special.logsumexp(x)),
        (arrays.power(p, 1.7), p**1.7),
        (arrays.ndtr(x), special.ndtr(x)),
        (arrays.ndtri(p), special.ndtri(p)),
        (arrays.gammaln(9.0 * p), special.gammaln(9.0 * p)),
        (arrays.betainc(2.5, 0.7, p), special.betainc(2.5, 0.7, p)),
        (arrays.betaincinv(2.5, 0.7, p), special.betaincinv(2.5, 0.7, p)),
        (np.array([scalars.sin(one) for one in x]), np.sin(x)),
        (np.array([scalars.cos(one) for one in x]), np.cos(x)),
        (np.array([scalars.tan(one) for one in p]), np.tan(p)),
        (np.array([scalars.asin(one) for one in p]), np.arcsin(p)),
        (np.array([scalars.atan2(a, b) for a, b in zip(x, x[::-1], strict=True)]),
         np.arctan2(x, x[::-1])),
        (np.array([scalars.exp(one) for one in x]), np.exp(x)),
        (np.array([scalars.log(one) for one in p]), np.log(p)),
        (np.array([scalars.power(one, 2.4) for one in p]), p**2.4),
    ):  # fmt: skip
        np.testing.assert_allclose(ours, theirs, **close)


@pytest.mark.parametrize(
    ("a", "b"), [((37, 91), (91, 5)), ((5, 200), (200,)), ((200,), (200, 3)), ((90,), (90,))]
)
def test_products_and_solutions_are_those_of_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    generator = np.random.default_rng(1)
    left, right = generator.normal(size=a), generator.normal(size=b)
    np.testing.assert_allclose(arrays.dot(left, right), left @ right, rtol=1e-12, atol=1e-12)
    square = generator.normal(size=(9, 30))
    positive, side = square @ square.T, generator.normal(size=(9, 2))
    np.testing.assert_allclose(arrays.cholesky(positive), np.linalg.cholesky(positive), rtol=1e-12)
    np.testing.assert_allclose(arrays.solve(positive, side), np.linalg.solve(positive, side))
