"""How values of a node are read on an axis: in metres, seconds or turns, not in its own unit.

A capability of unit "1.9 lg(5 m/d)" says little by its number. Its axis keeps that number as the
position, and shows at each tick the diameter of the goal that an agent of this capability finds
half of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from animalcat.layouts.explaining.wording import Scale, plain_scale, scale_of
from animalcat.layouts.model.spec import Layout
from animalcat.plots.style import PRIOR, Floats, plain, with_unit

Span: TypeAlias = tuple[float, float]
"""Part of an axis, in the node's own unit."""

_GRID: Final = 801
_MOST: Final = 6
"""Most ticks of an axis."""
_ROUND: Final = (1.0, 2.0, 3.0, 5.0)
"""First digits of the ticks of an axis that is not linear."""
_NEAR: Final = 0.07
"""Share of an axis below which two ticks are too near each other."""
_BARE: Final = 0.15
"""Share of an axis that is not left without a tick."""
_BENT: Final = 0.05
"""Share of the range by which a conversion may leave the straight line and still count as one."""


@dataclass(frozen=True, eq=False)
class NodeReading:
    """How one node is read.

    Attributes:
        name: The node.
        scale: How its values are read.
    """

    name: str
    scale: Scale

    @property
    def label(self) -> str:
        """The words of the axis: what an agent with this value does, or the node with its unit."""
        if self.scale.margin:
            return self.scale.fill("…")
        return with_unit(self.name, self.scale.unit)

    def ticks(self, low: float, high: float) -> tuple[list[float], list[str], list[Span]]:
        """Positions in the node's own unit, what stands there, and where no number is read.

        Beyond the hardest and the easiest demand there is nothing to read but on which side it is.

        Args:
            low: Where the axis begins, in the node's own unit.
            high: Where it ends.
        """
        places = np.linspace(low, high, _GRID)
        shown = np.clip(self.scale.converted(places), *self.scale.asked)
        if shown[-1] < shown[0]:
            places, shown = places[::-1], shown[::-1]
        first = int(np.flatnonzero(shown <= shown[0] + 1e-9)[-1])
        last = int(np.flatnonzero(shown >= shown[-1] - 1e-9)[0])
        spans: list[Span] = []
        words: dict[float, str] = {}
        for word, beyond in (("under", slice(first + 1)), ("over", slice(last, None))):
            if len(places[beyond]) > _NEAR * _GRID:
                spans.append((float(places[beyond][0]), float(places[beyond][-1])))
                words[sum(spans[-1]) / 2.0] = f"{word} {shown[beyond][0]:.3g}"
        read = slice(first, last + 1)
        values = [v for v in _values(shown[read]) if shown[0] <= v <= shown[-1]]
        round_ones = {float(np.interp(v, shown[read], places[read])): f"{v:g}" for v in values}
        for at, word in round_ones.items():
            if all(abs(at - other) > _NEAR * (high - low) for other in words):
                words[at] = word
        # An axis ends where its ticks end: its last part is not left without a number.
        for k in (first, last):
            at = float(places[k])
            if all(abs(at - other) > _BARE * (high - low) for other in words):
                words[at] = f"{shown[k]:.3g}"
        at_places = sorted(words)
        return at_places, [words[at].replace("-", "−") for at in at_places], spans


def readings(layout: Layout, features: Floats | None = None) -> list[NodeReading]:
    """How every node of a layout is read.

    Args:
        layout: The layout.
        features: (instances, features) of what was played, which decides between several demands.
    """
    return [
        NodeReading(node.name, scale_of(layout, k, features))
        for k, node in enumerate(layout.latents)
    ]


def reading_of(
    name: str, node: Mapping[str, Any], scales: Mapping[str, Scale] | None = None
) -> NodeReading:
    """How a node of a profile is read; where no scale is known, by its unit alone."""
    known = (scales or {}).get(name)
    return NodeReading(name, known or plain_scale(str(node.get("unit") or "")))


def read_axis(axis: Any, reading: NodeReading, ends: Sequence[float]) -> None:
    """Write the ticks of an axis as the node is read.

    Args:
        axis: An axis of matplotlib, in the node's own unit.
        reading: How the node is read.
        ends: Where the axis begins and ends.
    """
    at, words, spans = reading.ticks(float(ends[0]), float(ends[1]))
    axis.set_ticks(at, [plain(word) for word in words])
    shade = axis.axes.axvspan if axis.axis_name == "x" else axis.axes.axhspan
    for span in spans:
        shade(*span, color=PRIOR, alpha=0.25, lw=0, zorder=0)


def _values(shown: Floats) -> list[float]:
    """Round values between the first and the last; evenly spaced where the axis is linear."""
    first, last = float(shown[0]), float(shown[-1])
    straight = np.linspace(first, last, len(shown))
    if np.abs(shown - straight).max() <= _BENT * (last - first) or first <= 0.0:
        from matplotlib.ticker import MaxNLocator

        locator: Any = MaxNLocator(_MOST - 1)
        return [float(value) for value in locator.tick_values(first, last)]
    powers = range(int(np.floor(np.log10(first))), int(np.ceil(np.log10(last))) + 1)
    candidates = [digit * 10.0**power for power in powers for digit in _ROUND]
    inside = [value for value in candidates if first * 0.999 <= value <= last * 1.001]
    while len(inside) > _MOST:
        inside = inside[::2]
    return inside
