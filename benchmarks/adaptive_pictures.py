"""The picture of docs/research/adaptive.md, by the results that `benchmarks/adaptive.py` keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmarks.adaptive import RESULTS

PICTURES: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"
NAMES: Final = {"variance": "default policy", "random order": "random"}
COLOURS: Final = {"variance": "#1f6fb2", "random order": "#8a8a8a"}


def draw(folder: Path = PICTURES, results: Path = RESULTS) -> Path:
    """Draw how the standard deviation falls with episodes.

    Args:
        folder: Where pictures go.
        results: Where results are.

    Returns:
        The picture.
    """
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    _precision(figure.add_subplot(), json.loads((results / "precision.json").read_text("utf-8")))
    picture = folder / "adaptive-precision.png"
    figure.savefig(picture, dpi=110)
    return picture


def _precision(axes: Axes, report: dict[str, Any]) -> None:
    for curve in report["curves"]:
        sd = np.array(curve["sd"]).mean(axis=1)
        _line(axes, curve, sd)
        if curve["episodes"][-1] > 2000:
            level = 1.1 * float(sd[-1])
            axes.plot([10.0, 2188.0], [level, level], color="#c05020", lw=1, ls="--")
            axes.text(12, level, "full battery + 10 %", va="bottom", color="#c05020")
    ticks = (10, 30, 100, 300, 1000, 2188)
    axes.set(xscale="log", xticks=ticks, xticklabels=[f"{n:,}" for n in ticks])
    axes.set(xlabel="episodes", ylabel="mean posterior SD, shares of ranges")
    axes.set_title(f"Object permanence, {report['rounds']} agents of the prior", fontsize=10)
    _legend(axes)


def _line(axes: Axes, curve: dict[str, Any], values: npt.NDArray[np.float64]) -> None:
    colour = COLOURS[curve["policy"]]
    episodes: list[float] = curve["episodes"]
    points: list[float] = values.tolist()
    axes.plot(episodes, points, color=colour, lw=1.5, ls="-", marker="o")


def _legend(axes: Axes) -> None:
    axes.legend(handles=[Patch(color=COLOURS[key], label=name) for key, name in NAMES.items()])


if __name__ == "__main__":
    print(draw())
