"""What a comparison of agents says: what they share, how they differ, and where they stand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from animalcat.envs.agents.fingerprint import AgentFingerprint, differences
from animalcat.layouts.adaptive.paired import CommonInstances, shared
from animalcat.layouts.checking.compare import Posterior
from animalcat.layouts.explaining.wording import Scale, few_of, scale_of
from animalcat.layouts.model.spec import Layout
from animalcat.service.reporting.session_report import observation_words, played_on

Floats = npt.NDArray[np.float64]
Row = Mapping[str, Any]

MIXED: Final = "mixed"
"""Stands for the digest of several layouts of which only the nodes that they share are compared."""


_VALUES: Final = 5
"""Values of what differs that a sentence names at most."""
_LABELS: Final = 8
"""Lines of labels that are shown at most."""


class Measured(Protocol):
    """What is known of an agent that is compared."""

    @property
    def agent(self) -> str:
        """Name of the agent."""
        ...

    @property
    def profile(self) -> Row:
        """The profile, as JSON."""
        ...

    @property
    def layout(self) -> Layout:
        """The layout that was measured."""
        ...

    @property
    def draws(self) -> Floats:
        """The posterior, (draws, latents)."""
        ...

    @property
    def features(self) -> Floats:
        """Features of the episodes that it rests on, (episodes, features)."""
        ...

    @property
    def passed(self) -> Mapping[str, bool]:
        """By instance, whether it was passed when it was first played."""
        ...


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


@dataclass(frozen=True)
class Difference:
    """One thing in which agents were measured differently.

    Attributes:
        what: What it is: "layout", "backend", "observation", "build", "battery", "version" or the
            fingerprint of an agent of one name.
        values: What it was, by agent.
        grave: Whether agents that differ in it are compared only on demand.
    """

    what: str
    values: Mapping[str, str]
    grave: bool

    @property
    def sentence(self) -> str:
        """The difference in a sentence."""
        by_value: dict[str, list[str]] = {}
        for agent, value in self.values.items():
            by_value.setdefault(value or "not known", []).append(agent)
        said = [f"{few_of(agents)}: {value}" for value, agents in by_value.items()]
        more = [f"and {len(said) - _VALUES} more"] if len(said) > _VALUES else []
        return f"The {self.what} differs ({'; '.join([*said[:_VALUES], *more])})."


@dataclass(frozen=True, eq=False)
class Compared:
    """Agents side by side.

    Attributes:
        results: What each session found, by agent.
        differences: What was different when they were measured.
        posteriors: Draws of the nodes that they share, one an agent.
        profiles: Their profiles with these nodes alone, by agent.
        scales: How the values of a node are read, for all agents alike.
    """

    results: Mapping[str, Measured]
    differences: Sequence[Difference]
    posteriors: Sequence[Posterior]
    profiles: Mapping[str, Row]
    scales: Mapping[str, Scale]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes that are compared."""
        return self.posteriors[0].nodes

    def notes(self, *, pairs: bool = False) -> list[str]:
        """What has to be known before any number is read, one sentence each.

        Args:
            pairs: Whether it is said of every two agents who passed what; of two it always is.
        """
        different = [difference.sentence for difference in self.differences]
        return [*self.labels(), *different, *self.sentences(pairs=pairs)]

    def labels(self) -> list[str]:
        """What every reader has to know of agents, with their names, a line for each label."""
        labelled: dict[str, list[str]] = {}
        for name, result in self.results.items():
            for label in result.profile.get("labels", []):
                labelled.setdefault(label, []).append(name)
        lines = [f"{few_of(names)}: {label}" for label, names in labelled.items()]
        more = [f"and {len(lines) - _LABELS} more labels"] if len(lines) > _LABELS else []
        return [*lines[:_LABELS], *more]

    def same_arenas(self, *, pairs: bool = False) -> dict[tuple[str, str], CommonInstances]:
        """By two agents on the same battery, who passed which of the arenas that both played.

        Args:
            pairs: Whether of every two; else of two agents alone.
        """
        if not pairs and len(self.results) > 2:
            return {}
        passed = {name: result.passed for name, result in self.results.items()}
        batteries = {name: _battery(result.profile) for name, result in self.results.items()}
        return {
            (first, second): shared(passed[first], passed[second])
            for first, second in combinations(self.results, 2)
            if batteries[first] == batteries[second]
            and passed[first].keys() & passed[second].keys()
        }

    def sentences(self, *, pairs: bool = False) -> list[str]:
        """Who passed what of the arenas that two agents played, a sentence for every two.

        Args:
            pairs: As for `same_arenas`.
        """
        return [
            f"{first} and {second}: {common.words(first, second)}."
            for (first, second), common in self.same_arenas(pairs=pairs).items()
        ]

    def to_dict(self, *, pairs: bool = False) -> dict[str, Any]:
        """What differs, and the agents with where their numbers come from, as JSON values.

        Args:
            pairs: As for `same_arenas`.
        """
        return {
            "differs": [
                {
                    "what": difference.what,
                    "agents": dict(difference.values),
                    "sentence": difference.sentence,
                }
                for difference in self.differences
            ],
            "agents": [
                {
                    "agent": name,
                    "session": about.get("session", ""),
                    "labels": list(result.profile.get("labels", [])),
                    "battery": about.get("battery", ""),
                    "backend": about.get("backend", ""),
                    "played_on": played_on(result.profile),
                    "layout": dict(result.profile["layout"]),
                    "episodes": about.get("episodes", 0),
                    "successes": about.get("successes", 0),
                }
                for name, result in self.results.items()
                for about in [result.profile.get("provenance", {})]
            ],
            "nodes": list(self.nodes),
            "same_arenas": [
                {
                    "agent": first,
                    "other": second,
                    **asdict(common),
                    "words": common.words(first, second),
                }
                for (first, second), common in self.same_arenas(pairs=pairs).items()
            ],
        }


