"""`python -m benchmarks people`: what is found of simulated people, and what sparing them costs.

Everybody is drawn from the prior of the layout of people (`aaio`, `people`). They play rounds that
a session chooses as it does live: it does not know how many they have played. Afterwards NUTS fits
what they did with the numbers of the rounds. The other rows compare aims of the chooser: how many
rounds people pass, and how much less is known of them for it. Each person is stored once they are
done, so that an interrupted run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout

RESULTS: Final = Path(__file__).resolve().parent / "results" / "people"
ARENAS: Final = 300
PEOPLE: Final = 60
ROUNDS: Final = 80
AIMED: Final = 24
"""People of each aim."""
AIMS: Final = (0.0, 0.6, 0.7, 0.8)


def bank_of(layout: Layout) -> Bank:
    """Arenas with rewards of all sizes at the ends of ways of all lengths."""
    chance = np.random.default_rng(50)
    values = {
        "wayLength": chance.uniform(1.0, 50.0, ARENAS),
        "rewardSize": np.exp(chance.uniform(np.log(0.5), np.log(5.0), ARENAS)),
        "round": np.zeros(ARENAS),
    }
    return Bank(
        layout, np.column_stack([values[n] for n in layout.feature_names]), ["one"] * ARENAS
    )


def played(
    bank: Bank, truth: npt.NDArray[np.float64], policy: Policy, rounds: int, seed: int
) -> tuple[Learner, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Let a person play as in a session; returns what is known live, features and outcomes."""
    learner = Learner(bank, policy, StoppingRule(rounds, target_sd=0.0), seed=seed)
    chance = rng(seed, "people", 0)
    at = bank.layout.feature_names.index("round")
    features, outcomes = list[npt.NDArray[np.float64]](), list[float]()
    for number in range(rounds):
        choice = learner.ask()
        assert choice is not None
        row = bank.features[choice.index].copy()
        row[at] = number
        outcome = bank.evaluator.simulate([truth], bank.evaluator.columns(row[None]), chance)[0, 0]
        learner.tell(choice.instance, float(outcome))
        features.append(row)
        outcomes.append(float(outcome))
    return learner, np.array(features), np.array(outcomes)


def recover(person: int) -> dict[str, Any]:
    """Let one person play, and find out what they are like."""
    layout = load_layout("aaio", "people")
    bank = bank_of(layout)
    truth = layout.from_standard(rng(person, "person", 0).standard_normal(len(layout.latents)))
    _, features, outcomes = played(bank, truth, Policy(aim=0.7), ROUNDS, person)
    found = fit(FitRequest(layout, features, outcomes, seed=person, chains=2), cores=1)
    nodes: dict[str, Any] = {}
    for k, latent in enumerate(layout.latents):
        draws = found.flat_draws[:, k]
        low, high = np.quantile(draws, (0.05, 0.95))
        nodes[latent.name] = {
            "truth": float(truth[k]),
            "mean": float(draws.mean()),
            "sd": float(draws.std()),
            "rank": float((draws < truth[k]).mean()),
            "held": bool(low <= truth[k] <= high),
        }
    return {"person": person, "passed": float(outcomes.mean()), "nodes": nodes}


def aimed(case: int) -> dict[str, Any]:
    """Let one person play rounds that are chosen with one aim."""
    aim, person = AIMS[case % len(AIMS)], case // len(AIMS)
    layout = load_layout("aaio", "people")
    bank = bank_of(layout)
    truth = layout.from_standard(rng(person, "aimed", 0).standard_normal(len(layout.latents)))
    learner, _, outcomes = played(bank, truth, Policy(aim=aim), 60, person)
    spans = [latent.prior.span for latent in layout.latents]
    shares = [node.sd / spans[k] for k, node in enumerate(learner.summary())]
    known = [shares[k] for k in layout.capabilities]
    return {
        "aim": aim,
        "person": person,
        "passed": float(outcomes.mean()),
        "sd": float(np.mean(known)),
    }


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
    rows.append(node_row("all nodes", [row["nodes"][n] for row in found for n in names]))
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
    held = float(np.mean([one["held"] for one in found]))
    bias, rmse = float((means - truths).mean()), float(np.sqrt(((means - truths) ** 2).mean()))
    return {
        "name": f"coverage of 90 % intervals, {name}",
        "unit": "share",
        "value": round(held, 3),
        "note": f"{len(found)} values; bias {bias:.3g}, root mean square error {rmse:.3g}, "
        f"correlation {np.corrcoef(means, truths)[0, 1]:.2f}",
    }
