"""`python -m benchmarks trust`: are warnings right, and what does honesty cost?"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from rich.progress import Progress

from animalcat.bench.curves import (
    Estimate,
    Ints,
    bootstrap,
    bootstrap_mean,
    crossing,
    row,
    share,
)
from animalcat.bench.rounds import keep_rounds
from animalcat.bench.sessions import Player, Task, Trajectory, World, players, run_tasks
from animalcat.cli.shared.output import print_rows, progress_console
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.statuses import CONFIRMED
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.simulation.synthetic import op_battery
from benchmarks import trust_rate
from benchmarks.trust_agents import ENDS, KNOWN, NAMES, UNSEEN, able, players_of

Rows: TypeAlias = list[dict[str, Any]]
Rounds: TypeAlias = Sequence[Sequence[Trajectory]]

RESULTS: Final = Path(__file__).resolve().parent / "results" / "trust"
AT: Final = (50, 100, 200)
"""Episodes at which sessions are looked at."""
GREEDY: Final = Policy(random_share=0.0, sharpness=0.0)
"""Always the arena that tells most, and no random draws."""
GRID: Final = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140)
"""Episodes after which the precision of sessions is looked at."""
SAVED_AT: Final = (40, 60, 80, 100)
"""Numbers of episodes of the greedy policy with which the default is compared."""
MARGIN: Final = 0.005
"""What Brier scores may be worse than random's by."""
SPREAD_OVER: Final = 300
"""Instances of a battery that is spread over the features of its layout."""
FEW: Final = 8
"""Most kinds of misfit of a section when quick."""
COLUMNS: Final = ("name", "value", "low", "high", "target", "met", "note")


@dataclass(frozen=True)
class Section:
    """A part of the table.

    Attributes:
        rounds: How many rounds of sessions there are at most.
        seconds: How long sessions may be begun; then the rounds that are whole count.
        quick: The same two when quick.
    """

    rounds: int
    seconds: float
    quick: tuple[int, float]


SECTIONS: Final[Mapping[str, Section]] = {
    "ends": Section(20, 780, (1, 40)),
    "false": Section(100, 320, (2, 20)),
    "known": Section(20, 300, (1, 30)),
    "unseen": Section(20, 300, (1, 30)),
    "cost": Section(300, 400, (2, 15)),
    "rate": Section(500, 360, (1, 15)),
}
WHOLE: Final = 2400.0
"""Seconds after which no session of any section begins: 40 minutes."""
QUICKLY: Final = 180.0
"""The same when quick."""


def run(quick: bool = False, keep: Path | None = None) -> Rows:
    """All sections.

    Args:
        quick: Few repetitions.
        keep: A folder to write rows to.
    """
    end = time.monotonic() + (QUICKLY if quick else WHOLE)
    made: Rows = []
    for name in SECTIONS:
        made += section(name, quick, keep, end - time.monotonic())
    return made


def section(
    name: str, quick: bool = False, keep: Path | None = None, most: float = float("inf")
) -> Rows:
    """One section.

    Args:
        name: One of `SECTIONS`.
        quick: Few repetitions.
        keep: A folder to write rows to.
        most: Seconds after which no session begins, if that is sooner than its own limit.
    """
    plan = SECTIONS[name]
    count, limit = plan.quick if quick else (plan.rounds, plan.seconds)
    seconds = max(min(limit, most), 0.0)
    if name == "rate":
        return trust_rate.section(count, seconds, keep)
    world = World(load_layout("object-permanence"), op_battery(0))
    worlds = {"op": world}
    match name:
        case "ends":
            worlds |= {"aaio": spread_world("aaio", "metres-15")}
            tasks = end_tasks(worlds, count)
        case "false":
            tasks = false_tasks(world, count)
        case "cost":
            tasks = cost_tasks(world, count)
        case _:
            tasks = misfit_tasks(world, name, count, FEW if quick else None)
    start = time.monotonic()
    size = len(tasks[0])
    flat = [task for one in tasks for task in one]
    with Progress(console=progress_console(), transient=True) as progress:
        bar = progress.add_task(name, total=len(flat))
        done = run_tasks(flat, worlds, seconds, lambda: progress.advance(bar))
    rounds = [done[i : i + size] for i in range(0, len(done) - size + 1, size)]
    if not rounds:
        return [{"name": f"{name}: no round of sessions was done in {seconds:g} s"}]
    match name:
        case "ends":
            made = end_rows(rounds)
        case "false":
            made = false_rows(rounds)
        case "cost":
            made = cost_rows(rounds)
        case _:
            made = misfit_rows(name, rounds)
    if keep is not None:
        keep_rounds(keep, name, rounds, made, time.monotonic() - start)
    return made


