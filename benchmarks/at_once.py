"""`python -m benchmarks at_once`: what it costs in precision that several samples run at once.

Models are drawn from the prior of a layout of three demand levels, and answer by chance as it says.
Under `at_once` = m, choice k uses the outcomes of the choices 1 to k - m. A model answers a sample
alike however often and whenever it is asked, so that differences are those of the choices.
"""

from __future__ import annotations

import time
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from rich.progress import Progress

from animalcat.cli.shared.output import progress_console
from animalcat.inspect.plan import Plan
from animalcat.inspect.session import Came, Session
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
QUICK: Final = 2
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
    layout, models = levels_layout(), QUICK if quick else MODELS
    levels = rng(0, "items", 0).integers(0, 6, (ITEMS, len(SCALES))).astype(np.float64)
    agents = prior_agents(layout, models, rng(0, "models", 0))
    kinds = [(f"{m} at once", Policy(), m) for m in AT_ONCE]
    kinds.append(("random, 1 at once", Policy("random"), 1))
    found: dict[str, list[Floats]] = {name: [] for name, _, _ in kinds}
    seconds: dict[str, float] = dict.fromkeys(found, 0.0)
    with Progress(console=progress_console(), transient=True) as progress:
        task = progress.add_task("models", total=models * len(kinds))
        for number, agent in enumerate(agents):
            chance = Evaluator(layout).probability(agent.theta[np.newaxis], levels)[0]
            right = rng(0, "answers", number).random(ITEMS) < chance
            for name, policy, at_once in kinds:
                began = time.process_time()
                found[name].append(
                    _course(layout, levels, policy, at_once, number, agent.theta, right)
                )
                seconds[name] += time.process_time() - began
                progress.advance(task)
    first = np.array(found[kinds[0][0]])
    return [
        {
            "choice": name,
            "after": at,
            "sd": f"{np.mean(courses[:, k, 0]):.3f}",
            "error": f"{np.sqrt(np.mean(courses[:, k, 1] ** 2)):.3f}",
            "accuracy off by": f"{np.mean(courses[:, k, 2]):.3f}",
            "sd against 1 at once": _ratio(courses[:, k, 0], first[:, k, 0]),
            "CPU s a model": f"{seconds[name] / models:.1f}",
        }
        for name, courses in ((name, np.array(each)) for name, each in found.items())
        for k, at in enumerate(AT)
    ]


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
    items = tuple(f"item-{k:03d}" for k in range(ITEMS))
    rule = StoppingRule(max_episodes=CHOICES, target_sd=0.0, futility=0.0)
    plan = Plan(layout, items, levels, {}, ("",) * ITEMS, policy, rule, seed, at_once, size=ITEMS)
    answers = dict(zip(items, right.tolist(), strict=True))
    session, waiting, rows = Session(plan), [""] * 0, []
    while True:
        while (choice := session.choose()) is not None:
            waiting.append(choice.item)
        if not waiting:
            break
        item = waiting.pop(0)
        session.came((item, 1), Came(float(answers[item])))
    learner = plan.learner()
    for choice in session.choices:
        learner.tell(choice.item, float(answers[choice.item]), choice.number - 1, random=False)
        if choice.number in AT:
            nodes = learner.summary()
            means, sds = np.array([n.mean for n in nodes]), np.array([n.sd for n in nodes])
            off = float(np.sqrt(np.mean((means - theta) ** 2)))
            evaluator, posterior = learner.bank.evaluator, learner.posterior
            each = evaluator.by_instance(posterior.particles, learner.bank.distinct, np.float64)
            predicted = (each @ posterior.weights)[learner.bank.place].mean()
            rows.append([float(sds.mean()), off, abs(float(predicted) - float(right.mean()))])
    return np.array(rows)


def _ratio(one: Floats, other: Floats) -> str:
    """Ratio of means with its 90 % interval over models, who are the same on both sides."""
    drawn = rng(0, "bootstrap", 0).integers(0, len(one), (_RESAMPLED, len(one)))
    ratios = one[drawn].mean(axis=1) / other[drawn].mean(axis=1)
    low, high = np.quantile(ratios, [0.05, 0.95])
    return f"{one.mean() / other.mean():.3f} ({low:.3f} to {high:.3f})"
