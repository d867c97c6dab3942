"""Several agents that were measured with one layout, or on one battery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from animalcat.layouts.checking.assess import Assessment
from animalcat.layouts.checking.compare import Posterior, ranking
from animalcat.layouts.checking.scores import bootstrap
from animalcat.layouts.checking.scores import brier as brier_score
from animalcat.layouts.explaining.wording import Scale, plain_scale
from animalcat.layouts.model.tables import guess, of_kind
from animalcat.layouts.model.units import plain_unit
from animalcat.plots.given import (
    Subjects,
    common_scales,
    estimated_of,
    fitted_of,
    several,
    share_passed,
    table_of,
)
from animalcat.plots.posterior import node_range
from animalcat.plots.prediction import judged
from animalcat.plots.readings import NodeReading, read_axis, reading_of
from animalcat.plots.style import (
    AGENTS,
    BAD,
    DARK,
    INK,
    LIGHT,
    MAIN,
    PAPER,
    PRIOR,
    SOFT,
    Floats,
    agent_styles,
    canvas,
    new_figure,
    panels,
    plain,
    tidy,
    with_unit,
)

if TYPE_CHECKING:
    import pandas as pd

_SHADES: Final = "cividis"
SUCCESS: Final = "success"
"""What stands for the share of success where the name of a node may stand."""
_FEW: Final = 10
"""Most agents whose names are all written."""
_POINT: Final = 120.0
_FAINT: Final = 0.1
"""Colours of nodes reach at least so far, so that next to nothing is not made much of."""
_LETTER: Final = 4.0
"""Width of a letter of a point's name, in points."""
_NEAR: Final = 9.0
_TITLE: Final = 18
_SHORT: Final = 14
"""Letters of a name that fits under its column."""


def comparison(
    agents: Subjects, ax: Any = None, *, scales: Mapping[str, Scale] | None = None
) -> Figure:
    """Draw the agents' intervals node by node, and how probable each rank is.

    Args:
        agents: Fits, learners, results or profiles by name, or a list of them, all of one layout.
            Of a profile alone each node is taken by its mean and deviation, since it has no draws.
        scales: How nodes are read, by name, where that is not to follow from the agents.
        ax: Two axes for each node to draw on, one after another; by default a new figure has
            them.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: An agent is nothing of that kind.
        ValueError: There are not two agents, or their layouts differ.
    """
    profiles, known = _alike(agents, "comparison")
    scales = known if scales is None else scales
    names = list(profiles)
    posteriors = _posteriors(agents, profiles)
    nodes: Mapping[str, Mapping[str, Any]] = profiles[names[0]]["nodes"]
    high = 0.5 + 0.24 * len(names)
    drawn = canvas(ax, "comparison", (7.6, 0.7 + high * len(nodes)), len(nodes), 2)
    for k, (node, summed) in enumerate(nodes.items()):
        panel, bars = drawn.axes[2 * k : 2 * k + 2]
        reading = reading_of(node, summed, scales)
        for row, (name, colour, marker) in enumerate(agent_styles(names)):
            summary = profiles[name]["nodes"][node]
            panel.plot(summary["hdi"], [-row] * 2, color=colour, lw=3, solid_capstyle="butt")
            panel.plot([summary["mean"]], [-row], marker, color=PAPER, mec=colour, mew=1.8)
        read_axis(panel.xaxis, reading, panel.get_xlim())
        panel.set(yticks=[-row for row in range(len(names))], ylim=(-len(names) + 0.4, 0.6))
        panel.set_yticklabels([plain(name) for name in names], fontsize=8)
        title = with_unit(node, reading.scale.unit)
        panel.set_title(plain(title), fontsize=9, loc="left", color=INK)
        tidy(panel)
        ranks = {rank.name: rank for rank in ranking(posteriors, node)}
        for row, (name, colour, _) in enumerate(agent_styles(names)):
            share = ranks[name].most
            bars.barh([-row], [share], color=colour, height=0.6)
            bars.text(share + 0.02, -row, f"{share:.0%}", va="center", fontsize=8, color=INK)
        bars.set(xlim=(0, 1.18), ylim=(-len(names) + 0.4, 0.6), yticks=[], xticks=[0, 0.5, 1])
        if not k:
            bars.set_title("probability of the largest value", fontsize=9, loc="left", color=INK)
        tidy(bars)
    drawn.entitle(f"{len(names)} agents, mean and 90 % interval", _labels(profiles))
    return drawn.figure


