"""What is known of one agent: intervals, densities, and how they came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from animalcat.layouts.explaining.wording import Scale
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import HDI_SHARE, hdi
from animalcat.layouts.model.nodes import Latent
from animalcat.layouts.model.tables import guess
from animalcat.plots.given import (
    Subject,
    estimate_of,
    fit_of,
    insist_list,
    title_of,
)
from animalcat.plots.readings import NodeReading, read_axis, reading_of, readings
from animalcat.plots.style import (
    INK,
    MAIN,
    PAPER,
    PRIOR,
    SOFT,
    Floats,
    canvas,
    mark,
    panels,
    plain,
    tidy,
    with_unit,
)

_REACH: Final = 3.0
"""A prior without an end is shown to so many standard deviations."""
_PRIOR_DRAWS: Final = 20_000
_PARTICLES: Final = 1000
MOST_STEPS: Final = 500
"""Most steps at which a long course of estimates is known."""
"""Particles with which a course is told again."""


def forest(what: Subject, ax: Any = None, *, scales: Mapping[str, Scale] | None = None) -> Figure:
    """Draw the interval of every node on the range of its prior.

    Each node has an axis of its own, because their units differ.

    Args:
        what: A fit, a learner, results, or a profile.
        ax: An axis for each node to draw on; by default a new figure has them.
        scales: How nodes are read, by name, where that is not to follow from `what`.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: There is nothing of that kind to draw.
    """
    profile, known = estimate_of(what, "forest")
    scales = known if scales is None else scales
    nodes: Mapping[str, Mapping[str, Any]] = profile["nodes"]
    share = float(profile.get("hdi_share", HDI_SHARE))
    drawn = canvas(ax, "forest", (7.0, 0.75 + 0.72 * len(nodes)), rows=len(nodes))
    for panel, (name, node) in zip(drawn.axes, nodes.items(), strict=True):
        reading = reading_of(name, node, scales)
        low, high = node_range(node)
        marks = reading.scale.marks(node)
        panel.axhline(0.0, color=PRIOR, lw=1.5, zorder=1)
        middle, spread = node["prior_mean"], node["prior_sd"]
        panel.plot([middle - spread, middle + spread], [0, 0], color=PRIOR, lw=9, zorder=2)
        mark(panel, marks, 0.0, MAIN, 4)
        panel.set(xlim=(low, high), ylim=(-1, 1), yticks=[])
        status = f"\n{node['status']}" if node.get("status") else ""
        panel.set_ylabel(
            plain(with_unit(name, reading.scale.unit)) + plain_lines(status),
            rotation=0,
            ha="right",
            va="center",
            fontsize=8.5,
            color=INK,
        )
        panel.text(
            1.02,
            0.5,
            "\n".join(reading.scale.of_profile(node)),
            transform=panel.transAxes,
            va="center",
            fontsize=8.5,
            color=INK,
        )
        read_axis(panel.xaxis, reading, (low, high))
        tidy(panel)
        panel.spines["left"].set_visible(False)
    drawn.entitle(*title_of(what))
    drawn.below(
        f"mean and {100 * share:g} % interval, or a bound and an arrow; grey: prior mean ± SD"
    )
    return drawn.figure


def densities(
    what: Subject, nodes: Sequence[str] = (), *, ax: Any = None, key: bool = True
) -> Figure:
    """Draw the posterior density of every node over its prior's, with the interval shaded.

    Args:
        what: A fit, a learner, or results.
        nodes: Names of the nodes to draw; all by default.
        ax: An axis for each node to draw on; by default a new figure has them.
        key: Whether the picture says what its parts are.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: There are no draws.
        ValueError: There is no such node.
    """
    fitted = fit_of(what, "densities")
    chosen = _choose_nodes(fitted, nodes, "densities")
    drawn = panels(ax, "densities", len(chosen), 2, 3.4, 2.2)
    generator = rng(0, "plots", 0)
    for panel, (k, reading) in zip(drawn.axes, chosen.items(), strict=True):
        node = fitted.layout.latents[k]
        draws = fitted.flat_draws[:, k]
        z: Floats = generator.standard_normal(_PRIOR_DRAWS)
        low, high = shown_range(node)
        places = np.linspace(low, high, 300)
        ends = (node.prior.low, node.prior.high)
        before = density_of(node.prior.from_standard(z), places, ends)
        after = density_of(draws, places, ends)
        start, stop = hdi(draws, np.full(len(draws), 1.0 / len(draws)))
        inside = (places >= start) & (places <= stop)
        panel.fill_between(places, before, color=PRIOR, alpha=0.6, lw=0, label="prior")
        panel.fill_between(places, after, where=inside, color=MAIN, alpha=0.3, lw=0)
        panel.plot(places, after, color=MAIN, lw=1.8, label="posterior, 90 % interval shaded")
        panel.set(yticks=[], xlim=(low, high), ylim=(0, None))
        panel.set_title(plain(node.name), fontsize=9, color=INK)
        panel.set_xlabel(plain(reading.label), fontsize=8, color=SOFT)
        read_axis(panel.xaxis, reading, (low, high))
        tidy(panel)
        panel.spines["left"].set_visible(False)
    if key:
        drawn.legend(*drawn.axes[0].get_legend_handles_labels(), columns=2)
    drawn.entitle(*title_of(what))
    return drawn.figure


@dataclass(frozen=True, eq=False)
class EstimateHistory:
    """How the estimates came about over the episodes.

    Attributes:
        after: (steps,): how many episodes each step knows, from 0 to all; every number unless there
            are more than `MOST_STEPS` episodes.
        mean: (steps, nodes).
        ends: (steps, nodes, 2), of the 90 % intervals.
    """

    after: npt.NDArray[np.int64]
    mean: Floats
    ends: Floats


def course_of(fitted: FitResult) -> EstimateHistory:
    """Tell the live posterior the outcomes that a fit was made of, in order.

    Args:
        fitted: The draws, with the data that they were fitted to.

    Raises:
        ValueError: The fit has no outcomes.
    """
    data = fitted.data
    if data is None or not len(data.outcomes):
        raise ValueError("there is no outcome yet, so there is no course to draw")
    live = LivePosterior(fitted.layout, seed=0, particles=_PARTICLES)
    count = len(data.features)
    after = np.unique(np.linspace(0, count, min(count, MOST_STEPS) + 1).astype(np.int64))
    steps = [live.summary()]
    whole = data.weights is None or bool((data.weights == 1.0).all())
    for start, end in pairwise(after.tolist()):
        if whole and end - start > 1:
            live.update_all(data.features[start:end], data.outcomes[start:end], start)
        else:
            for k in range(start, end):
                weight = 1.0 if data.weights is None else float(data.weights[k])
                outcome: Any = data.outcomes[k]
                live.update(data.features[k], outcome, k, weight)
        steps.append(live.summary())
    return EstimateHistory(
        after,
        np.array([[node.mean for node in step] for step in steps]),
        np.array([[node.hdi for node in step] for step in steps]),
    )


def trajectory(
    what: Subject,
    nodes: Sequence[str] = (),
    *,
    ax: Any = None,
    course: EstimateHistory | None = None,
    key: bool = True,
) -> Figure:
    """Draw how the estimate of every node and its interval came about, episode by episode.

    It is the live posterior told the same outcomes in order, and at its right end the fit.

    Args:
        what: A fit, a learner, or results, with the outcomes.
        nodes: Names of the nodes to draw; all by default.
        ax: An axis for each node to draw on; by default a new figure has them.
        course: What `course_of` returned, if it is known already.
        key: Whether the picture says what its parts are.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: There are no draws.
        ValueError: There are no outcomes, or there is no such node.
    """
    fitted = fit_of(what, "trajectory")
    chosen = _choose_nodes(fitted, nodes, "trajectory")
    course = course or course_of(fitted)
    steps = course.after
    drawn = panels(ax, "trajectory", len(chosen), 2, 3.4, 2.2)
    for panel, (k, reading) in zip(drawn.axes, chosen.items(), strict=True):
        ends = course.ends[:, k]
        panel.fill_between(steps, ends[:, 0], ends[:, 1], color=MAIN, alpha=0.2, lw=0)
        panel.plot(steps, course.mean[:, k], color=MAIN, lw=1.8)
        last = fitted.nodes[k]
        at = 1.02 * (int(steps[-1]) + 1)
        panel.plot([at, at], last.hdi, color=INK, lw=2.5, solid_capstyle="butt")
        panel.plot([at], [last.mean], "o", color=PAPER, mec=INK, mew=1.6, ms=5)
        panel.set_title(plain(fitted.layout.latents[k].name), fontsize=9, color=INK)
        panel.set_ylabel(plain(reading.label), fontsize=7.5, color=SOFT, wrap=True)
        panel.set_xlim(0, at + 0.03 * (int(steps[-1]) + 1))
        low, high = panel.get_ylim()
        prior = fitted.layout.latents[k].prior
        low, high = max(low, prior.low), min(high, prior.high)
        panel.set_ylim(low, high)
        read_axis(panel.yaxis, reading, (low, high))
        panel.xaxis.get_major_locator().set_params(integer=True)
        tidy(panel)
        if not key or not drawn.own:
            panel.set_xlabel("episodes", fontsize=8, color=SOFT)
    if key:
        drawn.below(
            "episodes; band: 90 % interval of the live posterior; bar at the end: the profile"
        )
    drawn.entitle(*title_of(what))
    return drawn.figure


def _choose_nodes(fitted: FitResult, nodes: Sequence[str], call: str) -> dict[int, NodeReading]:
    """How the nodes that are asked for are read, by their columns."""
    insist_list(nodes, "nodes", call)
    features = None if fitted.data is None else fitted.data.features
    read = readings(fitted.layout, features)
    for name in nodes:
        if name not in fitted.layout.latent_names:
            known = fitted.layout.latent_names
            raise ValueError(
                f"{call}: no node {name!r}; nodes: {', '.join(known)}.{guess(str(name), known)}"
            )
    return {k: reading for k, reading in enumerate(read) if not nodes or reading.name in nodes}


def shown_range(node: Latent) -> tuple[float, float]:
    """The part of a node's range that is drawn."""
    prior = node.prior
    return (
        _finite(prior.low, prior.mean - _REACH * prior.sd),
        _finite(prior.high, prior.mean + _REACH * prior.sd),
    )


