"""`make speed`: how fast this tree is beside the commit that landed last, as ratios of one run."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, Final

from benchmarks.checkout import ROOT

TABLE: Final = ROOT / "benchmarks" / "speed.toml"
"""The commit to compare with, the losses that were accepted, and the ratios of the last run."""
MOST: Final = 1.4
"""From which median ratio on a loss is refused, unless the table accepts it."""
PAIRS: Final = 3
"""Both trees take turns so many times, so that both meet the same noise."""
_EPISODES: Final = 30
_GIT: Final = ("git", "-C", str(ROOT))


def choose(count: int) -> float:
    """CPU milliseconds of refit, verdict and choice, over so many instances: the median."""
    import numpy as np

    from animalcat.layouts.adaptive.bank import Bank
    from animalcat.layouts.adaptive.learner import Learner
    from animalcat.layouts.adaptive.plan import Policy, StoppingRule
    from animalcat.layouts.checking.calibration import spread
    from animalcat.layouts.library import load_layout

    layout, luck = load_layout("aaio", "scaled"), np.random.default_rng(7)
    bank = Bank(layout, spread(layout, count, luck), ["ab"[k % 2] for k in range(count)])
    rule = StoppingRule(1000, target_sd=0.0, futility=0.0)
    learner = Learner(bank, Policy(), rule, 3)
    taken: list[float] = []
    for episode in range(_EPISODES):
        start = time.process_time()
        learner.verdict(float(episode))
        choice = learner.ask([], episode)
        assert choice is not None  # nothing ends this rule before its number
        learner.tell(choice.instance, float(luck.random() < choice.predicted), episode)
        taken.append(1e3 * (time.process_time() - start))
    return statistics.median(taken[5:])


def sample(name: str, variant: str, count: int, draws: int) -> float:
    """CPU seconds of a fit by NUTS for each thousand of its least effective draws."""
    import numpy as np

    from animalcat.layouts.checking.calibration import spread
    from animalcat.layouts.inference.evaluator import Evaluator
    from animalcat.layouts.inference.fit import FitRequest, fit
    from animalcat.layouts.inference.live import LivePosterior
    from animalcat.layouts.library import load_layout

    layout, luck = load_layout(name, variant), np.random.default_rng(11)
    features, evaluator = spread(layout, count, luck), Evaluator(layout)
    agent = LivePosterior(layout, 1).particles[:1]
    outcomes = evaluator.simulate(agent, evaluator.columns(features), luck)[:, 0]
    start = time.process_time()
    found = fit(FitRequest(layout, features, outcomes, 0, draws=draws, tune=draws))
    return 1e3 * (time.process_time() - start) / found.diagnostics["ess_bulk"]


def step(way: str, observations: str) -> float:
    """CPU microseconds of a step over gRPC, of all processes that have to do with it."""
    from benchmarks import service

    return service.cpu_of_a_step(way, observations, 500)


def start(*arguments: str) -> float:
    """CPU seconds of a command and of all processes that it starts."""
    with tempfile.TemporaryDirectory() as folder:
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "animalcat", *arguments],
            cwd=folder,
            env={**os.environ, "ANIMALCAT_HOME": f"{folder}/home"},
            capture_output=True,
            check=True,
        )
        after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


_SESSION: Final = ("session", "run", "--agent", "builtin:scout", "--battery", "navigation")
QUICK: Final[Mapping[str, Callable[[], float]]] = {
    "refit, choice and verdict, 69 instances": partial(choose, 69),
    "refit, choice and verdict, 2,000 instances": partial(choose, 2_000),
    "NUTS, aaio, 69 outcomes": partial(sample, "aaio", "scaled", 69, 1000),
    "a step played directly, with rays": partial(step, "direct", "rays"),
    "a relayed step, with rays": partial(step, "relayed", "rays"),
    "layout show": partial(start, "layout", "show"),
}
"""What `.ci/run` measures: a name, and what gives a figure of which less is better."""
FIGURES: Final[Mapping[str, Callable[[], float]]] = {
    **QUICK,
    "refit, choice and verdict, 13,000 instances": partial(choose, 13_000),
    "refit, choice and verdict, 250,000 instances": partial(choose, 250_000),
    "NUTS, object permanence, 500 outcomes": partial(sample, "object-permanence", "", 500, 300),
    "a step played directly, with 84x84": partial(step, "direct", "rays and 84x84 camera"),
    "a session of 40 episodes": partial(start, *_SESSION, "--max-episodes", "40"),
    "the second demo": partial(start, "demo"),
}


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure both trees in turns, and return a row a figure; the whole is kept in the table.

    Args:
        quick: Whether to measure only what `.ci/run` does.

    Returns:
        The rows; none where this clone has not the commit to compare with, which is said.
    """
    table = tomllib.loads(TABLE.read_text("utf-8"))
    if not _has(table["against"]):
        words = f"{table['against']}, which {TABLE.name} names, is not in this clone"
        print(f"{words}: nothing was measured. Fetch the whole history first.", file=sys.stderr)
        return []
    accepted = table.get("accepted", {})
    rows: list[dict[str, Any]] = []
    with _worktree(table["against"]) as other, tempfile.TemporaryDirectory() as caches:
        for name in QUICK if quick else FIGURES:
            measure = partial(_measure, name=name, caches=caches)
            pairs = [(measure(ROOT), measure(other)) for _ in range(PAIRS + 1)][1:]  # warm by then
            row = _row(name, pairs, accepted.get(name))
            if not row["met"]:  # a busy machine may look so: twice as many pairs decide
                pairs += [(measure(ROOT), measure(other)) for _ in range(PAIRS)]
                row = _row(name, pairs, accepted.get(name))
            rows.append(row)
    if not quick:
        TABLE.write_text(_with_ratios(TABLE.read_text("utf-8"), rows), "utf-8")
    return rows


