"""What is known of one agent: intervals, densities, and how they came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from animalcat.layouts.explaining.wording import Scale
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import HDI_SHARE, hdi
from animalcat.layouts.model.nodes import Latent
from animalcat.plots.readings import NodeReading, read_axis, reading_of, readings
from animalcat.plots.style import (
    INK,
    MAIN,
    PAPER,
    PRIOR,
    SOFT,
    Floats,
    about,
    entitle,
    new_figure,
    panels,
    plain,
    tidy,
    with_unit,
)

_REACH: Final = 3.0
"""A prior without an end is shown to so many standard deviations."""
_PRIOR_DRAWS: Final = 20_000
_PARTICLES: Final = 1000
"""Particles with which a course is told again."""


def forest(profile: Mapping[str, Any], scales: Mapping[str, Scale] | None = None) -> Figure:
    """Draw the interval of every node on the range of its prior.

    Each node has an axis of its own, because their units differ.

    Args:
        profile: A profile, as JSON.
        scales: How nodes are read, by name; of others the unit alone is said.
    """
    nodes: Mapping[str, Mapping[str, Any]] = profile["nodes"]
    share = float(profile.get("hdi_share", HDI_SHARE))
    figure = new_figure(7.0, 0.75 + 0.72 * len(nodes))
    for k, (name, node) in enumerate(nodes.items()):
        axes: Any = figure.add_subplot(len(nodes), 1, k + 1)
        reading = reading_of(name, node, scales)
        low, high = _range(node)
        start, stop = node["hdi"]
        mean = node["mean"]
        axes.axhline(0.0, color=PRIOR, lw=1.5, zorder=1)
        middle, spread = node["prior_mean"], node["prior_sd"]
        axes.plot([middle - spread, middle + spread], [0, 0], color=PRIOR, lw=9, zorder=2)
        axes.plot([start, stop], [0, 0], color=MAIN, lw=4, zorder=3, solid_capstyle="butt")
        axes.plot([mean], [0], "o", color=PAPER, mec=MAIN, mew=2, ms=7, zorder=4)
        axes.set(xlim=(low, high), ylim=(-1, 1), yticks=[])
        status = f"\n{node['status']}" if node.get("status") else ""
        axes.set_ylabel(
            plain(with_unit(name, reading.scale.unit)) + plain_lines(status),
            rotation=0,
            ha="right",
            va="center",
            fontsize=8.5,
            color=INK,
        )
        axes.text(
            1.02,
            0.5,
            "\n".join(reading.scale.of_profile(node)),
            transform=axes.transAxes,
            va="center",
            fontsize=8.5,
            color=INK,
        )
        read_axis(axes.xaxis, reading, (low, high))
        tidy(axes)
        axes.spines["left"].set_visible(False)
    title, labels = about(profile)
    entitle(figure, title, labels)
    words = f"mean and {100 * share:g} % interval; grey: the prior's mean ± SD"
    supxlabel: Any = figure
    supxlabel.supxlabel(words, fontsize=8, color=SOFT)
    return figure


def densities(
    fitted: FitResult,
    profile: Mapping[str, Any] | None = None,
    nodes: Sequence[str] = (),
    *,
    key: bool = True,
) -> Figure:
    """Draw the posterior density of every node over its prior's, with the interval shaded.

    Args:
        fitted: The draws.
        profile: The profile, for title and labels.
        nodes: Names of the nodes to draw; all by default.
        key: Whether the picture says what its parts are.

    Raises:
        ValueError: There is no such node.
    """
    chosen = _chosen(fitted, nodes)
    figure, each = panels(len(chosen), 2, 3.4, 2.2)
    generator = rng(0, "plots", 0)
    for axes, (k, reading) in zip(each, chosen.items(), strict=True):
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
        axes.fill_between(places, before, color=PRIOR, alpha=0.6, lw=0, label="prior")
        axes.fill_between(places, after, where=inside, color=MAIN, alpha=0.3, lw=0)
        axes.plot(places, after, color=MAIN, lw=1.8, label="posterior, 90 % interval shaded")
        axes.set(yticks=[], xlim=(low, high), ylim=(0, None))
        axes.set_title(plain(node.name), fontsize=9, color=INK)
        axes.set_xlabel(plain(reading.label), fontsize=8, color=SOFT)
        read_axis(axes.xaxis, reading, (low, high))
        tidy(axes)
        axes.spines["left"].set_visible(False)
    if each and key:
        handles, names = each[0].get_legend_handles_labels()
        legend: Any = figure
        legend.legend(
            handles, names, loc="outside lower center", ncols=2, fontsize=8, frameon=False
        )
    if profile is not None:
        entitle(figure, *about(profile))
    return figure


@dataclass(frozen=True, eq=False)
class EstimateHistory:
    """How the estimates came about, episode by episode.

    Attributes:
        mean: (episodes + 1, nodes), before the first episode and after each.
        ends: (episodes + 1, nodes, 2), of the 90 % intervals.
    """

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
    steps = [live.summary()]
    for k, features in enumerate(data.features):
        weight = 1.0 if data.weights is None else float(data.weights[k])
        outcome: Any = data.outcomes[k]
        live.update(features, outcome, k, weight)
        steps.append(live.summary())
    return EstimateHistory(
        np.array([[node.mean for node in step] for step in steps]),
        np.array([[node.hdi for node in step] for step in steps]),
    )


def trajectory(
    fitted: FitResult,
    profile: Mapping[str, Any] | None = None,
    nodes: Sequence[str] = (),
    *,
    course: EstimateHistory | None = None,
    key: bool = True,
) -> Figure:
    """Draw how the estimate of every node and its interval came about, episode by episode.

    It is the live posterior told the same outcomes in order, and at its right end the fit.

    Args:
        fitted: The draws, with the data that they were fitted to.
        profile: The profile, for title and labels.
        nodes: Names of the nodes to draw; all by default.
        course: What `course_of` returned, if it is known already.
        key: Whether the picture says what its parts are.

    Raises:
        ValueError: The fit has no outcomes, or there is no such node.
    """
    course = course or course_of(fitted)
    chosen = _chosen(fitted, nodes)
    steps = np.arange(len(course.mean))
    figure, each = panels(len(chosen), 2, 3.4, 2.2)
    for axes, (k, reading) in zip(each, chosen.items(), strict=True):
        ends = course.ends[:, k]
        axes.fill_between(steps, ends[:, 0], ends[:, 1], color=MAIN, alpha=0.2, lw=0)
        axes.plot(steps, course.mean[:, k], color=MAIN, lw=1.8)
        last = fitted.nodes[k]
        at = len(steps) + 0.02 * len(steps)
        axes.plot([at, at], last.hdi, color=INK, lw=2.5, solid_capstyle="butt")
        axes.plot([at], [last.mean], "o", color=PAPER, mec=INK, mew=1.6, ms=5)
        axes.set_title(plain(fitted.layout.latents[k].name), fontsize=9, color=INK)
        axes.set_ylabel(plain(reading.label), fontsize=7.5, color=SOFT, wrap=True)
        axes.set_xlim(0, at + 0.03 * len(steps))
        low, high = axes.get_ylim()
        prior = fitted.layout.latents[k].prior
        low, high = max(low, prior.low), min(high, prior.high)
        axes.set_ylim(low, high)
        read_axis(axes.yaxis, reading, (low, high))
        axes.xaxis.get_major_locator().set_params(integer=True)
        tidy(axes)
        if not key:
            axes.set_xlabel("episodes", fontsize=8, color=SOFT)
    if key:
        words = "episodes; band: 90 % interval of the live posterior; bar at the end: the profile"
        supxlabel: Any = figure
        supxlabel.supxlabel(words, fontsize=8, color=SOFT)
    if profile is not None:
        entitle(figure, *about(profile))
    return figure


def _chosen(fitted: FitResult, nodes: Sequence[str]) -> dict[int, NodeReading]:
    """How the nodes that are asked for are read, by their columns."""
    features = None if fitted.data is None else fitted.data.features
    known = readings(fitted.layout, features)
    for name in nodes:
        if name not in fitted.layout.latent_names:
            raise ValueError(f"no node {name!r}; nodes: {', '.join(fitted.layout.latent_names)}")
    return {k: reading for k, reading in enumerate(known) if not nodes or reading.name in nodes}


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


def _range(node: Mapping[str, Any]) -> tuple[float, float]:
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
    kernel: Any = import_module("scipy.stats").gaussian_kde(values[:: max(1, len(values) // 4000)])
    density: Any = kernel(places)
    for end in ends:
        if np.isfinite(end):
            density = density + kernel(2.0 * end - places)
    return density
