"""The entrants of the Animal-AI Olympics: Figures 6a and 9 of Burden et al. 2023."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from animalcat.cli.layout.table import battery_of_folder
from animalcat.cli.shared.arena_outcomes import on_battery
from animalcat.cli.shared.outcome_table import judge_rewards, marks_of, rewards_of
from animalcat.cli.shared.progress import Tell
from animalcat.layouts.checking.predict import (
    Assessor,
    FittedAssessor,
    LayoutAssessor,
    predict_held_out,
    splits,
)
from animalcat.layouts.checking.scores import brier
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout
from benchmarks.papers.printed import printed_figures

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = list[dict[str, Any]]

INSTANCES: Final = tuple(
    f"{category}-{task:02}-{variation:02}"
    for category, tasks in (("01", 17), ("07", 6))
    for task in range(1, tasks + 1)
    for variation in (1, 2, 3)
)
"""Names of the 69 instances of the paper."""
CHANCE: Final = "chance"
"""The column that layouts as printed read nu from."""
REPEATS: Final = 15
"""Number of splits in Figure 6a."""
QUICK_ENTRANTS: Final = 3
_MIDDLE: Final = (0.2, 0.7)
"""Success rates between which the paper's layout beats the aggregate."""


def data_folder() -> Path | None:
    """The folder of published outcomes and arenas that ANIMALCAT_DATA names, if it is there."""
    folder = Path(os.environ.get("ANIMALCAT_DATA") or "../shared/data")
    return folder if (folder / "aaio").is_dir() else None


def read_entrants(
    layout: Layout, data: Path, instances: Collection[str] = INSTANCES
) -> OutcomeTable:
    """The published outcomes of the entrants, as far as the layout covers the instances.

    Args:
        layout: The layout.
        data: Folder of the data.
        instances: Which instances; those of the paper by default.

    Raises:
        TableError: A file of the data cannot be read.
    """
    rewards = rewards_of(data / "aaio" / "final_rewards.csv")[0]
    rewards = rewards.loc[rewards.index.isin(list(instances))]
    marks = marks_of(data / "aaio" / "pass_marks.csv")
    played = judge_rewards(rewards, {str(k): float(v) for k, v in marks.dropna().items()}, {})
    names = [*map(str, rewards.index)]
    with TemporaryDirectory() as store:
        battery = battery_of_folder(data / "animal-ai-competition", names, Path(store))
        table = on_battery(layout, battery, played, keep_drawn=True).outcomes.table
    columns = [name for name in layout.feature_names if name != CHANCE]
    covered = Instances(
        tuple(columns), table.instances.select(columns), names=table.instances.names
    )
    return OutcomeTable(covered, table.agents, table.outcomes)


def table_of(name: str, data: Path) -> OutcomeTable:
    """What calibrates a shipped layout: outcomes on the paper's instances, or on all arenas."""
    every = [path.stem for path in (data / "animal-ai-competition").glob("*.yaml")]
    return read_entrants(load_layout(name), data, INSTANCES if name == "aaio" else every)


def with_chance(instances: Instances, outcomes: Floats) -> Instances:
    """Set the column `chance` as the paper does: to 1 less the average outcome."""
    kept = [column for column in instances.columns if column != CHANCE]
    chance = np.full(len(instances), 1.0 - float(np.mean(outcomes)))
    values = np.column_stack([instances.select(kept), chance])
    return Instances((*kept, CHANCE), values, instances.paradigms, instances.names)


@dataclass(frozen=True, eq=False)
class AverageChance:
    """An assessor whose chance level is 1 less the average of the outcomes that it learns from."""

    assessor: Assessor
    name: str = "layout"

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAssessor:
        """Learn from outcomes."""
        fitted = self.assessor.fit(with_chance(instances, outcomes), outcomes)
        return _FittedWithChance(fitted, outcomes)


@dataclass(frozen=True, eq=False)
class _FittedWithChance:
    fitted: FittedAssessor
    outcomes: Floats

    def predict(self, instances: Instances) -> Floats:
        """Probability of success, (instances,)."""
        return self.fitted.predict(with_chance(instances, self.outcomes))


