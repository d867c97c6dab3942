"""Draws a layout's graph as in the papers: observed nodes shaded, inferred nodes round."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyArrowPatch, FancyBboxPatch, Patch, Polygon
from matplotlib.path import Path as Curve

from animalcat.layouts.model.links import (
    Formula,
    Gate,
    GeneralisedMean,
    Link,
    LogisticMargin,
    LogScaling,
    Maximum,
    Minimum,
    NoiseMixture,
    Product,
    Scaling,
    WeightedSum,
)
from animalcat.layouts.model.nodes import Bernoulli, Beta, Binomial
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.diagram import Diagram, Spot, arrange

_COLUMN: Final = 2.35
_ROW: Final = 0.92
_WIDTH: Final = 1.62
_HEIGHT: Final = 0.66
"""Inches between layers, between nodes, and of a node's height."""

_INK: Final = "#2b2b2b"
_FILL: Final = {
    "feature": "#d9d9d9",
    "capability": "#cfe3f5",
    "bias": "#fbe3c0",
    "robustness": "#f4d0d0",
    "derived": "#fdfdfd",
    "outcome": "#d9d9d9",
}
_LEGEND: Final = {
    "feature": "meta-feature (seen)",
    "capability": "capability",
    "bias": "bias",
    "robustness": "robustness",
    "derived": "what follows",
    "outcome": "outcome (seen)",
}
_OUTCOME: Final = " "
"""Prefix of the names of outcome nodes; no other node of a layout begins with a space."""


@dataclass(frozen=True, eq=False)
class NodeEstimate:
    """The estimate of a node, as it is drawn in the graph.

    Attributes:
        words: The estimate with its interval, in few characters.
        density: Heights of its posterior density at equal distances over the range of the prior.
        prior: Heights of the prior's density at the same places, on the same scale.
    """

    words: str
    density: Sequence[float]
    prior: Sequence[float]


def draw_layout(layout: Layout, path: Path) -> None:
    """Draw the graph of a layout.

    Args:
        layout: The layout.
        path: Where to write; its ending decides the format (svg, png, pdf).

    Raises:
        OSError: The file cannot be written.
        ValueError: The ending is not known.
    """
    figure = layout_figure(layout)
    # The same layout gives the same bytes.
    with mpl.rc_context({"svg.hashsalt": layout.digest, "svg.fonttype": "none"}):
        stamps = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        figure.savefig(path, dpi=150, metadata=stamps.get(path.suffix.lower()))


def layout_figure(
    layout: Layout, known: Mapping[str, NodeEstimate] | None = None, axes: Axes | None = None
) -> Figure:
    """Draw the graph of a layout as a figure.

    Args:
        layout: The layout.
        known: What is known of latent nodes, which then stands in them instead of the prior.
        axes: What to draw on; by default the whole of a new figure. Text keeps its size, so they
            are best as large as `layout_size` says.

    Returns:
        The figure that was drawn on.
    """
    known = known or {}
    diagram = _arranged(layout)
    width, height = layout_size(layout)
    if axes is None:
        axes = Figure(figsize=(width, height)).add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, width), ylim=(0.0, height))
    axes.set_axis_off()
    _draw_edges(axes, layout, diagram)
    for name, kind, title, small in _nodes(layout):
        if name in known:
            _draw_known(axes, _centre(diagram.spots[name]), kind, title, known[name])
        else:
            _draw_node(axes, _centre(diagram.spots[name]), kind, title, small)
    title = f"{layout.name} ({layout.variant})" if layout.variant else layout.name
    axes.text(0.2, height - 0.28, title, fontsize=12, va="center", color=_INK)
    axes.text(0.2, height - 0.52, layout.source, fontsize=7.5, va="center", color="#666666")
    _draw_legend(axes, layout, width)
    drawn: Any = axes
    return drawn.get_figure(root=True)


