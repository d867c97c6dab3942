"""`python -m benchmarks.worth`: what adaptive choice with a layout saves on 9,822 real items.

The items are those of 16 public benchmarks for language models, with the levels of 18 demands that
a model annotated (`demand-levels` of the data folder). There are no outcomes: agents are simulated,
drawn from the layout's prior. In the world `gemini` they pass items with the probability that the
layout gives for the first annotator's levels, which is what every method here is told. In the world
`gpt4o` they follow the second annotator's levels, so the layout is wrong.

What is compared is the error of the accuracy on all items and on each benchmark, after 50, 100, 200
and 400 items:

- `layout, adaptive`: our learner's posterior, which chose the items;
- `headline, adaptive`: the same session's estimate with the interval that holds in any case;
- `layout, random`: the same posterior, of items in a random order;
- `mean, random`: the share passed of random items;
- `2PL, short form`: a fixed set, spread over benchmarks and difficulties, with the ability of a
  two-parameter logistic model (2PL) that 200 other simulated agents calibrated;
- `2PL, adaptive`: the item with the greatest Fisher information at the estimated ability, as Fluid
  Benchmarking chooses (Hofmann et al. 2025, arXiv 2509.11106), by the same 2PL.

Every agent's run is a line of a file, and what stands there is not run again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, logsumexp

from animalcat.bench.curves import bootstrap_mean
from animalcat.doors.clinic.items import fit_population
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.checking.population import LOG_PRIOR, NODES, ItemModel
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.simulation.simulate import LayoutAgent, prior_agents

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

AT: Final = (50, 100, 200, 400)
AGENTS: Final = 20
CALIBRATING: Final = 200
WORLDS: Final = ("gemini", "gpt4o")
METHODS: Final = (
    "layout, adaptive",
    "headline, adaptive",
    "layout, random",
    "mean, random",
    "2PL, short form",
    "2PL, adaptive",
)


@dataclass(frozen=True)
class Items:
    """The items.

    Attributes:
        names: Names of the items, those that both annotators give all levels.
        benchmarks: The benchmark of each.
        levels: By annotator, (items, features) of the layout.
    """

    names: tuple[str, ...]
    benchmarks: tuple[str, ...]
    levels: Mapping[str, Floats]

    @classmethod
    def read(cls, folder: Path, most: int = 0) -> Items:
        """Read the tables; a few items of each benchmark if `most` says how many in all."""
        layout = load_layout("demand-levels")
        tables: dict[str, dict[tuple[str, str], list[float]]] = {}
        for world in WORLDS:
            with (folder / f"levels-{world}.csv").open(encoding="utf-8-sig", newline="") as file:
                rows = [*csv.DictReader(file)]
            tables[world] = {
                (row["dataset name"], row["sample id"]): [
                    _level(row[name]) if name in row else 0.0  # guessing is not in the tables
                    for name in layout.feature_names
                ]
                for row in rows
            }
        both = [
            key
            for key, values in tables["gemini"].items()
            if np.isfinite(values).all() and np.isfinite(tables["gpt4o"].get(key, [np.nan])).all()
        ]
        if most:
            both = both[:: max(len(both) // most, 1)][:most]
        return cls(
            tuple(" ".join(key) for key in both),
            tuple(key[0] for key in both),
            {world: np.array([table[key] for key in both]) for world, table in tables.items()},
        )


def _level(cell: str) -> float:
    """A level; NaN where the annotator gave none, or wrote something else."""
    try:
        level = float(cell)
    except ValueError:
        return np.nan
    return level if 0.0 <= level <= 10.0 else np.nan


class World:
    """Agents that pass items by one annotator's levels, and a 2PL model of others of them."""

    def __init__(self, items: Items, name: str, calibrating: int = CALIBRATING) -> None:
        self.items, self.name, self._calibrating = items, name, calibrating
        self.layout = load_layout("demand-levels")
        self.bank = Bank(self.layout, items.levels["gemini"], items.benchmarks, names=items.names)
        self._true = Bank(self.layout, items.levels[name], items.benchmarks, names=items.names)

    def agents(self, count: int, what: str) -> list[LayoutAgent]:
        """Agents of the layout's prior, the same in every world."""
        return prior_agents(self.layout, count, rng(0, f"worth: {what}", 0))

    def outcomes(self, agent: LayoutAgent, what: str, number: int) -> Floats:
        """What an agent does on every item, drawn once, (items,)."""
        theta = agent.theta[np.newaxis]
        p = self._true.evaluator.by_instance(theta, self._true.distinct, np.float64)[:, 0]
        draws = rng(0, f"worth: {what} in {self.name}", number).random(len(self._true.place))
        return (draws < p[self._true.place]).astype(np.float64)

    @cached_property
    def model(self) -> ItemModel:
        """2PL, calibrated by other agents on all items."""
        others = self.agents(self._calibrating, "others")
        table = np.array([self.outcomes(one, "others", k) for k, one in enumerate(others)])
        return fit_population(self.items.names, table)

    @cached_property
    def _by_difficulty(self) -> Ints:
        """Items by benchmark, and within one by difficulty."""
        places = {name: k for k, name in enumerate(dict.fromkeys(self.items.benchmarks))}
        group = np.array([places[name] for name in self.items.benchmarks])
        chance = np.exp(LOG_PRIOR) @ expit(
            NODES[:, np.newaxis] * self.model.slope + self.model.ease
        )
        return np.lexsort((chance, group))

    def short_form(self, length: int) -> Ints:
        """A fixed set, spread evenly over benchmarks and their difficulties."""
        order = self._by_difficulty
        return order[((np.arange(length) + 0.5) * len(order) / length).astype(np.int64)]


