"""The graph of a layout, from demands to outcome, with the posterior in it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyArrowPatch, FancyBboxPatch, Patch, Polygon
from matplotlib.path import Path as Polyline

from animalcat.layouts.explaining.wording import figure as digits
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.links import Gate, LogisticMargin, NoiseMixture, Scaling
from animalcat.layouts.model.spec import Layout
from animalcat.plots.given import Subject, fit_of, title_of
from animalcat.plots.posterior import density_of, shown_range
from animalcat.plots.readings import NodeReading, readings
from animalcat.plots.style import (
    INK,
    MAIN,
    PRIOR,
    SOFT,
    Canvas,
    Picture,
    canvas,
    embed_figure,
    plain,
)
from animalcat.text.showing import figure_html

Spot: TypeAlias = tuple[int, float]
"""Layer, counted from the left, and height within it."""

_PLACES: Final = 60
_COLUMN: Final = 2.35
_ROW: Final = 0.92
_WIDTH: Final = 1.62
_HEIGHT: Final = 0.66
"""Inches between layers, between nodes, and of a node's height."""
_SWEEPS: Final = 8
_KINDS: Final = {
    "feature": ("#d9d9d9", "meta-feature (seen)"),
    "capability": ("#cfe3f5", "capability"),
    "bias": ("#fbe3c0", "bias"),
    "robustness": ("#f4d0d0", "robustness"),
    "derived": ("#fdfdfd", "what follows"),
    "outcome": ("#d9d9d9", "outcome (seen)"),
}
_LATENT: Final = ("capability", "bias", "robustness")


def graph(what: Subject | Layout, ax: Any = None) -> Figure:
    """Draw a layout's graph, from demands to outcome, with the posterior of each latent node.

    Args:
        what: A layout alone, or a fit, a learner or results, whose estimates then stand in it.
        ax: An axis to draw on; by default a new figure has one.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: It is nothing of that kind.
    """
    fitted = None if isinstance(what, Layout) else fit_of(what, "graph")
    layout = what if fitted is None else fitted.layout
    spots, routes = arrange_nodes(parents_of(layout))
    width = max(x for x, _ in spots.values()) * _COLUMN + _WIDTH + 0.4
    height = max(y for _, y in spots.values()) * _ROW + _HEIGHT + 1.4
    if ax is None:
        figure: Any = Picture(figsize=(width, height))
        drawn = Canvas(figure, [figure.add_axes((0.0, 0.0, 1.0, 1.0))], own=True)
    else:
        drawn = canvas(ax, "graph", (1.0, 1.0))
    (axes,) = drawn.axes
    axes.set(xlim=(0.0, width), ylim=(0.0, height))
    axes.set_axis_off()
    gates = {(node.link.when, node.name) for node in layout.derived if isinstance(node.link, Gate)}
    for edge, route in routes.items():
        _draw_edge(axes, [_centre(spot) for spot in route], dashed=edge in gates)
    read = {} if fitted is None else {one.name: one for one in readings_of(fitted)}
    for name, kind, small in _nodes(layout):
        _draw_node(axes, _centre(spots[name]), kind, name, "" if name in read else small)
        if fitted is not None and name in read:
            _draw_known(
                axes, _centre(spots[name]), fitted, layout.latent_names.index(name), read[name]
            )
    title = f"{layout.name} ({layout.variant})" if layout.variant else layout.name
    axes.text(0.2, height - 0.28, plain(title), fontsize=12, va="center", color=INK)
    axes.text(0.2, height - 0.52, plain(layout.source), fontsize=7.5, va="center", color=SOFT)
    kinds = [kind for kind in _KINDS if kind in {kind for _, kind, _ in _nodes(layout)}]
    axes.legend(
        handles=[
            Patch(facecolor=_KINDS[kind][0], edgecolor=INK, lw=0.7, label=_KINDS[kind][1])
            for kind in kinds
            if kind != "outcome"
        ],
        loc="lower left", ncols=len(kinds) if width > 6.0 else 2, fontsize=7.0, frameon=False,
        bbox_to_anchor=(0.0, 0.0), handlelength=1.4,
    )  # fmt: skip
    words, labels = title_of(what)
    if labels:
        drawn.entitle(words, labels)
    return drawn.figure


def layout_html(layout: Layout) -> str:
    """A layout as a notebook shows it: its graph."""
    alt = (
        f"The graph of the layout {layout.name}, from {', '.join(layout.feature_names)} to outcome"
    )
    return figure_html(embed_figure(graph(layout), alt))


