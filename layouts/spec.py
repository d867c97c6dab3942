"""A measurement layout as data: features, latent nodes with priors, derived nodes, outcome."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from animalcat.layouts.codec import (
    SpecificationError,
    as_mapping,
    check_choices,
    decode,
    encode,
)
from animalcat.layouts.links import LINKS, ONE, Link, LogisticMargin
from animalcat.layouts.priors import PRIORS, Prior

Kind: TypeAlias = Literal["capability", "bias", "robustness"]


@dataclass(frozen=True, slots=True)
class Feature:
    """A meta-feature of instances, as it is measured.

    Attributes:
        name: As in the table of instances.
        unit: Its unit; "1" where it has none.
        low: Least value.
        high: Largest value.
        about: What it is, in one line.
    """

    name: str
    unit: str
    low: float
    high: float
    about: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"range [{self.low}, {self.high}] is empty")


@dataclass(frozen=True, slots=True)
class Latent:
    """A node of the cognitive profile.

    Attributes:
        name: As in the paper.
        kind: Capability, bias or robustness. 0 of a robustness node means no noise.
        unit: Its unit.
        prior: Its prior; the range is that of the prior.
        about: How to read a value, in one line.
    """

    name: str
    kind: Kind
    unit: str
    prior: Prior
    about: str = ""


@dataclass(frozen=True, slots=True)
class Derived:
    """A node that follows from its parents by a linking function."""

    name: str
    unit: str
    link: Link


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """The outcome is success with the probability that a node gives."""

    probability: str


@dataclass(frozen=True, slots=True)
class Covers:
    """Which instances a layout describes: names by glob, and families (`FAMILY-...`)."""

    instances: tuple[str, ...] = ()
    families: tuple[str, ...] = ()

    def __contains__(self, instance: str) -> bool:
        return any(fnmatchcase(instance, glob) for glob in self.instances) or any(
            instance.startswith(f"{family}-") for family in self.families
        )


@dataclass(frozen=True)
class Layout:
    """A measurement layout. Making one checks it.

    Attributes:
        name: Its name.
        variant: Which variant of it.
        features: Columns of every feature array, in this order.
        latents: Columns of every array of draws, in this order.
        derived: Derived nodes, in any order.
        outcome: What is observed.
        covers: Which instances it describes.
        source: Where it comes from.

    Raises:
        SpecificationError: The graph is wrong; the message names the node.
    """

    name: str
    variant: str
    features: tuple[Feature, ...]
    latents: tuple[Latent, ...]
    derived: tuple[Derived, ...]
    outcome: Bernoulli
    covers: Covers = field(default_factory=Covers)
    source: str = ""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of columns."""
        return tuple(f.name for f in self.features)

    @property
    def latent_names(self) -> tuple[str, ...]:
        """Names of the latent nodes, in the order of columns."""
        return tuple(n.name for n in self.latents)

    @cached_property
    def capabilities(self) -> tuple[int, ...]:
        """Columns of the latent nodes that are capabilities."""
        return tuple(i for i, n in enumerate(self.latents) if n.kind == "capability")

    @cached_property
    def ordered(self) -> tuple[Derived, ...]:
        """Derived nodes, each after its parents."""
        by_name = {node.name: node for node in self.derived}
        order = TopologicalSorter({n.name: n.link.parents for n in self.derived}).static_order()
        return tuple(by_name[name] for name in order if name in by_name)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the specification."""
        text = json.dumps(to_dict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def check_features(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Insist on finite features within their declared ranges.

        Args:
            values: (instances, features), in the units of the features.

        Returns:
            The same as float64, C order.

        Raises:
            ValueError: The shape is wrong, or a value is missing or out of range.
        """
        array = np.ascontiguousarray(values, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != len(self.features):
            raise ValueError(
                f"features have shape {array.shape}; layout {self.name} wants (instances, "
                f"{len(self.features)}): {', '.join(self.feature_names)}"
            )
        for column, feature in zip(array.T, self.features, strict=True):
            bad = np.flatnonzero(~((column >= feature.low) & (column <= feature.high)))
            if bad.size:
                raise ValueError(
                    f"feature {feature.name} of row {bad[0]} is {column[bad[0]]:g} {feature.unit}; "
                    f"layout {self.name} takes {feature.low:g} to {feature.high:g}"
                )
        return array


def check_outcomes(values: npt.ArrayLike, rows: int) -> npt.NDArray[np.float64]:
    """Insist on one outcome, 0 or 1, a row of features.

    Raises:
        ValueError: The number differs, or a value is neither 0 nor 1.
    """
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (rows,):
        raise ValueError(f"{array.shape} outcomes for {rows} rows of features")
    bad = np.flatnonzero((array != 0.0) & (array != 1.0))
    if bad.size:
        raise ValueError(f"outcome {bad[0]} is {array[bad[0]]}; success is 1, failure 0")
    return array


def to_dict(layout: Layout) -> dict[str, Any]:
    """The specification as plain data, as a YAML file has it."""
    priors = {cls: name for name, cls in PRIORS.items()}
    links = {cls: name for name, cls in LINKS.items()}
    return {
        "name": layout.name,
        "variant": layout.variant,
        "source": layout.source,
        "features": {f.name: _without_name(encode(f)) for f in layout.features},
        "latents": {
            n.name: {
                "kind": n.kind,
                "unit": n.unit,
                "prior": {priors[type(n.prior)]: encode(n.prior)},
                "about": n.about,
            }
            for n in layout.latents
        },
        "derived": {
            n.name: {"unit": n.unit, "link": {links[type(n.link)]: encode(n.link)}}
            for n in layout.derived
        },
        "outcome": {"bernoulli": encode(layout.outcome)},
        "covers": encode(layout.covers),
    }


def from_dict(data: object) -> Layout:
    """A layout from plain data.

    Raises:
        SpecificationError: It is wrong; the message says where and lists the choices.
    """
    top = as_mapping(data, "layout")
    keys = ("name", "variant", "source", "features", "latents", "derived", "outcome", "covers")
    check_choices(top, dict.fromkeys(keys), "layout: key")
    for key in ("name", "features", "latents", "derived", "outcome"):
        if key not in top:
            raise SpecificationError(f"layout: {key} missing")
    outcome = decode_tagged({"bernoulli": Bernoulli}, top["outcome"], "outcome")
    return Layout(
        name=str(top["name"]),
        variant=str(top.get("variant", "")),
        source=str(top.get("source", "")),
        features=tuple(
            decode(Feature, {"name": name, **as_mapping(value, f"feature {name}")}, name)
            for name, value in as_mapping(top["features"], "features").items()
        ),
        latents=tuple(
            _latent(name, as_mapping(value, f"latent {name}"))
            for name, value in as_mapping(top["latents"], "latents").items()
        ),
        derived=tuple(
            _derived(name, as_mapping(value, f"node {name}"))
            for name, value in as_mapping(top["derived"], "derived").items()
        ),
        outcome=outcome,
        covers=decode(Covers, top.get("covers", {}), "covers"),
    )


def decode_tagged(choices: Mapping[str, type[Any]], data: object, where: str) -> Any:
    """Build one of several dataclasses from `{tag: fields}`.

    Raises:
        SpecificationError: The tag is unknown, or the fields do not fit.
    """
    tagged = as_mapping(data, where)
    check_choices(tagged, choices, where)
    if len(tagged) != 1:
        raise SpecificationError(f"{where}: exactly one of {', '.join(choices)} is wanted")
    ((tag, value),) = tagged.items()
    return decode(choices[tag], value, f"{where} ({tag})")


def _latent(name: str, data: Mapping[str, object]) -> Latent:
    prior = decode_tagged(PRIORS, data.get("prior", {}), f"prior of {name}")
    rest = {key: value for key, value in data.items() if key != "prior"}
    check_choices(rest, dict.fromkeys(("kind", "unit", "about")), f"latent {name}: key")
    bare = decode(_LatentWords, rest, f"latent {name}")
    return Latent(name, bare.kind, bare.unit, prior, bare.about)


def _derived(name: str, data: Mapping[str, object]) -> Derived:
    check_choices(data, dict.fromkeys(("unit", "link")), f"node {name}: key")
    link = decode_tagged(LINKS, data.get("link", {}), f"link of {name}")
    return Derived(name, str(data.get("unit", ONE)), link)


@dataclass(frozen=True, slots=True)
class _LatentWords:
    kind: Kind
    unit: str
    about: str = ""


def _without_name(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "name"}


def _check(layout: Layout) -> None:
    roots = [*layout.features, *layout.latents]
    names = [node.name for node in (*roots, *layout.derived)]
    for name in names:
        if not name or names.count(name) > 1:
            raise SpecificationError(f"node {name!r} is declared {names.count(name)} times")
    for node in layout.derived:
        for parent in node.link.parents:
            if parent not in names:
                valid = ", ".join(sorted(names))
                raise SpecificationError(
                    f"node {node.name}: {parent!r} is no node of the layout; valid: {valid}"
                )
    try:
        ordered = layout.ordered
    except CycleError as error:
        cycle = " -> ".join(cast("list[str]", error.args[1]))
        raise SpecificationError(f"the graph has a cycle: {cycle}") from None
    units = {node.name: node.unit for node in (*roots, *layout.derived)}
    shares = {node.name: node.low >= 0 and node.high <= 1 for node in layout.features}
    shares |= {n.name: n.prior.low >= 0 and n.prior.high <= 1 for n in layout.latents}
    for node in ordered:
        if problem := node.link.unit_problem(units, node.unit):
            raise SpecificationError(f"node {node.name}: units differ: {problem}")
        shares[node.name] = node.link.is_probability(shares)
    _check_outcome(layout, shares)
    _check_margins(layout)


def _check_outcome(layout: Layout, shares: Mapping[str, bool]) -> None:
    root = layout.outcome.probability
    parents = {node.name: node.link.parents for node in layout.derived}
    if root not in parents:
        raise SpecificationError(
            f"outcome: {root!r} is no derived node; valid: {', '.join(sorted(parents))}"
        )
    if not shares[root]:
        raise SpecificationError(f"outcome: node {root} is not sure to be within [0, 1]")
    reached: set[str] = set()
    pending = [root]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending.extend(parents.get(name, ()))
    lost = [n for n in (*layout.feature_names, *layout.latent_names, *parents) if n not in reached]
    if lost:
        raise SpecificationError(
            f"{', '.join(lost)}: no influence on the outcome; every node must reach {root}"
        )
    if not layout.latents:
        raise SpecificationError("latents: a layout needs one at least")


def _check_margins(layout: Layout) -> None:
    """Demands must follow from features alone: margins are shown per instance."""
    latent = set(layout.latent_names)
    for node in layout.ordered:
        if latent.intersection(node.link.parents):
            latent.add(node.name)
    for node in layout.ordered:
        if isinstance(node.link, LogisticMargin) and node.link.demand in latent:
            raise SpecificationError(
                f"node {node.name}: demand {node.link.demand} depends on the agent; "
                "a demand follows from features alone"
            )


def finite_range(prior: Prior) -> tuple[float | None, float | None]:
    """The range of a prior as JSON has it: None where it has no end."""
    low, high = prior.low, prior.high
    return (low if math.isfinite(low) else None, high if math.isfinite(high) else None)
