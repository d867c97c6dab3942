"""`python -m benchmarks choice`: what a choice among 20,000 items by 18 scales costs.

The items are those of both annotations of the real ones, and some more made of their levels.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from benchmarks.levels import NAME, SECOND, TABLE, folder

Floats: TypeAlias = npt.NDArray[np.float64]

ITEMS: Final = 20_000
QUICK_ITEMS: Final = 10_000
CHOICES: Final = 100
QUICK_CHOICES: Final = 10
AT_ONCE: Final = 8
BATCHES: Final = 5
SEED: Final = 20
GOES_ON: Final = StoppingRule(1000, target_sd=0.0, futility=0.0)
"""No choice is the last one, at which the layout's rivals are examined once for half a second."""
MEDIAN, MOST, BATCH, MEMORY = 0.150, 0.500, 0.400, 1000.0
"""Most CPU seconds of a choice, in the median and at most, and of a batch; most megabytes."""


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Measure choices, batches and memory, in a process of their own.

    Args:
        quick: Fewer items and choices.
    """
    if folder() is None:
        return [{"name": "choice: needs the items of ANIMALCAT_DATA"}]
    size, choices = (QUICK_ITEMS, QUICK_CHOICES) if quick else (ITEMS, CHOICES)
    call = [sys.executable, "-m", "benchmarks.choice", str(size), str(choices)]
    said = subprocess.run(call, check=True, capture_output=True, text=True).stdout.split()
    distinct, *asked, batch, memory = map(float, said)
    median, most = float(np.median(asked)), max(asked)
    note = f"{size} items, {distinct:.0f} different; {choices} choices"
    rows: list[dict[str, Any]] = []
    for name, value, unit, target in (
        ("a choice, median", median, "CPU s", MEDIAN),
        ("a choice, the longest", most, "CPU s", MOST),
        (f"a batch of {AT_ONCE}, median", batch, "CPU s", BATCH),
        ("memory of the process, at most", memory, "MB", MEMORY),
    ):
        row = {"name": name, "value": value, "unit": unit, "target": f"at most {target:g}"}
        rows.append(row | {"met": "yes" if value <= target else "no", "note": note})
    return rows


def items(size: int) -> Floats:
    """Features of so many items: both annotations, and items whose levels are drawn from these."""
    data = folder()
    assert data is not None  # `run` has looked
    layout = load_layout(NAME)
    levels = pd.concat([pd.read_csv(data / name) for name in (TABLE, SECOND)])
    scales = [name for name in layout.feature_names if name in levels]
    # One cell is a text, and some are empty.
    known = levels[scales].apply(pd.to_numeric, errors="coerce").dropna().to_numpy(np.float64)
    generator = rng(SEED, "choice", 0)
    more = [generator.choice(column, max(size - len(known), 0)) for column in known.T]
    whole = np.vstack([known, np.stack(more, axis=1)])[:size]
    return np.column_stack([whole, np.zeros(len(whole))])  # nothing is passed by guessing


def measure(size: int, choices: int) -> list[float]:
    """Number of different items, CPU seconds of each choice and of a batch, and megabytes."""
    layout = load_layout(NAME)
    features = items(size)
    bank = Bank(layout, features, [""] * len(features))
    generator = rng(SEED, "choice", 1)
    truth = layout.from_standard(generator.standard_normal((1, len(layout.latents))))
    p = bank.evaluator.probability(truth, features)[0]
    rows = {name: row for row, name in enumerate(bank.names)}
    learner = Learner(bank, rule=GOES_ON, seed=SEED)

    def asked(pending: list[str]) -> str:
        choice = learner.ask(pending)
        assert choice is not None  # there are more items than choices
        return choice.instance

    def told(name: str) -> None:
        learner.tell(name, float(generator.random() < p[rows[name]]))

    told(asked([]))  # what is compiled is compiled
    spent: list[float] = []
    for _ in range(choices):
        before = time.process_time()
        name = asked([])
        spent.append(time.process_time() - before)
        told(name)
    batches: list[float] = []
    for k in range(BATCHES + 1):
        before, pending = time.process_time(), list[str]()
        for _ in range(AT_ONCE):
            pending.append(asked(pending))
        if k:  # the first one compiles what draws outcomes
            batches.append(time.process_time() - before)
        for name in pending:
            told(name)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000.0
    return [float(len(bank.distinct)), *spent, float(np.median(batches)), memory]


if __name__ == "__main__":
    print(*measure(int(sys.argv[1]), int(sys.argv[2])))