def node_comparison(
    profiles: Mapping[str, Mapping[str, Any]],
    node: str,
    posteriors: Sequence[Posterior],
    reading: NodeReading,
) -> Figure:
    """Draw the agents' intervals of one node, with the probability that each has the most.

    Args:
        profiles: Profile by agent, as JSON, all with that node.
        node: The node.
        posteriors: Their draws, in the same order.
        reading: How the node is read.
    """
    names = list(profiles)
    figure = new_figure(4.6, 0.8 + 0.3 * len(names))
    axes: Any = figure.add_subplot(1, 1, 1)
    ranks = {rank.name: rank for rank in ranking(posteriors, node)}
    ends: list[float] = []
    for row, (name, colour, marker) in enumerate(agent_styles(names)):
        summary = profiles[name]["nodes"][node]
        low, high = summary["hdi"]
        bounds = [end for end in summary.get("range") or () if end is not None]
        ends += [low, high, *bounds]
        axes.plot([low, high], [-row] * 2, color=colour, lw=3, solid_capstyle="butt")
        axes.plot(
            [summary["mean"]], [-row], marker, color=PAPER, mec=colour, mew=1.8, clip_on=False
        )
        axes.text(
            1.02, -row, f"{ranks[name].most:.0%}", va="center", fontsize=8, color=INK,
            transform=axes.get_yaxis_transform(),
        )  # fmt: skip
    axes.set(yticks=[-row for row in range(len(names))], ylim=(-len(names) + 0.4, 0.6))
    axes.set_yticklabels([plain(name) for name in names], fontsize=8)
    axes.set_xlim(min(ends), max(ends))
    axes.set_title(plain(node), fontsize=9, color=INK)
    axes.set_xlabel(plain(reading.label), fontsize=8, color=SOFT)
    read_axis(axes.xaxis, reading, (min(ends), max(ends)))
    tidy(axes)
    return figure


def node_ranks(
    profiles: Mapping[str, Mapping[str, Any]], node: str, reading: NodeReading
) -> Figure:
    """Draw many agents' intervals of one node from the greatest mean to the least.

    Only the first and the last are named: there is no room for more.

    Args:
        profiles: Profile by agent, as JSON, all with that node.
        node: The node.
        reading: How the node is read.
    """
    summed = {name: profile["nodes"][node] for name, profile in profiles.items()}
    names = sorted(summed, key=lambda name: -summed[name]["mean"])
    rows = [-row for row in range(len(names))]
    low, high = zip(*(summed[name]["hdi"] for name in names), strict=True)
    figure = new_figure(4.6, 4.2)
    axes: Any = figure.add_subplot(1, 1, 1)
    axes.hlines(rows, low, high, color=PRIOR, lw=1)
    axes.plot([summed[name]["mean"] for name in names], rows, ".", color=INK, ms=3)
    axes.set(yticks=[rows[0], rows[-1]], ylim=(rows[-1] - 1, 1), xlim=(min(low), max(high)))
    axes.set_yticklabels([plain(names[0]), plain(names[-1])], fontsize=8)
    axes.set_title(plain(node), fontsize=9, color=INK)
    axes.set_xlabel(plain(reading.label), fontsize=8, color=SOFT)
    read_axis(axes.xaxis, reading, (min(low), max(high)))
    tidy(axes)
    return figure


