"""`python -m benchmarks.verbagg`: people as agents, the published design of 24 items as demands.

The data are 216 of the 316 people who said of 24 acts of verbal aggression whether they would do or
want them (De Boeck and Wilson 2004; `verbal-aggression` of the data folder). An item is answered by
yes or perhaps (1) or no (0). Its design is its demands: to scold or to shout (against to curse), in
a situation in which oneself is to blame, and to do it and not just want it.

A layout in which each person has a readiness, and a reluctance for each demand, is calibrated by
half of the people (`layouts.calibrating`), and the other half is measured adaptively; then the
halves change places. Beside it stands the linear logistic test model (LLTM), which has one
readiness a person and the same weights of the design for all; it is fitted by the same half by
marginal likelihood. What is compared is the error of the share of all 24 items that a person says
yes to, after 4, 8, 12 and 16 items, for items in adaptive, random and fixed order.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

from animalcat.bench.curves import bootstrap_mean
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.calibrating.calibrate import calibrated_layout, population_model
from animalcat.layouts.calibrating.population import Effort
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

AT: Final = (4, 8, 12, 16)
ORDERS: Final = 5
"""Random orders of each person."""
LONG: Final = Effort(draws=2000, cores=os.cpu_count() or 1)
"""Long enough for the gate of `battery calibrate`, which is R-hat below 1.01."""
DESIGN: Final = ("scold", "shout", "self", "do")
PUBLISHED: Final[Mapping[str, tuple[float, float]]] = {
    "intercept": (1.744, 0.1015),
    "scold": (-1.055, 0.0680),
    "shout": (-2.042, 0.0729),
    "self": (0.716 - 1.744, np.nan),
    "do": (-0.672, 0.0562),
}
"""The LLTM fitted by lme4 to all 316 people, with standard errors: README of the R package eirm
(Bulut), `r2 ~ -1 + situ + btype + mode + (1 | id)`. The intercept is that of cursing others,
wanted; the weight of `self` is the difference of two of its rows, whose error is not printed."""
LAYOUT: Final = """
name: verbal-aggression
source: De Boeck and Wilson 2004, Explanatory item response models (the design)
about: a readiness for verbal aggression, and a reluctance for each part of an item's design
features:
  scold: {unit: '1', low: 0, high: 1, about: to scold and not to curse}
  shout: {unit: '1', low: 0, high: 1, about: to shout and not to curse}
  self: {unit: '1', low: 0, high: 1, about: oneself is to blame}
  do: {unit: '1', low: 0, high: 1, about: done and not just wanted}
latents:
  readiness: {kind: capability, unit: '1', prior: {normal: {mean: 1, sd: 2}}, about: logit of cursing others in thought}
  scoldReluctance: {kind: bias, unit: '1', prior: {normal: {mean: 1, sd: 1}}, about: logits less for scolding}
  shoutReluctance: {kind: bias, unit: '1', prior: {normal: {mean: 1, sd: 1}}, about: logits less for shouting}
  selfReluctance: {kind: bias, unit: '1', prior: {normal: {mean: 1, sd: 1}}, about: logits less where oneself is to blame}
  doReluctance: {kind: bias, unit: '1', prior: {normal: {mean: 1, sd: 1}}, about: logits less for doing}
derived:
  reluctance:
    link: {formula: {formula: scoldReluctance * scold + shoutReluctance * shout + selfReluctance * self + doReluctance * do}}
  consent: {link: {formula: {formula: 1 / (1 + exp(reluctance - readiness))}}}
