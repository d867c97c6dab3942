"""The entrants on all 900 tests: the tables and figures of Crosby et al. 2020.

The paper sorts its tests into twelve categories, and the published outcomes have the ten of the
competition. Four of these seem to be the same tests. The winner and the baseline are not among the
30 entrants that are published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import typer
import yaml

from animalcat.arena_configs.outcome import success
from animalcat.cli.shared.outcome_table import read_pass_marks, read_rewards
from animalcat.cli.shared.output import print_rows
from benchmarks.outcomes import real_rewards
from benchmarks.reproduce.testbed import category_of, task_of

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Report: TypeAlias = dict[str, Any]

CATEGORIES: Final[Mapping[str, str]] = {
    "01": "food",
    "02": "preferences",
    "03": "obstacles",
    "04": "avoidance",
    "05": "spatial reasoning",
    "06": "generalisation",
    "07": "internal models",
    "08": "object permanence",
    "09": "numerosity",
    "10": "causal reasoning",
}
"""Categories of the competition."""
INTRODUCTORY: Final = "01"
"""The category that Figure 5 leaves out."""
TOP: Final = 4
"""How many agents Figure 4 draws."""


@dataclass(frozen=True, slots=True)
class PrintedCategory:
    """A column of the table of Figure 4; shares in percent.

    Attributes:
        name: The category.
        tests: Number of its tests, which follows from the percentages.
        baseline: Share that the baseline passes.
        maximum: Most that a competitor passes.
        mean: Mean of the competitors above the baseline.
        ours: The same category in the published outcomes; empty if there is none.
    """

    name: str
    tests: int
    baseline: float
    maximum: float
    mean: float
    ours: str


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """The entrants in one category; shares in percent.

    Attributes:
        category: Its number.
        name: Its name.
        mean: Mean over all entrants.
        maximum: Most that an entrant passes.
        best: Who passes most.
        above: Mean of the entrants that pass more of all tests than the printed baseline.
        robust: Mean share of the tasks that these pass in all three variations.
        most_robust: Most tasks that one of them passes so, in percent.
        ray_agent: Share that the ray agent of `animalai` passes in the real build, of the arenas at
            hand; None without them.
        arenas: Number of these arenas.
        printed: Letter of the same category in the paper; empty if there is none.
    """

    category: str
    name: str
    mean: float
    maximum: float
    best: str
    above: float
    robust: float
    most_robust: float
    ray_agent: float | None
    arenas: int
    printed: str


@dataclass(frozen=True, slots=True)
class EntrantSpread:
    """An entrant in Figure 5, over the categories but the introductory one.

    Attributes:
        name: The entrant.
        passed: Share of all 900 tests.
        mean: Mean of the shares by category.
        spread: Standard deviation of these.
    """

    name: str
    passed: float
    mean: float
    spread: float


@cache
def printed_categories() -> dict[str, PrintedCategory]:
    """The table of Figure 4, by letter."""
    text = (
        resources.files("benchmarks.reproduce")
        .joinpath("crosby2020.yaml")
        .read_text(encoding="utf-8")
    )
    data: dict[str, Any] = yaml.safe_load(text)
    rows: dict[str, list[Any]] = data["figure_4"]["categories"]
    return {letter: PrintedCategory(*row) for letter, row in rows.items()}


def printed_baseline() -> float:
    """Share of all tests that the baseline passes."""
    rows = printed_categories().values()
    return sum(row.tests * row.baseline / 100.0 for row in rows) / sum(row.tests for row in rows)


def printed_spread() -> tuple[float, float]:
    """Mean and standard deviation of the baseline's shares, but the introductory one."""
    shares = [row.baseline / 100.0 for letter, row in printed_categories().items() if letter != "a"]
    return float(np.mean(shares)), float(np.std(shares))


@dataclass(frozen=True, eq=False)
class PassedTests:
    """Which entrant passed which test.

    Attributes:
        tests: Names of the tests.
        agents: Names of the entrants.
        passed: (agents, tests).
    """

    tests: tuple[str, ...]
    agents: tuple[str, ...]
    passed: Bools

    @property
    def share(self) -> Floats:
        """Share of all tests that each entrant passes, (agents,)."""
        return self.passed.mean(axis=1)

    def by_category(self) -> dict[str, Floats]:
        """Share that each entrant passes, (agents,), by category."""
        of = np.array([category_of(name) for name in self.tests])
        return {str(name): self.passed[:, of == name].mean(axis=1) for name in np.unique(of)}

    def in_all_variations(self) -> PassedTests:
        """The tasks in the place of their variations: passed is what is passed in all."""
        of = np.array([task_of(name) for name in self.tests])
        tasks = tuple(str(name) for name in np.unique(of))
        passed = np.stack([self.passed[:, of == task].all(axis=1) for task in tasks], axis=1)
        return PassedTests(tasks, self.agents, passed)


def read_passed(data: Path) -> PassedTests:
    """Read the published outcomes of all tests."""
    rewards = read_rewards(data / "aaio" / "final_rewards.csv")
    marks = read_pass_marks(data / "aaio" / "pass_marks.csv")
    tests = [str(name) for name in rewards.index]
    limits = [float(marks[name]) for name in tests]
    finals: list[list[float]] = rewards.to_numpy(float).T.tolist()
    passed = [[success(*pair) for pair in zip(one, limits, strict=True)] for one in finals]
    return PassedTests(tuple(tests), tuple(map(str, rewards.columns)), np.array(passed))