def population(
    agents: Subjects,
    x: str = "",
    y: str = "",
    colour: str = "",
    size: str = SUCCESS,
    *,
    ax: Any = None,
    scales: Mapping[str, Scale] | None = None,
) -> Figure:
    """Draw two capabilities of many agents, each a point with its standard deviations as bars.

    By default it is Figure 4 of Burden et al. (2023): colour is noise, and size the share of
    success. Of many agents those are named that stand apart, as far as there is room.

    Args:
        agents: Fits, learners, results or profiles by name, or a list of them, all of one layout.
        x: A node; by default the first capability.
        y: A node; by default the second capability.
        colour: What sets the colour: a node, or `success`, the share of success; by default the
            first node of noise, if the layout has one.
        size: What sets the size, in the same way.
        scales: How nodes are read, by name, where that is not to follow from the agents.
        ax: An axis to draw on; by default a new figure has one.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: An agent is nothing of that kind.
        ValueError: There are not two agents, their layouts differ, or a node is unknown.
    """
    profiles, read = _alike(agents, "population")
    scales = read if scales is None else scales
    names = list(profiles)
    first = profiles[names[0]]
    nodes: Mapping[str, Mapping[str, Any]] = first["nodes"]
    able = [name for name, node in nodes.items() if node.get("kind") == "capability"]
    chosen = [x or (able or list(nodes))[0], y or (able[1:] or list(nodes)[1:] or list(nodes))[0]]
    noise = next((name for name, node in nodes.items() if node.get("kind") == "robustness"), "")
    colour = colour or noise
    for name in (*chosen, *({colour, size} - {SUCCESS, ""})):
        if name not in nodes:
            hint = guess(name, list(nodes))
            raise ValueError(f"population: no node {name!r}; nodes: {', '.join(nodes)}.{hint}")
    drawn = canvas(ax, "population", (7.2, 5.6) if len(names) > _FEW else (6.2, 4.8))
    (axes,) = drawn.axes
    factors = [plain_unit(str(nodes[node].get("unit") or ""))[0] for node in chosen]
    own = [[profiles[name]["nodes"][node] for node in chosen] for name in names]
    spots = np.array([[float(node["mean"]) for node in row] for row in own]) * factors
    # No bar reaches beyond the range of its node.
    ends = np.array([[node_range(node) for node in row] for row in own]).transpose(2, 0, 1)
    sds = np.array([[float(node["sd"]) for node in row] for row in own]) * factors
    gaps = np.abs(ends * factors - spots)
    right, up = np.minimum(sds, gaps).transpose(2, 0, 1)
    axes.errorbar(*spots.T, up, right, fmt="none", ecolor=PRIOR, elinewidth=1.0, zorder=1)
    hue, large = (_shares(profiles, what) for what in (colour, size))
    shown = axes.scatter(
        *spots.T,
        s=_POINT if large is None else 0.2 * _POINT + 2.0 * _POINT * large.clip(0, 1),
        c=MAIN if hue is None else hue,
        cmap=None if hue is None else "coolwarm" if colour == noise else _SHADES,
        vmin=None if hue is None else 0,
        vmax=None if hue is None else 1 if colour == SUCCESS else max(hue.max(), _FAINT),
        edgecolors=INK,
        linewidths=0.8,
        alpha=0.9,
        zorder=3,
    )
    axes.margins(0.12)
    _name_points(axes, spots, names)
    if hue is not None:
        drawn.figure.colorbar(shown, ax=axes, label=_share_words(colour))
    for node, factor, axis in zip(chosen, factors, (axes.xaxis, axes.yaxis), strict=True):
        label = with_unit(node, plain_unit(str(nodes[node].get("unit") or ""))[1])
        if scales and node in scales:
            reading = NodeReading(node, scales[node])
            label = f"{node}: {reading.label}" if reading.scale.margin else reading.label
            ends = (axis.get_view_interval() / factor).tolist()
            at, words = reading.ticks(*ends)
            axis.set_ticks([factor * tick for tick in at], [plain(word) for word in words])
        axis.set_label_text(plain(label))
    tidy(axes)
    more = "passed more" if size == SUCCESS else f"more {size}"
    drawn.below(plain(f"bars: mean ± SD{f'; larger: {more}' if large is not None else ''}"))
    drawn.entitle(f"{len(names)} agents" * (len(names) > _FEW), _labels(profiles))
    return drawn.figure


def _shares(profiles: Mapping[str, Mapping[str, Any]], what: str) -> Floats | None:
    """What sets the colour or size of each agent's point, from 0 to 1; None where nothing does."""
    if what == SUCCESS:
        passed = np.array([share_passed(profile) for profile in profiles.values()])
        return passed if np.isfinite(passed).all() else None
    rows = [profile["nodes"].get(what) for profile in profiles.values()]
    if None in rows:
        return None
    ends = [node_range(row) for row in rows]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return (np.array([float(row["mean"]) for row in rows]) - low) / (high - low)


def _share_words(what: str) -> str:
    return "share passed" if what == SUCCESS else plain(what)