def compared(results: Mapping[str, Measured], *, mixed: bool = False) -> Compared:
    """Put agents side by side.

    Args:
        results: What each session found, by agent; two at least.
        mixed: Whether agents that were measured with different layouts, backends or observations
            may be compared. Of different layouts, the nodes are compared that have the same name,
            kind, unit and range in all.

    Raises:
        MixedError: They differ in that, and `mixed` was not said.
        ValueError: There are not two agents, or their layouts share no node.
    """
    if len(results) < 2:
        raise ValueError(f"a comparison takes two agents at least; {len(results)} is given")
    what_differs = differences_of(
        {name: result.profile for name, result in results.items()}, mixed=mixed
    )
    shared = _shared(results)
    if not shared:
        raise ValueError(
            "the layouts share no node of the same name, kind, unit and range, so there is nothing "
            "to compare"
        )
    one_layout = not any(difference.what == "layout" for difference in what_differs)
    profiles: dict[str, Row] = {}
    posteriors: list[Posterior] = []
    scales = _scales(results, shared)
    for name, result in results.items():
        own = Posterior.of_draws(name, result.layout, result.draws)
        if not one_layout:
            places = [own.nodes.index(node) for node in shared]
            units = tuple(own.units[place] for place in places)
            own = replace(
                own, layout=MIXED, nodes=tuple(shared), units=units, draws=own.draws[:, places]
            )
        posteriors.append(own)
        layout = dict(result.profile["layout"])
        profiles[name] = {
            **result.profile,
            "layout": layout if one_layout else {**layout, "digest": MIXED},
            "nodes": {node: result.profile["nodes"][node] for node in shared},
        }
    return Compared(results, what_differs, posteriors, profiles, scales)


