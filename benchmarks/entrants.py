"""`python -m benchmarks entrants`: forms of layouts on real entrants, and whom priors can describe.

A form is chosen on half of the entrants by half of the tasks, and scored on the other halves, both
ways. What is predicted are arenas of other tasks than those that were told.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from animalcat.cli.shared.output import fail
from animalcat.layouts.checking.baselines import ChosenLogistic
from animalcat.layouts.checking.predict import Assessor
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout, to_dict
from animalcat.layouts.simulation.synthetic import op_battery
from benchmarks.reproduce.command import DATA
from benchmarks.reproduce.entrants import read_entrants
from benchmarks.reproduce.testbed import task_of, with_categories
from benchmarks.reproduce.testbed_report import read_testbed

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Changes: TypeAlias = Mapping[str, Any]

TOLD: Final = (15, 30, 50)
"""Numbers of episodes after which arenas of other tasks are predicted."""
ORDERS: Final = 8
"""Orders of play of every entrant; in each, other tasks are held out."""
QUICK_ORDERS: Final = 1
QUICK_ENTRANTS: Final = 6
HELD: Final = 0.25
"""Share of the tasks that is held out in an order."""
DRAWS: Final = 40_000
"""Draws of a prior, which outcomes weight."""
QUICK_DRAWS: Final = 2_000
ABLE: Final = 0.9
"""Success rate above which an agent is able."""
INSIDE: Final = 0.001
"""Least chance of a prior that an agent is able, for a form to be taken."""
COIN: Final = 0.7
"""Share of noise above which an agent mostly flips a coin."""
COINS: Final = 0.05
"""Least chance of a prior that an agent mostly flips a coin, for a form to be taken."""
AGENTS: Final = 150
"""Agents of each prior whose intervals are looked at, and episodes of each."""
EPISODES: Final = 60
QUICK_AGENTS: Final = 5
PARTICLES: Final = 1_000
PLAYERS: Final = {"able, 0.98": 0.98, "hopeless, 0.02": 0.02, "coin flipper": 0.5}
"""Agents that pass so often, whatever the arena asks for."""
REPEATS: Final = 6
"""Sessions of each of them."""
MARGINS: Final[Mapping[str, Sequence[float]]] = {
    "aaio": (0.0, 0.0, 0.003),
    "testbed": (0.0, 0.0, 0.0),
}
"""What the upper end of the difference from ridge regression has to be below, after `TOLD`."""
BEFORE: Final = "as it was"
NOW: Final = "as it is"
"""The forms that a layout had before this was measured, and that it has."""


def _beta(**given: float) -> Changes:
    return {"prior": {"scaled_beta": given}}


def _slope(slope: float) -> Changes:
    return {"link": {"logistic_margin": {"slope": slope}}}


def _aaio(reach: float, slope: float = 6.9, able: float = 1.0, **noise: float) -> Changes:
    """A form of `aaio`: ranges so many times the hardest demand, and slopes in terms of it."""
    way, sight = 5.3, 1.9
    return {
        "latents": {
            "navigationAbility": _beta(high=reach * way, beta=able),
            "visualAbility": _beta(high=reach * sight, beta=able),
            "noiseLevel": _beta(**noise),
        },
        "derived": {
            "navigationPerformance": _slope(slope / way),
            "visualPerformance": _slope(slope / sight),
        },
    }


_MARGINAL: Final = ("navigationAbility", "visualAbility", "detourAbility", "collectingAbility")
_CHANCES: Final = (
    *("searchAbility", "choiceAbility", "avoidanceAbility", "rampAbility", "platformAbility"),
    *("trackingAbility", "pushAbility", "patienceAbility", "darknessAbility"),
)


def _testbed(able: float, margins: float, highs: Sequence[float], **noise: float) -> Changes:
    """A form of `testbed`: Beta(1, able) for chances and Beta(1, margins) for the four margins."""
    latents = {name: _beta(beta=able) for name in _CHANCES}
    for name, high in zip(_MARGINAL, highs, strict=True):
        latents[name] = _beta(high=high, beta=margins)
    return {"latents": {**latents, "noiseLevel": _beta(**noise)}}


def _former(priors: Mapping[str, tuple[float, float, float]], **more: Changes) -> Changes:
    """Priors as they were: (high, alpha, beta) of each node."""
    latents = {name: _beta(high=h, alpha=a, beta=b) for name, (h, a, b) in priors.items()}
    return {"latents": latents, **more}


_MIXED = {"taskPerformance": {"link": {"noise_mixture": {"nu": 0.2}}}}
_MIDWAY = "1 - displaced * (1 - trackingAbility * (1 / hidingPlaces) ** 0.5)"
FORMER: Final[Mapping[str, Changes]] = {
    "aaio": _aaio(1.0, alpha=1, beta=1),
    "testbed": _former(
        {
            **dict.fromkeys(_CHANCES, (1.0, 1.0, 1.0)),
            "navigationAbility": (8.0, 1.0, 1.0),
            "visualAbility": (6.0, 2.0, 1.0),
            "detourAbility": (4.0, 1.0, 2.0),
            "rampAbility": (1.0, 1.0, 2.0),
            "platformAbility": (1.0, 2.0, 1.0),
            "trackingAbility": (1.0, 1.0, 2.0),
            "pushAbility": (1.0, 1.0, 10.0),
            "collectingAbility": (5.0, 1.0, 2.0),
            "patienceAbility": (1.0, 1.0, 2.0),
            "noiseLevel": (1.0, 1.0, 9.0),
        },
        derived={**_MIXED, "trackingPerformance": {"link": {"formula": {"formula": _MIDWAY}}}},
    ),
    "object-permanence": _former(
        {
            "OPAbility": (48.4, 1.0, 1.0),
            "memoryAbility": (4.4, 1.0, 1.0),
            "visualAbility": (6.0, 1.0, 1.0),
            "flatNavAbility": (61.6, 1.0, 1.0),
            **{f"{name}Ability": (1.0, 1.0, 1.0) for name in ("ramp", "lava", "platform")},
            "noiseLevel": (1.0, 1.0, 1.0),
        }
    ),
    "one-capability": _former({"ability": (10.0, 1.0, 1.0), "noiseLevel": (1.0, 1.0, 1.0)}),
}
"""What the usual variants said before."""
_RARE: Final = {"alpha": 1.0, "beta": 9.0}
_MORE: Final = {"alpha": 1.0, "beta": 4.0}
_TAIL: Final = {"alpha": 0.3, "beta": 1.0}
"""Priors of noise: the last one is mostly low, and a tenth of it is above 0.7."""
_HARDEST: Final = (12.0, 6.0, 7.0, 7.5)
_FARTHER: Final = (17.0, 7.0, 10.0, 11.0)
FORMS: Final[Mapping[str, Mapping[str, Changes]]] = {
    "aaio": {
        "reach 1, Beta(1, 9)": _aaio(1.0, **_RARE),
        "reach 1.3, Beta(1, 9)": _aaio(1.3, **_RARE),
        "reach 1.3, Beta(1, 4)": _aaio(1.3, **_MORE),
        "reach 1.5, Beta(1, 9)": _aaio(1.5, **_RARE),
        "reach 1.5, Beta(1, 4)": _aaio(1.5, **_MORE),
        "reach 1.3, twice as steep, Beta(1, 4)": _aaio(1.3, 13.8, **_MORE),
        "reach 1.1, four times as steep, Beta(1, 4)": _aaio(1.1, 27.6, **_MORE),
        "reach 1.3, able, Beta(1, 4)": _aaio(1.3, able=0.5, **_MORE),
        "reach 1.5, able, Beta(1, 4)": _aaio(1.5, able=0.5, **_MORE),
        "reach 1.3, Beta(0.3, 1)": _aaio(1.3, **_TAIL),
        "reach 1.3, able, Beta(0.3, 1)": _aaio(1.3, able=0.5, **_TAIL),
        "reach 1.5, Beta(0.3, 1)": _aaio(1.5, **_TAIL),
    },
    "testbed": {
        "flat, Beta(1, 9)": _testbed(1.0, 1.0, _HARDEST, **_RARE),
        "able, farther, Beta(1, 9)": _testbed(0.5, 1.0, _FARTHER, **_RARE),
        "able, farther, Beta(1, 4)": _testbed(0.5, 1.0, _FARTHER, **_MORE),
        "abler, farther, Beta(1, 9)": _testbed(0.3, 0.5, _FARTHER, **_RARE),
        "abler, farther, Beta(1, 4)": _testbed(0.3, 0.5, _FARTHER, **_MORE),
        "abler, Beta(1, 9)": _testbed(0.3, 0.3, _HARDEST, **_RARE),
        "abler, Beta(0.3, 1)": _testbed(0.3, 0.3, _HARDEST, **_TAIL),
    },
}
"""The forms of each layout that are scored. Those of aaio that are called able, and all with noise
Beta(0.3, 1), were written down after the others had been scored. Some ten more were tried before
them without being kept, so all scores flatter the form that was chosen a little."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Squared errors of one predictor.

    Attributes:
        errors: (entrants, orders, numbers of told episodes, arenas): NaN where an arena was not
            predicted.
    """

    errors: Floats

    def of(self, entrants: Flags, arenas: Flags) -> Floats:
        """(entrants of these, numbers told): mean over orders and these arenas."""
        return np.nanmean(self.errors[entrants][..., arenas], axis=(1, 3))


def formed(layout: Layout, form: str, changes: Changes) -> Layout:
    """The layout with the changes of a form, as a variant of that name."""
    if not changes:
        return layout
    return load_layout({**to_dict(layout), "variants": {form: changes}}, form)


def even(name: str) -> bool:
    """Whether a task or an entrant is of the first half: by the first byte of a SHA-256."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def order_of_play(names: Sequence[str], seed: int, order: int) -> tuple[list[int], list[int]]:
    """The arenas that may be told, in the order of play, and those that are held out.

    All variations of a task are on one side.
    """
    generator = rng(seed, "entrants", order)
    tasks = sorted({task_of(name) for name in names})
    order_of_tasks: list[int] = generator.permutation(len(tasks)).tolist()
    shuffled = [tasks[i] for i in order_of_tasks]
    out = set(shuffled[: max(round(HELD * len(tasks)), 1)])
    at: list[int] = generator.permutation(len(names)).tolist()
    return [i for i in at if task_of(names[i]) not in out], [
        i for i in range(len(names)) if task_of(names[i]) in out
    ]