def layout_size(layout: Layout) -> tuple[float, float]:
    """Width and height of a layout's graph in inches."""
    diagram = _arranged(layout)
    width = (diagram.layers - 1) * _COLUMN + _WIDTH + 0.4
    return width, diagram.height * _ROW + _HEIGHT + 1.4


def _arranged(layout: Layout) -> Diagram:
    parents: dict[str, tuple[str, ...]] = dict.fromkeys(layout.latent_names, ())
    parents |= dict.fromkeys(layout.feature_names, ())
    parents |= {node.name: node.link.parents for node in layout.ordered}
    parents |= {_OUTCOME + outcome.name: outcome.parents for outcome in layout.outcomes}
    return arrange(parents)


def _draw_known(
    axes: Axes, centre: tuple[float, float], kind: str, title: str, known: NodeEstimate
) -> None:
    """A latent node with its densities: grey before, blue after."""
    x, y = centre
    style = {"facecolor": _FILL[kind], "edgecolor": _INK, "lw": 0.9, "zorder": 3.0}
    axes.add_patch(Ellipse(centre, _WIDTH, _HEIGHT * 1.3, **style))
    size = 7.6 if len(title) <= 18 else 6.4
    axes.text(x, y + 0.27, title, ha="center", va="center", fontsize=size, color=_INK, zorder=4.0)
    top = max(*known.density, *known.prior, 1e-12)
    bottom, room = y - 0.15, 0.32
    for heights, colour, alpha in ((known.prior, "#7d8791", 0.55), (known.density, "#0b6e99", 0.8)):
        across = [x + (i / (len(heights) - 1) - 0.5) * 0.74 * _WIDTH for i in range(len(heights))]
        up = [bottom + room * height / top for height in heights]
        spots = [(across[0], bottom), *zip(across, up, strict=True), (across[-1], bottom)]
        look: dict[str, Any] = {"facecolor": colour, "alpha": alpha, "lw": 0.0, "zorder": 3.5}
        axes.add_patch(Polygon(spots, **look))
    axes.text(
        x, y - 0.25, known.words, ha="center", va="center", fontsize=5.8, color=_INK, zorder=4.0
    )


def _nodes(layout: Layout) -> list[tuple[str, str, str, str]]:
    """Name, kind, title and small print of every node."""
    nodes: list[tuple[str, str, str, str]] = []
    for f in layout.features:
        unit = f" {f.unit}" if f.unit != "1" else ""
        span = "0 or 1" if f.name in layout.gates else f"{f.low:g} to {f.high:g}{unit}"
        nodes.append((f.name, "feature", f.name, span))
    nodes += [
        (n.name, n.kind, n.name, str(n.prior) + f" {n.unit}" * (n.unit != "1"))
        for n in layout.latents
    ]
    nodes += [(n.name, "derived", n.name, _symbol(n.link)) for n in layout.ordered]
    for outcome in layout.outcomes:
        match outcome.likelihood:
            case Binomial(_, trials):
                small = f"Binomial({trials})"
            case Beta():
                small = "Beta"
            case Bernoulli():
                small = "Bernoulli"
        title = "outcome" if len(layout.outcomes) == 1 else outcome.name
        nodes.append((_OUTCOME + outcome.name, "outcome", title, small))
    return nodes


def _symbol(link: Link) -> str:
    """A linking function in a few characters; the arrows show its inputs."""
    match link:
        case Scaling(_, factor):
            return f"× {factor:.3g}"
        case LogScaling():
            return "logarithm, scaled"
        case WeightedSum():
            return "weighted sum"
        case Product():
            return "product"
        case Minimum():
            return "minimum"
        case Maximum():
            return "maximum"
        case GeneralisedMean(_, power):
            return f"mean of power {power:g}"
        case LogisticMargin(_, _, slope):
            return f"σ({slope:.3g} × margin)"
        case Gate(_, when, otherwise):
            return f"if {when}" if otherwise else f"if {when}, else 1"
        case NoiseMixture(_, _, nu):
            return f"mixed with {nu}" if isinstance(nu, str) else f"mixed with {nu:g}"
        case Formula(formula):
            return formula
        case _:
            return str(link)


