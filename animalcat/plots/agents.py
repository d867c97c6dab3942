"""Several agents that were measured with one layout, or on one battery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from animalcat.alike import conditions_of, differing
from animalcat.layouts.checking.compare import FEW, AgentStanding, Posterior, compare_agents
from animalcat.layouts.explaining.wording import Scale
from animalcat.plots.given import (
    Subjects,
    common_scales,
    estimate_of,
    fit_of,
    insist_list,
    several,
)
from animalcat.plots.readings import read_axis, reading_of
from animalcat.plots.style import (
    INK,
    PRIOR,
    SOFT,
    agent_styles,
    mark,
    panels,
    plain,
    tidy,
)


def comparison(
    agents: Subjects,
    ax: Any = None,
    *,
    nodes: Sequence[str] = (),
    scales: Mapping[str, Scale] | None = None,
) -> Figure:
    """Draw the agents' intervals node by node, and how probable it is that each has the most.

    Of more than 24 agents only the first and the last are named.

    Args:
        agents: Fits, learners, results or profiles by name, or a list of them, all of one layout.
            Of a profile alone each node is taken by its mean and deviation, since it has no draws.
        ax: An axis for each node to draw on; by default a new figure has them.
        nodes: Names of the nodes to draw; all by default.
        scales: How nodes are read, by name, where that is not to follow from the agents.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: An agent is nothing of that kind.
        ValueError: There are not two agents, or their layouts differ.
    """
    insist_list(nodes, "nodes", "comparison")
    profiles, known = _alike(agents, "comparison")
    posteriors = _posteriors(agents, profiles)
    chosen = [name for name in posteriors[0].nodes if not nodes or name in nodes]
    read = known if scales is None else scales
    return compared_nodes(profiles, compare_agents(posteriors, scales=read), read, chosen, ax)


def compared_nodes(
    profiles: Mapping[str, Mapping[str, Any]],
    standings: Sequence[AgentStanding],
    scales: Mapping[str, Scale],
    nodes: Sequence[str],
    ax: Any = None,
) -> Figure:
    """Draw the agents' intervals of nodes.

    Args:
        profiles: Profile by agent, as JSON, all with these nodes.
        standings: Where they stand.
        scales: How nodes are read, by name.
        nodes: Names of the nodes to draw.
        ax: An axis for each node to draw on; by default a new figure has them.
    """
    few = len(profiles) <= FEW
    high = 0.8 + 0.3 * len(profiles) if few else 4.2
    drawn = panels(ax, "comparison", len(nodes), 2, 4.6, high)
    for axes, node in zip(drawn.axes, nodes, strict=True):
        summed = {name: profile["nodes"][node] for name, profile in profiles.items()}
        reading = reading_of(node, next(iter(summed.values())), scales)
        names = list(summed) if few else sorted(summed, key=lambda name: -summed[name]["mean"])
        most = {row.agent: row.most for row in standings if row.node == node}
        ends: list[float] = []
        for row, (name, colour, marker) in enumerate(agent_styles(names)):
            marks = reading.scale.marks(summed[name])
            bounds = summed[name].get("range") or () if few else ()
            ends += [marks.low, marks.high, *(end for end in bounds if end is not None)]
            if not few:
                mark(axes, marks, -row, PRIOR, 1, ".")
                continue
            mark(axes, marks, -row, colour, 3, marker)
            axes.text(
                1.02, -row, f"{most[name]:.0%}", va="center", fontsize=8, color=INK,
                transform=axes.get_yaxis_transform(),
            )  # fmt: skip
        shown = range(len(names)) if few else (0, len(names) - 1)
        axes.set_yticks([-row for row in shown], [plain(names[row]) for row in shown])
        axes.set(ylim=(-len(names) + 0.4, 0.6), xlim=(min(ends), max(ends)))
        axes.set_title(plain(node), fontsize=9, loc="left", color=INK)
        axes.set_xlabel(plain(reading.label), fontsize=8, color=SOFT)
        read_axis(axes.xaxis, reading, (min(ends), max(ends)))
        tidy(axes)
    if few and len(nodes) > 1:
        drawn.below("mean and 90 % interval; at the right the probability of the largest value")
    labels = [*_labels(profiles), *_unlike(profiles)] if len(nodes) > 1 else []
    drawn.entitle(f"{len(profiles)} agents" if len(nodes) > 1 else "", labels)
    return drawn.figure


def _alike(agents: Subjects, call: str) -> tuple[dict[str, Mapping[str, Any]], Mapping[str, Scale]]:
    """The profiles of several agents of one layout, and how its nodes are read for all alike."""
    given = several(agents, call)
    if len(given) < 2:
        count = "only one is" if len(given) == 1 else "none is"
        raise ValueError(f"this picture is of several agents; {count} given")
    known = {name: estimate_of(subject, call) for name, subject in given.items()}
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
        return [Posterior.of_fit(name, fit_of(one, "comparison")) for name, one in given.items()]
    except TypeError:
        return [Posterior.of_profile(name, profile) for name, profile in profiles.items()]


def _labels(profiles: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Labels of all profiles, each with its agent."""
    return [
        f"{name}: {str(label).split(':')[0]}"
        for name, profile in profiles.items()
        for label in profile.get("labels", [])
    ]


def _unlike(profiles: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """In what agents were measured so differently that they are not compared without a word."""
    known = {name: conditions_of(one.get("provenance") or {}) for name, one in profiles.items()}
    return [one.sentence for one in differing(known) if one.forbids("compare")]
