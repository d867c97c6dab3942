"""The numbers that Burden et al. 2023 and Tesic et al. 2025 print, from their YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class PrintedProfile:
    """A row of Figure 9.

    Attributes:
        mean: Posterior means by the name of the node.
        sd: Posterior standard deviations by the name of the node.
        success: Success rate on the 69 instances.
    """

    mean: Mapping[str, float]
    sd: Mapping[str, float]
    success: float


@dataclass(frozen=True, slots=True)
class PrintedScore:
    """A row of Table 8: Brier scores of the layout and of the aggregate, and their two parts."""

    layout: float
    aggregate: float
    calibration: float
    aggregate_calibration: float
    refinement: float
    aggregate_refinement: float


@dataclass(frozen=True, slots=True)
class PrintedError:
    """A column of Table 1: error of a capability, as a share of its range.

    Attributes:
        overall: Over all 30 agents.
        included: Over the 13 whose description uses only what the layout knows.
    """

    overall: float
    included: float


@dataclass(frozen=True)
class Burden2023:
    """Burden et al. 2023, Inferring Capabilities from Task Performance.

    Attributes:
        figure_9: By the entrant's name in the published outcomes.
        table_8: By the agent's number.
        table_1: By the capability's name.
    """

    figure_9: Mapping[str, PrintedProfile]
    table_8: Mapping[int, PrintedScore]
    table_1: Mapping[str, PrintedError]


@dataclass(frozen=True)
class Tesic2025:
    """Tesic et al. 2025, Beyond the high score.

    Attributes:
        regression: Table 1: `observations`, `submissions`, and estimate and standard error (and z
            and p) of `intercept`, `episode` and `variance`.
        table_2: Mean and ends of the 94 % interval, by submission and node.
    """

    regression: Mapping[str, Any]
    table_2: Mapping[str, Mapping[str, tuple[float, float, float]]]


@cache
def tesic2025() -> Tesic2025:
    """Load the numbers that the paper prints, as far as our copy of its text has them."""
    data = _loaded("tesic2025.yaml")
    return Tesic2025(
        data["table_1"],
        {
            name: {node: (row[0], row[1], row[2]) for node, row in rows.items()}
            for name, rows in data["table_2"]["submissions"].items()
        },
    )


def _loaded(name: str) -> dict[str, Any]:
    path = resources.files("benchmarks.reproduce").joinpath(name)
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@cache
def burden2023() -> Burden2023:
    """Load the numbers that the paper prints."""
    data = _loaded("burden2023.yaml")
    nodes: list[str] = data["figure_9"]["columns"]
    return Burden2023(
        {
            name: PrintedProfile(
                {node: mean for node, (mean, _) in zip(nodes, row["profile"], strict=True)},
                {node: sd for node, (_, sd) in zip(nodes, row["profile"], strict=True)},
                row["success"],
            )
            for name, row in data["figure_9"]["entrants"].items()
        },
        {
            number: PrintedScore(*map(float, row))
            for number, row in data["table_8"]["agents"].items()
        },
        {name: PrintedError(**row) for name, row in data["table_1"].items()},
    )
