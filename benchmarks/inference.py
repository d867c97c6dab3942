"""Speed of inference on layouts: NUTS by nutpie and by plain PyMC, live posterior, evaluator."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.backend import compat
from animalcat.layouts.inference.backend.engine import Engine, SamplerSettings
from animalcat.layouts.inference.convergence import ess
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.simulation.simulate import prior_agents
from benchmarks.synthetic import op_battery

Floats: TypeAlias = npt.NDArray[np.float64]
Row: TypeAlias = dict[str, Any]

DRAWS: Final = 1000
"""Draws of each chain that is kept, and before that as many to tune it."""
NUTS: Final = (("aaio", 6.0, 2, 4), ("object-permanence", 2.5, 1, 3))
"""Layouts that are fitted, the ratio to PyMC's own NUTS that is wanted, fits when quick and when
not."""

_SECOND_PROCESS: Final = """
import sys
import numpy as np
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.library import load_layout
from animalcat.layouts.inference.live import LivePosterior
layout = load_layout("object-permanence")
posterior = LivePosterior(layout, 0)
for episode, row in enumerate(spread(layout, 20, np.random.default_rng(0)), 1):
    posterior.update(row, 1.0, episode)
assert "pymc" not in sys.modules
"""


def rows(olympics: Floats, quick: bool) -> list[Row]:
    """Measure; about two minutes, half that when quick.

    Args:
        olympics: (69, 4) features of instances of the layout aaio.
        quick: Fewer repetitions.
    """
    battery = op_battery(0)
    permanence = load_layout("object-permanence")
    fitted = {"aaio": olympics, "object-permanence": battery.features(permanence)}
    return [
        *(
            row
            for name, target, few, many in NUTS
            for row in _nuts(load_layout(name), fitted[name], target, few if quick else many)
        ),
        *_live(permanence, battery, 2 if quick else 5),
        *_evaluator(permanence, battery, 5 if quick else 20),
        _second_process(2 if quick else 5),
    ]


def _nuts(layout: Layout, features: Floats, target: float, repeats: int) -> list[Row]:
    """Least effective draws a second of sampling, 2 x (1000 + 1000) draws on two cores."""
    engine = Engine()
    engine.compile(layout)
    quick: list[float] = []
    plain: list[float] = []
    for seed in range(repeats):
        (agent,) = prior_agents(layout, 1, np.random.default_rng(seed))
        p = Evaluator(layout).probability(agent.theta[np.newaxis], features)[0]
        outcomes = (np.random.default_rng([seed, 1]).random(len(p)) < p).astype(np.float64)
        settings = SamplerSettings(seed, 2, DRAWS, DRAWS, 0.8, 2)
        start = time.perf_counter()
        trace = engine.sample(layout, features, outcomes, settings)
        quick.append(_least_ess(trace.draws) / (time.perf_counter() - start))
        plain.append(_plain(layout, features, outcomes, settings))
    name = f"NUTS, {layout.name}, {len(features)} outcomes"
    return [
        {
            "name": f"{name}: least ESS a second of sampling, nutpie",
            "median": float(np.median(quick)),
            "unit": "1/s",
            "baseline": float(np.median(plain)),
            "ratio": float(np.median(np.array(quick) / np.array(plain))),
            "target": target,
            "note": "ratio to PyMC's own NUTS, seed by seed",
        },
    ]


def _plain(layout: Layout, features: Floats, outcomes: Floats, settings: SamplerSettings) -> float:
    """Least effective draws a second that PyMC spends on sampling; compiling does not count."""
    import pymc as pm

    from animalcat.layouts.inference.backend.graph import build_model

    graph = build_model(layout)
    with graph.model:
        pm.set_data(graph.data(features, outcomes))
        result = pm.sample(
            draws=settings.draws,
            tune=settings.tune,
            chains=settings.chains,
            cores=settings.cores,
            random_seed=settings.seed,
            target_accept=settings.target_accept,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
            compile_kwargs={"mode": "NUMBA"},  # as in Engine: the C compiler is switched off
        )
    return _least_ess(compat.draws(result, layout.latent_names)) / float(
        result.posterior.attrs["sampling_time"]
    )


def _least_ess(draws: Floats) -> float:
    return min(ess(draws[..., i], "bulk") for i in range(draws.shape[-1]))


def _live(layout: Layout, battery: Instances, repeats: int) -> list[Row]:
    """The live posterior over 200 outcomes, 2,000 particles."""
    features = battery.features(layout)
    evaluator = Evaluator(layout)
    taken: list[float] = []
    moves: list[float] = []
    for seed in range(repeats):
        generator = np.random.default_rng(seed)
        (agent,) = prior_agents(layout, 1, generator)
        played = features[generator.permutation(len(features))[:200]]
        p = evaluator.probability(agent.theta[np.newaxis], played)[0]
        outcomes = generator.random(200) < p
        posterior = LivePosterior(layout, seed)
        for episode, (row, y) in enumerate(zip(played, outcomes, strict=True), 1):
            before = posterior.particles
            start = time.perf_counter()
            posterior.update(row, y, episode)
            taken.append(1e3 * (time.perf_counter() - start))
            if posterior.particles is not before:
                moves.append(taken[-1])
    name = f"live posterior, {layout.name}, 200 outcomes, 2,000 particles"
    mean = {"name": f"{name}: update, mean", "median": float(np.mean(taken)), "unit": "ms"}
    return [
        {**mean, "p99": float(np.percentile(taken, 99)), "target": 1.0},
        {**_row(f"{name}: update with a move", moves, "ms"), "target": 25.0},
    ]


def _evaluator(layout: Layout, battery: Instances, repeats: int) -> list[Row]:
    """Probabilities of 1,000 draws on 13,000 instances."""
    evaluator = Evaluator(layout)
    features = battery.features(layout)
    columns = evaluator.columns(features[np.arange(13_000) % len(features)])
    theta = LivePosterior(layout, 0, 1000).particles
    taken: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        evaluator.by_instance(theta, columns, np.float32)
        taken.append(1e3 * (time.perf_counter() - start))
    name = f"P of 1,000 draws x 13,000 instances, {layout.name}"
    return [{**_row(name, taken, "ms"), "target": 40.0}]


def _second_process(repeats: int) -> Row:
    """A new process that takes in 20 outcomes: what is compiled lies on disk by now."""
    taken: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", _SECOND_PROCESS], check=True)
        taken.append(time.perf_counter() - start)
    return {**_row("second process: start and 20 outcomes, no PyMC", taken, "s"), "target": 3.0}


def _row(name: str, values: list[float], unit: str) -> Row:
    return {
        "name": name,
        "median": float(np.median(values)),
        "p99": float(np.percentile(values, 99)),
        "unit": unit,
    }
