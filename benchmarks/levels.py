"""`python -m benchmarks levels`: whether profiles by 18 scales of real items can be trusted.

Agents are drawn from the prior of `demand-levels` and choose adaptively among the real items. What
counts was written down before the agents were drawn: see `judged`. An agent is a line of a file, so
that a run that was interrupted goes on where it ended.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.checking.checks import holm
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.library.levels import demand_layout
from animalcat.layouts.model.instances import Instances, instances_of
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import read_sheet

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = list[dict[str, Any]]

NAME: Final = "demand-levels"
TABLE: Final = "levels-gemini.csv"
"""The annotation whose items are chosen from."""
SECOND: Final = "levels-gpt4o.csv"
"""The second annotation of the same items."""
KINDS: Final = "dataset name"
ITEM: Final = "sample id"
FILE: Final = "levels.jsonl"
"""Results, one agent a line."""
AGENTS: Final = 120
QUICK_AGENTS: Final = 2
CHOICES: Final = 100
QUICK_CHOICES: Final = 12
SEED: Final = 48
EVERY: Final = 4
"""Every so many agents, the same outcomes are fitted by NUTS."""
NEVER: Final = StoppingRule(CHOICES, target_sd=0.0, futility=0.0)
"""Stops by nothing but the number of choices."""
POOLED: Final = (0.86, 0.94)
"""Within which the 90 % bounds of the pooled coverage have to be."""
LEVEL: Final = 0.05
"""P-value of a scale's coverage, corrected by Holm, below which it fails."""
AGREES: Final = 0.10
"""By how much the standard deviation may differ from that by NUTS."""
HALF: Final = 0.5
"""Share of the prior's standard deviation below which it has to be where scales are told apart."""


def folder() -> Path | None:
    """The folder of real items that `ANIMALCAT_DATA` names, if it is there."""
    path = Path(os.environ.get("ANIMALCAT_DATA") or "../shared/data") / "demand-levels"
    return path if (path / TABLE).is_file() else None


def items_of(path: Path, layout: Layout) -> Instances:
    """The items of a table that a layout describes; they are called by both columns."""
    sheet = read_sheet(path)
    names = map("/".join, zip(sheet.column(KINDS), sheet.column(ITEM), strict=True))
    table = instances_of(sheet, (), paradigm=KINDS, ignore=(ITEM,)).instances
    return replace(table, names=tuple(names)).covered(layout).instances


def run(quick: bool = False, keep: Path | None = None) -> Rows:
    """Measure agents, and judge them.

    Args:
        quick: Few agents and choices, so that it is only seen that it runs.
        keep: Folder of the results; a run goes on with what is there.
    """
    data = folder()
    if data is None:
        return [{"name": "levels: needs the items of ANIMALCAT_DATA"}]
    layout = load_layout(NAME)
    items = items_of(data / TABLE, layout)
    bank = Bank.of(layout, items)
    with tempfile.TemporaryDirectory() as elsewhere:
        path = (keep or Path(elsewhere)) / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        count, choices = (QUICK_AGENTS, QUICK_CHOICES) if quick else (AGENTS, CHOICES)
        key = {"layout": layout.digest, "choices": choices}
        known = [one for one in read_lines(path) if key.items() <= one.items()]
        for agent in range(count):
            if agent not in {one["agent"] for one in known}:
                fits = agent % EVERY == 0 and not quick  # it would be compiled first
                known.append(key | measured(bank, agent, choices, fits=fits))
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(known[-1]) + "\n")
    told = {s.ability for s in demand_layout(data / TABLE).scales if s.told_apart}
    return judged(layout, [one for one in known if one["agent"] < count], told)