def _name_points(axes: Any, spots: Floats, names: Sequence[str]) -> None:
    """Write names beside points, where no other name stands; who is far from the rest comes first.

    Of a few agents every name is written. It then stands above or below its point in turns.
    """
    few = len(names) <= _FEW
    centre, spread = np.median(spots, axis=0), np.ptp(spots, axis=0) + 1e-12
    far = np.linalg.norm((spots - centre) / spread, axis=1)
    order = np.argsort(spots[:, 0] if few else -far, kind="stable")
    axes.autoscale_view()
    box = axes.get_window_extent()
    scale = 72.0 / axes.figure.dpi
    taken: list[tuple[float, float, float, float]] = []
    for k, place in enumerate(map(int, order)):
        words = plain(names[place])
        at_x, at_y = axes.transData.transform(spots[place]) * scale
        wide = 0.5 * _LETTER * len(words) + 1.0
        sides = [15 if k % 2 == 0 else -15] if few else [_NEAR, -_NEAR]
        for side in sides:
            corner = (at_x - wide, at_y + side - 5.0, at_x + wide, at_y + side + 5.0)
            inside = box.x0 * scale <= corner[0] and corner[2] <= box.x1 * scale
            if few or (inside and not any(_overlap(corner, other) for other in taken)):
                taken.append(corner)
                axes.annotate(
                    words,
                    spots[place],
                    xytext=(0, side),
                    textcoords="offset points",
                    fontsize=8 if few else 6.5,
                    ha="center",
                    va="center",
                    zorder=6,
                    path_effects=[withStroke(linewidth=2.0, foreground=PAPER)],
                )
                break


