"""`python -m benchmarks.items LAYOUT`: a calibrated layout beside what knows the items (2PL).

Five folds of the Olympics' entrants: the others calibrate the layout and fit a 2PL model, and both
predict each entrant that was held out from its first outcomes, in ten orders. Differences are means
over entrants with the 90 % interval of 2,000 resamples of entrants.

With --strangers: agents of four kinds are drawn (`draw_agents`), and the shipped calibration and
the layout as written are told the same outcomes. An excess is the mean square error of predicted
probabilities, and coverage that of 90 % intervals of all nodes but strangeness.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, logsumexp

from animalcat.doors.clinic.population import LOG_PRIOR, NODES, ItemModel, fit_items
from animalcat.layouts.calibrating.assessment import CALIBRATED, TOLD, WRITTEN, Run
from animalcat.layouts.calibrating.calibrate import calibrated_layout, population_model
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import CALIBRATED as SHIPPED
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.calibration import EASINESS
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.priors import Normal
from animalcat.layouts.model.spec import Layout
from benchmarks.papers.olympics import INSTANCES, data_folder, read_entrants

Floats: TypeAlias = npt.NDArray[np.float64]

ITEMS: Final = "2PL"
SEED: Final = 66
FOLDS: Final = 5
ORDERS: Final = 10
STRANGERS: Final = 67
"""Seed of simulated agents; the layout's parts were chosen on those of another seed, 66."""
KINDS: Final = ("population", "written", "flat", "round")


def predict_by_items(model: ItemModel, told: npt.NDArray[np.int64], y: Floats) -> Floats:
    """What a 2PL model predicts of an agent after some outcomes, (instances,)."""
    eta = NODES[:, np.newaxis] * model.slope + model.ease
    seen = eta[:, told]
    belief = LOG_PRIOR + (y[told] * log_expit(seen) + (1.0 - y[told]) * log_expit(-seen)).sum(1)
    return np.asarray(np.exp(belief - logsumexp(belief)) @ expit(eta), np.float64)


def score_entrants(layout: Layout, table: OutcomeTable, orders: int) -> Iterator[dict[str, object]]:
    """Brier scores of each held-out entrant, means over orders, by predictor and number told."""
    model, features = population_model(layout, table), table.instances.features(layout)
    shuffled = rng(SEED, "agents", 0).permutation(len(table.agents))
    for fold in range(FOLDS):
        test = sorted(shuffled[fold::FOLDS].tolist())
        population = model.fit(SEED + fold, without=test)
        ours = calibrated_layout(layout, table, population, CALIBRATED, without=test)
        train = np.delete(table.outcomes, test, axis=0)
        items = fit_items(table.instances.names, train)
        own = table.instances.features(ours)
        for i in test:
            y = table.outcomes[i]
            squares: dict[str, list[float]] = {}
            for order in range(orders):
                drawn = rng(SEED, f"order of {i}", order).permutation(len(y))
                runs = {
                    CALIBRATED: Run(ours, own, y, drawn),
                    WRITTEN: Run(layout, features, y, drawn),
                }
                for told in TOLD:
                    rest = drawn[told:]
                    by = {name: run.after(told) for name, run in runs.items()}
                    by[ITEMS] = predict_by_items(items, drawn[:told], y)
                    for name, p in by.items():
                        error = float(np.mean((p[rest] - y[rest]) ** 2))
                        squares.setdefault(f"{name} {told}", []).append(error)
            means = {key: float(np.mean(each)) for key, each in squares.items()}
            yield {"agent": table.agents[i], "fold": fold, **means}


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
) -> Iterator[tuple[str, int, list[float]]]:
    """For each kind and number told: excess and coverage, as written and then calibrated."""
    for kind in KINDS:
        theta, p = draw_agents(kind, layout, ours, instances, count)
        found = np.zeros((len(TOLD), 4))
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
                    found[t, [k, 2 + k]] += float((wrong[rest] ** 2).mean()) / count, held / count
        yield from ((kind, told, found[t].tolist()) for t, told in enumerate(TOLD))


def main() -> None:
    """Print a table, and a line of JSON for each entrant into the file of --output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layout", choices=("aaio", "testbed"))
    parser.add_argument("--orders", type=int, default=ORDERS)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--strangers", type=int, default=0)
    chosen = parser.parse_args()
    folder = data_folder()
    assert folder is not None, "ANIMALCAT_DATA names no folder of outcomes"
    names = [path.stem for path in sorted((folder / "animal-ai-competition").glob("*.yaml"))]
    layout = load_layout(chosen.layout)
    table = read_entrants(layout, folder, INSTANCES if chosen.layout == "aaio" else names)
    if chosen.strangers:
        ours = load_layout(chosen.layout, SHIPPED)
        for kind, told, found in judge_strangers(layout, ours, table.instances, chosen.strangers):
            before, after, covered, ours_covers = found
            print(
                f"{kind}, {told} told: excess {before:.4f}, calibrated {after - before:+.4f} more; "
                f"covers {covered:.3f}, calibrated {ours_covers:.3f}"
            )
        return
    rows: list[dict[str, object]] = []
    for row in score_entrants(layout, table, chosen.orders):
        rows.append(row)
        if chosen.output:
            chosen.output.write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = rng(SEED, "entrants", 0).integers(len(rows), size=(2000, len(rows)))
    for told in TOLD:
        mean = {n: np.array([r[f"{n} {told}"] for r in rows]) for n in (CALIBRATED, ITEMS, WRITTEN)}
        apart = mean[CALIBRATED] - mean[ITEMS]
        low, high = np.quantile(apart[again].mean(axis=1), (0.05, 0.95))
        words = ", ".join(f"{name} {values.mean():.3f}" for name, values in mean.items())
        print(f"{told} told: {words}; less 2PL {apart.mean():+.4f} ({low:+.4f} to {high:+.4f})")


if __name__ == "__main__":
    main()