def spread_world(name: str, variant: str) -> World:
    """A layout with instances all over the ranges of its features."""
    layout = load_layout(name, variant)
    generator = rng(0, "spread", 0)
    return World(layout, Instances(layout.feature_names, spread(layout, SPREAD_OVER, generator)))


def end_tasks(worlds: Mapping[str, World], rounds: int) -> list[list[Task]]:
    """Per round: the eight kinds of `ENDS`, eight able agents, and eight of priors.

    All are by default, to their own ends.
    """
    op, rule = worlds["op"], StoppingRule()
    kinds = players_of(op, ENDS)
    fine = [able(op), Player("nearly perfect", able(op, 0.97, 0.02).before)]
    drawn = {name: players(world, 4 * rounds, seed=6) for name, world in worlds.items()}
    each = [
        [("op", one) for one in (*kinds, *fine, *fine, *fine, *fine)]
        + [(name, one) for name in worlds for one in drawn[name][4 * seed : 4 * seed + 4]]
        for seed in range(rounds)
    ]
    return [
        [
            Task(name, player, Policy(), 5000 + 100 * seed + k, (rule.max_episodes,), rule=rule)
            for k, (name, player) in enumerate(one)
        ]
        for seed, one in enumerate(each)
    ]


def end_rows(rounds: Rounds) -> Rows:
    """How sessions end by themselves: who is called precise, who is warned, and what it costs."""
    kinds = len(ENDS)
    misfits, fine, drawn = (
        [t for one in rounds for t in one[k * kinds : (k + 1) * kinds]] for k in range(3)
    )
    note = f"{len(rounds)} sessions of each of {kinds} kinds"
    unwarned = share([_claims(t) for t in misfits])
    name = "misfit: all is called precise without a warning"
    made: Rows = [row(name, unwarned, at_most=0.1, note=note)]
    early = share([t.settled_at is not None for t in misfits])
    made.append(row("misfit: the same without the check", early, note=note))
    for kind in dict.fromkeys(t.player for t in misfits):
        ours = [t for t in misfits if t.player == kind]
        told = f"{sum(t.warned for t in ours)} of {len(ours)} are warned"
        without = sum(t.settled_at is not None for t in ours)
        note = f"{told}, {sum(t.doubted for t in ours)} doubted; {without} without the check"
        made.append(row(f"{kind}: all is called precise", share([*map(_claims, ours)]), note=note))
    for who, ours in (("able agents", fine), ("agents of the prior", drawn)):
        note = f"{len(ours)} sessions, {sum(t.doubted for t in ours)} more doubted at their end"
        warned = share([t.warned for t in ours])
        made.append(row(f"false warning, {who}", warned, at_most=3 / 160, note=note))
        sooner = [t for t in ours if t.settled_at is not None]
        if not sooner:
            continue
        kept = share([_claims(t) for t in sooner])
        note = f"of {len(sooner)} that are without the check"
        made.append(row(f"still precise, {who}", kept, at_least=0.8, note=note))
        times = [t.episodes / t.settled_at for t in sooner if t.settled_at and _claims(t)]
        whole = sum(t.episodes for t in sooner if _claims(t))
        before = sum(t.settled_at or 0 for t in sooner if _claims(t))
        note = f"sum over sum; the median session {np.median(times):.2f}" if times else ""
        ratio = Estimate(whole / max(before, 1), np.nan, np.nan)
        made.append(row(f"times as many episodes, {who}", ratio, at_most=1.25, note=note))
    return made


def _claims(session: Trajectory) -> bool:
    """Whether a session ends since all is known, and says so."""
    return session.end in CONFIRMED and session.settled and not session.warned


def false_tasks(world: World, rounds: int) -> list[list[Task]]:
    """Per round: an agent of the prior, two able ones, and one that a constant rate describes."""
    drawn = players(world, rounds, seed=3)
    rates = np.random.default_rng(5).uniform(0.1, 0.9, rounds)
    every = len(world.instances)
    return [
        [
            Task("op", player, Policy(), 2000 + seed, AT, judged=True)
            for player in (
                drawn[seed],
                able(world),
                Player("nearly perfect", able(world, 0.97, 0.02).before),
                Player("constant rate", np.full(every, rates[seed])),
            )
        ]
        for seed in range(rounds)
    ]


