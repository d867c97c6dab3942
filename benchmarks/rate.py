"""`python -m benchmarks rate`: which estimate of a battery's success rate errs least.

Agents are vectors of outcomes on the 69 arenas of the Olympics (`aaio`) and on the 2,188 of object
permanence. After some episodes every candidate estimates the share of successes. All are kept
within the interval that the profile gives. The rule by which one leads was written down before it
was measured: the least root mean square error, where every group of agents counts alike, and both
ways to choose do.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from rich.progress import Progress

from animalcat.bench.curves import Estimate, Ints, bootstrap, row, share
from animalcat.bench.sessions import Player, Task, World, players, run_tasks, world_of
from animalcat.cli.shared.output import progress_console
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.battery_rate import BatteryRate, totals
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.policy import Choice
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.simulation.simulate import LayoutAgent
from animalcat.layouts.simulation.synthetic import op_battery
from benchmarks.adaptive import olympics
from benchmarks.trust_agents import KNOWN, UNSEEN, agent_at, players_of

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = list[dict[str, Any]]

AT: Final = (20, 40)
"""Episodes after which estimates are compared."""
POLICIES: Final = (Policy(), Policy("random"))
GROUPS: Final = ("entrants", "able", "limited", "hopeless", "coin", "prior", "misfit")
CANDIDATES: Final = (
    "leads",
    "e-posterior",
    "passed",
    "weighted",
    "corrected",
    "layout",
    "halfway",
)
"""What leads: successes so far, and for the rest what layout and constant rates predict, mixed by
how well they did. The mean of the shares that are left, by the inverse of the stakes against each.
The share of those played that were passed. The same for the rest, with weights by inverse
propensities (Hajek). The layout's predictions for the rest, corrected at every draw by the weighted
residual (doubly robust). The layout's predictions alone. The mean of the first two."""


@dataclass(frozen=True)
class RateErrors:
    """Errors of a session's estimates.

    Attributes:
        group: Kind of agent.
        world: Which battery.
        policy: How arenas were chosen.
        errors: By number of episodes and candidate, (numbers, candidates).
        held: Whether the interval at each number held the rate.
        exact: Whether each of these was exact.
        width: Width of each.
    """

    group: str
    world: str
    policy: str
    errors: Floats
    held: tuple[bool, ...]
    exact: tuple[bool, ...]
    width: tuple[float, ...]


def run(quick: bool = False) -> Rows:
    """All agents.

    Args:
        quick: Few sessions.
    """
    found = olympics()
    if found is None:
        return [{"name": "rate: needs the outcomes of ANIMALCAT_DATA"}]
    aaio, table = found
    worlds = {"aaio": aaio, "op": World(load_layout("object-permanence"), op_battery(0))}
    rounds = 1 if quick else 20
    entrants = [Player("entrants", one) for one in table.outcomes]
    tasks: list[Task] = []
    for number in range(rounds):
        drawn: list[Task] = []
        for name, world in worlds.items():
            own = agents_of(world, number, misfits=name == "op")
            own += entrants if name == "aaio" else []
            drawn += [
                Task(name, player, policy, 20_000 + 100 * number + k, AT)
                for k, player in enumerate(own)
                for policy in POLICIES
            ]
        random.Random(number).shuffle(drawn)
        tasks += drawn
    end = time.monotonic() + (30 if quick else 600)
    with Progress(console=progress_console(), transient=True) as progress:
        bar = progress.add_task("estimates of the success rate", total=len(tasks))
        left = end - time.monotonic()
        return rows_of(run_tasks(tasks, worlds, left, lambda: progress.advance(bar), play))


def agents_of(world: World, number: int, *, misfits: bool) -> list[Player]:
    """Agents of every group but the entrants.

    Args:
        world: The layout and the battery.
        number: Of the round; it says which capability limits, and which of the prior it is.
        misfits: Whether there are agents of a wrong layout: those of object permanence that do
            not change, since one that changes has no one rate.
    """
    even = np.ones(len(world.instances))
    capabilities = world.layout.capabilities
    weak = capabilities[number % len(capabilities)]
    limited = agent_at(world, 0.9).theta.copy()
    limited[weak] = 0.3 * world.layout.latents[weak].prior.span
    made = [
        Player("able", agent_at(world, 0.9).probability(world.instances)),
        Player("able", 0.98 * even),
        Player("limited", LayoutAgent(world.layout, limited).probability(world.instances)),
        Player("hopeless", 0.02 * even),
        Player("coin", 0.5 * even),
        Player("prior", players(world, number + 1, seed=21)[number].before),
    ]
    if misfits:
        kinds = players_of(world, {**KNOWN, **UNSEEN})
        made += [Player("misfit", kind.before) for kind in kinds if kind.after is None]
    return made