def readings_of(fitted: FitResult) -> list[NodeReading]:
    """How the nodes of a fit are read, by what it was fitted to."""
    return readings(fitted.layout, None if fitted.data is None else fitted.data.features)


class Arrangement(NamedTuple):
    """Where the nodes of a graph stand: layer from the left, and height, with neighbours 1 apart.

    Attributes:
        spots: Place of each node.
        routes: By (parent, child), the places that an edge passes through, ends included.
    """

    spots: Mapping[str, Spot]
    routes: Mapping[tuple[str, str], Sequence[Spot]]


def arrange_nodes(parents: Mapping[str, Sequence[str]]) -> Arrangement:
    """Place the nodes of an acyclic graph in layers from left to right.

    A node stands right after its last parent, a root right before its first child. An edge has a
    place of its own in every layer that it passes. In a layer, all come in the order of their
    neighbours' mean height.

    Args:
        parents: Parents of every node, each before its children.
    """
    layers: dict[str, int] = {}
    for name, given in parents.items():
        layers[name] = 1 + max((layers[parent] for parent in given), default=-1)
    for name, given in parents.items():
        children = [layers[other] for other, its in parents.items() if name in its]
        if not given and children:
            layers[name] = min(children) - 1
    columns = [[n for n in parents if layers[n] == k] for k in range(max(layers.values()) + 1)]
    near: defaultdict[str, list[str]] = defaultdict(list)
    chains: dict[tuple[str, str], list[str]] = {}
    for name, given in parents.items():
        for parent in given:
            passed = range(layers[parent] + 1, layers[name])
            chain = [parent, *(f"{parent}>{name}>{k}" for k in passed), name]
            for k, place in zip(passed, chain[1:], strict=False):
                columns[k].append(place)
            for one, other in pairwise(chain):
                near[one].append(other)
                near[other].append(one)
            chains[parent, name] = chain
    spots: dict[str, Spot] = {}
    for sweep in range(_SWEEPS):
        order = list(enumerate(columns))
        for layer, column in order if sweep % 2 == 0 else reversed(order):
            if sweep:
                column.sort(key=lambda name: -fmean([spots[n][1] for n in near[name]] or [0.0]))
            middle = (len(column) - 1) / 2
            spots |= {name: (layer, middle - k) for k, name in enumerate(column)}
    least = min(height for _, height in spots.values())
    spots = {name: (layer, height - least) for name, (layer, height) in spots.items()}
    return Arrangement(
        {name: spots[name] for name in parents},
        {edge: [spots[name] for name in chain] for edge, chain in chains.items()},
    )


def parents_of(layout: Layout) -> dict[str, tuple[str, ...]]:
    """Parents of every node of a layout, outcomes included, each before its children."""
    parents: dict[str, tuple[str, ...]] = dict.fromkeys(layout.latent_names, ())
    parents |= dict.fromkeys(layout.feature_names, ())
    parents |= {node.name: tuple(dict.fromkeys(node.link.parents)) for node in layout.ordered}
    return parents | {_title(outcome.name): outcome.parents for outcome in layout.outcomes}


def _title(outcome: str) -> str:
    """The name of an outcome, which begins with a space as no other node's does."""
    return f" {outcome}"


def _nodes(layout: Layout) -> list[tuple[str, str, str]]:
    """Name, kind and small print of every node."""
    nodes: list[tuple[str, str, str]] = []
    for feature in layout.features:
        unit = f" {feature.unit}" if feature.unit != "1" else ""
        gate = feature.name in layout.gates
        span = "0 or 1" if gate else f"{feature.low:g} to {feature.high:g}{unit}"
        nodes.append((feature.name, "feature", span))
    nodes += [
        (node.name, node.kind, str(node.prior) + f" {node.unit}" * (node.unit != "1"))
        for node in layout.latents
    ]
    nodes += [(node.name, "derived", _symbol(node.link)) for node in layout.ordered]
    return nodes + [
        (_title(outcome.name), "outcome", type(outcome.likelihood).__name__)
        for outcome in layout.outcomes
    ]


def _symbol(link: object) -> str:
    """A linking function in a few characters; the arrows show its inputs."""
    match link:
        case Scaling(_, factor):
            return f"× {factor:.3g}"
        case LogisticMargin(_, _, slope):
            return f"σ({slope:.3g} × margin)"
        case Gate(_, when, otherwise):
            return f"if {when}" if otherwise else f"if {when}, else 1"
        case NoiseMixture(_, _, nu):
            return f"mixed with {nu}" if isinstance(nu, str) else f"mixed with {nu:g}"
        case _:
            return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(link).__name__).lower()