outcome: {bernoulli: {probability: consent}}
"""  # noqa: E501


@dataclass(frozen=True)
class Answers:
    """Who answered what.

    Attributes:
        items: Names of the items.
        design: (items, 4), 0 or 1 in the order of `DESIGN`.
        outcomes: (people, items), 0 or 1.
    """

    items: tuple[str, ...]
    design: Floats
    outcomes: Floats

    @classmethod
    def read(cls, path: Path) -> Answers:
        """Read the table, a row for each answer."""
        with path.open(newline="") as file:
            rows = [*csv.DictReader(file)]
        items = tuple(dict.fromkeys(row["item"] for row in rows))
        people = tuple(dict.fromkeys(row["id"] for row in rows))
        of_item = {row["item"]: row for row in rows}
        design = [
            [
                float(of_item[item]["btype"] == "scold"),
                float(of_item[item]["btype"] == "shout"),
                float(of_item[item]["situ"] == "self"),
                float(of_item[item]["mode"] == "do"),
            ]
            for item in items
        ]
        outcomes = np.full((len(people), len(items)), np.nan)
        for row in rows:
            outcomes[people.index(row["id"]), items.index(row["item"])] = row["r2"] == "Y"
        return cls(items, np.array(design), outcomes)

    def instances(self) -> Instances:
        """The items with their design as demands."""
        return Instances(DESIGN, self.design, (), self.items)


@dataclass(frozen=True)
class Lltm:
    """The linear logistic test model: logit = person + intercept + design @ weights.

    Attributes:
        intercept: That of cursing others, wanted.
        weights: (4,), of the design.
        sd: Standard deviation of people.
        errors: (6,): standard errors of intercept, weights and the logarithm of the deviation.
    """

    intercept: float
    weights: Floats
    sd: float
    errors: Floats

    @classmethod
    def fit(cls, design: Floats, outcomes: Floats) -> Lltm:
        """Fit it by marginal likelihood, with people integrated out by 41 nodes (Gauss-Hermite)."""
        nodes, weight = np.polynomial.hermite_e.hermegauss(41)
        log_weight = np.log(weight / weight.sum())

        def loss(at: Floats) -> float:
            eta = np.exp(at[5]) * nodes[:, np.newaxis] + at[0] + design @ at[1:5]
            joint = outcomes @ log_expit(eta).T + (1.0 - outcomes) @ log_expit(-eta).T
            return -float(logsumexp(joint + log_weight, axis=1).sum())

        found = minimize(loss, np.zeros(6), method="BFGS")
        errors = np.sqrt(np.diag(_curvature(loss, found.x)))
        return cls(float(found.x[0]), found.x[1:5], float(np.exp(found.x[5])), errors)

    def predict(self, design: Floats, some: Ints, answers: Floats) -> Floats:
        """Probability of every item, (items,), after some answers of a person."""
        return self._share(design, some, answers) @ expit(self._eta(design))

    def next(self, design: Floats, some: Ints, answers: Floats) -> int:
        """The item that is expected to tell most: Fisher's information, averaged over who it is."""
        p = expit(self._eta(design))
        told = self._share(design, some, answers) @ (p * (1.0 - p))
        told[some] = -1.0
        return int(np.argmax(told))

    def _eta(self, design: Floats) -> Floats:
        at = np.linspace(-4.0, 4.0, 81) * self.sd
        return at[:, np.newaxis] + self.intercept + design @ self.weights

    def _share(self, design: Floats, some: Ints, answers: Floats) -> Floats:
        own = self._eta(design)[:, some]
        joint = log_expit(own) @ answers[some] + log_expit(-own) @ (1.0 - answers[some])
        joint = joint - 0.5 * np.linspace(-4.0, 4.0, 81) ** 2
        return np.asarray(np.exp(joint - logsumexp(joint)), np.float64)


def _curvature(loss: Any, at: Floats) -> Floats:
    """Inverse of the matrix of second differences."""
    step, size = 1e-3, len(at)
    hessian = np.empty((size, size))
    unit = np.eye(size) * step
    for i in range(size):
        for j in range(size):
            hessian[i, j] = (
                loss(at + unit[i] + unit[j]) - loss(at + unit[i] - unit[j])
                - loss(at - unit[i] + unit[j]) + loss(at - unit[i] - unit[j])
            ) / (4.0 * step**2)  # fmt: skip
    return np.asarray(np.linalg.inv(hessian), np.float64)


def error_of(predicted: Floats, answers: Floats, some: Ints) -> float:
    """Absolute error of the share of yes, where answers that are known stand for themselves."""
    made = predicted.copy()
    made[some] = answers[some]
    return abs(float(made.mean() - answers.mean()))


def layout_errors(layout: Layout, bank: Bank, answers: Floats, seed: int) -> dict[str, list[float]]:
    """Errors with the layout: adaptive, in random orders and in the order of the table."""
    found: dict[str, list[float]] = {}
    place = {name: k for k, name in enumerate(bank.names)}

    def predicted(posterior: LivePosterior) -> Floats:
        each = bank.evaluator.by_instance(posterior.particles, bank.distinct, np.float64)
        return np.asarray(each @ posterior.weights, np.float64)[bank.place]

    rule = StoppingRule(max_episodes=AT[-1], target_sd=0.0, futility=0.0)
    learner = Learner(bank, Policy(probes=0.0), rule, seed)
    played: list[int] = []
    for n in range(1, AT[-1] + 1):
        choice = learner.ask()
        assert choice is not None, "no item comes twice, and there are more"
        learner.tell(choice.instance, answers[place[choice.instance]])
        played.append(place[choice.instance])
        if n in AT:
            now = error_of(predicted(learner.posterior), answers, np.array(played))
            found.setdefault("layout, adaptive", []).append(now)
    for order, name in _orders(len(answers), seed):
        posterior, before = LivePosterior(layout, seed), 0
        for n in AT:
            new = order[before:n]
            posterior.update_all(bank.features[new], answers[new], before + 1)
            before = n
            now = error_of(predicted(posterior), answers, order[:n])
            found.setdefault(f"layout, {name}", []).append(now)
    return found