def category_rows(
    passed: PassedTests, ray_agent: Mapping[str, bool] | None = None
) -> list[CategoryRow]:
    """The table of Figure 4 by the categories of the published outcomes.

    Args:
        passed: The outcomes.
        ray_agent: What the ray agent passed, by instance.
    """
    played = ray_agent or {}
    shares, solved = passed.by_category(), passed.in_all_variations().by_category()
    above = passed.share > printed_baseline()
    same = {row.ours: letter for letter, row in printed_categories().items() if row.ours}
    rows: list[CategoryRow] = []
    for category, share in shares.items():
        by_ray = [won for name, won in played.items() if category_of(name) == category]
        able = 100.0 * solved[category][above]
        rows.append(
            CategoryRow(
                category,
                CATEGORIES.get(category, category),
                100.0 * float(share.mean()),
                100.0 * float(share.max()),
                passed.agents[int(share.argmax())],
                100.0 * float(share[above].mean()),
                float(able.mean()),
                float(able.max()),
                100.0 * float(np.mean(by_ray)) if by_ray else None,
                len(by_ray),
                same.get(category, ""),
            )
        )
    return rows


def spreads(passed: PassedTests) -> list[EntrantSpread]:
    """Figure 5: mean and standard deviation of each entrant's shares by category."""
    shares = np.stack([v for k, v in passed.by_category().items() if k != INTRODUCTORY])
    columns = zip(passed.agents, passed.share, shares.mean(axis=0), shares.std(axis=0), strict=True)
    return [EntrantSpread(name, float(p), float(m), float(s)) for name, p, m, s in columns]


def report_crosby(data: Path) -> Report:
    """Work out the paper's table and figures.

    Args:
        data: The folder with aaio/, and perhaps unity-outcomes/.
    """
    passed = read_passed(data)
    marks = read_pass_marks(data / "aaio" / "pass_marks.csv")
    ray_agent: dict[str, bool] = {}
    if (data / "unity-outcomes" / "ray-agent-346.csv").exists():
        ray_agent = {k: success(v, float(marks[k])) for k, v in real_rewards(data).items()}
    top: list[int] = np.argsort(-passed.share, kind="stable")[:TOP].tolist()
    shares = passed.by_category()
    mean, spread = printed_spread()
    points = spreads(passed)
    return {
        "paper": "crosby2020",
        "entrants": len(passed.agents),
        "tests": len(passed.tests),
        "above_baseline": int((passed.share > printed_baseline()).sum()),
        "printed_baseline": printed_baseline(),
        "figure_4": [asdict(row) for row in category_rows(passed, ray_agent)],
        "printed": {letter: asdict(row) for letter, row in printed_categories().items()},
        "radar": {
            passed.agents[i]: {name: float(share[i]) for name, share in shares.items()} for i in top
        },
        "figure_5": {
            "entrants": [asdict(point) for point in points],
            "below_diagonal": sum(point.spread < point.mean for point in points),
            "below_uniform": sum(point.spread < point.mean / 3.0**0.5 for point in points),
            "printed_baseline": {"mean": mean, "spread": spread},
        },
    }


def print_crosby(report: Mapping[str, Any]) -> None:
    """Print tables for people."""
    printed: Mapping[str, Mapping[str, Any]] = report["printed"]
    cells: list[dict[str, str]] = []
    for row in report["figure_4"]:
        same = printed.get(row["printed"], {})
        cells.append(
            {
                "category": f"{row['category']} {row['name']}",
                "mean": f"{row['mean']:.1f}",
                "maximum": _beside(row["maximum"], same.get("maximum")),
                "above the baseline": _beside(row["above"], same.get("mean")),
                "all three": f"{row['robust']:.0f}, at most {row['most_robust']:.0f}",
                "ray agent": (
                    ""
                    if row["ray_agent"] is None
                    else f"{row['ray_agent']:.0f} % of {row['arenas']}"
                ),
                "printed as": row["printed"],
            }
        )
    title = (
        f"Figure 4, %: {report['entrants']} entrants on {report['tests']} tests, "
        f"{report['above_baseline']} of them above the printed baseline"
    )
    print_rows(cells, list(cells[0]), as_json=False, title=title)
    typer.echo(
        "After |, what is printed of the same category. All three: tasks passed in all variations, "
        "by those above the baseline. Ray agent: of the arenas played in the real build."
    )
    names = list(report["radar"])
    cells = [
        {
            "category": f"{category} {CATEGORIES.get(category, '')}".strip(),
            **{name: f"{100 * report['radar'][name][category]:.1f}" for name in names},
        }
        for category in report["radar"][names[0]]
    ]
    print_rows(cells, list(cells[0]), as_json=False, title="Figure 4, radar: the best four, %")
    part = report["figure_5"]
    cells = [
        {
            "entrant": row["name"],
            "passed": f"{row['passed']:.3f}",
            "mean of categories": f"{row['mean']:.3f}",
            "spread": f"{row['spread']:.3f}",
            "below the diagonal": "yes" if row["spread"] < row["mean"] else "",
            "below the uniform's": "yes" if row["spread"] < row["mean"] / 3.0**0.5 else "",
        }
        for row in sorted(part["entrants"], key=lambda row: -row["passed"])
    ]
    title = "Figure 5: mean of the category means but the introductory one, and their spread"
    print_rows(cells, list(cells[0]), as_json=False, title=title)
    own = part["printed_baseline"]
    typer.echo(
        f"The printed baseline has {own['mean']:.3f} and {own['spread']:.3f}, so the diagonal on "
        "which the paper sees it is spread = mean. Below it are "
        f"{part['below_diagonal']} of {report['entrants']} entrants, and below the standard "
        f"deviation of a uniform distribution, mean / 1.73, {part['below_uniform']}. The paper "
        "sees two, over twelve categories"
    )


def _beside(ours: float, printed: float | None) -> str:
    return f"{ours:.1f}" + ("" if printed is None else f" | {printed:.1f}")
