"""`python -m benchmarks people`: what is found of simulated people, and what sparing them costs.

Everybody is drawn from the prior of the layout of people (`aaio`, `people`): they have lapses, and
learn by every round that they play. They take a session by the service's own measurement: practice
first, some rounds left midway, and each choice knows how many rounds were played before. At the end
NUTS fits what the session hands to its last fit. The other rows compare aims of the chooser: how
many rounds people pass, and how much less is known of them for it. Each person is stored once they
are done, so that an interrupted run goes on.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit
from scipy.stats import binomtest

from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.demand_table import import_demands
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.session.evidence import Evidence
from animalcat.values import Cause, Episode, Outcome, Session, SessionSpec, SessionState

RESULTS: Final = Path(__file__).resolve().parent / "results" / "people"
ARENAS: Final = 300
PEOPLE: Final = 540
ROUNDS: Final = 80
PRACTICE: Final = 3
LEFT: Final = 0.04
"""Share of the rounds that people leave midway: they are void, and practice all the same."""
STEPS: Final = 50
"""Decisions of a round; how many changes nothing."""
AIMED: Final = 24
"""People of each aim."""
AIMS: Final = (0.0, 0.6, 0.7, 0.8)
COVERED: Final = 0.9
"""Probability of the intervals of a person's nodes."""
SURE: Final = 0.95
"""Probability of the intervals of their coverage."""
NOW: Final = datetime(2000, 1, 1, tzinfo=UTC)


@cache
def layout_of_people() -> Layout:
    """The layout."""
    return load_layout("aaio", "people")


@cache
def battery() -> Battery:
    """Demands of arenas with rewards of all sizes at the ends of ways of all lengths."""
    chance = np.random.default_rng(50)
    ways = chance.uniform(1.0, 50.0, ARENAS)
    sizes = np.exp(chance.uniform(np.log(0.5), np.log(5.0), ARENAS))
    rest = {one.feature: float(one.feature == "rewards") for one in layout_of_people().excludes}
    lines = [",".join(("instance", "wayLength [m]", "rewardSize [m]", *rest))]
    for k, (way, size) in enumerate(zip(ways.tolist(), sizes.tolist(), strict=True)):
        lines.append(",".join(map(str, (f"arena-{k:03}", way, size, *rest.values()))))
    with TemporaryDirectory() as folder:
        return import_demands(io.BytesIO("\n".join(lines).encode()), 0, Path(folder))


class Taken(NamedTuple):
    """A session that a person has taken.

    Attributes:
        truth: (latents,): what they are like.
        measurement: What was told of them.
        passed: Share of the rounds that count and were passed.
    """

    truth: npt.NDArray[np.float64]
    measurement: Measurement
    passed: float


async def taken(person: int, purpose: str, policy: Policy, rounds: int) -> Taken:
    """Let a person take a session, by the evidence of an engine of the service."""
    layout, chance = layout_of_people(), rng(person, "people", 0)
    truth = layout.from_standard(rng(person, purpose, 0).standard_normal(len(layout.latents)))
    spec = SessionSpec(
        "person",
        "people",
        policy=policy,
        stop=StoppingRule(rounds, target_sd=0.0),
        seed=person,
        certify=False,
        practice=PRACTICE,
        replace_voids=True,
    )
    session = Session("person", spec, SessionState.RUNNING, "", NOW)
    measurement = Measurement(spec, battery(), layout)
    parts: Any = SimpleNamespace(store=None, fitter=None, files=None, versions={}, memory=None)
    evidence = Evidence(session, measurement, [], parts)
    evaluator = measurement.learner.bank.evaluator
    played = 0  # by the person's own count, which nobody tells the session
    while len(evidence.counted) < rounds:
        number = evidence.begun if evidence.idle is None else evidence.idle
        await evidence.take_in(number)
        decision = await evidence.choose(number)
        assert decision is not None  # there are more arenas
        decision = evidence.counted_on(decision)
        row = np.array([measurement.coverage.features[decision.instance]])
        columns = evaluator.columns(layout.count_on(row, played))
        passes = evaluator.simulate([truth], columns, chance)[0, 0] > 0.5
        episode = Episode(session.id, number, evidence.tries(number), decision)
        evidence.begin(episode)
        outcome, cause = Outcome.SUCCESS if passes else Outcome.FAILURE, ""
        if chance.random() < LEFT:
            outcome, cause = Outcome.VOID, Cause.AGENT_LEFT.value
        over = replace(episode, outcome=outcome, cause=cause, steps=STEPS)
        evidence.end(over)
        played += 1
        if evidence.replaces(over):
            await evidence.exclude(over.instance)
    await evidence.take_in(evidence.begun)
    evidence.close()
    passed = [one.outcome is Outcome.SUCCESS for one in evidence.counted]
    return Taken(truth, measurement, float(np.mean(passed)))