def _overlap(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def profiles(agents: Subjects, ax: Any = None) -> Figure:
    """Draw the profile of every agent in a small panel of its own, who passed most first.

    In each panel every node has a line: from left to right its range, or where it has no ends three
    standard deviations of the prior, with mean and 90 % interval.

    Args:
        agents: Fits, learners, results or profiles by name, or a list of them, all of one layout.
        ax: An axis for each agent to draw on; by default a new figure has them.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: An agent is nothing of that kind.
        ValueError: There are not two agents, or their layouts differ.
    """
    known, _ = _alike(agents, "profiles")
    passed = {name: share_passed(profile) for name, profile in known.items()}
    names = sorted(known, key=lambda name: -np.nan_to_num(passed[name], nan=-1.0))
    nodes: Mapping[str, Mapping[str, Any]] = known[names[0]]["nodes"]
    columns = min(len(names), max(3, round(np.sqrt(1.2 * len(names)))))
    drawn = panels(ax, "profiles", len(names), columns, 1.45, 0.42 + 0.14 * len(nodes))
    colours = {"capability": MAIN, "bias": AGENTS[1]}
    for k, (panel, name) in enumerate(zip(drawn.axes, names, strict=True)):
        for row, (node, summed) in enumerate(known[name]["nodes"].items()):
            low, high = node_range(summed)
            start, mean, stop = (
                (float(value) - low) / (high - low)
                for value in (summed["hdi"][0], summed["mean"], summed["hdi"][1])
            )
            colour = colours.get(str(nodes[node].get("kind")), SOFT)
            panel.plot([0, 1], [-row] * 2, color=PRIOR, lw=0.8, zorder=1)
            panel.plot([start, stop], [-row] * 2, color=colour, lw=2.6, solid_capstyle="butt")
            panel.plot([mean], [-row], "o", color=PAPER, mec=colour, mew=1.3, ms=4)
        panel.set(xlim=(-0.03, 1.03), ylim=(-len(nodes) + 0.4, 0.6), xticks=[])
        first = k % columns == 0
        panel.set_yticks([-row for row in range(len(nodes))], [plain(n) for n in nodes])
        panel.tick_params(length=0, labelleft=first, labelsize=6.5, colors=INK)
        share = "" if np.isnan(passed[name]) else f", {passed[name]:.0%}"
        short = name if len(name) <= _TITLE else f"{name[: _TITLE - 1]}…"
        sure = known[name].get("diagnostics", {}).get("converged", True)
        panel.set_title(plain(f"{short}{share}"), fontsize=7, color=INK if sure else BAD, pad=3)
        for spine in panel.spines.values():
            spine.set_visible(False)
    kinds = {str(node.get("kind")) for node in nodes.values()}
    told = (("capability", "blue: capabilities"), ("bias", "orange: biases"))
    words = [said for kind, said in told if kind in kinds]
    words += ["grey: noise"] * bool(kinds - {"capability", "bias"})
    drawn.below(f"mean and 90 % interval on each node's range; {', '.join(words)}")
    drawn.entitle("", _labels(known))
    return drawn.figure


def heat(agents: Subjects, ax: Any = None, *, scales: Mapping[str, Scale] | None = None) -> Figure:
    """Draw a table of all agents' means and standard deviations, shaded within each node.

    The share of success stands beside the means where all profiles have it. Figures 9, 13 and 14 of
    Burden et al. (2023) are of this kind.

    Args:
        agents: Fits, learners, results or profiles by name, or a list of them, all of one layout.
        scales: How nodes are read, by name: what stands in the cells, where that is not to follow
            from the agents.
        ax: Two axes to draw on; by default a new figure has them.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: An agent is nothing of that kind.
        ValueError: There are not two agents, or their layouts differ.
    """
    profiles, read = _alike(agents, "heat")
    scales = read if scales is None else scales
    names = list(profiles)
    nodes: Mapping[str, Mapping[str, Any]] = profiles[names[0]]["nodes"]
    own = {name: plain_scale(str(node.get("unit") or "")) for name, node in nodes.items()}
    known = own | {name: scale for name, scale in scales.items() if name in own}
    rows = [[profiles[name]["nodes"][node] for node in nodes] for name in names]
    # An SD is not read: past the hardest demand there is nothing that it could be read by.
    means = [
        [
            known[node].value(summary["mean"], *summary["hdi"])
            for node, summary in zip(nodes, row, strict=True)
        ]
        for row in rows
    ]
    sds = [
        [
            f"{own[node].convert(summary['sd']):.2g}"
            for node, summary in zip(nodes, row, strict=True)
        ]
        for row in rows
    ]
    passed = np.array([share_passed(profiles[name]) for name in names])
    drawn = canvas(ax, "heat", (2.6 + 1.9 * len(nodes), 1.5 + 0.42 * len(names)), columns=2)
    for k, (key, words, heads) in enumerate((("mean", means, known), ("sd", sds, own))):
        values = np.array([[float(summary[key]) for summary in row] for row in rows])
        units = [plain(with_unit(name, heads[name].unit)) for name in nodes]
        if not k and np.isfinite(passed).all():
            values = np.column_stack([values, passed])
            words = [[*row, f"{100 * own:.0f}"] for row, own in zip(words, passed, strict=True)]
            units.append("passed (%)")
        _table(drawn.axes[k], values, words, names if not k else [""] * len(names), units)
        drawn.axes[k].set_title("SD" if k else "mean", fontsize=10, color=INK)
    drawn.entitle("", _labels(profiles))
    return drawn.figure


def categories(agents: Subjects, ax: Any = None) -> Figure:
    """Draw a table of the share of success by paradigm and agent, with counts.

    Args:
        agents: Tables of outcomes, or results, which have one, by agent; a list of results; or one
            table with a column `agent`.
        ax: An axis to draw on; by default a new figure has one.

    Returns:
        The figure that was drawn on.

    Raises:
        ValueError: No episode counts.
    """
    tables = _tables(agents, "categories")
    kinds, passed, counts = _by_paradigm(tables)
    share = np.divide(passed, counts, out=np.full(passed.shape, np.nan), where=counts > 0)
    drawn = canvas(ax, "categories", (2.4 + 1.2 * len(tables), 1.2 + 0.34 * len(kinds)))
    (axes,) = drawn.axes
    image = axes.imshow(share.T, vmin=0, vmax=1, cmap=_SHADES, aspect="auto")
    for row in range(len(kinds)):
        for column in range(len(tables)):
            if counts[column, row]:
                ink = LIGHT if share[column, row] < 0.55 else DARK
                words = f"{passed[column, row]:.0f} of {counts[column, row]:.0f}"
                axes.text(column, row, words, ha="center", va="center", fontsize=8, color=ink)
    axes.set(xticks=range(len(tables)), yticks=range(len(kinds)))
    names = [plain(name) for name in tables]
    if max(map(len, names)) > _SHORT:
        axes.set_xticklabels(names, fontsize=8, rotation=20, ha="right", rotation_mode="anchor")
    else:
        axes.set_xticklabels(names, fontsize=8)
    axes.set_yticklabels([plain(kind) for kind in kinds], fontsize=8)
    drawn.figure.colorbar(image, ax=axes, label="share passed")
    return drawn.figure


def radar(agents: Subjects, ax: Any = None) -> Figure:
    """Draw the share of success by paradigm as a polygon for each agent.

    Figure 4 of the testbed paper (Crosby et al. 2020) is of this kind. A paradigm that an agent did
    not play interrupts its line.

    Args:
        agents: Tables of outcomes, or results, which have one, by agent; a list of results; or one
            table with a column `agent`.
        ax: An axis to draw on; by default a new figure has one.

    Returns:
        The figure that was drawn on.

    Raises:
        ValueError: Episodes of fewer than three paradigms count.
    """
    tables = _tables(agents, "radar")
    kinds, passed, counts = _by_paradigm(tables)
    if len(kinds) < 3:
        raise ValueError(f"a radar takes three paradigms at least; played were {len(kinds)}")
    share = np.divide(passed, counts, out=np.full(passed.shape, np.nan), where=counts > 0)
    drawn = canvas(ax, "radar", (6.0, 5.4), projection="polar")
    (axes,) = drawn.axes
    angles = np.linspace(0, 2 * np.pi, len(kinds), endpoint=False)
    around = np.append(angles, angles[0])
    for (name, colour, marker), row in zip(agent_styles(list(tables)), share, strict=True):
        closed = np.append(row, row[0])
        axes.plot(around, closed, color=colour, marker=marker, ms=5, lw=1.8, label=plain(name))
        if np.isfinite(row).all():
            axes.fill(around, closed, color=colour, alpha=0.08)
    axes.set_theta_offset(np.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(angles, [plain(kind) for kind in kinds], fontsize=8)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "50 %", "", "100 %"], fontsize=7, color=SOFT)
    axes.set_ylim(0, 1)
    axes.tick_params(axis="x", pad=16)
    drawn.legend(*axes.get_legend_handles_labels())
    return drawn.figure