def _centre(spot: Spot) -> tuple[float, float]:
    return (0.2 + _WIDTH / 2 + spot[0] * _COLUMN, 0.5 + _HEIGHT / 2 + spot[1] * _ROW)


def _draw_edge(axes: Any, centres: Sequence[tuple[float, float]], *, dashed: bool) -> None:
    """Draw an edge: straight where it passes a layer, and from layer to layer."""
    half = _WIDTH / 2
    sides = [(x + side, y) for x, y in centres for side in (-half, half)][1:-1]
    codes = [Polyline.MOVETO, *[Polyline.LINETO] * (len(sides) - 1)]
    axes.add_patch(
        FancyArrowPatch(
            path=Polyline(sides, codes), arrowstyle="-|>,head_length=4,head_width=1.8", color=SOFT,
            lw=0.8, linestyle="--" if dashed else "-", shrinkA=0.0, shrinkB=0.0, zorder=2.0,
        )
    )  # fmt: skip


def _draw_node(axes: Any, centre: tuple[float, float], kind: str, name: str, small: str) -> None:
    x, y = centre
    look: dict[str, Any] = {
        "facecolor": _KINDS[kind][0],
        "edgecolor": INK,
        "lw": 0.9,
        "zorder": 3.0,
    }
    if kind in _LATENT:
        axes.add_patch(Ellipse(centre, _WIDTH, _HEIGHT * 1.2, **look))
    else:
        shape = "round,pad=0,rounding_size=0.16" if kind == "derived" else "square,pad=0"
        corner = (x - _WIDTH / 2, y - _HEIGHT / 2)
        axes.add_patch(FancyBboxPatch(corner, _WIDTH, _HEIGHT, boxstyle=shape, **look))
    size = 8.0 if len(name) <= 18 else 6.4
    write: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4.0}
    up = 0.1 if small else 0.24
    axes.text(x, y + up, plain(name), fontsize=size, color=INK, **write)
    shown = small if len(small) <= 30 else f"{small[:28]}…"
    axes.text(
        x, y - 0.13, plain(shown), fontsize=6.2 if len(shown) <= 22 else 5.4, color="#555555",
        **write,
    )  # fmt: skip


def _draw_known(
    axes: Any, centre: tuple[float, float], fitted: FitResult, k: int, reading: NodeReading
) -> None:
    """Write a latent node's estimate, under its densities: grey before, blue after."""
    node, summary = fitted.layout.latents[k], fitted.nodes[k]
    places = np.linspace(*shown_range(node), _PLACES)
    ends = (node.prior.low, node.prior.high)
    z: Any = rng(0, "plots", 0).standard_normal(4000)
    prior = density_of(node.prior.from_standard(z), places, ends)
    density = density_of(fitted.flat_draws[:, k], places, ends)
    top = max(prior.max(), density.max(), 1e-12)
    x, bottom, room = centre[0], centre[1] - 0.14, 0.28
    across = x + 0.74 * _WIDTH * (np.linspace(0.0, 1.0, _PLACES) - 0.5)
    for heights, colour, alpha in ((prior, PRIOR, 0.9), (density, MAIN, 0.8)):
        line = np.column_stack([across, bottom + room * heights / top])
        spots = [(across[0], bottom), *line.tolist(), (across[-1], bottom)]
        look: dict[str, Any] = {"facecolor": colour, "alpha": alpha, "lw": 0.0, "zorder": 3.5}
        axes.add_patch(Polygon(spots, **look))
    scale = reading.scale
    width = abs(scale.convert(summary.hdi[1]) - scale.convert(summary.hdi[0])) / 3.3
    first, last = sorted(scale.convert(end) for end in summary.hdi)
    value, start, stop = (
        digits(number, width) for number in (scale.said(summary.mean), first, last)
    )
    words = f"{value} ({start} to {stop}) {scale.unit}"
    if scale.full(summary):
        words = f"{value} {scale.unit} (the hardest that was asked)"
    axes.text(
        x, centre[1] - 0.24, plain(words.replace("-", "−")), fontsize=5.8, color=INK, ha="center",
        va="center", zorder=4.0,
    )  # fmt: skip
