"""Other ways of adaptive testing on the same items: real entrants, and items of one dimension.

Five folds of the Olympics' entrants: the others fit items (2PL and Rasch, by marginal likelihood)
and calibrate our layout, and each entrant that was held out is tested. Every test is asked for an
item, told the outcome, and read after some numbers of items. Its error is that of the success rate
over all items. Where it predicts items, the Brier score is that of those which it was not told.

catsim and girth are real packages, and no dependencies; without them their rows are left out:

    uv pip install --target PEERS -c requirements-server.lock catsim==0.21.0 girth==0.8.0
    ANIMALCAT_PEERS=PEERS python -m benchmarks peers

Left out are py-irt, which brings PyTorch, and mirtCAT and catR, whose R packages Debian has not.
Three are written here after what they publish, with the same items for all. None of them but
tinyBenchmarks gives a success rate: theirs is that of the told, and of the rest as predicted.

- Fluid Benchmarking (Hofmann and others 2025): 2PL, the most likely ability under a standard normal
  prior between -4 and 4, and the largest Fisher information.
- HELM's adaptive mode (Truong and others 2025): Rasch, the most likely ability without a prior,
  here between -4 and 4, and the nearest difficulty.
- tinyBenchmarks (Polo and others 2024): the items nearest to the centres of k-means on slope and
  easiness, weighted by their clusters; p-IRT, and gp-IRT with lambda from a fifth of the training
  entrants and a fourth of the variance, as in its tutorial. It takes several dimensions where there
  are hundreds of models; here it has one, and abilities are averaged over instead of maximised.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, logsumexp

from animalcat.doors.clinic.population import LOG_PRIOR, NODES, ItemModel, fit_items
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Name, Policy, StoppingRule
from animalcat.layouts.calibrating.assessment import Run
from animalcat.layouts.calibrating.calibrate import calibrated_layout, population_model
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout
from benchmarks.curves import bootstrap
from benchmarks.papers.olympics import data_folder, table_of
from benchmarks.rounds import Rows

Generator: TypeAlias = np.random.Generator
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Choose: TypeAlias = Callable[[Ints, Floats], int]
"""From the items told and the outcomes of all items, of which only theirs are known: the next."""
Read: TypeAlias = Callable[[Ints, Floats], "Reading"]
"""From the same to what is known so far."""
Test: TypeAlias = tuple[Choose, Read]
"""A test of one agent."""

SEED: Final = 66
FOLDS: Final = 5
TOLD: Final = (15, 30, 50, 100)
ORDERS: Final = 5
"""Tests of an agent by methods that draw; one by those that take long or draw nothing."""
FOR_GIRTH: Final = 100
"""Most items that girth fits: it takes a quarter of a second for each, in every fold."""
OURS: Final = "ours, calibrated, for the rate"
"""What the errors of all others are compared with, entrant by entrant."""
OURS_AT_RANDOM: Final = "ours, calibrated, random order"
"""The same of their Brier scores."""
AGENTS: Final = (50, 2)
"""Agents of one dimension, and with --quick."""
ITEMS: Final = 200
_GRID: Final = np.linspace(-4.0, 4.0, 801)
_KNOWN: Final = """
name: known-items
variant: two-parameter
source: benchmarks
about: one ability and items of known slope and difficulty
features:
  slope: {unit: "1", low: 0, high: 5, about: how sharp the item is}
  difficulty: {unit: "1", low: -9, high: 9, about: the ability that passes half of the time}
latents:
  ability:
    {kind: capability, unit: "1", prior: {normal: {mean: 0, sd: 1}}, about: the one ability}
derived:
  performance:
    {unit: "1", link: {formula: {formula: logistic(slope * (ability - difficulty))}}}
