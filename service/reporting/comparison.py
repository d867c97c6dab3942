"""A comparison of agents: what they share, where they stand, and how their measuring differed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from animalcat.alike import Difference, conditions_of
from animalcat.alike import differing as unlike
from animalcat.envs.agents.fingerprint import AgentFingerprint, differences
from animalcat.layouts.adaptive.paired import (
    FAMILY,
    MARGIN,
    CommonInstances,
    Outcomes,
    PairedComparison,
    common_instances,
    compare_all,
)
from animalcat.layouts.checking.compare import (
    AgentStanding,
    Posterior,
    compare_agents,
    few_standings,
)
from animalcat.layouts.explaining.wording import Scale, few_of, plain_scale, scale_of
from animalcat.layouts.fitting.estimates import profile_scales
from animalcat.layouts.model.tables import guess
from animalcat.plots.agents import compared_nodes
from animalcat.service.reporting.session_report import words_of_backend
from animalcat.text.showing import line_html, stacked_html, table_html, table_text

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
Measured = Any
"""What is known of an agent: its profile as JSON, or what has that as `profile`, with `layout`,
`draws`, `features`, and `passed`: by instance, whether it was passed when it was first played."""

MIXED: Final = "mixed"
"""Stands for the digest of several layouts of which only the nodes that they share are compared."""
_LABELS: Final = 8
"""Lines of labels that are shown at most."""
_RULE: Final = (
    "Rank 1 has the most. The first of a group has less than the first of the group above with a "
    "probability of 95 % at least, if the layout describes both and nobody chose when to look"
)


class MixedError(ValueError):
    """Agents were measured so differently that they are compared only on demand.

    Attributes:
        differences: What differs.
    """

    def __init__(self, differences: Sequence[Difference]) -> None:
        """Say what differs.

        Args:
            differences: What differs.
        """
        super().__init__(" ".join(difference.sentence for difference in differences))
        self.differences = tuple(differences)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Agents side by side; at the end of a notebook's cell it shows its table.

    Attributes:
        profiles: Their profiles with the nodes that they share, by agent.
        posteriors: Draws of these nodes, one an agent.
        scales: How the values of a node are read, for all agents alike.
        differences: What was different when they were measured.
        same_arenas: Who passed which of the arenas that both played, of two agents that were
            measured on one battery; else None.
        rates: How the success rates of every two differ over the battery, by their names; none
            where they share no arenas that were drawn for all, and of many agents.
        within: By node, the margin below which a difference counts as alike, in the unit in which
            the node is read.
    """

    profiles: Mapping[str, Row]
    posteriors: Sequence[Posterior]
    scales: Mapping[str, Scale]
    differences: Sequence[Difference]
    same_arenas: CommonInstances | None
    rates: Mapping[tuple[str, str], PairedComparison]
    within: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes that are compared."""
        return self.posteriors[0].nodes

    @cached_property
    def standings(self) -> list[AgentStanding]:
        """The table: a row a node and agent, in order of rank."""
        nodes = {name: profile["nodes"] for name, profile in self.profiles.items()}
        return compare_agents(self.posteriors, scales=self.scales, nodes=nodes, within=self.within)

    def notes(self) -> list[str]:
        """What has to be known before any number is read, one sentence each."""
        notes = [*self.labels(), *(difference.sentence for difference in self.differences)]
        return [*notes, *self.told()]

    def told(self) -> list[str]:
        """What is told of the arenas that agents have in common, one sentence each."""
        told: list[str] = []
        if self.same_arenas is not None:
            first, second = self.profiles
            told.append(f"{first} and {second}: {self.same_arenas.words(first, second)}.")
        return [*told, *(f"{a} and {b} are {one.words}." for (a, b), one in self.rates.items())]

    def labels(self) -> list[str]:
        """What every reader has to know of agents, with their names, a line for each label."""
        labelled: dict[str, list[str]] = {}
        for name, profile in self.profiles.items():
            for label in profile.get("labels", []):
                labelled.setdefault(label, []).append(name)
        lines = [f"{few_of(names)}: {label}" for label, names in labelled.items()]
        more = [f"and {len(lines) - _LABELS} more labels"] if len(lines) > _LABELS else []
        return [*lines[:_LABELS], *more]

    def remarks(self) -> list[str]:
        """What has to be known to read the table, one sentence each."""
        falling = [node for node in self.nodes if not self.scales[node].rising]
        remarks = [f"{_RULE}."]
        if falling:
            remarks.append(f"For {', '.join(falling)}, a smaller value means more ability.")
        if any(posterior.approximate for posterior in self.posteriors):
            remarks.append(
                "Profiles hold no draws: each node was taken by its mean and sd, on its own."
            )
        return remarks

    def to_dict(self) -> dict[str, Any]:
        """What differs, the agents with where their numbers come from, and the table, as JSON."""
        return {
            "differs": [
                {"what": one.what, "agents": dict(one.values), "sentence": one.sentence}
                for one in self.differences
            ],
            "agents": [
                {
                    "agent": name,
                    "session": about.get("session", ""),
                    "labels": list(profile.get("labels", [])),
                    "battery": about.get("battery", ""),
                    "backend": about.get("backend", ""),
                    "played_on": words_of_backend(profile),
                    "layout": dict(profile["layout"]),
                    "episodes": about.get("episodes", 0),
                    "successes": about.get("successes", 0),
                }
                for name, profile in self.profiles.items()
                for about in [profile.get("provenance", {})]
            ],
            "nodes": list(self.nodes),
            "same_arenas": self.same_arenas and asdict(self.same_arenas),
            "rates": [
                {"agents": list(pair), **found.to_dict()} for pair, found in self.rates.items()
            ],
            "standings": [row.to_dict() for row in self.standings],
            "approximate": any(posterior.approximate for posterior in self.posteriors),
            "notes": self.notes(),
        }

    def to_frame(self) -> pd.DataFrame:
        """The table, with numbers in the layout's units.

        Returns:
            The columns `node`, `agent`, `unit`, `mean`, `low` and `high` (the 90 % interval),
            `estimate`, `rank`, `most`, the probability of the largest value, and `group`; and of
            how much more the agent that stands first has, `behind`, `behind_low`, `behind_high`
            and the probability that it has more, `more`.
        """
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for row in self.standings:
            behind = row.behind
            rows.append(
                {
                    **{key: getattr(row, key) for key in ("node", "agent", "unit", "mean")},
                    "low": row.hdi[0],
                    "high": row.hdi[1],
                    "estimate": row.words.estimate,
                    "rank": row.rank,
                    "most": row.most,
                    "group": row.group,
                    "behind": behind and behind.mean,
                    "behind_low": behind and behind.hdi[0],
                    "behind_high": behind and behind.hdi[1],
                    "more": behind and behind.more,
                }
            )
        return pd.DataFrame(rows)

    def plot(self, ax: Any = None) -> Any:
        """Draw the agents' intervals side by side.

        Args:
            ax: An axis for each node to draw on; None for a new figure.
        """
        return compared_nodes(self.profiles, self.standings, self.scales, self.nodes, ax)

    def _table(self) -> tuple[list[str], list[list[str]], str]:
        rows = [row.cells() for row in few_standings(self.standings)]
        return list(rows[0]), [list(row.values()) for row in rows], "Agents side by side"

    def __repr__(self) -> str:
        return "\n".join([*self.notes(), table_text(*self._table()), *self.remarks()])

    def to_html(self) -> str:
        """What a notebook shows."""
        return stacked_html(
            *map(line_html, self.notes()),
            table_html(*self._table()),
            *map(line_html, self.remarks()),
        )

    _repr_html_ = to_html


def compare(
    agents: Mapping[str, Measured],
    *,
    mixed: bool = False,
    margin: float = MARGIN,
    common: Mapping[str, Outcomes] | None = None,
    within: Mapping[str, float] | None = None,
) -> Comparison:
    """Put agents side by side.

    Args:
        agents: What is known of each, by name; two at least.
        mixed: Whether agents that were measured with different layouts, backends or observations
            may be compared. Of different layouts, the nodes are compared that have the same name,
            kind, unit and range in all.
        margin: Largest difference of success rates that counts as alike.
        common: What each made of the arenas that were drawn for all; None to take it from what is
            known of each.
        within: By node, as `Comparison.within` has it.

    Raises:
        MixedError: They differ in that, and `mixed` was not said.
        ValueError: There are not two agents, their layouts share no node, or a margin is of none.
    """
    if len(agents) < 2:
        raise ValueError(f"a comparison takes two agents at least; {len(agents)} is given")
    profiles = {name: profile_of(agent) for name, agent in agents.items()}
    known: dict[str, str] = {}
    for name, profile in profiles.items():
        session = str(_about(profile).get("session") or name)
        if (same := known.setdefault(session, name)) != name:
            raise ValueError(
                f"{same} and {name} are one session, {session}, given twice: that says nothing "
                "about two agents. Give each once"
            )
    what_differs = differing(profiles)
    grave = [difference for difference in what_differs if difference.forbids("compare")]
    if grave and not mixed:
        raise MixedError(grave)
    nodes = _common_nodes(profiles)
    if not nodes:
        raise ValueError(
            "the layouts share no node of the same name, kind, unit and range, so there is nothing "
            "to compare"
        )
    insist_margins(within or {}, nodes)
    one_layout = not any(difference.what == "layout" for difference in what_differs)
    posteriors: list[Posterior] = []
    for name, agent in agents.items():
        own = (
            Posterior.of_profile(name, profiles[name])
            if isinstance(agent, Mapping)
            else Posterior.of_draws(name, agent.layout, agent.draws)
        )
        if not one_layout:
            places = [own.nodes.index(node) for node in nodes]
            units = tuple(own.units[place] for place in places)
            own = replace(own, layout=MIXED, nodes=nodes, units=units, draws=own.draws[:, places])
        posteriors.append(own)
    return Comparison(
        {
            name: {**profile, "nodes": {node: profile["nodes"][node] for node in nodes}}
            for name, profile in profiles.items()
        },
        posteriors,
        _scales(list(agents.values()), posteriors[0]),
        what_differs,
        _same_arenas(list(agents.values()), profiles),
        _rates(_drawn_for_all(agents, profiles) if common is None else common, margin),
        within or {},
    )


def insist_margins(within: Mapping[str, float], nodes: Sequence[str]) -> None:
    """Refuse margins of other nodes than these, and those that nobody is within.

    Raises:
        ValueError: There is one.
    """
    for node, most in within.items():
        if node not in nodes:
            hint = guess(node, nodes)
            raise ValueError(f"no node {node!r} to be alike in; nodes: {', '.join(nodes)}.{hint}")
        if not most > 0.0:
            raise ValueError(f"a margin of {most:g} for {node}: give more than 0")


def profile_of(agent: Measured) -> Row:
    """The profile of what is known of an agent."""
    return cast("Row", agent) if isinstance(agent, Mapping) else agent.profile


def _scales(agents: Sequence[Measured], first: Posterior) -> dict[str, Scale]:
    """How nodes are read, by the layout of the first agent and by what all of them played."""
    plain = {node: plain_scale(unit) for node, unit in zip(first.nodes, first.units, strict=True)}
    measured = [agent for agent in agents if not isinstance(agent, Mapping)]
    if not measured:
        return plain | {n: s for n, s in profile_scales(agents[0]).items() if n in plain}
    layout = measured[0].layout
    played = [
        agent.features
        for agent in measured
        if agent.layout.feature_names == layout.feature_names and len(agent.features)
    ]
    features = np.concatenate(played) if played else None
    return {node: scale_of(layout, layout.latent_names.index(node), features) for node in plain}


def _same_arenas(agents: Sequence[Measured], profiles: Mapping[str, Row]) -> CommonInstances | None:
    """Who passed which of the arenas that both of two agents played on one battery."""
    passed = [getattr(agent, "passed", {}) for agent in agents]
    batteries = {_about(profile).get("battery_digest") for profile in profiles.values()}
    if len(agents) != 2 or len(batteries) > 1:
        return None
    return common_instances(*passed) if passed[0].keys() & passed[1].keys() else None


def _part(about: Row, name: str) -> Row:
    return about.get(name) or {}


def _drawn_for_all(
    agents: Mapping[str, Measured], profiles: Mapping[str, Row]
) -> dict[str, Outcomes]:
    """What agents made of the arenas that their sessions, or one another's, were given to play."""
    abouts = [_about(profile) for profile in profiles.values()]
    if len({about.get("battery_digest") for about in abouts}) > 1:
        return {}
    faced: set[Any] = {_part(about, "comparison").get("session") for about in abouts}
    orders: list[list[str]] = [
        list(_part(about, "policy").get("order") or [])
        for about in abouts
        if str(about.get("session", "")).removeprefix("sessions/") not in faced
    ]
    same = takewhile(lambda names: len(set(names)) == 1, zip(*orders, strict=False))
    drawn = [names[0] for names in same]
    passed = {name: getattr(agent, "passed", {}) for name, agent in agents.items()}
    return {name: [known.get(one) for one in drawn] for name, known in passed.items()}


