"""The page of a clinic for items, which loads nothing from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from animalcat.doors.clinic.examining import FAULTS, Clinic, ItemReport
from animalcat.doors.clinic.items import ALIKE, LITTLE, RATE, UNEQUAL
from animalcat.plots.style import BAD, INK, MAIN, PRIOR, SOFT, embed_figure
from animalcat.service.reporting.templates import templates

_NAMED: Final = 12
"""Most items that are named in the picture."""
_FEW: Final = 60
"""Items up to which the table of all of them is open."""
_WIDEST: Final = 5.0
"""Discriminations beyond this are drawn at the edge."""


def clinic_page(found: Clinic, title: str) -> str:
    """Make the page of a clinic.

    Args:
        found: What was found.
        title: Its title.

    Returns:
        An HTML document.
    """
    counts = {kind: sum(kind in item.kinds for item in found.items) for kind in FAULTS}
    environment = templates(Path(__file__).parent)
    environment.filters["number"] = number
    return environment.get_template("clinic.html.j2").render(
        title=title,
        found=found,
        counts={kind: count for kind, count in counts.items() if count},
        meaning=FAULTS,
        faulty=found.faulty,
        few=len(found.items) <= _FEW,
        picture=Markup(_items_picture(found.items)),
        precision=Markup(_precision_picture(found)),
        rate=f"{100 * RATE:.0f}",
        little=LITTLE,
        alike=ALIKE,
        unequal=UNEQUAL,
    )


def _items_picture(items: Sequence[ItemReport]) -> str:
    """Items by the share that passed and by discrimination; faulty ones stand out."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes: Any = figure.add_subplot()
    told = [item for item in items if item.discrimination is not None]
    sound = [item for item in told if not item.faults]
    faulty = [item for item in told if item.faults]
    for some, colour, marker, words in (
        (sound, MAIN, "o", "nothing found"),
        (faulty, BAD, "D", "something found"),
    ):
        if not some:
            continue
        x, y = [item.passed for item in some], [_clip_item(item) for item in some]
        if len(told) <= 100:
            ends = np.array(
                [
                    (item.discrimination.low, item.discrimination.high)
                    for item in some
                    if item.discrimination
                ]
            )
            axes.vlines(x, *np.clip(ends, -_WIDEST, _WIDEST).T, color=PRIOR, lw=1, zorder=1)
        size = 22 if len(told) <= 100 else 10
        axes.scatter(x, y, s=size, color=colour, marker=marker, label=words, zorder=2, alpha=0.8)
    labels: dict[tuple[float, float], list[str]] = {}
    for item in sorted(faulty, key=lambda one: abs(_clip_item(one) - 1.0), reverse=True)[:_NAMED]:
        labels.setdefault((item.passed, round(_clip_item(item), 2)), []).append(item.item)
    for at, names in labels.items():
        text = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        axes.annotate(text, at, xytext=(4, 3), textcoords="offset points", fontsize=7, color=INK)
    axes.axhline(0.0, color=SOFT, lw=1)
    axes.axhline(LITTLE, color=SOFT, lw=0.8, ls=":")
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("share of agents that pass")
    axes.set_ylabel("discrimination (logits per SD)")
    if sound and faulty:
        axes.legend(frameon=False, fontsize=8)
    _plain(axes)
    words = f"{len(told)} items by the share of agents that pass and by discrimination"
    return embed_figure(figure, f"{words}; something was found with {len(faulty)} of them.")


def _clip_item(item: ItemReport) -> float:
    assert item.discrimination is not None
    return float(np.clip(item.discrimination.value, -_WIDEST, _WIDEST))


def _precision_picture(found: Clinic) -> str:
    """How precisely the set tells an ability, and where the agents are."""
    figure = Figure(figsize=(7.2, 2.8), layout="constrained")
    axes: Any = figure.add_subplot()
    axes.plot(found.ability, found.standard_error, color=MAIN)
    axes.fill_between(found.ability, found.standard_error, 0.0, color=MAIN, alpha=0.12, lw=0)
    axes.plot(found.estimates, np.zeros(len(found.estimates)), "|", color=INK, ms=10, alpha=0.6)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlim(-3.5, 3.5)
    axes.set_xlabel("ability (SDs of the population); a line is an agent")
    axes.set_ylabel("standard error")
    _plain(axes)
    low = found.standard_error.min()
    return embed_figure(
        figure, f"Standard error by ability; at best {low:.2f}, with the agents below."
    )


def _plain(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8)


def number(value: float | None) -> str:
    """Return a number with three significant digits, as people write it."""
    if value is None or not math.isfinite(value):
        return "–"
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    shown = f"{value:.{min(digits, 4)}f}" if digits < 6 else f"{value:.2g}"
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return shown.replace("-", "−") if shown not in ("-0", "") else "0"