def _centre(spot: Spot) -> tuple[float, float]:
    return (0.2 + _WIDTH / 2 + spot[0] * _COLUMN, 0.5 + _HEIGHT / 2 + spot[1] * _ROW)


def _draw_node(axes: Axes, centre: tuple[float, float], kind: str, title: str, small: str) -> None:
    x, y = centre
    style = {"facecolor": _FILL[kind], "edgecolor": _INK, "lw": 0.9, "zorder": 3.0}
    corner = (x - _WIDTH / 2, y - _HEIGHT / 2)
    if kind in ("capability", "bias", "robustness"):
        axes.add_patch(Ellipse(centre, _WIDTH, _HEIGHT * 1.12, **style))
    else:
        shape = "round,pad=0,rounding_size=0.16" if kind == "derived" else "square,pad=0"
        axes.add_patch(FancyBboxPatch(corner, _WIDTH, _HEIGHT, boxstyle=shape, **style))
    lines = _wrapped(title, most=18 if kind in ("feature", "derived") else 16)
    size = 8.0 if max(map(len, lines)) <= 18 else 7.0
    shown = small if len(small) <= 30 else f"{small[:28]}…"
    up = 0.1 if len(lines) == 1 else 0.12
    axes.text(
        x, y + up, "\n".join(lines), ha="center", va="center", fontsize=size, color=_INK,
        zorder=4.0, linespacing=0.95,
    )  # fmt: skip
    down = 0.13 if len(lines) == 1 else 0.2
    small_size = 6.2 if len(shown) <= 22 else 5.4
    axes.text(
        x, y - down, shown, ha="center", va="center", fontsize=small_size, color="#555555",
        zorder=4.0,
    )  # fmt: skip


def _wrapped(name: str, most: int) -> list[str]:
    """A long name in two lines, broken where a word begins."""
    if len(name) <= most:
        return [name]
    breaks = [m.start() for m in re.finditer(r"(?<=[a-z0-9])[A-Z]|(?<=[_ -])\w", name)]
    if not breaks:
        return [name]
    at = min(breaks, key=lambda i: abs(i - len(name) / 2))
    return [name[:at], name[at:]]


def _draw_edges(axes: Axes, layout: Layout, diagram: Diagram) -> None:
    gates = {(node.link.when, node.name) for node in layout.derived if isinstance(node.link, Gate)}
    for edge, route in diagram.routes.items():
        centres = [_centre(spot) for spot in route]
        half = _WIDTH / 2
        vertices = [(centres[0][0] + half, centres[0][1])]
        codes = [Curve.MOVETO]
        for (ax, ay), (bx, by) in itertools.pairwise(centres):
            # Curved between two layers, straight where it passes the nodes of one layer.
            middle = (ax + bx) / 2
            vertices += [(ax + half, ay), (middle, ay), (middle, by), (bx - half, by)]
            codes += [Curve.LINETO, *[Curve.CURVE4] * 3]
        axes.add_patch(
            FancyArrowPatch(
                path=Curve(vertices, codes),
                arrowstyle="-|>,head_length=4,head_width=1.8",
                color="#6b6b6b",
                lw=0.8,
                linestyle="--" if edge in gates else "-",
                shrinkA=0.0,
                shrinkB=0.0,
                zorder=2.0,
            )
        )


def _draw_legend(axes: Axes, layout: Layout, width: float) -> None:
    kinds = ["feature", *dict.fromkeys(n.kind for n in layout.latents), "derived", "outcome"]
    handles = [
        Patch(facecolor=_FILL[kind], edgecolor=_INK, lw=0.7, label=_LEGEND[kind])
        for kind in kinds
        if kind != "outcome"
    ]
    axes.legend(
        handles=handles,
        loc="lower left",
        ncols=len(handles) if width > 6.0 else 2,
        fontsize=7.0,
        frameon=False,
        bbox_to_anchor=(0.0, 0.0),
        handlelength=1.4,
    )
