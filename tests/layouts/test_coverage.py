"""Intervals cover what they claim although the chooser is adaptive and stopping optional."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.adaptive.stopping import RuleStopper
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.spec import Layout

Floats = npt.NDArray[np.float64]
AGENTS = 60


@pytest.mark.slow
def test_coverage_at_the_stopping_time(
    aaio: Layout, draw_instances: Callable[[int, int], Floats]
) -> None:
    features = draw_instances(300, 1)
    paradigms = [f"p{i % 5}" for i in range(300)]
    chooser = Chooser(Bank(aaio, features, paradigms))
    stopper = RuleStopper(aaio, StoppingRule(max_episodes=60, target_sd=0.15, futility=0.02))
    evaluator = Evaluator(aaio)
    hits: list[bool] = []
    lengths: set[int] = set()
    for agent in range(AGENTS):
        generator = np.random.default_rng([7, agent])
        z = generator.standard_normal((1, 4))
        truth = [float(n.prior.from_standard(z[:, i])[0]) for i, n in enumerate(aaio.latents)]
        y = generator.uniform(size=300) < evaluator.probability([truth], features)[0]
        posterior = LivePosterior(aaio, agent, particles=1000)
        used: list[int] = []
        while not stopper.verdict(posterior, chooser, History(used)).stop:
            choice = chooser.choose(posterior, History(used), len(used) + 1)
            assert choice is not None
            used.append(choice.index)
            posterior.update(features[choice.index], bool(y[choice.index]), len(used))
        lengths.add(len(used))
        for node, value in zip(posterior.summary(), truth, strict=True):
            hits.append(node.hdi[0] <= value <= node.hdi[1])
    assert len(lengths) > 3
    # 240 intervals of 90 %: 0.1 is five standard errors. (400 agents, 1,600 intervals gave 0.894.)
    assert np.mean(hits) == pytest.approx(0.9, abs=0.1)