def _scales(results: Mapping[str, Measured], nodes: Sequence[str]) -> dict[str, Scale]:
    """How nodes are read, by the layout of the first agent and by what all of them played."""
    layout = next(iter(results.values())).layout
    played = [
        result.features
        for result in results.values()
        if result.layout.feature_names == layout.feature_names and len(result.features)
    ]
    features = np.concatenate(played) if played else None
    return {node: scale_of(layout, layout.latent_names.index(node), features) for node in nodes}


def differences_of(profiles: Mapping[str, Row], *, mixed: bool) -> list[Difference]:
    """What was different when agents were measured, where they may be compared.

    Args:
        profiles: Profile by agent.
        mixed: As for `compared`.

    Raises:
        MixedError: As for `compared`.
    """
    what_differs = differing(profiles)
    if not mixed and (grave := [difference for difference in what_differs if difference.grave]):
        raise MixedError(grave)
    return what_differs


def differing(profiles: Mapping[str, Row]) -> list[Difference]:
    """What was different when agents were measured, the gravest first.

    Args:
        profiles: Profile by agent.
    """
    what_differs: list[Difference] = []
    for what, of, grave in (
        ("layout", _layout, True),
        ("backend", _backend, True),
        ("observation", _observation, True),
        ("build", _build, False),
        ("battery", _battery, False),
        ("version of animalcat", _version, False),
    ):
        values = {name: of(profile) for name, profile in profiles.items()}
        if len(set(values.values())) > 1:
            what_differs.append(Difference(what, values, grave))
    return [*what_differs, *_changed_agents(profiles)]


def _changed_agents(profiles: Mapping[str, Row]) -> list[Difference]:
    """Agents of one name that are not the same, or of which nobody can tell."""
    called: dict[str, list[str]] = {}
    for name, profile in profiles.items():
        called.setdefault(str(_about(profile).get("agent", "")), []).append(name)
    changed: list[Difference] = []
    for agent, names in called.items():
        known = {name: _fingerprint(profiles[name]) for name in names}
        first, *others = known.values()
        if any(differences(first, other) for other in others):
            shown = {name: fingerprint.short for name, fingerprint in known.items()}
            changed.append(Difference(f"fingerprint of {agent}", shown, False))
    return changed


def _fingerprint(profile: Row) -> AgentFingerprint:
    fields: Row = _about(profile).get("agent_fingerprint") or {}
    return AgentFingerprint(**{key: value for key, value in fields.items() if key != "digest"})


def _about(profile: Row) -> Row:
    return profile.get("provenance", {})


def _layout(profile: Row) -> str:
    layout: Row = profile["layout"]
    return f"{layout['name']} ({layout['variant'] or 'default'}), digest {layout['digest'][:12]}"


def _backend(profile: Row) -> str:
    return str(_about(profile).get("backend") or "")


def _observation(profile: Row) -> str:
    spec: Row = _about(profile).get("observation_spec") or {}
    words = observation_words(spec)
    return f"{words} ({json.dumps(spec, sort_keys=True)})" if spec else words


def _build(profile: Row) -> str:
    played: Sequence[Row] = _about(profile).get("played_with") or ()
    builds: dict[str, None] = {}
    for with_versions in played:
        versions: Row = with_versions["versions"]
        rules = [f"{key} {versions[key]}" for key in ("motion", "looks") if key in versions]
        builds[str(versions.get("unity-build") or ", ".join(rules))] = None
    return "; ".join(filter(None, builds))


def _battery(profile: Row) -> str:
    about = _about(profile)
    return f"{about.get('battery', '')}, digest {str(about.get('battery_digest', ''))[:12]}"


def _version(profile: Row) -> str:
    versions: Row = _about(profile).get("versions") or {}
    return str(versions.get("animalcat", ""))


def _shared(results: Mapping[str, Measured]) -> list[str]:
    """Nodes that are the same in every layout, in the order of the first."""
    each = [
        {
            node.name: (node.kind, node.unit, node.prior.low, node.prior.high)
            for node in result.layout.latents
        }
        for result in results.values()
    ]
    return [
        name for name, node in each[0].items() if all(other.get(name) == node for other in each[1:])
    ]
