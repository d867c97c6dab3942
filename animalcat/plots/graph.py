"""The graph of a layout with the posterior in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from animalcat.layouts.explaining.wording import figure as digits
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.reporting.drawing import NodeEstimate, layout_figure
from animalcat.plots.posterior import density_of, shown_range
from animalcat.plots.readings import NodeReading, readings
from animalcat.plots.style import about, entitle, plain

_PLACES: Final = 60


def graph(fitted: FitResult, profile: Mapping[str, Any] | None = None) -> Figure:
    """Draw the layout's graph, from demands to outcome, with the posterior of each latent node.

    Args:
        fitted: The draws.
        profile: The profile, for labels.
    """
    known = {
        reading.name: _known(fitted, k, reading) for k, reading in enumerate(readings_of(fitted))
    }
    drawn = layout_figure(fitted.layout, known)
    if profile is not None and about(profile)[1]:
        entitle(drawn, *about(profile))
    return drawn


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
        digits(number, width) for number in (scale.convert(summary.mean), first, last)
    )
    words = f"{value} ({start} to {stop}) {scale.unit}"
    if scale.full(summary):
        words = f"{value} {scale.unit} (the hardest there is)"
    return NodeEstimate(
        plain(words.replace("-", "−")),
        density_of(fitted.flat_draws[:, k], places, ends).tolist(),
        density_of(node.prior.from_standard(z), places, ends).tolist(),
    )
