"""The success rate of the whole battery: do its intervals hold, and are they narrow?

Agents are vectors of outcomes on the 69 instances of the Olympics. In every session of theirs each
instance is played once, so the last interval is the rate itself.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from rich.progress import Progress

from animalcat.bench.curves import bootstrap, row, share
from animalcat.bench.sessions import Player, Task, World, players, run_tasks, world_of
from animalcat.cli.shared.output import progress_console
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.battery_rate import RateBettor, Wager, battery_rate
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.calibrating.assessment import parts
from animalcat.layouts.calibrating.calibrate import calibrated_layout, population_model
from animalcat.layouts.calibrating.population import Effort
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import OutcomeTable
from benchmarks.adaptive import olympics

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = list[dict[str, Any]]

AT: Final = (15, 30, 50)
"""Episodes after which widths are compared."""
POLICIES: Final = (Policy(), Policy("random"), Policy("stratified"))
COVERED: Final = 0.88
"""Share of sessions in which all intervals must hold."""
NARROWER: Final = 1.3
WIDER: Final = 1.1
"""How much narrower than without layout intervals should be, and wider if the layout is wrong."""
_SHORT: Final = Effort(2, 250, 350, attempts=1)
_FOLDS: Final = 3


@dataclass(frozen=True)
class RateRun:
    """A session, and beside it one of the same outcomes in a random order without a layout.

    Attributes:
        player: Who played.
        policy: The policy's name.
        widths: Width of the interval after every episode.
        plain: The same without a layout.
        held: Whether all intervals held the rate.
        plain_held: The same without a layout.
    """

    player: str
    policy: str
    widths: tuple[float, ...]
    plain: tuple[float, ...]
    held: bool
    plain_held: bool


def play(task: Task) -> RateRun:
    """Play a whole battery under a policy, and beside it in a random order without a layout."""
    world = world_of(task)
    n = len(world.instances)
    outcomes = rng(task.seed, "outcome", 0).random(n) < task.player.before
    policy = task.policy or Policy()
    learner = Learner(Bank.of(world.layout, world.instances), policy, seed=task.seed)
    ours: list[tuple[float, float]] = []
    while (choice := learner.ask()) is not None:
        learner.tell(choice.instance, float(outcomes[choice.index]))
        ours.append(_ends(learner.battery_rate.low, learner.battery_rate.high))
    plain = _plain(outcomes, rng(task.seed, "order", 0).permutation(n))
    rate = float(outcomes.mean())
    return RateRun(
        task.player.name,
        policy.name,
        tuple(high - low for low, high in ours),
        tuple(high - low for low, high in plain),
        _hold(ours, rate),
        _hold(plain, rate),
    )


def section(rounds: int, seconds: float, keep: Path | None = None) -> Rows:
    """Coverage on agents of the prior and of a wrong layout, and widths on held-out entrants.

    Args:
        rounds: How many rounds of sessions there are at most; four sessions each. With few
            rounds a third of the entrants is held out, and not each of them once.
        seconds: How long it may take; the entrants come first.
        keep: A folder to write rows to.
    """
    start = time.monotonic()
    found = olympics()
    if found is None:
        return [{"name": "rate: needs the outcomes of ANIMALCAT_DATA"}]
    world, table = found
    many = rounds > 10
    folds = list(parts(len(table.agents), 0, 1, _FOLDS))[: None if many else 1]
    worlds = _calibrated(world, table, folds)
    made: Rows = []
    entrants = [
        Task(f"part {fold}", Player(table.agents[i], table.outcomes[i]), policy, 100 * k + i, ())
        for k in range(2 if many else 1)
        for _, fold, test in folds
        for i in test
        for policy in POLICIES
    ]
    runs = _run("held-out entrants", entrants, worlds, seconds)
    for policy in POLICIES:
        own = [one for one in runs if one.policy == policy.name]
        made += _narrower(f"held-out entrants, {policy.name}", own)
    tasks = [task for one in _vectors(world, rounds) for task in one]
    left = max(seconds - (time.monotonic() - start), 0.0)
    runs = _run("coverage", tasks, {"aaio": world}, left)
    if runs:
        made += coverage_rows(runs)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        report = {"section": "rate", "seconds": round(time.monotonic() - start), "rows": made}
        (keep / "rate.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    return made


def _vectors(world: World, rounds: int) -> list[list[Task]]:
    """Per round: an agent of the prior, and one of whom the layout knows nothing."""
    drawn = players(world, rounds, seed=6)
    made: list[list[Task]] = []
    for seed, player in enumerate(drawn):
        mixed = rng(seed, "mixed", 0).permutation(player.before)
        wrong = Player("of a wrong layout", mixed)
        prior = Player("of the prior", player.before)
        made.append(
            [
                Task("aaio", who, policy, 5000 + seed, ())
                for who in (prior, wrong)
                for policy in POLICIES[:2]
            ]
        )
    return made


def coverage_rows(runs: Sequence[RateRun]) -> Rows:
    note = f"{len(runs)} sessions of 69 episodes; all intervals of a session"
    made = [
        row("all intervals hold", share([r.held for r in runs]), at_least=COVERED, lower=True)
        | {"note": note}
    ]
    for who in dict.fromkeys(r.player for r in runs):
        for policy in dict.fromkeys(r.policy for r in runs):
            own = [r for r in runs if r.player == who and r.policy == policy]
            if not own:
                continue
            title = f"agents {who}, {policy}"
            made.append(row(f"{title}: all intervals hold", share([r.held for r in own])))
            wrong = who == "of a wrong layout"
            made += [
                row(
                    f"{title}: width as a multiple of that without layout at {n}",
                    bootstrap(len(own), _quotient([r.widths for r in own], _plains(own), n)),
                    at_most=WIDER if wrong else None,
                    upper=True,
                )
                for n in AT
            ]
    return made


def _narrower(title: str, runs: Sequence[RateRun]) -> Rows:
    """How many times narrower intervals are than those of random draws without a layout."""
    if not runs:
        return []
    names = list(dict.fromkeys(r.player for r in runs))
    by_agent = [[r for r in runs if r.player == name] for name in names]
    ours = [np.mean([r.widths for r in own], axis=0) for own in by_agent]
    plain = [np.mean([r.plain for r in own], axis=0) for own in by_agent]
    note = f"{len(names)} entrants, {len(runs)} sessions; entrants are resampled"
    made = [
        row(
            f"{title}: times narrower than random draws without layout at {n}",
            bootstrap(len(names), _quotient(plain, ours, n)),
            at_least=NARROWER,
            note=note,
        )
        for n in AT
    ]
    made.append(row(f"{title}: all intervals hold", share([r.held for r in runs])))
    return made


def _plains(runs: Sequence[RateRun]) -> list[Sequence[float]]:
    return [r.plain for r in runs]


def _quotient(above: Sequence[Any], below: Sequence[Any], n: int) -> Callable[[Any], float]:
    a, b = (np.array([one[n - 1] for one in each]) for each in (above, below))
    return lambda rows: float(a[rows].mean() / b[rows].mean())


def _run(
    title: str, tasks: Sequence[Task], worlds: dict[str, World], seconds: float
) -> list[RateRun]:
    with Progress(console=progress_console(), transient=True) as progress:
        bar = progress.add_task(title, total=len(tasks))
        return run_tasks(tasks, worlds, seconds, lambda: progress.advance(bar), play)


def _calibrated(
    world: World, table: OutcomeTable, folds: Sequence[tuple[int, int, Sequence[int]]]
) -> dict[str, World]:
    """By part: the world as the entrants of the other parts have calibrated it."""
    model = population_model(world.layout, table)
    effort = replace(_SHORT, cores=min(2, os.cpu_count() or 1))
    made: dict[str, World] = {}
    for _, fold, test in folds:
        population = model.fit(fold, effort, test)
        layout = calibrated_layout(world.layout, table, population, "calibrated", without=test)
        made[f"part {fold}"] = replace(world, layout=layout)
    return made


def _plain(
    outcomes: npt.NDArray[np.bool_], order: npt.NDArray[np.int64]
) -> list[tuple[float, float]]:
    n = len(outcomes)
    bettor = RateBettor(n)
    plays: list[tuple[Wager | None, bool]] = []
    ends: list[tuple[float, float]] = []
    for k, i in enumerate(order):
        even = np.full(n - k, 1.0 / (n - k))
        wager = bettor.wager(np.full(n - k, 0.5), even, 0, k)
        bettor.learn(0.5, bool(outcomes[i]))
        plays.append((wager, bool(outcomes[i])))
        found = battery_rate(n, plays, float(bettor.mixed(np.full(n - k - 1, 0.5)).sum()))
        ends.append(_ends(found.low, found.high))
    return ends


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    return (0.0 if low is None else low), (1.0 if high is None else high)


def _hold(intervals: Sequence[tuple[float, float]], rate: float) -> bool:
    return all(low - 1e-9 <= rate <= high + 1e-9 for low, high in intervals)