outcome: {bernoulli: {probability: performance}}
"""


class Reading(NamedTuple):
    """What a test says: the success rate, perhaps a probability of each item, and the ability."""

    rate: float
    predicted: Floats | None = None
    ability: float = np.nan


class Method(NamedTuple):
    """A way of testing.

    Attributes:
        name: Its name.
        begin: Begins a test; what it draws, it draws from the generator.
        told: Numbers of items after which it is read.
        orders: How many tests each agent has.
    """

    name: str
    begin: Callable[[Generator], Test]
    told: Sequence[int]
    orders: int = 1


def fill(p: Floats, told: Ints, y: Floats, ability: float = np.nan) -> Reading:
    """The rate of what was told, and of the rest as predicted."""
    known = p.copy()
    known[told] = y[told]
    return Reading(float(known.mean()), p, ability)


def mean(told: Ints, y: Floats) -> Reading:
    """The mean of what was told."""
    return Reading(float(y[told].mean()))


def average(model: ItemModel) -> Read:
    """What an item model predicts, averaged over abilities."""
    eta = NODES[:, np.newaxis] * model.slope + model.ease

    def read(told: Ints, y: Floats) -> Reading:
        seen = eta[:, told]
        belief = LOG_PRIOR + (y[told] * log_expit(seen) + (1.0 - y[told]) * log_expit(-seen)).sum(1)
        return fill(np.exp(belief - logsumexp(belief)) @ expit(eta), told, y)

    return read


def by_layout(layout: Layout, instances: Instances) -> Read:
    """What the posterior of a layout predicts."""
    features = instances.features(layout)
    return lambda told, y: fill(Run(layout, features, y, told).after(len(told)), told, y)


def in_order(read: Read, order: Ints) -> Test:
    """Items in an order that is known beforehand."""
    return lambda told, _: int(order[len(told)]), read


def at_random(read: Read, size: int, draw: Generator) -> Test:
    """Items in a random order."""
    return in_order(read, draw.permutation(size))


def fisher(model: ItemModel, log_prior: Floats, _: Generator) -> Test:
    """The largest Fisher information at the most likely ability."""
    eta = _GRID[:, np.newaxis] * model.slope + model.ease
    p, likely = expit(eta), np.stack([log_expit(-eta), log_expit(eta)])

    def most_likely(told: Ints, y: Floats) -> int:
        seen = likely[y[told].astype(np.int64), :, told].sum(axis=0)
        return int((log_prior + seen).argmax())

    def choose(told: Ints, y: Floats) -> int:
        at = p[most_likely(told, y)]
        information = model.slope**2 * at * (1.0 - at)
        information[told] = -1.0
        return int(information.argmax())

    def read(told: Ints, y: Floats) -> Reading:
        at = most_likely(told, y)
        return fill(p[at], told, y, float(_GRID[at]))

    return choose, read


def catsim(model: ItemModel, _: Generator) -> Test:
    """Catsim's MaxInfoSelector and NumericalSearchEstimator, as they come."""
    modules = ("item_bank", "selection", "estimation")
    banks, selection, estimation = (importlib.import_module(f"catsim.{one}") for one in modules)
    # Its check would print an empty line for each bank.
    bank: Any = banks.ItemBank(np.column_stack([model.slope, model.difficulty]), validate=False)
    selector: Any = selection.MaxInfoSelector()
    estimator: Any = estimation.NumericalSearchEstimator()
    abilities = [0.0]  # after each number of items

    def state(told: Ints, y: Floats) -> dict[str, Any]:
        known: dict[str, Any] = {"item_bank": bank, "administered_items": told.tolist()}
        if len(abilities) <= len(told):
            answers = [bool(one) for one in y[told]]
            now = estimator.estimate(**known, response_vector=answers, est_theta=abilities[-1])
            abilities.append(float(now))
        return {**known, "est_theta": abilities[-1]}

    def read(told: Ints, y: Floats) -> Reading:
        now = state(told, y)["est_theta"]
        return fill(np.asarray(bank.icc(now), np.float64).ravel(), told, y, now)

    return lambda told, y: int(selector.select(**state(told, y))), read


def learning(bank: Bank, policy: Name, most: int, draw: Generator) -> Test:
    """The learner as sessions have it, with a number of episodes that is set beforehand."""
    rule = StoppingRule(most, target_sd=0.0, futility=0.0)
    learner = Learner(bank, Policy(policy), rule, int(draw.integers(1 << 31)))

    def listen(told: Ints, y: Floats) -> None:
        for item in map(int, told[learner.n :]):
            learner.tell(bank.names[item], float(y[item]))

    def choose(told: Ints, y: Floats) -> int:
        listen(told, y)
        choice = learner.ask()
        assert choice is not None
        return choice.index

    def read(told: Ints, y: Floats) -> Reading:
        listen(told, y)
        particles, weights = learner.posterior.particles, learner.posterior.weights
        p = bank.evaluator.by_instance(particles, bank.distinct, np.float64) @ weights
        rate = learner.battery_rate.value
        assert rate is not None
        return Reading(rate, p[bank.place], float((weights @ particles)[0]))

    return choose, read


def anchored(model: ItemModel, count: int, trust: float, draw: Generator) -> Test:
    """tinyBenchmarks; where two clusters have one nearest item, another is drawn besides.

    Args:
        model: The items.
        count: How many are told.
        trust: Share of the weighted mean: with 1 nothing is predicted, with 0 it is p-IRT.
        draw: For the first centres.
    """
    kmeans: Any = importlib.import_module("scipy.cluster.vq").kmeans2
    points = np.column_stack([model.slope, model.ease])
    centres, label = kmeans(points, count, 100, minit="++", rng=draw)
    weights = np.zeros(len(points))
    for k, share in enumerate(np.bincount(label, minlength=count) / len(points)):
        weights[((points - centres[k]) ** 2).sum(axis=1).argmin()] += share
    rest = draw.permutation(np.flatnonzero(weights == 0.0))
    predict = average(model)

    def read(told: Ints, y: Floats) -> Reading:
        rate, p, _ = predict(told, y)
        mixed = trust * float(weights[told] @ y[told]) + (1.0 - trust) * rate
        return Reading(mixed, p if trust < 1.0 else None)

    return in_order(read, np.append(np.flatnonzero(weights), rest))


