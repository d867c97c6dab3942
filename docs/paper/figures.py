"""Draws the figures of the paper's draft from results that are kept: `make paper`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.adaptive import RESULTS
from benchmarks.adaptive_pictures import draw

FOLDER = Path(__file__).parent
DATA = FOLDER.parent / "data"


def calibration(folder: Path) -> Path:
    """Coverage of 90 % intervals of every node of every layout, with its own 90 % interval."""
    runs = json.loads((DATA / "calibration.json").read_text("utf-8"))["calibrations"]
    runs = [run for run in runs if run["engine"] == "live"]
    figure = Figure(figsize=(6.4, 0.34 * len(runs) + 1.1), layout="constrained")
    axes = figure.add_subplot()
    names: list[str] = []
    for row, run in enumerate(runs):
        layout = run["layout"]
        names.append(f"{layout['name']} {layout['variant']}, {run['outcomes']} outcomes")
        nodes = list(run["nodes"].values())
        offsets = np.linspace(-0.22, 0.22, len(nodes)) if len(nodes) > 1 else np.zeros(1)
        for node, offset in zip(nodes, offsets, strict=True):
            low, high = node["interval"]
            axes.plot([low, high], [row + offset] * 2, color="#b9cfe3", lw=1.2)
            axes.plot(node["coverage"], row + offset, ".", color="#1f6fb2", ms=3)
        axes.plot(run["pooled"], row, "|", color="#c05020", ms=13, mew=1.6)
    axes.axvline(0.9, color="#555555", lw=0.8, ls="--")
    axes.set(yticks=range(len(names)), ylim=(len(names) - 0.4, -0.6), xlim=(0.84, 0.95))
    axes.set_yticklabels(names, fontsize=7)
    axes.set_xlabel(
        "share of 1,000 simulated agents whose value the 90 % interval holds", fontsize=8
    )
    axes.tick_params(axis="x", labelsize=7)
    path = folder / "calibration.png"
    figure.savefig(path, dpi=150)
    return path


def main() -> None:
    """Draw all of them into this folder."""
    made = [path for path in draw(FOLDER, RESULTS) if path.name == "adaptive-precision.png"]
    for other in FOLDER.glob("adaptive-misfit.png"):
        other.unlink()
    for path in [*made, calibration(FOLDER)]:
        print(path)


if __name__ == "__main__":
    main()