def plain_lines(text: str) -> str:
    """Text of several lines that matplotlib writes as it is."""
    return text.replace("$", r"\$")


def node_range(node: Mapping[str, Any]) -> tuple[float, float]:
    """The range on which a profile's node is drawn; three SD of its prior where it has no ends."""
    low, high = node.get("range") or (None, None)
    mean, sd = float(node["prior_mean"]), float(node["prior_sd"])
    start, stop = node["hdi"]
    return (
        min(start, mean - _REACH * sd) if low is None else float(low),
        max(stop, mean + _REACH * sd) if high is None else float(high),
    )


def _finite(end: float, instead: float) -> float:
    return end if np.isfinite(end) else instead


def density_of(values: Floats, places: Floats, ends: tuple[float, float]) -> Floats:
    """Density of draws; what a kernel would put beyond an end of the range is mirrored there."""
    if np.ptp(values) == 0.0:
        return np.zeros(len(places))
    some = values[:: max(1, len(values) // 4000), np.newaxis]
    width = float(np.std(some, ddof=1)) * len(some) ** -0.2  # Scott's rule
    mirrored = [places, *(2.0 * end - places for end in ends if np.isfinite(end))]
    heights = [np.exp(-0.5 * ((at - some) / width) ** 2).mean(axis=0) for at in mirrored]
    return np.sum(heights, axis=0) / (width * np.sqrt(2.0 * np.pi))
