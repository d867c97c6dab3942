"""A posterior that knows something, for the tests of choosing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.spec import Layout

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]
Play = Callable[[Floats, list[float], int], Floats]


@pytest.fixture
def posterior(aaio: Layout, draw_instances: Draw, play: Play) -> LivePosterior:
    features = draw_instances(20, 1)
    y = play(features, [3.0, 1.2, 0.3, 0.1], 1)
    posterior = LivePosterior(aaio, 5, particles=1000)
    for i in range(20):
        posterior.update(features[i], bool(y[i]), i + 1)
    return posterior