def has(package: str) -> bool:
    """Whether a peer can be imported, also from the folder that ANIMALCAT_PEERS names."""
    folder = os.environ.get("ANIMALCAT_PEERS")
    if folder and folder not in sys.path:
        sys.path.append(folder)  # behind our own packages
    found = importlib.util.find_spec(package) is not None
    if not found:
        print(f"left out, not installed: {package} (see benchmarks/peers.py)", file=sys.stderr)
    return found


def fit_rasch(names: tuple[str, ...], y: Floats) -> ItemModel:
    """Fit difficulties by marginal likelihood, with slopes of 1 and the prior of `fit_items`."""
    ease = np.zeros(len(names))
    for _ in range(200):
        eta = NODES[:, np.newaxis] + ease
        joint = y @ log_expit(eta).T + (1.0 - y) @ log_expit(-eta).T + LOG_PRIOR
        at = np.exp(joint - logsumexp(joint, axis=1)[:, np.newaxis]).sum(axis=0)
        p = np.asarray(expit(eta))
        ease += (y.sum(axis=0) - at @ p - ease / 4.0) / (at @ (p * (1.0 - p)) + 0.25)
    return ItemModel(names, np.ones(len(names)), ease)


def fit_by_girth(names: tuple[str, ...], y: Floats) -> ItemModel:
    """Fit 2PL by girth's way for small samples; items that all pass or fail are as we fit them."""
    own, varied = fit_items(names, y), np.ptp(y, axis=0) > 0.0
    found: Any = importlib.import_module("girth").twopl_mml_eap(y[:, varied].T.astype(np.int64))
    slope, ease = own.slope.copy(), own.ease.copy()
    slope[varied] = found["Discrimination"]
    ease[varied] = -slope[varied] * found["Difficulty"]
    return ItemModel(names, slope, ease)


def bias_and_variance(names: tuple[str, ...], y: Floats) -> tuple[float, float]:
    """How 2PL errs on odd items of each fifth entrant after the even ones; variance of outcomes."""
    read = average(fit_items(names, np.delete(y, np.s_[::5], axis=0)))
    even = np.arange(0, len(names), 2)
    predicted = [(read(even, one).predicted, one) for one in y[::5]]
    errors = [abs(float((p - one)[1::2].mean())) for p, one in predicted if p is not None]
    return float(np.mean(errors)), float(y.var(axis=1).mean())


def methods(layout: Layout, table: OutcomeTable, test: Sequence[int]) -> Iterator[Method]:
    """All ways of testing the entrants of a fold, by what the others did."""
    names, instances, size = table.instances.names, table.instances, len(table.instances)
    y = np.delete(table.outcomes, test, axis=0)
    told = [n for n in TOLD if n < size]

    def random(name: str, read: Read) -> Method:
        return Method(name, partial(at_random, read, size), told, ORDERS)

    def learn(name: str, layout: Layout, policy: Name) -> Method:
        return Method(name, partial(learning, bank(layout, instances), policy, told[-1]), told)

    yield random("a random subset's mean", mean)
    yield random("ours, as written, random order", by_layout(layout, instances))
    yield learn("ours, as written, for the rate", layout, "rate")
    population = population_model(layout, table).fit(SEED, without=test)
    ours = calibrated_layout(layout, table, population, "calibrated", without=test)
    yield random(OURS_AT_RANDOM, by_layout(ours, instances))
    yield learn(OURS, ours, "rate")
    yield learn("ours, calibrated, for the profile", ours, "variance")
    items, rasch = fit_items(names, y), fit_rasch(names, y)
    yield random("2PL, random order", average(items))
    yield Method("Fluid Benchmarking", partial(fisher, items, -0.5 * _GRID**2), told)
    yield Method("HELM's adaptive mode", partial(fisher, rasch, 0.0 * _GRID), told)
    if has("catsim"):
        yield Method("catsim", partial(catsim, items), told)
    if size <= FOR_GIRTH and has("girth"):
        yield random("2PL by girth, random order", average(fit_by_girth(names, y)))
    bias, variance = bias_and_variance(names, y)
    for n in told:
        mixed = bias**2 / (variance / (4.0 * n) + bias**2)
        for name, trust in (("anchors", 1.0), ("p-IRT", 0.0), ("gp-IRT", mixed)):
            begin = partial(anchored, items, n, trust)
            yield Method(f"tinyBenchmarks, {name}", begin, [n], ORDERS)