def recover(person: int) -> dict[str, Any]:
    """Let one person play, and find out what they are like."""
    layout = layout_of_people()
    truth, measurement, passed = asyncio.run(taken(person, "person", Policy(aim=0.7), ROUNDS))
    learner = measurement.learner
    data = learner.data()
    asked = FitRequest(layout, data.features, data.outcomes, person, weights=data.weights, chains=2)
    found, live = fit(asked, cores=1), learner.posterior
    ends = ((1.0 - COVERED) / 2.0, (1.0 + COVERED) / 2.0)
    nodes: dict[str, Any] = {}
    for k, latent in enumerate(layout.latents):
        draws, particles = found.flat_draws[:, k], live.particles[:, k]
        low, high = np.quantile(draws, ends)
        by_now = np.quantile(particles, ends, weights=live.weights, method="inverted_cdf")
        nodes[latent.name] = {
            "truth": float(truth[k]),
            "mean": float(draws.mean()),
            "sd": float(draws.std()),
            "held": bool(low <= truth[k] <= high),
            "held_live": bool(by_now[0] <= truth[k] <= by_now[1]),
        }
    last = float(data.features[-1, layout.counted[0]])
    return {"person": person, "passed": passed, "last": last, "nodes": nodes}


def aimed(case: int) -> dict[str, Any]:
    """Let one person play rounds that are chosen with one aim."""
    aim, person = AIMS[case % len(AIMS)], case // len(AIMS)
    _, measurement, passed = asyncio.run(taken(person, "aimed", Policy(aim=aim), 60))
    layout = layout_of_people()
    spans = [latent.prior.span for latent in layout.latents]
    shares = [node.sd / spans[k] for k, node in enumerate(measurement.learner.summary())]
    known = [shares[k] for k in layout.capabilities]
    return {"aim": aim, "person": person, "passed": passed, "sd": float(np.mean(known))}


def kept(name: str, cases: int, work: Callable[[int], dict[str, Any]], to: Path) -> list[Any]:
    """Do what is not done yet, and return all of it."""
    to.mkdir(parents=True, exist_ok=True)
    file = to / f"{name}.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    for case in range(len(rows), cases):
        rows.append(work(case))
        with file.open("a") as out:
            out.write(json.dumps(rows[-1]) + "\n")
    return rows


def run(quick: bool = False, keep: Path | None = None) -> list[dict[str, Any]]:
    """Measure what is not stored yet, and return both tables.

    Args:
        quick: Take a tenth of the people.
        keep: Where people are stored; None for where those of this repository are.
    """
    to = keep or (RESULTS.with_name("people-quick") if quick else RESULTS)
    found = kept("recovered", PEOPLE // 10 if quick else PEOPLE, recover, to)
    names = [*found[0]["nodes"]]
    rows = [node_row(name, [row["nodes"][name] for row in found]) for name in names]
    rows += [all_row("all nodes", found, "held"), all_row("all nodes, live", found, "held_live")]
    costs = kept("aimed", (AIMED // 10 if quick else AIMED) * len(AIMS), aimed, to)
    usual = np.array([row["sd"] for row in costs if row["aim"] == 0.0])
    for aim in AIMS:
        mine = [row for row in costs if row["aim"] == aim]
        ratio = np.array([row["sd"] for row in mine]) / usual
        deviation = float(np.mean([row["sd"] for row in mine]))
        share = float(np.mean([row["passed"] for row in mine]))
        rows.append(
            {
                "name": f"deviations with {f'an aim of {aim:g}' if aim else 'no aim'}",
                "unit": "of those without",
                "value": round(float(ratio.mean()), 3),
                "note": f"{len(mine)} people pass {share:.0%}; {deviation:.4f} of the ranges",
            }
        )
    return rows


def node_row(name: str, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How well a node is found."""
    means, truths = (np.array([one[key] for one in found]) for key in ("mean", "truth"))
    held = sum(one["held"] for one in found)
    ends = binomtest(held, len(found)).proportion_ci(SURE, method="exact")
    bias, rmse = float((means - truths).mean()), float(np.sqrt(((means - truths) ** 2).mean()))
    return {
        "name": f"coverage of 90 % intervals, {name}",
        "unit": "share",
        "value": round(held / len(found), 3),
        "note": f"{ends.low:.3f} to {ends.high:.3f}, {len(found)} people; bias {bias:.3g}, root "
        f"mean square error {rmse:.3g}, correlation {np.corrcoef(means, truths)[0, 1]:.2f}",
    }


def all_row(name: str, found: Sequence[dict[str, Any]], key: str) -> dict[str, Any]:
    """Coverage of all nodes together; what is found of one person's nodes goes together."""
    each = np.array([np.mean([node[key] for node in row["nodes"].values()]) for row in found])
    error = float(each.std(ddof=1)) / len(each) ** 0.5
    mean, half = float(each.mean()), float(stdtrit(len(each) - 1, (1.0 + SURE) / 2.0)) * error
    return {
        "name": f"coverage of 90 % intervals, {name}",
        "unit": "share",
        "value": round(mean, 3),
        "note": f"{mean - half:.3f} to {mean + half:.3f}, by person, {len(each)} people",
    }