def read_lines(path: Path) -> Rows:
    """The agents that were measured; a line that was cut off is left out, and is measured again."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    path.write_text("".join(whole), encoding="utf-8")
    return [json.loads(line) for line in whole]


def measured(bank: Bank, agent: int, choices: int, *, fits: bool) -> dict[str, Any]:
    """Let an agent of the prior answer what the learner chooses.

    Args:
        bank: The items.
        agent: Number of the agent.
        choices: How many are chosen.
        fits: Whether the same outcomes are fitted by NUTS afterwards.
    """
    layout = bank.layout
    generator = rng(SEED, "levels", agent)
    truth = layout.from_standard(generator.standard_normal((1, len(layout.latents))))
    p = bank.evaluator.probability(truth, bank.features)[0]
    learner = Learner(bank, rule=NEVER, seed=agent)
    began = time.process_time()
    spent: list[float] = []
    for _ in range(choices):
        before = time.process_time()
        choice = learner.ask()
        assert choice is not None  # there are more items than choices
        spent.append(time.process_time() - before)
        learner.tell(choice.instance, float(generator.random() < p[choice.index]))
    cpu = time.process_time() - began
    live = learner.posterior.summary()
    found: dict[str, Any] = {
        "agent": agent,
        "rate": float(p.mean()),
        "contradicted": learner.contradicted,
        "seconds": cpu,
        "asking": [float(np.median(spent)), max(spent)],
        "truth": truth[0].tolist(),
        "mean": [node.mean for node in live],
        "sd": [node.sd for node in live],
        "interval": [list(node.hdi) for node in live],
    }
    if fits:
        data = learner.data()
        began = time.process_time()
        fitted = fit(FitRequest(layout, data.features, data.outcomes, agent))
        found["nuts"] = {
            "seconds": time.process_time() - began,
            "converged": fitted.converged,
            "reasons": fitted.diagnostics["reasons"],
            "rhat": fitted.diagnostics["rhat"],
            "mean": [node.mean for node in fitted.nodes],
            "sd": [node.sd for node in fitted.nodes],
        }
    return found


def judged(layout: Layout, agents: Sequence[dict[str, Any]], told: set[str]) -> Rows:
    """What is claimed, and whether it is so.

    Intervals hold the truth in 86 to 94 of 100 cases, by 90 % bounds that resample agents; of no
    scale is it contradicted that it is 90, by Holm. Standard deviations are within 10 % of those by
    NUTS from the same outcomes: of every scale, the geometric mean over agents of their ratio. On
    scales that the items can tell apart, they are under half of the prior's on average.

    Args:
        layout: The layout.
        agents: What `measured` found of each.
        told: Names of the abilities that the items can tell apart.
    """
    truth, sd = (np.array([one[key] for one in agents]) for key in ("truth", "sd"))
    ends = np.array([one["interval"] for one in agents])
    inside = (ends[..., 0] <= truth) & (truth <= ends[..., 1])
    pooled = inside.mean(axis=1)
    drawn = np.random.default_rng(0).integers(len(pooled), size=(4000, len(pooled)))
    low, high = np.quantile(pooled[drawn].mean(axis=1), [0.05, 0.95])
    note = f"{len(agents)} agents of the prior, {agents[0]['choices']} choices each"
    rows: Rows = [
        _row("90 % intervals hold the truth, pooled", pooled.mean(), low, high, note)
        | _met("0.86 to 0.94, by its 90 % bounds", POOLED[0] <= low and high <= POOLED[1])
    ]
    hits = inside.sum(axis=0).tolist()
    corrected = holm(np.array([binomtest(int(k), len(agents), 0.9).pvalue for k in hits]))
    for i, name in enumerate(layout.latent_names):
        bounds = binomtest(int(hits[i]), len(agents)).proportion_ci(0.9, method="exact")
        rows.append(
            _row(f"held: {name}", hits[i] / len(agents), bounds.low, bounds.high)
            | _met(f"Holm p >= {LEVEL}", corrected[i] >= LEVEL, f"corrected p {corrected[i]:.2g}")
        )
    fitted = [one for one in agents if "nuts" in one]
    sure = [one for one in fitted if one["nuts"]["converged"]]
    if fitted:
        note = f"{len(sure)} of {len(fitted)}"
        rows.append(_row("fits by NUTS that converged", len(sure) / len(fitted), note=note))
    priors = np.array([node.prior.sd for node in layout.latents])
    left = sd / priors
    for i, name in enumerate(layout.latent_names):
        tells = name in told
        lowest, highest = _bounds(left[:, i])
        row = _row(f"SD left of the prior's: {name}", left[:, i].mean(), lowest, highest)
        what = "told apart by the items" if tells else "not told apart by the items"
        what = what if i in layout.capabilities else ""
        rows.append(
            row
            | (_met(f"under {HALF}", left[:, i].mean() < HALF, what) if tells else {"note": what})
        )
    if sure:
        ratio = np.array([np.array(one["sd"]) / np.array(one["nuts"]["sd"]) for one in sure])
        apart = np.array(
            [
                (np.array(one["mean"]) - one["nuts"]["mean"]) / np.array(one["nuts"]["sd"])
                for one in sure
            ]
        )
        for i, name in enumerate(layout.latent_names):
            own = np.log(ratio[:, i])
            mean, (least, most) = float(np.exp(own.mean())), np.exp(_bounds(own))
            spread = np.quantile(ratio[:, i], [0.05, 0.95])
            rows.append(
                _row(f"SD over that by NUTS: {name}", mean, least, most)
                | _met(
                    "0.9 to 1.1",
                    abs(mean - 1.0) <= AGREES,
                    f"single agents {spread[0]:.2f} to {spread[1]:.2f}, means apart by "
                    f"{np.abs(apart[:, i]).mean():.2f} SD",
                )
            )
    alarms = sum(one["contradicted"] for one in agents)
    rows.append(
        _row("alarms", alarms / len(agents), note=f"{alarms} of {len(agents)}; none is due")
    )
    median = float(np.median([one["asking"][0] for one in agents]))
    rows.append(_row("CPU seconds of a choice, median", median))
    rows.append(_row("CPU seconds of an agent", float(np.mean([one["seconds"] for one in agents]))))
    return rows


def _bounds(values: Floats) -> tuple[float, float]:
    """90 % bounds of a mean, by resampling."""
    drawn = np.random.default_rng(0).integers(len(values), size=(2000, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.05, 0.95])
    return float(low), float(high)


def _row(
    name: str, value: float, low: float | None = None, high: float | None = None, note: str = ""
) -> dict[str, Any]:
    ends = {} if low is None or high is None else {"low": float(low), "high": float(high)}
    return {"name": name, "value": float(value), **ends, "note": note}


def _met(target: str, met: bool, note: str = "") -> dict[str, Any]:
    return {"target": target, "met": "yes" if met else "no"} | ({"note": note} if note else {})