def _row(
    name: str,
    pairs: list[tuple[float | None, float | None]],
    accepted: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return what is said of a figure: both medians, and whether the ratio is good."""
    known = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
    if not known:
        new = pairs[0][0]
        return {
            "name": name,
            "value": new,
            "met": new is not None,
            "note": "new: nothing to compare",
        }
    ours, theirs = (statistics.median(column) for column in zip(*known, strict=True))
    ratios = [a / b for a, b in known]
    most = MOST if accepted is None else accepted["ratio"]
    return {
        "name": name,
        "median": ours,
        "baseline": theirs,
        "ratio": statistics.median(ratios),
        "low": min(ratios),
        "high": max(ratios),
        "met": statistics.median(ratios) <= most,
        "note": "" if accepted is None else accepted["why"],
    }


def _with_ratios(text: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the table with other ratios, which stand at its end."""
    lines = [
        f"{json.dumps(row['name'])} = [{row['low']:.2f}, {row['ratio']:.2f}, {row['high']:.2f}]"
        for row in rows
        if "ratio" in row
    ]
    return "\n".join([f"{text.partition('[ratios]')[0].rstrip()}\n\n[ratios]", *lines, ""])


def _measure(tree: Path, name: str, caches: str) -> float | None:
    """A figure by a process that imports a tree; None where that tree cannot tell it."""
    own = tree / "benchmarks" / "speed.py"
    own_place = {"PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": f"{caches}/{tree.name}"}
    done = subprocess.run(
        [sys.executable, "-P", str(own if own.exists() else __file__), name],
        cwd=caches,
        env={**os.environ, **own_place, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and tree == ROOT:
        raise RuntimeError(f"{name} cannot be measured: {done.stderr[-2000:]}")
    return None if done.returncode else json.loads(done.stdout.splitlines()[-1])


def _has(commit: str) -> bool:
    """Whether this clone knows a commit."""
    asked = [*_GIT, "cat-file", "-e", f"{commit}^{{commit}}"]
    return not subprocess.run(asked, check=False, capture_output=True).returncode


@contextmanager
def _worktree(commit: str) -> Generator[Path]:
    """A checkout of a commit, for as long as it is used."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "against"
        subprocess.run([*_GIT, "worktree", "add", "-q", "--detach", tree, commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*_GIT, "worktree", "remove", "--force", tree], check=True)


if __name__ == "__main__":  # one figure of the tree on the path, for `run`
    print(json.dumps(FIGURES[sys.argv[1]]()))
