"""A layout, instances and simulated agents for the tests of layouts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout

Floats = npt.NDArray[np.float64]


@pytest.fixture(scope="session")
def aaio() -> Layout:
    return load_layout("aaio", "scaled")


@pytest.fixture(scope="session")
def draw_instances() -> Callable[[int, int], Floats]:
    """(n, seed) -> (n, 4) features of the AAIO layout."""

    def draw(n: int, seed: int = 0) -> Floats:
        g = np.random.default_rng(seed)
        return np.column_stack(
            [
                g.uniform(1, 55, n),
                g.choice([0.5, 1, 3, 5], n),
                g.choice([0, 0.5, 1], n),
                g.choice([-1, 0, 1], n),
            ]
        )

    return draw


@pytest.fixture(scope="session")
def play(aaio: Layout) -> Callable[[Floats, list[float], int], Floats]:
    """(features, abilities, seed) -> outcomes of a simulated agent."""

    def play(features: Floats, abilities: list[float], seed: int = 0) -> Floats:
        p = Evaluator(aaio).probability([abilities], features)[0]
        return (np.random.default_rng([seed, 99]).uniform(size=len(p)) < p).astype(np.float64)

    return play
