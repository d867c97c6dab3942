"""`python -m benchmarks.items LAYOUT`: what a shipped calibration does to agents of another kind.

Agents of four kinds are drawn (`draw_agents`), and the shipped calibration and the layout as
written are told the same outcomes. An excess is the mean square error of predicted probabilities,
and coverage that of 90 % intervals of all nodes but strangeness.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.calibrating.assessment import TOLD, Run
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import CALIBRATED as SHIPPED
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.calibration import EASINESS
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.priors import Normal
from animalcat.layouts.model.spec import Layout
from benchmarks.curves import bootstrap
from benchmarks.papers.olympics import data_folder, table_of

Floats: TypeAlias = npt.NDArray[np.float64]

STRANGERS: Final = 67
"""Seed of simulated agents; the layout's parts were chosen on those of another seed, 66."""
KINDS: Final = ("population", "written", "flat", "round")


def draw_agents(
    kind: str, layout: Layout, ours: Layout, instances: Instances, count: int
) -> tuple[Floats, Floats]:
    """Draw agents of a kind: their latent nodes, and probabilities of success.

    Args:
        kind: One of `KINDS`. *population* finds easy what the calibration says; *round* finds it
            hard; *written* is of the layout alone; *flat* too, and drawn evenly over the ranges.
        layout: The layout as written.
        ours: The calibrated one.
        instances: The instances.
        count: Number of agents.
    """
    generator = rng(STRANGERS, f"agents {kind}", 0)
    theta = layout.from_standard(generator.standard_normal((count, len(layout.latents))))
    if kind == "flat":
        for i, prior in enumerate(node.prior for node in layout.latents):
            middle = prior.mean if isinstance(prior, Normal) else (prior.low + prior.high) / 2.0
            theta[:, i] = middle + prior.span * (generator.random(count) - 0.5)
    if kind in ("flat", "written"):
        return theta, Evaluator(layout).probability(theta, instances.features(layout))
    features = instances.features(ours)
    features[:, ours.feature_names.index(EASINESS)] *= -1.0 if kind == "round" else 1.0
    return theta, Evaluator(ours).probability(np.column_stack([theta, np.zeros(count)]), features)


def judge_strangers(
    layout: Layout, ours: Layout, instances: Instances, count: int
) -> Iterator[tuple[str, int, Floats]]:
    """For each kind and number told, by agent: excess and coverage, as written and calibrated."""
    for kind in KINDS:
        theta, p = draw_agents(kind, layout, ours, instances, count)
        found = np.zeros((count, len(TOLD), 4))
        for i in range(count):
            generator = rng(STRANGERS, f"outcomes {kind}", i)
            y, order = (generator.random(len(p[i])) < p[i]) * 1.0, generator.permutation(len(p[i]))
            for k, each in enumerate((layout, ours)):
                run = Run(each, instances.features(each), y, order)
                for t, told in enumerate(TOLD):
                    wrong, rest = run.after(told) - p[i], order[told:]
                    each_hdi = [node.hdi for node in run.posterior.summary()[: len(theta[i])]]
                    low, high = np.array(each_hdi, np.float64).T
                    held = float(((low <= theta[i]) & (theta[i] <= high)).mean())
                    found[i, t, [k, 2 + k]] = float((wrong[rest] ** 2).mean()), held
        yield from ((kind, told, found[:, t]) for t, told in enumerate(TOLD))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layout", choices=("aaio", "testbed"))
    parser.add_argument("--strangers", type=int, default=100)
    chosen = parser.parse_args()
    folder = data_folder()
    assert folder is not None, "ANIMALCAT_DATA names no folder of outcomes"
    layout, ours = load_layout(chosen.layout), load_layout(chosen.layout, SHIPPED)
    instances = table_of(chosen.layout, folder).instances
    for kind, told, found in judge_strangers(layout, ours, instances, chosen.strangers):
        before, after, covered, ours_covers = found.mean(axis=0)
        ends = bootstrap(len(found), lambda i, by=found[:, 3]: float(by[i].mean()))
        print(
            f"{kind}, {told} told: excess {before:.4f}, calibrated {after - before:+.4f} more; "
            f"covers {covered:.3f}, calibrated {ours_covers:.3f} "
            f"({ends.low:.3f} to {ends.high:.3f})"
        )


if __name__ == "__main__":
    main()