def scores(table: OutcomeTable, orders: int, seed: int, predict: Callable[..., Floats]) -> Scored:
    """Squared errors of a predictor on the arenas that are held out.

    Args:
        table: Outcomes of the entrants, all on all arenas.
        orders: Orders of play.
        seed: Seed of the orders, which are the same for all predictors and entrants.
        predict: From arenas told, their outcomes, and arenas to predict: (arenas,).
    """
    names = table.instances.names
    errors = np.full((len(table.agents), orders, len(TOLD), len(names)), np.nan)
    for order in range(orders):
        play, held = order_of_play(names, seed, order)
        for agent, outcomes in enumerate(table.outcomes):
            for number, told in enumerate(TOLD):
                rows = play[:told]
                predicted = predict(rows, outcomes[rows], held)
                errors[agent, order, number, held] = (predicted - outcomes[held]) ** 2
    return Scored(errors)


class Weighted:
    """A layout's predictions by draws of its prior, which outcomes weight."""

    def __init__(self, layout: Layout, instances: Instances, draws: int, seed: int) -> None:
        z = rng(seed, "prior of entrants", 0).standard_normal((draws, len(layout.latents)))
        evaluator = Evaluator(layout)
        columns = evaluator.columns(instances.features(layout))
        self.p = evaluator.by_instance(layout.from_standard(z), columns, np.float32)
        inside = np.clip(self.p, 1e-7, 1.0 - 1e-7)
        self._logs = np.log1p(-inside), np.log(inside)
        self.least = float(draws)
        """Least effective number of draws of any prediction."""

    @property
    def rates(self) -> Floats:
        """(draws,): success rate of agents of the prior over all arenas."""
        return np.asarray(self.p.mean(axis=0), dtype=np.float64)

    def __call__(self, told: Sequence[int], outcomes: Floats, held: Sequence[int]) -> Floats:
        """Predict arenas from the outcomes of others."""
        weight = self.weights(told, outcomes)
        return np.asarray(self.p[held] @ weight, dtype=np.float64)

    def weights(self, told: Sequence[int], outcomes: Floats) -> Floats:
        """(draws,): their posterior weights."""
        rows, passed = np.asarray(told), outcomes > 0.5
        fails, passes = self._logs
        log = fails[rows[~passed]].sum(axis=0, dtype=np.float64)
        log += passes[rows[passed]].sum(axis=0, dtype=np.float64)
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        self.least = min(self.least, 1.0 / float(weight @ weight))
        return weight


