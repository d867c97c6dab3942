"""Charts as inline SVG: they take their colours from the page, so they are readable in the dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

from animalcat.layouts.model.units import plain_unit
from animalcat.service.reporting.demands import Floats
from animalcat.service.reporting.precision import WIDTH, NodePrecision
from animalcat.service.reporting.spread import Spread

_WIDE: Final = 220
_HIGH: Final = 34
_CELL: Final = 30
_LABEL: Final = 6.4
"""Width of a letter of the heat map's labels."""


def number(value: float | None) -> str:
    """A number with three significant digits, as people write it."""
    if value is None or not math.isfinite(value):
        return "–"
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    shown = f"{value:.{min(digits, 4)}f}" if digits < 6 else f"{value:.2g}"
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return shown.replace("-", "−") if shown not in ("-0", "") else "0"


def quantity(value: float | None, unit: str) -> str:
    """A number with its unit; where the unit is a multiple, such as "10 m", in metres."""
    factor, name = plain_unit(unit)
    shown = number(None if value is None else value * factor)
    return f"{shown} (unit: {name})" if "(" in name else f"{shown} {name}".rstrip()


def signed(value: float) -> str:
    """A correlation with two decimals and a true minus."""
    return f"{value:.2f}".replace("-", "−")


def histogram(spread: Spread) -> str:
    """Instances over the range of a demand; gaps are shaded, ends are written below.

    Bars of counts and codes stand at their values. Heights are square roots of numbers, so that
    rare values are seen.
    """
    if not spread.bins:
        return ""
    low = min(spread.low, spread.bins[0].low)
    high = max(spread.high, spread.bins[-1].high)
    wide = high - low

    def x(value: float) -> float:
        return _WIDE * (value - low) / wide if wide > 0 else _WIDE / 2

    most = max(bar.instances for bar in spread.bins)
    step = 0.0 if not spread.stepped else min(1.0, wide / 12)
    parts: list[str] = []
    for gap in spread.gaps:
        a, b = x(gap.low - step / 2), x(gap.high + step / 2)
        a, b = max(a, 0.0), min(b, float(_WIDE))
        parts.append(f"<rect class='gap' x='{a:.1f}' y='0' width='{b - a:.1f}' height='{_HIGH}'/>")
    for bar in spread.bins:
        if not bar.instances:
            continue
        a, b = x(bar.low), x(bar.high)
        if b - a < 1.0:
            a, b = max(a - 4.0, 0.0), min(a + 4.0, float(_WIDE))
        height = max(1.5, _HIGH * math.sqrt(bar.instances / most))
        parts.append(
            f"<rect class='bar' x='{a + 0.5:.1f}' y='{_HIGH - height:.1f}' "
            f"width='{max(b - a - 1.0, 1.0):.1f}' height='{height:.1f}'>"
            f"<title>{bar.instances} at {_between(bar.low, bar.high)}</title></rect>"
        )
    counts = ", ".join(f"{bar.instances} at {_between(bar.low, bar.high)}" for bar in spread.bins)
    ends = (
        f"<text x='0' y='{_HIGH + 12}'>{number(low)}</text>"
        f"<text x='{_WIDE}' y='{_HIGH + 12}' text-anchor='end'>{number(high)}</text>"
    )
    if wide <= 0:
        ends = f"<text x='{_WIDE / 2}' y='{_HIGH + 12}' text-anchor='middle'>{number(low)}</text>"
    return (
        f"<svg class='histogram' viewBox='0 0 {_WIDE} {_HIGH + 15}' role='img' "
        f"aria-label='{escape(f'Instances by {spread.demand.name}: {counts}', quote=True)}'>"
        f"{''.join(parts)}<line class='axis' x1='0' x2='{_WIDE}' y1='{_HIGH}' y2='{_HIGH}'/>"
        f"{ends}</svg>"
    )


def heat_map(names: Sequence[str], rho: Floats, what: str) -> str:
    """A square of correlations with their numbers, in hundredths.

    Args:
        names: Names of the rows and columns.
        rho: (names, names); NaN is left empty.
        what: What is correlated, for the alternative text.
    """
    count = len(names)
    label = 14 + _LABEL * max(map(len, names), default=0)
    width, height = label + _CELL * count, label + _CELL * count
    parts: list[str] = []
    for i, name in enumerate(names):
        at = label + _CELL * (i + 0.5)
        parts.append(
            f"<text class='name' x='{label - 6:.0f}' y='{at + 4:.0f}' text-anchor='end'>"
            f"{escape(name)}</text>"
            f"<text class='name' transform='translate({at + 4:.0f} {label - 6:.0f}) rotate(-90)'>"
            f"{escape(name)}</text>"
        )
        for j, other in enumerate(names):
            value = float(rho[i, j])
            x, y = label + _CELL * j, label + _CELL * i
            if i == j or not math.isfinite(value):
                kind = "same" if i == j else "none"
                parts.append(f"<rect class='{kind}' x='{x:.0f}' y='{y:.0f}' {_SIDE}/>")
                continue
            sign = "plus" if value >= 0 else "minus"
            parts.append(
                f"<rect class='{sign}' x='{x:.0f}' y='{y:.0f}' {_SIDE} "
                f"fill-opacity='{abs(value):.2f}'>"
                f"<title>{escape(name)} and {escape(other)}: {number(value)}</title></rect>"
                f"<text class='rho' x='{x + _CELL / 2:.0f}' y='{y + _CELL / 2 + 4:.0f}' "
                f"text-anchor='middle'>{_hundredths(value)}</text>"
            )
    return (
        f"<svg class='heat' viewBox='0 0 {width:.0f} {height:.0f}' width='{width:.0f}' role='img' "
        f"aria-label='{escape(what, quote=True)}'>{''.join(parts)}</svg>"
    )


def precision_bar(node: NodePrecision) -> str:
    """What is left of a node's prior interval: the 90 % intervals before and after, centred."""
    prior = WIDTH * node.prior_sd

    def half(sd: float) -> float:
        return _WIDE / 2 * min(1.0, WIDTH * sd / prior)

    middle = _WIDE / 2
    label = (
        f"90 % interval of {node.name}: {quantity(prior, node.unit)} wide by the prior, "
        f"{quantity(node.width, node.unit)} after the battery"
    )
    return (
        f"<svg class='interval' viewBox='0 0 {_WIDE} 20' role='img' "
        f"aria-label='{escape(label, quote=True)}'>"
        f"<rect class='before' x='0' y='6' width='{_WIDE}' height='8'/>"
        f"<rect class='spread' x='{middle - half(node.worst):.1f}' y='4' "
        f"width='{2 * half(node.worst):.1f}' height='12'/>"
        f"<rect class='after' x='{middle - half(node.sd):.1f}' y='4' "
        f"width='{2 * half(node.sd):.1f}' height='12'/></svg>"
    )


_SIDE: Final = f"width='{_CELL - 1}' height='{_CELL - 1}'"


def _between(low: float, high: float) -> str:
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def _hundredths(value: float) -> str:
    """A correlation as .85 or −.3, so that it fits a cell."""
    shown = f"{abs(value):.2f}"
    shown = "1" if shown == "1.00" else shown.removeprefix("0")
    return f"−{shown}" if value < 0 and shown != ".00" else shown
