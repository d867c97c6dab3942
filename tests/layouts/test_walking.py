"""Checkpoints as a walk: narrower than each on its own, and right as often."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.layouts.checking.compare import Posterior, trajectory
from animalcat.layouts.checking.walking import Start, walked
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout

LAYOUT = load_layout("one-capability", "success")
STARTS = Start.of_layout(LAYOUT)
CHECKPOINTS = 6
EPISODES = 20


def learner(seed: int) -> tuple[np.ndarray, list[Posterior]]:
    """An agent whose ability grows towards a plateau, measured at each checkpoint."""
    g = np.random.default_rng(seed)
    first, last = g.uniform(1.0, 5.0), g.uniform(3.0, 9.0)
    share = 1.0 - np.exp(-np.arange(CHECKPOINTS) * g.uniform(0.2, 1.0))
    ability = first + (last - first) * share
    evaluator, posteriors = Evaluator(LAYOUT), list[Posterior]()
    for k, value in enumerate(ability):
        x = g.uniform(0.0, 10.0, (EPISODES, 1))
        p = evaluator.probability(np.array([[value, 0.1]]), x)[0]
        live = LivePosterior(LAYOUT, 100 * seed + k, 400)
        live.update_all(x, (g.random(EPISODES) < p).astype(np.float64))
        posteriors.append(Posterior.of_live(f"step {k}", live))
    return ability, posteriors


@pytest.mark.slow
def test_learners_are_known_more_narrowly_at_the_same_coverage() -> None:
    steps = list(range(CHECKPOINTS))
    inside, width = np.zeros(2), np.zeros(2)
    for seed in range(40):
        ability, posteriors = learner(seed)
        paths = trajectory(posteriors, steps)[0], walked(posteriors, steps, STARTS)[0]
        for i, path in enumerate(paths):
            low, high = np.array(path.low), np.array(path.high)
            inside[i] += np.mean((low <= ability) & (ability <= high)) / 40
            width[i] += np.mean(high - low) / 40
    assert width[1] < 0.85 * width[0]
    assert inside[0] > 0.82
    assert inside[1] > 0.82


def test_one_checkpoint_says_what_its_session_said() -> None:
    _, posteriors = learner(3)
    (alone,), (walk,) = trajectory(posteriors[:1], [0])[:1], walked(posteriors[:1], [0], STARTS)[:1]
    assert walk.mean[0] == pytest.approx(alone.mean[0], abs=0.3)
    assert walk.rise == (None,)


def test_a_sudden_jump_is_not_smoothed_away() -> None:
    g = np.random.default_rng(1)
    narrow = [
        Posterior("x", "d", ("ability",), ("1",), (v + 0.2 * g.standard_normal(2000))[:, None])
        for v in (2.0, 2.0, 8.0, 8.0)
    ]
    (path,) = walked(narrow, [0, 1, 2, 3], STARTS)
    assert path.mean[1] == pytest.approx(2.0, abs=0.2)
    assert path.mean[2] == pytest.approx(8.0, abs=0.2)
    assert path.rise[2] == pytest.approx(1.0, abs=0.01)


def test_coordinates_come_back_whatever_ends_a_node_has() -> None:
    for low, high in ((0.0, 10.0), (1.0, None), (None, None)):
        start = Start(low, high, 3.0, 1.0)
        values = np.array([1.5, 3.0, 7.0])
        np.testing.assert_allclose(start.back(start.free(values)), values, rtol=1e-9)


def test_wrong_steps_and_unknown_nodes_are_named() -> None:
    _, posteriors = learner(3)
    with pytest.raises(ValueError, match="rising steps"):
        walked(posteriors, [0, 1, 1, 2, 3, 4], STARTS)
    with pytest.raises(ValueError, match="nothing says where ability starts"):
        walked(posteriors, list(range(CHECKPOINTS)), {})
    with pytest.raises(ValueError, match="priors"):
        Start.of_profile({"nodes": {"ability": {"range": [0, 1]}}})