def play(task: Task) -> RateErrors:
    """Play a session, and compare what candidates say with the truth."""
    world = world_of(task)
    n = len(world.instances)
    outcomes = rng(task.seed, "outcome", 0).random(n) < task.player.before
    policy = task.policy or Policy()
    bank = Bank.of(world.layout, world.instances)
    errors: list[list[float]] = []
    rates: list[BatteryRate] = []
    for last in task.checkpoints:  # each is a session of its own, whose end is set beforehand
        rule = StoppingRule(last, target_sd=0.0, futility=0.0)
        learner = Learner(bank, policy, rule, seed=task.seed + last)
        known = _Played(n)
        while learner.n < last and (choice := learner.ask()) is not None:
            success = bool(outcomes[choice.index])
            expected = float(_predictions(learner)[~known.begun].sum())
            learner.tell(choice.instance, float(success))
            known.tell(choice, success, expected)
        rate = learner.battery_rate
        told = known.candidates(rate, _predictions(learner)[~known.begun])
        errors.append([told[name] - float(outcomes.mean()) for name in CANDIDATES])
        rates.append(rate)
    truth = float(outcomes.mean())
    return RateErrors(
        task.player.name,
        task.world,
        policy.name,
        np.array(errors),
        tuple(low - 1e-9 <= truth <= high + 1e-9 for low, high in map(_ends, rates)),
        tuple(r.exact for r in rates),
        tuple(high - low for low, high in map(_ends, rates)),
    )


class _Played:
    """What was played, as candidates need it."""

    def __init__(self, size: int) -> None:
        self.begun = np.zeros(size, np.bool_)
        self._size, self._passed = size, 0
        self._stakes = np.zeros(len(totals(size)))
        self._steps: list[tuple[float, float, float, float]] = []

    def tell(self, choice: Choice, success: bool, expected: float) -> None:
        """Take in an outcome, and what was expected of all that was left before it."""
        predicted, propensity, wager = choice.predicted, choice.propensity, choice.wager
        if wager is not None:
            left = self._size - int(self.begun.sum())
            surprise = (success - predicted) / propensity
            even = 1.0 / (left * max(left - 1, 1))
            weight = 1.0 / (propensity * left)
            self._steps.append((weight, success, even, self._passed + expected + surprise))
            self._stakes += wager.success if success else wager.failure
        self._passed += success
        self.begun[choice.index] = True

    def candidates(self, rate: BatteryRate, rest: Floats) -> dict[str, float]:
        """What every candidate says, within the interval."""
        weights, successes, even, corrected = np.array(self._steps).T
        tested, (low, high) = totals(self._size) / self._size, _ends(rate)
        inside = (tested >= low - 1e-9) & (tested <= high + 1e-9)
        against = np.where(inside, self._stakes, np.inf)
        bets = np.exp(against.min() - against) if inside.any() else np.ones(len(tested))
        raw = self._passed / int(self.begun.sum())
        hajek = self._passed + len(rest) * float(np.average(successes, weights=weights))
        found = {
            "leads": rate.value if rate.value is not None else raw,
            "e-posterior": float(np.average(tested, weights=bets)),
            "passed": raw,
            "weighted": hajek / self._size,
            "corrected": float(np.average(corrected, weights=even)) / self._size,
            "layout": (self._passed + float(rest.sum())) / self._size,
        }
        found["halfway"] = 0.5 * (found["e-posterior"] + found["leads"])
        return {name: min(max(value, low), high) for name, value in found.items()}


def _ends(rate: BatteryRate) -> tuple[float, float]:
    return (0.0 if rate.low is None else rate.low), (1.0 if rate.high is None else rate.high)


def _predictions(learner: Learner) -> Floats:
    bank, posterior = learner.bank, learner.posterior
    each = bank.evaluator.by_instance(posterior.particles, bank.distinct, np.float64)
    return np.asarray(each @ posterior.weights)[bank.place]


def rows_of(runs: Sequence[RateErrors]) -> Rows:
    """Errors by candidate, policy and group; then whether intervals held."""
    made: Rows = []
    for policy in dict.fromkeys(run.policy for run in runs):
        own = [run for run in runs if run.policy == policy]
        for k, name in enumerate(CANDIDATES):
            by_group = _squares(own, k)
            errors = {group: float(np.sqrt(each.mean())) for group, each in by_group.items()}
            told = ", ".join(f"{group} {error:.3f}" for group, error in errors.items())
            made.append(
                row(f"{policy}: error of {name}", _pooled(by_group), note=told)
                | {"by_group": errors}
            )
        ends = [(h, e, w) for r in own for h, e, w in zip(r.held, r.exact, r.width, strict=True)]
        for kind, exact in (("exact", True), ("valid at any time", False)):
            these = [(held, width) for held, is_exact, width in ends if is_exact == exact]
            if these:
                mean = float(np.mean([width for _, width in these]))
                hold = share([held for held, _ in these])
                title = f"{policy}: intervals that are {kind} hold"
                made.append(row(title, hold, at_least=0.88, note=f"mean width {mean:.2f}"))
    return made


def _pooled(by_group: Mapping[str, Floats]) -> Estimate:
    """Root mean square error where every group counts alike; sessions are resampled."""
    every = list(by_group.values())
    ends = np.cumsum([len(each) for each in every])

    def error(rows: Ints) -> float:
        parts = np.split(rows, ends[:-1])  # as many of each group as it has
        means = [each[part % len(each)].mean() for each, part in zip(every, parts, strict=True)]
        return float(np.sqrt(np.mean(means)))

    return bootstrap(int(ends[-1]), error)


def _squares(runs: Sequence[RateErrors], candidate: int) -> Mapping[str, Floats]:
    """Mean squared errors of sessions, by group."""
    return {
        group: np.array(
            [np.mean(r.errors[:, candidate] ** 2) for r in runs if r.group == group], np.float64
        )
        for group in GROUPS
        if any(r.group == group for r in runs)
    }