def brier(agents: Subjects, ax: Any = None) -> Figure:
    """Draw how well each agent was predicted against how often it succeeded.

    Figure 6 of Burden et al. (2023) is of this kind. The predictions are those of the decisions,
    made before each episode. The curve is the score of always predicting the agent's overall share
    of success, p (1 - p), which is known only afterwards.

    Args:
        agents: Tables of outcomes, or results, which have one, by agent; a list of results; or one
            table with a column `agent`.
        ax: An axis to draw on; by default a new figure has one.

    Returns:
        The figure that was drawn on.

    Raises:
        ValueError: An agent has no episode that counts and has a prediction, or what was predicted
            of it is not success.
    """
    tables = _tables(agents, "brier")
    drawn = canvas(ax, "brier", (6.0, 4.4))
    (axes,) = drawn.axes
    shares = np.linspace(0.0, 1.0, 101)
    axes.plot(shares, shares * (1.0 - shares), color=SOFT, lw=1.5, ls="--")
    axes.text(0.5, 0.256, "overall share, known afterwards", ha="center", fontsize=8, color=SOFT)
    top = 0.28
    for name, colour, marker in agent_styles(list(tables)):
        try:
            predicted, passed, success = judged(tables[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if not success:
            raise ValueError(
                f"{name}: its layout predicts another outcome first, and this picture is of success"
            )
        score = bootstrap(brier_score, predicted, passed, seed=0, repeats=500)
        at = float(passed.mean())
        axes.plot([at, at], [score.low, score.high], color=colour, lw=2)
        axes.plot([at], [score.value], marker, color=colour, ms=8, mec=PAPER, label=plain(name))
        top = max(top, score.high + 0.02)
    axes.set(xlim=(-0.04, 1.04), ylim=(0.0, top))
    axes.set_xlabel("share of episodes passed", fontsize=9, color=INK)
    axes.set_ylabel("Brier score of predictions, 90 % interval", fontsize=9, color=INK)
    drawn.legend(*axes.get_legend_handles_labels())
    tidy(axes)
    return drawn.figure


def assessors(assessment: Assessment, ax: Any = None) -> Figure:
    """Draw how well each assessor predicts each agent, by how much the agent passed.

    Figure 6 of Burden et al. (2023) is of this kind. The curve is the score of always predicting
    the agent's overall share of success, p (1 - p), which is known only afterwards.

    Args:
        assessment: What `animalcat.layouts.assess` returns.
        ax: An axis to draw on; by default a new figure has one.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: It is no assessment.
    """
    if not isinstance(assessment, Assessment):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"assessors: this is {of_kind(assessment)}; give what assess(layout, df, agents) of "
            "animalcat.layouts returns"
        )
    drawn = canvas(ax, "assessors", (6.8, 4.8))
    (axes,) = drawn.axes
    line = np.linspace(0.0, 1.0, 101)
    known = "overall share, known afterwards"
    axes.plot(line, line * (1.0 - line), color=SOFT, lw=1.5, ls="--", label=known)
    top = 0.27
    names = [score.name for score in assessment.scores]
    styles = agent_styles(names)
    for k, (score, (name, colour, marker)) in enumerate(
        zip(assessment.scores, styles, strict=True)
    ):
        at = [one.passed for one in score.agents]
        scores = [one.brier for one in score.agents]
        axes.plot(
            *(at, scores, marker),
            color=colour,
            ms=6.5 if not k else 5,
            mec=PAPER,
            alpha=1.0 if not k else 0.75,
            zorder=5 if not k else 3,
            label=f"{plain(name)}: {score.brier:.3f}",
        )
        top = max(top, *(own + 0.02 for own in scores))
    axes.set(xlim=(-0.04, 1.04), ylim=(0.0, top))
    axes.set_xlabel("share passed", fontsize=9, color=INK)
    axes.set_ylabel("Brier score of held-out outcomes", fontsize=9, color=INK)
    drawn.legend(*axes.get_legend_handles_labels(), columns=2)
    tidy(axes)
    return drawn.figure


class Generality(NamedTuple):
    """How much an agent masters, and how widely its successes are spread over difficulty.

    Attributes:
        capability: Area under its characteristic curve, in paradigms: if it passed the easiest
            paradigms and no others, it would pass so many.
        spread: In paradigms: 0 if it passes all up to its capability and none beyond.
    """

    capability: float
    spread: float


def generality_of(tables: Mapping[str, pd.DataFrame]) -> dict[str, Generality]:
    """Capability and spread of each agent (Hernandez-Orallo et al. 2021).

    Paradigms stand in the order of their difficulty, at distances of 1. The difficulty of one is
    the share that all agents together fail. With psi_k the share that an agent passes of the k-th
    paradigm, its capability is the sum of psi_k. The square of its spread is the sum of
    (2 k - 1) psi_k, less the square of its capability. Generality is the inverse of the spread.
    Paradigms that an agent did not play are left out for all.

    Args:
        tables: Table of outcomes by agent.

    Raises:
        ValueError: There are not two agents, or not three paradigms that all of them played.
    """
    if len(tables) < 2:
        raise ValueError(f"this picture is of several agents; {len(tables)} is given")
    _, passed, counts = _by_paradigm(tables)
    shared = (counts > 0).all(axis=0)
    if shared.sum() < 3:
        raise ValueError(
            "generality takes three paradigms at least that every agent played; there are "
            f"{shared.sum()}"
        )
    share = passed[:, shared] / counts[:, shared]
    order = np.argsort(-share.mean(axis=0), kind="stable")
    curves = share[:, order]
    steps: Floats = 2.0 * np.arange(1.0, curves.shape[1] + 1.0) - 1.0
    able = curves.sum(axis=1)
    spread = np.sqrt(np.maximum(curves @ steps - able**2, 0.0))
    return {
        name: Generality(float(psi), float(wide))
        for name, psi, wide in zip(tables, able, spread, strict=True)
    }


def generality(agents: Subjects, ax: Any = None) -> Figure:
    """Draw the spread of each agent's successes over difficulty against its capability.

    The lower an agent stands, the more general it is: it passes what is easy and fails what is
    hard. Figure 5 of the testbed paper (Crosby et al. 2020) has another quantity on either axis,
    the mean of the category means and their standard deviation.

    Args:
        agents: Tables of outcomes, or results, which have one, by agent; a list of results; or one
            table with a column `agent`.
        ax: An axis to draw on; by default a new figure has one.

    Returns:
        The figure that was drawn on.

    Raises:
        ValueError: There are not two agents, or not three paradigms that all of them played.
    """
    points = generality_of(_tables(agents, "generality"))
    drawn = canvas(ax, "generality", (6.0, 4.4))
    (axes,) = drawn.axes
    for name, colour, marker in agent_styles(list(points)):
        point = points[name]
        axes.plot(
            *([point.capability], [point.spread], marker),
            color=colour, ms=9, mec=PAPER, clip_on=False, label=plain(name),
        )  # fmt: skip
    most = max(0.4, *(point.spread for point in points.values()))
    axes.set(ylim=(-0.06 * most, 1.15 * most))
    axes.set_xlim(left=-0.1, right=1.08 * max(point.capability for point in points.values()) + 0.1)
    drawn.legend(*axes.get_legend_handles_labels())
    axes.set_xlabel("capability (paradigms passed)", fontsize=9, color=INK)
    axes.set_ylabel("spread (paradigms); generality is 1 / spread", fontsize=9, color=INK)
    tidy(axes)
    return drawn.figure


def _alike(agents: Subjects, call: str) -> tuple[dict[str, Mapping[str, Any]], Mapping[str, Scale]]:
    """The profiles of several agents of one layout, and how its nodes are read for all alike."""
    given = several(agents, call)
    if len(given) < 2:
        count = "only one is" if len(given) == 1 else "none is"
        raise ValueError(f"this picture is of several agents; {count} given")
    known = {name: estimated_of(subject, call) for name, subject in given.items()}
    profiles = {name: one.profile for name, one in known.items()}
    layouts = {str(profile["layout"]["digest"]) for profile in profiles.values()}
    if len(layouts) > 1:
        raise ValueError(
            "these agents were measured with different layouts: nodes mean other things"
        )
    return profiles, common_scales([*given.values()])


def _posteriors(agents: Subjects, profiles: Mapping[str, Mapping[str, Any]]) -> list[Posterior]:
    """The draws of several agents; by mean and deviation of all where one has none."""
    given = several(agents, "comparison")
    try:
        return [Posterior.of_fit(name, fitted_of(one, "comparison")) for name, one in given.items()]
    except TypeError:
        return [Posterior.of_profile(name, profile) for name, profile in profiles.items()]


def _tables(agents: Subjects, call: str) -> dict[str, pd.DataFrame]:
    return {name: table_of(one, call) for name, one in several(agents, call).items()}


def _labels(profiles: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Labels of all profiles, each with its agent."""
    return [
        f"{name}: {str(label).split(':')[0]}"
        for name, profile in profiles.items()
        for label in profile.get("labels", [])
    ]


def _table(
    axes: Any,
    values: Floats,
    words: Sequence[Sequence[str]],
    rows: Sequence[str],
    columns: Sequence[str],
) -> None:
    """Draw a table: `values` shade its cells, `words` stand in them."""
    low, high = values.min(axis=0), values.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    shade = (values - low) / spread
    axes.imshow(shade, vmin=0, vmax=1, cmap=_SHADES, aspect="auto")
    for row, depths in enumerate(shade.tolist()):
        for column, depth in enumerate(depths):
            said = words[row][column].replace("-", "−")
            ink = LIGHT if depth < 0.55 else DARK
            axes.text(column, row, said, ha="center", va="center", fontsize=8, color=ink)
    axes.set(xticks=range(len(columns)), yticks=range(len(rows)))
    axes.set_xticklabels(columns, fontsize=8, rotation=20, ha="right")
    axes.set_yticklabels([plain(row) for row in rows], fontsize=8)


def _by_paradigm(tables: Mapping[str, pd.DataFrame]) -> tuple[list[str], Floats, Floats]:
    """Paradigms, and by agent and paradigm the numbers of successes and of episodes."""
    kept = {
        name: table[table["outcome"].isin(["success", "failure"])] for name, table in tables.items()
    }
    kinds = sorted({str(kind) for table in kept.values() for kind in table["paradigm"].dropna()})
    if not kinds:
        raise ValueError("no episode counts, so there is nothing to draw")
    counts = np.zeros((len(kept), len(kinds)))
    passed = np.zeros((len(kept), len(kinds)))
    for row, table in enumerate(kept.values()):
        for column, kind in enumerate(kinds):
            of_kind = table[table["paradigm"] == kind]
            counts[row, column] = len(of_kind)
            passed[row, column] = int((of_kind["outcome"] == "success").sum())
    return kinds, passed, counts
