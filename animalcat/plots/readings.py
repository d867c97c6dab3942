"""How values of a node are read on an axis: in metres, seconds or turns, not in its own unit.

A capability of unit "1.9 lg(5 m/d)" says little by its number. Its axis keeps that number as the
position, and shows at each tick the diameter of the goal that an agent of this capability finds
half of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from animalcat.layouts.explaining.wording import Scale, plain_scale, scale_of
from animalcat.layouts.model.spec import Layout
from animalcat.plots.style import Floats, plain, with_unit

_GRID: Final = 801
_MOST: Final = 6
"""Most ticks of an axis."""
_ROUND: Final = (1.0, 2.0, 3.0, 5.0)
"""First digits of the ticks of an axis that is not linear."""
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

    def ticks(self, low: float, high: float) -> tuple[list[float], list[str]]:
        """Positions in the node's own unit, and what stands there.

        Args:
            low: Where the axis begins, in the node's own unit.
            high: Where it ends.
        """
        places = np.linspace(low, high, _GRID)
        shown = self.scale.converted(places)
        if shown[-1] < shown[0]:
            places, shown = places[::-1], shown[::-1]
        # Beyond the hardest and the easiest demand there is nothing to read.
        first = int(np.flatnonzero(shown <= shown[0] + 1e-9)[-1])
        last = int(np.flatnonzero(shown >= shown[-1] - 1e-9)[0])
        places, shown = places[first : last + 1], shown[first : last + 1]
        slack = 1e-3 * (shown[-1] - shown[0])
        values = [v for v in _values(shown) if shown[0] - slack <= v <= shown[-1] + slack]
        at = [float(np.interp(value, shown, places)) for value in values]
        return at, [f"{value:g}".replace("-", "−") for value in values]


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
    at, words = reading.ticks(float(ends[0]), float(ends[1]))
    axis.set_ticks(at, [plain(word) for word in words])


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
