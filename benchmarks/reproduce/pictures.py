"""The papers' figures as pictures, from what a report of `python -m benchmarks.reproduce` has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from animalcat.plots.style import (
    AGENTS,
    BAD,
    GOOD,
    INK,
    MAIN,
    PAPER,
    SOFT,
    Canvas,
    canvas,
    save,
    tidy,
)
from benchmarks.reproduce.crosby import CATEGORIES

_TITLE: Final = 9.5


def draw(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw every figure that the report has the numbers of, as PNG.

    Args:
        report: A report on burden2023 or crosby2020; of others there is nothing to draw.
        folder: Where the files go.

    Returns:
        The files.
    """
    figures: dict[str, Canvas] = {}
    for part in report.get("tables", ()):
        variant = part["layout"]["variant"].split(",")
        name = variant[0] + ("-mended" if len(variant) > 1 else "")
        figures[f"figure-6b-{name}"] = figure_6b(part)
    if report["paper"] == "crosby2020":
        figures["crosby-figure-4"] = figure_4(report)
        figures["crosby-figure-5"] = figure_5(report)
    paths: list[Path] = []
    for name, figure in figures.items():
        path = folder / f"{name}.png"
        save(figure.figure, path)
        paths.append(path)
    return paths


def figure_6b(part: Mapping[str, Any]) -> Canvas:
    """Brier scores of layout and aggregate against success, ours beside the printed ones."""
    rows: Sequence[Mapping[str, Any]] = part["table_8"]
    success = np.array([row["success"] for row in rows])
    drawn = canvas(None, "figure_6b", (6.4, 4.4))
    (axes,) = drawn.axes
    at = np.linspace(0.0, 1.0, 101)
    axes.plot(at, at * (1.0 - at), color=SOFT, lw=1.2, ls="--", label="p (1 - p)")
    for key, printed, colour, marker, words in (
        ("aggregate", "printed_aggregate", SOFT, "s", "aggregate"),
        ("layout", "printed_layout", MAIN, "o", "layout"),
    ):
        ours = [row[key] for row in rows]
        theirs = [row[printed] for row in rows]
        axes.plot(success, ours, marker, color=colour, ms=6, label=f"{words}, ours")
        axes.plot(success, theirs, marker, mfc="none", mec=colour, ms=8, label=f"{words}, printed")
        for x, low, high in zip(success, ours, theirs, strict=True):
            axes.plot([x, x], [low, high], color=colour, lw=0.8)
    axes.set_title(
        f"Figure 6b: 30 synthetic agents, object-permanence ({part['layout']['variant']})",
        fontsize=_TITLE, color=INK, loc="left",
    )  # fmt: skip
    _label(axes, "share of the battery passed", "Brier score on 20 % held out")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.005, None))
    drawn.legend(*axes.get_legend_handles_labels(), columns=3)
    return drawn


def figure_4(report: Mapping[str, Any]) -> Canvas:
    """Shares passed by category of the best four entrants, as a radar."""
    radar: Mapping[str, Mapping[str, float]] = report["radar"]
    categories = list(next(iter(radar.values())))
    angles = np.linspace(0.0, 2.0 * np.pi, len(categories), endpoint=False)
    around = np.append(angles, angles[0])
    drawn = canvas(None, "figure_4", (6.4, 5.6), projection="polar")
    (axes,) = drawn.axes
    for (name, shares), colour in zip(radar.items(), AGENTS, strict=False):
        values = [shares[category] for category in categories]
        axes.plot(around, [*values, values[0]], color=colour, lw=1.8, label=name)
        axes.fill(around, [*values, values[0]], color=colour, alpha=0.07)
    axes.set_theta_offset(np.pi / 2)
    axes.set_theta_direction(-1)
    words = [f"{category} {CATEGORIES.get(category, '')}".strip() for category in categories]
    axes.set_xticks(angles, words, fontsize=8)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["25 %", "50 %", "75 %", ""], fontsize=7, color=SOFT)
    axes.set_ylim(0.0, 1.0)
    axes.tick_params(axis="x", pad=16)
    title = "Figure 4: tests passed by category, the best four of the 30 published entrants"
    drawn.figure.suptitle(title, fontsize=_TITLE, color=INK)
    drawn.legend(*axes.get_legend_handles_labels(), columns=4)
    return drawn


def figure_5(report: Mapping[str, Any]) -> Canvas:
    """Spread of the category means against their mean, with the curve and the diagonal."""
    part: Mapping[str, Any] = report["figure_5"]
    drawn = canvas(None, "figure_5", (6.4, 4.8))
    (axes,) = drawn.axes
    at = np.linspace(0.0, 1.0, 401)
    axes.plot(
        at, np.sqrt(at * (1.0 - at)), color=MAIN, lw=1.8,
        label="most specialised (Bernoulli)",
    )  # fmt: skip
    axes.plot(at, at, color=GOOD, lw=1.4, ls="--", label="diagonal: spread = mean")
    axes.plot(
        at, at / 3.0**0.5, color=GOOD, lw=1.0, ls=":", label="uniform: mean / √3"
    )  # fmt: skip
    entrants: Sequence[Mapping[str, Any]] = part["entrants"]
    axes.plot(
        [row["mean"] for row in entrants], [row["spread"] for row in entrants], "o",
        mfc=SOFT, mec=PAPER, ms=8, alpha=0.8, ls="", label="entrants, nine categories",
    )  # fmt: skip
    baseline = part["printed_baseline"]
    axes.plot(
        [baseline["mean"]], [baseline["spread"]], "D", color=BAD, ms=8, ls="",
        label="printed baseline, eleven categories",
    )  # fmt: skip
    for row in sorted(entrants, key=lambda row: -row["mean"])[:3]:
        axes.annotate(
            row["name"], (row["mean"], row["spread"]), xytext=(7, -3),
            textcoords="offset points", fontsize=8, color=INK,
        )  # fmt: skip
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 0.55))
    axes.set_title(
        "Figure 5: a general agent passes alike in all categories", fontsize=_TITLE, color=INK,
        loc="left",
    )  # fmt: skip
    _label(axes, "mean of the category means", "standard deviation of the category means")
    drawn.legend(*axes.get_legend_handles_labels(), columns=2)
    return drawn


def _label(axes: Any, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=9, color=INK)
    axes.set_ylabel(y, fontsize=9, color=INK)
    tidy(axes)