def _rates(outcomes: Mapping[str, Outcomes], margin: float) -> dict[tuple[str, str], Any]:
    few = {name: known for name, known in outcomes.items() if any(p is not None for p in known)}
    return compare_all(few, margin) if 2 <= len(outcomes) <= FAMILY else {}


def differing(profiles: Mapping[str, Row]) -> list[Difference]:
    """What was different when agents were measured, the gravest first.

    Args:
        profiles: Profile by agent.
    """
    conditions = {
        name: conditions_of(_about(profile), profile["layout"])
        for name, profile in profiles.items()
    }
    return [*unlike(conditions), *_changed_agents(profiles)]


def _changed_agents(profiles: Mapping[str, Row]) -> list[Difference]:
    """Agents of one name that are not the same, or of which nobody can tell."""
    called: dict[str, list[str]] = {}
    for name, profile in profiles.items():
        if agent := str(_about(profile).get("agent", "")):
            called.setdefault(agent, []).append(name)
    changed: list[Difference] = []
    for agent, names in called.items():
        known = {name: _fingerprint(profiles[name]) for name in names}
        first, *others = known.values()
        if any(differences(first, other) for other in others):
            shown = {name: fingerprint.short for name, fingerprint in known.items()}
            changed.append(Difference(f"fingerprint of {agent}", shown))
    return changed


def _fingerprint(profile: Row) -> AgentFingerprint:
    fields: Row = _about(profile).get("agent_fingerprint") or {}
    return AgentFingerprint(**{key: value for key, value in fields.items() if key != "digest"})


def _about(profile: Row) -> Row:
    return profile.get("provenance", {})


def _common_nodes(profiles: Mapping[str, Row]) -> tuple[str, ...]:
    """Nodes that are the same in every layout, in the order of the first."""
    first, *others = (
        {name: [node.get(key) for key in ("kind", "unit", "range")] for name, node in nodes}
        for nodes in (profile["nodes"].items() for profile in profiles.values())
    )
    return tuple(
        name for name, node in first.items() if all(other.get(name) == node for other in others)
    )