def bank(layout: Layout, instances: Instances) -> Bank:
    """The items as the learner has them."""
    kinds = instances.paradigms or ("",) * len(instances)
    return Bank(layout, instances.features(layout), kinds, names=instances.names)


Found: TypeAlias = dict[tuple[str, int], list[list[float]]]
"""By method and number of items told, for each agent: errors of the rate, Brier score, error of the
ability, and seconds a choice."""


def take(method: Method, y: Floats, agent: str, found: Found, ability: float = np.nan) -> None:
    """Test an agent by a method, and add the mean errors of its tests."""
    tests: Found = {}
    for order in range(method.orders):
        choose, read = method.begin(rng(SEED, f"tests of {agent}", order))
        told, spent = np.empty(0, np.int64), 0.0
        for n in range(1, max(method.told) + 1):
            start = time.perf_counter()
            told = np.append(told, choose(told, y))
            spent += time.perf_counter() - start
            if n in method.told:
                rate, p, guess = read(told, y)
                brier = np.nan if p is None else float(np.delete((p - y) ** 2, told).mean())
                one = [abs(rate - float(y.mean())), brier, abs(guess - ability), spent / n]
                tests.setdefault((method.name, n), []).append(one)
    for key, each in tests.items():
        found.setdefault(key, []).append(np.mean(each, axis=0).tolist())


def rows(title: str, found: Found) -> Rows:
    """A row for each method and number of items, with intervals by agents drawn again."""
    columns = {key: np.array(each).T for key, each in found.items()}
    made: Rows = []
    for (name, n), (rate, brier, ability, seconds) in columns.items():
        figures = {"": rate, "brier": brier, "ability": ability}
        for key, k, other in (("more", 0, OURS), ("brier_more", 1, OURS_AT_RANDOM)):
            if (other, n) in columns and name != other:
                figures[key] = (rate, brier)[k] - columns[other, n][k]
        row: dict[str, Any] = {"name": f"{title}, {n} told: {name}"}
        for key, each in figures.items():
            if np.isfinite(each).all():
                one = bootstrap(len(each), lambda i, each=each: float(each[i].mean()))
                low, high = (f"{key}_{end}".lstrip("_") for end in ("low", "high"))
                row |= {key or "value": one.value, low: one.low, high: one.high}
        made.append({**row, "seconds": float(seconds.mean()), "agents": len(rate)})
    return made


def of_entrants(name: str, table: OutcomeTable, folds: int) -> Rows:
    """Test each entrant by what those of the other folds did."""
    found: Found = {}
    shuffled = rng(SEED, "agents", 0).permutation(len(table.agents))
    for fold in range(folds):
        test: list[int] = sorted(shuffled[fold::FOLDS].tolist())
        for method in methods(load_layout(name), table, test):
            for i in test:
                take(method, table.outcomes[i], table.agents[i], found)
    return rows(name, found)


def of_one_dimension(agents: int) -> Rows:
    """Test agents of one ability by known items, which catsim's generator would draw."""
    draw = rng(SEED, "one dimension", 0)
    slope, difficulty = draw.normal(1.2, 0.25, ITEMS), draw.normal(size=ITEMS)
    names = tuple(map(str, range(ITEMS)))
    model = ItemModel(names, slope, -slope * difficulty)
    values = np.column_stack([slope, difficulty])
    known = bank(load_layout(_KNOWN), Instances(("slope", "difficulty"), values, names=names))
    ways = [
        Method("ours", partial(learning, known, "variance", max(TOLD)), TOLD),
        Method("Fluid Benchmarking", partial(fisher, model, -0.5 * _GRID**2), TOLD),
        *([Method("catsim", partial(catsim, model), TOLD)] if has("catsim") else []),
    ]
    found: Found = {}
    for i, ability in enumerate(draw.normal(size=agents).tolist()):
        y = (draw.random(ITEMS) < expit(slope * (ability - difficulty))) * 1.0
        for method in ways:
            take(method, y, str(i), found, ability)
    return rows("one dimension", found)


def run(quick: bool) -> Rows:
    """Test agents of one dimension, and the entrants.

    Args:
        quick: Few agents, and one fold of the smaller table.
    """
    made = of_one_dimension(AGENTS[quick])
    if (folder := data_folder()) is None:
        print("left out, no data: set ANIMALCAT_DATA", file=sys.stderr)
        return made
    for name in ("aaio",) if quick else ("aaio", "testbed"):
        made += of_entrants(name, table_of(name, folder), 1 if quick else FOLDS)
    return made
