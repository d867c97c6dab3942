"""`python -m benchmarks concurrency`: what it costs in precision that several samples run at once.

Models are drawn from the prior of a layout of three demand levels, and answer by chance as it says.
Under `at_once` = m, choice k uses the outcomes of the choices 1 to k - m. A model answers a sample
alike however often and whenever it is asked, so that differences are those of the choices.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.progress import Progress

from animalcat.cli.shared.output import progress_console
from animalcat.doors.inspect.logs import Came
from animalcat.doors.inspect.plan import Plan
from animalcat.doors.inspect.session import Session
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import parse_layout
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.simulation.simulate import prior_agents

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = list[dict[str, Any]]

AT_ONCE: Final = (1, 4, 8, 16)
SCALES: Final = ("knowledge", "reasoning", "reading")
ITEMS: Final = 400
CHOICES: Final = 48
AT: Final = (16, 32, 48)
"""Choices after which precision is looked at."""
MODELS: Final = 40
QUICK: Final = 6
KINDS: Final[Mapping[str, tuple[Policy, int]]] = {
    **{f"{m} at once": (Policy(), m) for m in AT_ONCE},
    "random, 1 at once": (Policy("random"), 1),
}
_RESAMPLED: Final = 2000


def levels_layout() -> Layout:
    """A layout of three scales of levels 0 to 5, each with its capability; all bind."""
    features = "".join(f"  {s}: {{unit: '1', low: 0, high: 5, about: {s}}}\n" for s in SCALES)
    latents = "".join(
        f"  {s}Level: {{kind: capability, unit: '1', prior: {{scaled_beta: {{low: 0, high: 6}}}}, "
        f"about: {s}}}\n"
        for s in SCALES
    )
    margins = "".join(
        f"  {s}Part: {{link: {{logistic_margin: {{ability: {s}Level, demand: {s}, slope: 2}}}}}}\n"
        for s in SCALES
    )
    inputs = ", ".join(f"{s}Part" for s in SCALES)
    return parse_layout(
        f"name: three-levels\nfeatures:\n{features}latents:\n{latents}derived:\n{margins}"
        f"  all: {{link: {{product: {{inputs: [{inputs}]}}}}}}\n"
        "outcome: {bernoulli: {probability: all}}\n"
    )


def run(quick: bool) -> Rows:
    """Measure models under each number at once, and with random choice.

    Args:
        quick: Take fewer models.
    """
    models = range(QUICK if quick else MODELS)
    with Progress(console=progress_console(), transient=True) as progress:
        return rows_of(
            [measured(number) for number in progress.track(models, description="models")]
        )


def measured(number: int) -> Floats:
    """Measure a model under each number at once, and with random choice.

    Args:
        number: Number of the model.

    Returns:
        (kinds, times, 4): mean posterior SD of its levels, root mean square error of their
        estimates, absolute error of the predicted accuracy, and CPU seconds of the whole.
    """
    layout = levels_layout()
    levels = rng(0, "items", 0).integers(0, 6, (ITEMS, len(SCALES))).astype(np.float64)
    agent = prior_agents(layout, 1, rng(0, "models", number))[0]
    chance = Evaluator(layout).probability(agent.theta[np.newaxis], levels)[0]
    right = rng(0, "answers", number).random(ITEMS) < chance
    found: list[Floats] = []
    for policy, at_once in KINDS.values():
        began = time.process_time()
        course = _course(layout, levels, policy, at_once, number, agent.theta, right)
        taken = np.full((len(course), 1), time.process_time() - began)
        found.append(np.hstack([course, taken]))
    return np.array(found)


def rows_of(models: Sequence[Floats]) -> Rows:
    """The table of what was measured of models.

    Args:
        models: What `measured` says of each.
    """
    every = np.array(models)
    return [
        _row(f"{name}, after {at} choices", every[:, kind, k], every[:, 0, k, 0])
        for kind, name in enumerate(KINDS)
        for k, at in enumerate(AT)
    ]


def _row(name: str, found: Floats, one_at_once: Floats) -> dict[str, Any]:
    """A row of the table: the SD, and its ratio to that of one at once with a 90 % interval."""
    sd = found[:, 0]
    error = float(np.sqrt(np.mean(found[:, 1] ** 2)))
    accuracy, seconds = float(found[:, 2].mean()), float(found[:, 3].mean())
    low, high = _ratio(sd, one_at_once)
    return {
        "name": name,
        "value": float(sd.mean()),
        "unit": "posterior SD",
        "baseline": float(one_at_once.mean()),
        "ratio": float(sd.mean() / one_at_once.mean()),
        "low": low,
        "high": high,
        "note": (
            f"the ratio's ends; error {error:.3f}, accuracy off by "
            f"{accuracy:.3f}, {seconds:.1f} s of CPU a model"
        ),
    }


def _course(
    layout: Layout,
    levels: Floats,
    policy: Policy,
    at_once: int,
    seed: int,
    theta: Floats,
    right: npt.NDArray[np.bool_],
) -> Floats:
    """What is known of a model after some choices, (times, 3).

    They are the mean posterior SD of its levels, the root mean square error of their estimates, and
    the absolute error of the estimated accuracy.
    """
    items = [f"item-{k:03d}" for k in range(ITEMS)]
    rule = StoppingRule(max_episodes=CHOICES, target_sd=0.0, futility=0.0)
    frame = pd.DataFrame(levels, items, list(layout.feature_names)).assign(paradigm="")
    plan = Plan(layout, frame, policy, rule, seed, at_once, size=ITEMS)
    answers = dict(zip(items, right.tolist(), strict=True))
    session = Session(plan)
    waiting: list[str] = []
    rows: list[list[float]] = []
    while True:
        while (choice := session.choose()) is not None:
            waiting.append(choice.instance)
        if not waiting:
            break
        item = waiting.pop(0)
        session.came((item, 1), Came(float(answers[item])))
    learner = plan.learner()
    for choice in session.choices:
        right_or_wrong = float(answers[choice.instance])
        learner.tell(choice.instance, right_or_wrong, choice.episode, random=False)
        if choice.episode + 1 in AT:
            nodes = learner.summary()
            means, sds = np.array([n.mean for n in nodes]), np.array([n.sd for n in nodes])
            off = float(np.sqrt(np.mean((means - theta) ** 2)))
            evaluator, posterior = learner.bank.evaluator, learner.posterior
            each = evaluator.by_instance(posterior.particles, learner.bank.distinct, np.float64)
            predicted = (each @ posterior.weights)[learner.bank.place].mean()
            rows.append([float(sds.mean()), off, abs(float(predicted) - float(right.mean()))])
    return np.array(rows)


def _ratio(one: Floats, other: Floats) -> tuple[float, float]:
    """The 90 % interval of a ratio of means over models, who are the same on both sides."""
    drawn = rng(0, "bootstrap", 0).integers(0, len(one), (_RESAMPLED, len(one)))
    ratios = one[drawn].mean(axis=1) / other[drawn].mean(axis=1)
    low, high = np.quantile(ratios, [0.05, 0.95])
    return float(low), float(high)
