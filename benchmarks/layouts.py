"""Speed of measuring: refit and select per episode, fill of probabilities, full fits by NUTS."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.adaptive.stopping import RuleStopper
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.inference.backend.engine import default_engine
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout

AGENT: Final = (3.0, 1.3, 0.3, 0.1)
"""The simulated agent: navigationAbility, visualAbility, rightLeftBias, noiseLevel."""

SIZES: Final = ((69, None, 200), (2000, 20.0, 200), (13_000, 6.0, 200), (250_000, 50.0, 50))
"""Sizes of batteries, the median of milliseconds that is wanted, episodes of a session."""

OTHERS: Final = (
    ("counts", "one-capability", "trials"),
    ("scores", "one-capability", "score"),
    ("scores of 128 kinds", "melting-pot", ""),
)
"""Kinds of outcomes beside success and failure, each with a layout."""

DRAWS: Final = 1000
"""Draws of each chain of a full fit that are kept, and before that as many to tune it."""

Floats = npt.NDArray[np.float64]


def instances(n: int, seed: int = 0) -> Floats:
    """(n, 4) features of the AAIO layout, as its battery has them."""
    g = np.random.default_rng(seed)
    return np.column_stack(
        [
            g.uniform(1, 54, n),
            g.choice([0.5, 1, 3, 5], n),
            g.choice([0, 0.5, 1], n),
            g.choice([-1, 0, 1], n),
        ]
    )


def outcomes(layout: Layout, features: Floats, seed: int = 0) -> Floats:
    """What the simulated agent does with each instance."""
    p = Evaluator(layout).probability([AGENT], features)[0]
    return (np.random.default_rng([seed, 1]).uniform(size=len(p)) < p).astype(np.float64)


def spread_session(layout: Layout, n: int, episodes: int, seed: int) -> list[float]:
    """The same of an agent of the prior on instances all over the features."""
    generator = np.random.default_rng(seed)
    evaluator, features = Evaluator(layout), spread(layout, n, generator)
    agent = LivePosterior(layout, seed).particles[:1]
    y = evaluator.simulate(agent, evaluator.columns(features), generator)[:, 0]
    return session(layout, features, y, episodes, seed)


def session(layout: Layout, features: Floats, y: Floats, episodes: int, seed: int) -> list[float]:
    """Milliseconds of refit, verdict and choice in each episode of a session."""
    n = len(features)
    posterior = LivePosterior(layout, seed)
    paradigms = [f"p{i % 4}" for i in range(n)]
    bank = Bank(layout, features, paradigms)
    chooser = Chooser(bank, Policy(exposures=0 if n < episodes else 1))
    stopper = RuleStopper(layout, StoppingRule(max_episodes=episodes, target_sd=0.05, futility=0.0))
    used: list[int] = []
    taken: list[float] = []
    choice = chooser.choose(posterior, History(used), 0)
    while choice is not None and len(used) < episodes:
        used.append(choice.index)
        start = time.perf_counter()
        posterior.update(features[choice.index], y[choice.index], len(used))
        stopper.verdict(posterior, chooser, History(used))
        choice = chooser.choose(posterior, History(used), len(used))
        taken.append(1e3 * (time.perf_counter() - start))
    return taken


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Measure everything; about two minutes, half of that when quick."""
    layout = load_layout("aaio")
    spread_session(layout, 10, 5, 0)  # loads the kernels
    rows: list[dict[str, Any]] = []
    repeats = 2 if quick else 8
    for n, target, episodes in SIZES:
        taken: list[float] = []
        for seed in range(repeats):
            features = instances(n, seed)
            taken += session(layout, features, outcomes(layout, features, seed), episodes, seed)
        rows.append(_row(f"refit + select, {n:,} instances", taken, "ms", target))
    for what, name, variant in OTHERS:
        other = load_layout(name, variant)
        for n in (2000, 13_000):
            taken = [t for seed in range(2) for t in spread_session(other, n, 50, seed)]
            rows.append(_row(f"refit + select, {what}, {n:,} instances", taken, "ms"))

    evaluator = Evaluator(layout)
    theta = LivePosterior(layout, 0).particles[::2]
    columns = evaluator.columns(instances(2000))
    fills = _time_calls(lambda: evaluator.by_instance(theta, columns, np.float32), 5 * repeats)
    rows.append(_row("P of 1,000 draws x 2,000 instances", fills, "ms"))

    start = time.perf_counter()
    default_engine().compile(layout)
    rows.append(_row("NUTS: compile a layout, once", [time.perf_counter() - start], "s"))
    for n in (69, 200):
        features = instances(n)
        y = outcomes(layout, features)
        ess: list[float] = []
        seconds: list[float] = []
        for seed in range(2 * repeats):
            start = time.perf_counter()
            result = fit(FitRequest(layout, features, y, seed, draws=DRAWS, tune=DRAWS))
            seconds.append(time.perf_counter() - start)
            ess.append(result.diagnostics["ess_bulk"] / seconds[-1])
        rows.append(_row(f"NUTS: fit of {n} outcomes, 4 x ({DRAWS} + {DRAWS})", seconds, "s"))
        rows.append(_row(f"NUTS: least ESS per second, {n} outcomes", ess, "1/s", low=True))
    return rows


def _time_calls(work: Callable[[], object], repeats: int) -> list[float]:
    taken: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(1e3 * (time.perf_counter() - start))
    return taken


def _row(
    name: str, values: list[float], unit: str, target: float | None = None, *, low: bool = False
) -> dict[str, Any]:
    """Median and the worst percentile: the 99th, or the first where more is better."""
    row: dict[str, Any] = {
        "name": name,
        "median": float(np.median(values)),
        "p99": float(np.percentile(values, 1 if low else 99)),
        "unit": unit,
    }
    return row if target is None else {**row, "target": target}