def errors(predicted: Floats, outcomes: Floats, benchmarks: Sequence[str]) -> dict[str, float]:
    """Absolute error of the predicted accuracy: of all items, and on average by benchmark."""
    off = predicted - outcomes
    names = np.array(benchmarks)
    each = [abs(float(off[names == name].mean())) for name in dict.fromkeys(benchmarks)]
    return {"whole": abs(float(off.mean())), "benchmarks": float(np.mean(each))}


def told(predicted: Floats, outcomes: Floats, played: Ints) -> Floats:
    """Predictions where outcomes that are known stand for themselves."""
    made = predicted.copy()
    made[played] = outcomes[played]
    return made


def by_posterior(bank: Bank, posterior: LivePosterior) -> Floats:
    """Probability of success on every item, (items,)."""
    each = bank.evaluator.by_instance(posterior.particles, bank.distinct, np.float64)
    return np.asarray(each @ posterior.weights, np.float64)[bank.place]


def by_ability(model: ItemModel, outcomes: Floats, played: Ints) -> Floats:
    """The same by the 2PL's ability, its posterior on a grid."""
    eta = NODES[:, np.newaxis] * model.slope + model.ease
    own, y = eta[:, played], outcomes[played]
    joint = LOG_PRIOR + log_expit(own) @ y + log_expit(-own) @ (1.0 - y)
    return np.asarray(np.exp(joint - logsumexp(joint)) @ expit(eta), np.float64)


def fluid(model: ItemModel, outcomes: Floats, most: int) -> Ints:
    """Items in the order of adaptive testing: greatest information at the best ability so far.

    The ability is the most probable one on a fine grid, with a standard normal prior.
    """
    grid = np.linspace(-4.0, 4.0, 801)
    log = -0.5 * grid**2
    free = np.ones(len(outcomes), bool)
    chosen: list[int] = []
    for _ in range(most):
        at = grid[int(np.argmax(log))]
        p = expit(at * model.slope + model.ease)
        best = int(np.argmax(np.where(free, model.slope**2 * p * (1.0 - p), -1.0)))
        chosen.append(best)
        free[best] = False
        eta = grid * model.slope[best] + model.ease[best]
        log = log + log_expit(eta if outcomes[best] else -eta)
    return np.array(chosen)


def adaptive(world: World, outcomes: Floats, seed: int, at: Sequence[int]) -> dict[str, Any]:
    """A session of our learner, and what it says at the end."""
    rule = StoppingRule(max_episodes=at[-1], target_sd=0.0, futility=0.0)
    learner = Learner(world.bank, rule=rule, seed=seed)
    place = {name: row for row, name in enumerate(world.bank.names)}
    played: list[int] = []
    found: dict[str, Any] = {"layout, adaptive": {}, "headline, adaptive": {}}
    cpu: list[float] = []
    while len(played) < at[-1]:
        before = time.process_time()
        choice = learner.ask()
        assert choice is not None, "there are more items than outcomes"
        learner.tell(choice.instance, outcomes[place[choice.instance]])
        cpu.append(time.process_time() - before)
        played.append(place[choice.instance])
        if len(played) in at:
            so_far = np.array(played)
            expected = told(by_posterior(world.bank, learner.posterior), outcomes, so_far)
            now = errors(expected, outcomes, world.items.benchmarks)
            rate = learner.battery_rate
            true = float(outcomes.mean())
            assert rate.value is not None
            assert rate.low is not None
            assert rate.high is not None
            found["layout, adaptive"][len(played)] = now
            found["headline, adaptive"][len(played)] = {
                "whole": abs(rate.value - true),
                "held": bool(rate.low - 1e-9 <= true <= rate.high + 1e-9),
                "width": rate.high - rate.low,
            }
    _, verdict = verdict_of(learner, learner.profile())
    found["alarm"] = {
        "raised_at": learner.raised_at,
        "contradicted": learner.contradicted,
        "misfit": learner.misfit,
        "words": list(verdict.sentences),
    }
    found["cpu"] = {"median": float(np.median(cpu)), "most": float(np.max(cpu))}
    return found