def figure_9(
    layout: Layout, table: OutcomeTable, seed: int, tell: Tell
) -> dict[str, Sequence[NodeSummary]]:
    """Compute profiles of the entrants by NUTS: the posterior of each, in the layout's order."""
    profiles: dict[str, Sequence[NodeSummary]] = {}
    for number, agent in enumerate(table.agents):
        tell("Figure 9", number, len(table.agents))
        instances, outcomes = table.of(agent)
        features = with_chance(instances, outcomes).features(layout)
        profiles[agent] = fit(FitRequest(layout, features, outcomes, seed)).nodes
    return profiles


def agreement(profiles: Mapping[str, Sequence[NodeSummary]]) -> Rows:
    """Compare profiles with Figure 9, node by node; entrants without a row are left out."""
    figure = printed_figures("burden2023")["figure_9"]
    known = {agent: nodes for agent, nodes in profiles.items() if agent in figure["entrants"]}
    made: Rows = []
    for i, node in enumerate(next(iter(known.values()))):
        column = figure["columns"].index(node.name)
        theirs = np.array([figure["entrants"][agent]["profile"][column] for agent in known])
        ours = np.array([[nodes[i].mean, nodes[i].sd] for nodes in known.values()])
        mean, sd = np.sqrt(np.mean((ours - theirs) ** 2, axis=0))
        rank = spearmanr(ours[:, 0], theirs[:, 0]).statistic
        note = f"{len(known)} entrants; means differ by rms {mean:.2f}, deviations by {sd:.2f}"
        made.append(
            {
                "name": f"Figure 9, {node.name}: rank correlation with the printed means",
                "value": float(rank),
                "note": note,
            }
        )
    return made


def figure_6a(layout: Layout, table: OutcomeTable, seed: int, repeats: int, tell: Tell) -> Rows:
    """Brier scores on 20 % of the instances, held out, beside those of the aggregate.

    Every entrant has its own splits, the same for both predictions.
    """
    ours = AverageChance(LayoutAssessor(layout, seed, "live"))
    scores: list[tuple[float, float, float]] = []
    for number, agent in enumerate(table.agents):
        tell("Figure 6a", number, len(table.agents))
        instances, outcomes = table.of(agent)
        own = int(rng(seed, "entrant", number).integers(1 << 31))
        parts = list(splits(len(instances), own, repeats))
        held = predict_held_out(ours, instances, outcomes, parts)
        means = [np.full(len(part.test), outcomes[part.train].mean()) for part in parts]
        layouts, aggregate = (
            brier(p, held.outcomes) for p in (held.predicted, np.concatenate(means))
        )
        scores.append((float(outcomes.mean()), layouts, aggregate))
    low, high = _MIDDLE
    middle = np.array([score for score in scores if low <= score[0] <= high])
    if not len(middle):
        return []
    by_layout, by_average = middle[:, 1], middle[:, 2]
    note = f"better for {int(np.sum(by_layout < by_average))} of {len(middle)} entrants"
    title = f"Figure 6a, {layout.variant}: Brier score held out, success from {low} to {high}"
    return [
        {
            "name": f"{title}; baseline: aggregate",
            "value": float(by_layout.mean()),
            "baseline": float(by_average.mean()),
            "ratio": float(by_layout.mean() / by_average.mean()),
            "note": note,
        }
    ]


def rows(quick: bool, tell: Tell) -> Rows:
    """Both figures; a row that says so where the data are not there."""
    data = data_folder()
    if data is None:
        return [{"name": "Figures 9 and 6a", "note": "no data: set ANIMALCAT_DATA"}]
    figured, usual = load_layout("aaio", "figure-9"), load_layout("aaio", "metres-15")
    table = read_entrants(figured, data)
    if quick:
        few = slice(None, None, len(table.agents) // QUICK_ENTRANTS)
        table = OutcomeTable(table.instances, table.agents[few], table.outcomes[few])
    return [
        *agreement(figure_9(figured, table, 0, tell)),
        *figure_6a(figured, table, 0, 2 if quick else REPEATS, tell),
        *figure_6a(usual, table, 0, 2 if quick else REPEATS, tell),
    ]