@dataclass(frozen=True, eq=False)
class Halves:
    """Which entrants, and arenas of which tasks, are of the first half."""

    entrants: Flags
    arenas: Flags

    @classmethod
    def of(cls, table: OutcomeTable) -> Halves:
        """The halves of a table."""
        return cls(
            np.array([even(name) for name in table.agents]),
            np.array([even(task_of(name)) for name in table.instances.names]),
        )

    def both(self) -> tuple[tuple[Flags, Flags], tuple[Flags, Flags]]:
        """(entrants, arenas) of the first half, and of the second."""
        return (self.entrants, self.arenas), (~self.entrants, ~self.arenas)


def entrants_of(name: str, data: Path, quick: bool) -> tuple[Layout, OutcomeTable]:
    """A layout, and the entrants' outcomes on its arenas, in the layout's own features."""
    layout = load_layout(name)
    table = read_entrants(layout, data) if name == "aaio" else read_testbed(layout, data)
    take = slice(None, None, max(1, len(table.agents) // QUICK_ENTRANTS)) if quick else slice(None)
    instances = with_categories(table.instances, layout)
    return layout, OutcomeTable(instances, table.agents[take], table.outcomes[take])


def run(quick: bool) -> list[dict[str, Any]]:
    """Score all forms on the entrants, and look at what the priors can describe."""
    folder = os.environ.get(DATA)
    if not folder:
        fail(f"entrants needs the entrants' outcomes: set {DATA} to the folder that has aaio/")
    rows: list[dict[str, Any]] = []
    batteries: dict[str, Instances] = {}
    for name in FORMS:
        layout, table = entrants_of(name, Path(folder), quick)
        batteries[name] = table.instances
        rows += forms_scored(name, layout, table, quick)
    batteries["object-permanence"] = op_battery(0)
    difficulty = np.linspace(0.0, 10.0, 101)[:, np.newaxis]
    batteries["one-capability"] = Instances(("difficulty",), difficulty)
    for name, instances in batteries.items():
        layout = load_layout(name)
        rows += reached(layout, formed(layout, BEFORE, FORMER[name]), instances, quick)
    return rows


def forms_scored(
    name: str, layout: Layout, table: OutcomeTable, quick: bool
) -> list[dict[str, Any]]:
    """How well every form of a layout predicts, and the form that would be chosen on a half."""
    orders, draws = (QUICK_ORDERS, QUICK_DRAWS) if quick else (ORDERS, DRAWS)
    forms: dict[str, Changes] = {NOW: {}, BEFORE: FORMER[name], **FORMS[name]}
    scored: dict[str, Scored] = {}
    inside: dict[str, bool] = {}
    able: dict[str, float] = {}
    coin: dict[str, float] = {}
    for form, changes in forms.items():
        own = formed(layout, form, changes)
        posterior = Weighted(own, table.instances, draws, 0)
        scored[form] = scores(table, orders, 0, posterior)
        able[form] = float(np.mean(posterior.rates > ABLE))
        coin[form] = coins(own)
        inside[form] = able[form] >= INSIDE and coin[form] >= COINS
    ridge = scores(table, orders, 0, partial(_fitted, ChosenLogistic(), table.instances))
    everyone = np.ones(len(table.agents), dtype=np.bool_)
    everywhere = np.ones(len(table.instances), dtype=np.bool_)
    rows = [
        row
        for form in (NOW, BEFORE)
        for row in _beside(name, form, scored[form], ridge, everyone, everywhere)
    ]
    rows += [
        {
            "name": f"{name}, {form}: Brier score, mean of all three",
            "value": float(scored[form].of(everyone, everywhere).mean()),
            "note": f"above {ABLE:g}: {able[form]:.4f} of the prior, coins: {coin[form]:.4f}"
            + ("" if inside[form] else "; not to be taken"),
        }
        for form in forms
    ]
    first, second = Halves.of(table).both()
    for chosen_on, scored_on in ((first, second), (second, first)):
        if not (chosen_on[0].any() and scored_on[0].any()):
            continue
        best = min(
            (form for form in FORMS[name] if inside[form]),
            key=lambda form: float(scored[form].of(*chosen_on).mean()),
        )
        rows.append(
            {
                "name": f"{name}, chosen on one half, scored on the other",
                "value": float(scored[best].of(*scored_on).mean()),
                "baseline": float(ridge.of(*scored_on).mean()),
                "note": f"{best}; {NOW}: {scored[NOW].of(*scored_on).mean():.4f}",
            }
        )
    return rows


def _beside(
    name: str, form: str, ours: Scored, ridge: Scored, entrants: Flags, arenas: Flags
) -> list[dict[str, Any]]:
    """A form beside ridge regression, paired over entrants."""
    rows: list[dict[str, Any]] = []
    mine, theirs = ours.of(entrants, arenas), ridge.of(entrants, arenas)
    for number, (told, margin) in enumerate(zip(TOLD, MARGINS[name], strict=True)):
        apart = (mine - theirs)[:, number]
        half = float(stdtrit(len(apart) - 1, 0.95)) * float(apart.std(ddof=1)) / len(apart) ** 0.5
        mean = float(apart.mean())
        rows.append(
            {
                "name": f"{name}, {form}: Brier score after {told}",
                "value": float(mine[:, number].mean()),
                "baseline": float(theirs[:, number].mean()),
                "low": mean - half,
                "high": mean + half,
                "target": f"high below {margin:g}",
                "met": mean + half < margin,
                "note": f"low and high: less ridge regression, {len(apart)} entrants",
            }
        )
    return rows


def _fitted(
    assessor: Assessor, instances: Instances, told: list[int], outcomes: Floats, held: list[int]
) -> Floats:
    fitted = assessor.fit(instances.rows(np.asarray(told)), outcomes)
    return fitted.predict(instances.rows(np.asarray(held)))


def coins(layout: Layout) -> float:
    """Chance of a prior that an agent mostly flips a coin."""
    prior = layout.latents[layout.latent_names.index("noiseLevel")].prior
    return float(ndtr(-prior.to_standard(np.array([COIN]))[0]))


def reached(
    layout: Layout, before: Layout, instances: Instances, quick: bool
) -> list[dict[str, Any]]:
    """What the prior can describe of a battery, before and now, and whether intervals hold."""
    rows: list[dict[str, Any]] = []
    draws = QUICK_DRAWS if quick else DRAWS
    was, now = (Weighted(own, instances, draws, 1).rates for own in (before, layout))
    rows.append(
        {
            "name": f"{layout.name}: chance of the prior above {ABLE:g}",
            "value": float(np.mean(now > ABLE)),
            "baseline": float(np.mean(was > ABLE)),
            "target": f"at least {INSIDE:g}",
            "met": bool(np.mean(now > ABLE) >= INSIDE),
            "note": f"the best of {draws} passes {now.max():.3f}; before {was.max():.3f}",
        }
    )
    for kind, rate in PLAYERS.items():
        said = [
            np.mean(
                [_expected(one, instances, rate, seed) for seed in range(1 if quick else REPEATS)]
            )
            for one in (layout, before)
        ]
        rows.append(
            {
                "name": f"{layout.name}: {kind}, expected to pass after {EPISODES}",
                "value": float(said[0]),
                "baseline": float(said[1]),
                "note": f"it passes {rate:g}",
            }
        )
    for own, word in ((layout, NOW), (before, BEFORE)):
        inside = _covered(own, instances, QUICK_AGENTS if quick else AGENTS)
        rows.append(
            {
                "name": f"{layout.name}, {word}: 90 % intervals that hold the truth",
                "value": float(inside.mean()),
                "target": "0.88 to 0.92",
                "met": bool(0.88 <= inside.mean() <= 0.92),
                "note": f"{len(inside)} agents of the prior, {EPISODES} episodes; by node "
                f"{inside.mean(axis=0).min():.2f} to {inside.mean(axis=0).max():.2f}",
            }
        )
    return rows


def _expected(layout: Layout, instances: Instances, rate: float, seed: int) -> float:
    """The share that an agent is expected to pass, which passes so often whatever it meets."""
    features, generator = instances.features(layout), rng(seed, "players", 0)
    rows = generator.permutation(len(features))[:EPISODES]
    posterior = LivePosterior(layout, seed, PARTICLES)
    posterior.update_all(features[rows], (generator.random(len(rows)) < rate).astype(np.float64))
    evaluator = Evaluator(layout)
    p = evaluator.by_instance(posterior.particles, evaluator.columns(features), np.float64)
    return float((p @ posterior.weights).mean())


def _covered(layout: Layout, instances: Instances, agents: int) -> Flags:
    """(agents, nodes): whether intervals hold the nodes of agents that are drawn from the prior."""
    features = instances.features(layout)
    evaluator = Evaluator(layout)
    columns = evaluator.columns(features)
    inside: list[list[bool]] = []
    for number in range(agents):
        generator = rng(number, "agents of the prior", 0)
        truth = layout.from_standard(generator.standard_normal((1, len(layout.latents))))
        rows = generator.permutation(len(features))[:EPISODES]
        y = evaluator.simulate(truth, columns[rows], generator)[:, 0]
        posterior = LivePosterior(layout, number, PARTICLES)
        posterior.update_all(features[rows], y)
        nodes = posterior.summary()
        inside.append(
            [n.hdi[0] <= value <= n.hdi[1] for n, value in zip(nodes, truth[0], strict=True)]
        )
    return np.array(inside)