def false_rows(rounds: Rounds) -> Rows:
    """How often warnings are wrong."""
    made: Rows = []
    note = f"{len(rounds)} sessions of {AT[-1]} episodes"
    for k, who in enumerate(("agents of the prior", "able agents", "nearly perfect agents")):
        sessions = [one[k] for one in rounds]
        for i, n in enumerate(AT):
            stands = share([t.points[i].stands for t in sessions])
            made.append(row(f"alarm stands at {n}, {who}", stands, at_most=0.05, note=note))
        worse = share([t.standing == "worse" for t in sessions])
        made.append(row(f"not to be read, {who}", worse, at_most=0.05, note=note))
        better = share([t.standing == "better" for t in sessions])
        made.append(row(f"the layout predicts better, {who}", better, note=note))
    better = share([one[3].standing == "better" for one in rounds])
    name = "the layout predicts better, agents of a constant rate"
    made.append(row(name, better, at_most=0.05, note="where the average is the truth"))
    return made


def misfit_tasks(world: World, name: str, rounds: int, most: int | None = None) -> list[list[Task]]:
    """Per round: each kind of misfit, or the first ones, by default and in a random order."""
    agents = players_of(world, KNOWN if name == "known" else UNSEEN)[:most]
    return [
        [
            Task("op", player, policy, 3000 + seed, AT, held_out=True, judged=policy is not None)
            for player in agents
            for policy in (Policy(), None)
        ]
        for seed in range(rounds)
    ]


def misfit_rows(name: str, rounds: Rounds) -> Rows:
    """How often misfit is found and named, and what choosing costs there."""
    made: Rows = []
    pairs = [[(one[i], one[i + 1]) for one in rounds] for i in range(0, len(rounds[0]), 2)]
    apart = np.array(
        [
            [
                [a.brier - b.brier for a, b in zip(ours.points, theirs.points, strict=True)]
                for ours, theirs in group
            ]
            for group in pairs
        ]
    )
    for k, n in enumerate(AT):
        note = f"{apart.shape[0]} kinds x {len(rounds)}; the interval is over sessions"
        estimate = bootstrap_mean(apart[:, :, k].ravel().tolist())
        title = f"{name} misfit: Brier less random's at {n}"
        made.append(row(title, estimate, at_most=MARGIN, upper=True, note=note))
    for group in pairs:
        who = group[0][0].player
        ours = [a for a, _ in group]
        stands = share([t.points[-1].stands for t in ours])
        note = f"at 100: {sum(t.points[1].stands for t in ours)} of {len(ours)}"
        made.append(row(f"{who}: stands at {AT[-1]}", stands, note=note))
        wanted = NAMES[who]
        if wanted:
            named = share([bool(wanted & {*t.misfits}) for t in ours])
            first = share([bool(wanted & {*t.misfits[:1]}) for t in ours])
            note = f"as the first: {first.value:.0%}; {' or '.join(sorted(wanted))}"
            made.append(row(f"{who}: named among the first three", named, note=note))
        worse = sum(t.standing == "worse" for t in ours)
        made[-1]["note"] += f"; not to be read for its predictions: {worse}"
    return made


def cost_tasks(world: World, rounds: int) -> list[list[Task]]:
    """Per agent of the prior: the default policy and the greedy one."""
    return [
        [
            Task("op", player, Policy(), 4000 + seed, GRID),
            Task("op", player, GREEDY, 4000 + seed, GRID, fallback=False),
        ]
        for seed, player in enumerate(players(world, rounds, seed=4))
    ]


def cost_rows(rounds: Rounds) -> Rows:
    """Episodes of the default policy beside those of the greedy one, by mean SD."""
    ours, greedy = (
        np.array([[np.mean(p.sd) for p in one[k].points] for one in rounds]) for k in range(2)
    )

    def ratio(rows: Ints, n: int) -> float:
        # A posterior may grow wider; what counts is when it first is so narrow.
        curve, best = (np.minimum.accumulate(c[rows].mean(axis=0)) for c in (ours, greedy))
        level = float(np.interp(n, GRID, best))
        return min(crossing(GRID, curve, level), 2.0 * GRID[-1]) / n

    note = f"{len(rounds)} agents of the prior; mean SD in shares of the ranges"
    made: Rows = []
    for n in SAVED_AT:
        estimate = bootstrap(len(rounds), lambda rows, n=n: ratio(rows, n))
        title = f"episodes of the default for the precision of {n} greedy ones, as a multiple"
        made.append(row(title, estimate, at_most=1.25, upper=True, note=note))
    return made


def main() -> None:
    """Run the sections that are named, or all, and keep their results."""
    names = [a for a in sys.argv[1:] if a in SECTIONS] or list(SECTIONS)
    for name in names:
        rows = section(name, "--quick" in sys.argv, RESULTS)
        print_rows(rows, COLUMNS, as_json=False, title=name)


if __name__ == "__main__":
    main()