def run_agent(world: World, number: int, at: Sequence[int] = AT) -> dict[str, Any]:
    """All methods on one agent."""
    at = [n for n in at if n < len(world.items.names)]
    agent = world.agents(AGENTS, "agents")[number]
    outcomes = world.outcomes(agent, "agents", number)
    benchmarks = world.items.benchmarks
    found: dict[str, Any] = {
        "world": world.name, "agent": number, "accuracy": float(outcomes.mean())
    }  # fmt: skip
    order = rng(0, "worth: random order", number).permutation(len(outcomes))
    posterior = LivePosterior(world.layout, number, 2000)
    tested = fluid(world.model, outcomes, at[-1])
    before = 0
    for n in at:
        some = order[:n]
        new = order[before:n]
        posterior.update_all(world.bank.features[new], outcomes[new], before + 1)
        before = n
        form = world.short_form(n)
        forms: dict[str, Floats] = {
            "layout, random": told(by_posterior(world.bank, posterior), outcomes, some),
            "mean, random": _means(outcomes, some, benchmarks),
            "2PL, short form": told(
                by_ability(world.model, outcomes, form), outcomes,
                form,
            ),
            "2PL, adaptive": told(
                by_ability(world.model, outcomes, tested[:n]), outcomes, tested[:n]
            ),
        }  # fmt: skip
        for name, expected in forms.items():
            found.setdefault(name, {})[n] = errors(expected, outcomes, benchmarks)
    return found | adaptive(world, outcomes, number, at)


def _means(outcomes: Floats, some: Ints, benchmarks: Sequence[str]) -> Floats:
    """The share passed: of the benchmark where some of it was played, else of all that was."""
    names = np.array(benchmarks)
    made = np.full(len(outcomes), outcomes[some].mean())
    whole = float(outcomes[some].mean())
    for name in set(benchmarks):
        own = outcomes[some][names[some] == name]
        if len(own):
            made[names == name] = own.mean()
    return made - made.mean() + whole  # so that the whole is the plain share passed


def rows_of(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mean absolute errors with 90 % intervals over agents, and less those of our learner."""
    made: list[dict[str, Any]] = []
    for world in WORLDS:
        own = [run for run in runs if run["world"] == world]
        for what in ("whole", "benchmarks"):
            for n in AT if own else ():
                if str(n) not in own[0]["layout, adaptive"]:
                    continue
                ours = np.array([run["layout, adaptive"][str(n)][what] for run in own])
                for method in METHODS:
                    if method == "headline, adaptive" and what == "benchmarks":
                        continue
                    theirs = np.array([run[method][str(n)][what] for run in own])
                    mean, less = (
                        bootstrap_mean(theirs.tolist()),
                        bootstrap_mean((theirs - ours).tolist()),
                    )
                    made.append(
                        {
                            "world": world, "error": what, "items": n, "method": method,
                            "mean": mean.value, "low": mean.low, "high": mean.high,
                            "more than ours": less.value, "from": less.low, "to": less.high,
                            "agents": len(own),
                        }
                    )  # fmt: skip
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run agents, or print the table of those that ran."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.worth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("file", type=Path, help="a line of JSON for each agent")
    parser.add_argument("--items", type=int, default=0, help="only so many, for a trial")
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--world", choices=WORLDS, action="append", help="only this one")
    wanted = parser.parse_args(arguments)
    runs = (
        [json.loads(line) for line in wanted.file.read_text().splitlines()]
        if wanted.file.exists()
        else []
    )
    if wanted.what == "table":
        for row in rows_of(runs):
            print(
                "{world:7} {error:10} {items:4} {method:20} {mean:.4f} ({low:.4f} to {high:.4f})  "
                "{more than ours:+.4f} ({from:+.4f} to {to:+.4f})  {agents}".format(**row)
            )
        return 0
    done = {(run["world"], run["agent"]) for run in runs}
    folder = Path(os.environ.get("ANIMALCAT_DATA") or "../shared/data") / "demand-levels"
    items = Items.read(folder, wanted.items)
    worlds = {name: World(items, name) for name in wanted.world or WORLDS}
    for number in range(wanted.agents):
        for name, world in worlds.items():
            if (name, number) not in done:
                found = run_agent(world, number)
                with wanted.file.open("a") as file:
                    file.write(json.dumps(found) + "\n")
                print(name, number, found["cpu"], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
