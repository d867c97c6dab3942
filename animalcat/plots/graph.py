"""The graph of a layout with the posterior in it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from animalcat.layouts.explaining.wording import figure as digits
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.drawing import NodeEstimate, layout_figure, layout_size
from animalcat.plots.given import Subject, fitted_of, title_of
from animalcat.plots.inline import inline_svg
from animalcat.plots.posterior import density_of, shown_range
from animalcat.plots.readings import NodeReading, readings
from animalcat.plots.style import Canvas, Picture, canvas, plain
from animalcat.showing import figure_html

_PLACES: Final = 60


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
    fitted = None if isinstance(what, Layout) else fitted_of(what, "graph")
    layout = what if fitted is None else fitted.layout
    known = (
        {}
        if fitted is None
        else {
            reading.name: _known(fitted, k, reading)
            for k, reading in enumerate(readings_of(fitted))
        }
    )
    if ax is None:
        figure: Any = Picture(figsize=layout_size(layout))
        layout_figure(layout, known, figure.add_axes((0.0, 0.0, 1.0, 1.0)))
        drawn = Canvas(figure, figure.axes, own=True)
    else:
        drawn = canvas(ax, "graph", (1.0, 1.0))
        layout_figure(layout, known, drawn.axes[0])
    title, labels = title_of(what)
    if labels:
        drawn.entitle(title, labels)
    return drawn.figure


def layout_html(layout: Layout) -> str:
    """A layout as a notebook shows it: its graph."""
    alt = (
        f"The graph of the layout {layout.name}, from {', '.join(layout.feature_names)} to outcome"
    )
    return figure_html(inline_svg(graph(layout), f"g{layout.digest[:8]}", alt))


def readings_of(fitted: FitResult) -> list[NodeReading]:
    """How the nodes of a fit are read, by what it was fitted to."""
    return readings(fitted.layout, None if fitted.data is None else fitted.data.features)


def _known(fitted: FitResult, k: int, reading: NodeReading) -> NodeEstimate:
    node, summary = fitted.layout.latents[k], fitted.nodes[k]
    low, high = shown_range(node)
    places = np.linspace(low, high, _PLACES)
    ends = (node.prior.low, node.prior.high)
    z: Any = rng(0, "plots", 0).standard_normal(4000)
    scale = reading.scale
    width = abs(scale.convert(summary.hdi[1]) - scale.convert(summary.hdi[0])) / 3.3
    first, last = sorted(scale.convert(end) for end in summary.hdi)
    value, start, stop = (
        digits(number, width) for number in (scale.said(summary.mean), first, last)
    )
    words = f"{value} ({start} to {stop}) {scale.unit}"
    if scale.full(summary):
        words = f"{value} {scale.unit} (the hardest that was asked)"
    return NodeEstimate(
        plain(words.replace("-", "−")),
        density_of(fitted.flat_draws[:, k], places, ends).tolist(),
        density_of(node.prior.from_standard(z), places, ends).tolist(),
    )