def lltm_errors(model: Lltm, design: Floats, answers: Floats, seed: int) -> dict[str, list[float]]:
    """The same with the LLTM."""
    found: dict[str, list[float]] = {}
    some = np.empty(0, np.int64)
    for n in range(1, AT[-1] + 1):
        some = np.append(some, model.next(design, some, answers))
        if n in AT:
            now = error_of(model.predict(design, some, answers), answers, some)
            found.setdefault("LLTM, adaptive", []).append(now)
    for order, name in _orders(len(answers), seed):
        for n in AT:
            now = error_of(model.predict(design, order[:n], answers), answers, order[:n])
            found.setdefault(f"LLTM, {name}", []).append(now)
    return found


def _orders(items: int, seed: int) -> list[tuple[Ints, str]]:
    shuffled = [
        (rng(0, f"verbagg: order {k}", seed).permutation(items), "random") for k in range(ORDERS)
    ]
    return [*shuffled, (np.arange(items), "as printed")]


def run_half(answers: Answers, one: int, effort: Effort = LONG, people: int = 0) -> dict[str, Any]:
    """Calibrate by one half of the people and measure the other.

    Args:
        answers: Who answered what.
        one: The half that calibrates, 0 or 1.
        effort: How long the calibration samples.
        people: Measure only so many; all if 0.
    """
    half = rng(0, "verbagg: halves", 0).permutation(len(answers.outcomes)) % 2
    rows = np.flatnonzero(half == one)
    names = tuple(f"person {row}" for row in rows)
    table = OutcomeTable(answers.instances(), names, answers.outcomes[rows])
    base = load_layout(LAYOUT)
    population = population_model(base, table).fit(0, effort)
    layout = calibrated_layout(base, table, population, "half")
    bank = Bank.of(layout, answers.instances())
    model = Lltm.fit(answers.design, answers.outcomes[rows])
    errors: dict[str, list[list[float]]] = {}
    others = np.flatnonzero(half != one)
    for row in others[: people or len(others)].tolist():
        own = answers.outcomes[row]
        found = layout_errors(layout, bank, own, row)
        found |= lltm_errors(model, answers.design, own, row)
        for name, values in found.items():
            by_order = np.reshape(values, (-1, len(AT))).mean(axis=0)
            errors.setdefault(name, []).append(by_order.tolist())
    return {
        "half": one,
        "rhat": population.diagnostics["rhat"],
        "converged": population.diagnostics["converged"],
        "layout": {node.name: str(node.prior) for node in layout.latents},
        "lltm": [model.intercept, *model.weights.tolist(), model.sd],
        "errors": errors,
    }


def rows_of(halves: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mean errors with 90 % intervals over people, and less those of the adaptive layout."""
    errors = {
        name: np.array([values for half in halves for values in half["errors"][name]])
        for name in halves[0]["errors"]
    }
    ours = errors["layout, adaptive"]
    made: list[dict[str, Any]] = []
    for name, values in errors.items():
        for k, n in enumerate(AT):
            mean = bootstrap_mean(values[:, k].tolist())
            more = bootstrap_mean((values[:, k] - ours[:, k]).tolist())
            made.append(
                {
                    "method": name, "items": n, "mean": mean.value, "low": mean.low,
                    "high": mean.high, "more": more.value, "from": more.low, "to": more.high,
                    "people": len(values),
                }
            )  # fmt: skip
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the halves that a file does not have yet, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.verbagg",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="a line of JSON for each half")
    parser.add_argument("--half", type=int, choices=(0, 1), help="run only this one")
    parser.add_argument("--people", type=int, default=0, help="measure so many of each half")
    wanted = parser.parse_args(arguments)
    folder = Path(os.environ.get("ANIMALCAT_DATA") or "../shared/data")
    answers = Answers.read(folder / "verbal-aggression" / "verbagg.csv")
    for one in (0, 1) if wanted.half is None else (wanted.half,):
        if one not in {half["half"] for half in _kept(wanted.file)}:
            found = run_half(answers, one, people=wanted.people)
            with wanted.file.open("a") as file:
                file.write(json.dumps(found) + "\n")
    whole = Lltm.fit(answers.design, answers.outcomes)
    for half in _kept(wanted.file):
        gate = "passed" if half["converged"] else "did not pass"
        print(f"calibration by half {half['half']}: R-hat {half['rhat']:.3f}; it {gate} the gate")
    estimates = (whole.intercept, *whole.weights.tolist())
    for name, value, error in zip(("intercept", *DESIGN), estimates, whole.errors, strict=False):
        printed, its = PUBLISHED[name]
        print(f"LLTM {name:10} {value:+.3f} ({error:.3f}); printed {printed:+.3f} ({its:.3f})")
    for row in rows_of(_kept(wanted.file)):
        print(
            "{method:20} {items:3} {mean:.4f} ({low:.4f} to {high:.4f})  {more:+.4f} "
            "({from:+.4f} to {to:+.4f})  {people}".format(**row)
        )
    return 0


def _kept(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


if __name__ == "__main__":
    sys.exit(main())
