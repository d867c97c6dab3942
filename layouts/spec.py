"""A measurement layout as data: features, latent nodes with priors, derived nodes, outcome."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from animalcat.layouts.codec import (
    SpecificationError,
    as_mapping,
    check_choices,
    decode,
    encode,
)
from animalcat.layouts.expressions import ONE
from animalcat.layouts.links import LINKS, Gate
from animalcat.layouts.nodes import (
    OUTCOMES,
    Bernoulli,
    Beta,
    Binomial,
    Covers,
    Derived,
    Feature,
    Kind,
    Latent,
    Outcome,
)
from animalcat.layouts.priors import PRIORS, Prior
from animalcat.layouts.validation import check_graph, ordered

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Covers",
    "Derived",
    "Feature",
    "Kind",
    "Latent",
    "Layout",
    "Outcome",
    "SpecificationError",
    "finite_range",
    "from_dict",
    "to_dict",
]


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
        about: What this variant is, and how it differs from the source.

    Raises:
        SpecificationError: The graph is wrong; the message names the node.
    """

    name: str
    variant: str
    features: tuple[Feature, ...]
    latents: tuple[Latent, ...]
    derived: tuple[Derived, ...]
    outcome: Outcome
    covers: Covers = field(default_factory=Covers)
    source: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        check_graph(self.features, self.latents, self.derived, self.outcome)

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
        return ordered(self.derived)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the specification."""
        text = json.dumps(_as_floats(to_dict(self)), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def gates(self) -> frozenset[str]:
        """Features that gates hang on, which are hence 0 or 1."""
        return frozenset(node.link.when for node in self.derived if isinstance(node.link, Gate))

    def check_features(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Insist on finite features within their declared ranges.

        Args:
            values: (instances, features), in the units of the features; NaN is a missing one.

        Returns:
            The same as float64, C order; what was missing is filled by its declared rule.

        Raises:
            ValueError: The shape is wrong, or a value is out of range, or missing without a rule.
        """
        array = np.array(values, dtype=np.float64, order="C")
        if array.ndim != 2 or array.shape[1] != len(self.features):
            raise ValueError(
                f"features have shape {array.shape}; layout {self.name} wants (instances, "
                f"{len(self.features)}): {', '.join(self.feature_names)}"
            )
        self._fill_missing(array)
        for column, feature in zip(array.T, self.features, strict=True):
            bad = np.flatnonzero(~((column >= feature.low) & (column <= feature.high)))
            wanted = f"{feature.low:g} to {feature.high:g}"
            if not bad.size and feature.name in self.gates:
                bad = np.flatnonzero((column != 0.0) & (column != 1.0))
                wanted = "0 or 1"
            if bad.size:
                raise ValueError(
                    f"feature {feature.name} of row {bad[0]} is {column[bad[0]]:g} {feature.unit}; "
                    f"layout {self.name} takes {wanted}"
                )
        return array

    def check_outcomes(
        self, values: npt.ArrayLike, features: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Insist on one outcome of the layout's kind for every row of features.

        Args:
            values: (instances,): 0 or 1, successes of the trials, or scores.
            features: (instances, features), as `check_features` gave them.

        Returns:
            The same as float64; scores nearer to 0 or 1 than the declared edge are moved there.

        Raises:
            ValueError: The number differs, or a value does not fit.
        """
        array = np.array(values, dtype=np.float64, order="C")
        if array.shape != (len(features),):
            raise ValueError(f"{array.shape} outcomes for {len(features)} rows of features")
        match self.outcome:
            case Bernoulli():
                fits = (array == 0.0) | (array == 1.0)
                wanted = "success is 1, failure 0"
            case Binomial(_, trials):
                most = features[:, self.feature_names.index(trials)]
                fits = (array >= 0.0) & (array <= most) & (array == np.floor(array))
                wanted = f"a whole number from 0 to {trials} is wanted"
            case Beta(_, _, edge):
                fits = (array >= 0.0) & (array <= 1.0)
                if edge == 0.0:
                    fits &= (array != 0.0) & (array != 1.0)
                wanted = "a score within 0 and 1 is wanted" + ", without its ends" * (edge == 0.0)
                array = np.where(fits, np.clip(array, edge, 1.0 - edge), array)
        bad = np.flatnonzero(~fits)
        if bad.size:
            raise ValueError(f"outcome {bad[0]} is {array[bad[0]]:g}; {wanted}")
        return array

    def _fill_missing(self, array: npt.NDArray[np.float64]) -> None:
        names = self.feature_names
        for column, feature in zip(array.T, self.features, strict=True):
            if feature.if_missing is not None:
                column[np.isnan(column)] = feature.if_missing
        for column, feature in zip(array.T, self.features, strict=True):
            if feature.only_with:
                shut = array[:, names.index(feature.only_with)] == 0.0
                column[np.isnan(column) & shut] = feature.low


def to_dict(layout: Layout) -> dict[str, Any]:
    """The specification as plain data, as a YAML file has it."""
    priors = {cls: name for name, cls in PRIORS.items()}
    links = {cls: name for name, cls in LINKS.items()}
    outcomes = {cls: name for name, cls in OUTCOMES.items()}
    return {
        "name": layout.name,
        "variant": layout.variant,
        "source": layout.source,
        "about": layout.about,
        "features": {f.name: _without_name(encode(f)) for f in layout.features},
        "latents": {
            n.name: {
                "kind": n.kind,
                "unit": n.unit,
                "prior": {priors[type(n.prior)]: encode(n.prior)},
                "about": n.about,
                "noiseless": n.noiseless,
            }
            for n in layout.latents
        },
        "derived": {
            n.name: {"unit": n.unit, "link": {links[type(n.link)]: encode(n.link)}}
            for n in layout.derived
        },
        "outcome": {outcomes[type(layout.outcome)]: encode(layout.outcome)},
        "covers": encode(layout.covers),
    }


def from_dict(data: object) -> Layout:
    """A layout from plain data.

    Raises:
        SpecificationError: It is wrong; the message says where and lists the choices.
    """
    top = as_mapping(data, "layout")
    needed = ("name", "features", "latents", "derived", "outcome")
    check_choices(
        top, dict.fromkeys((*needed, "variant", "source", "about", "covers")), "layout: key"
    )
    for key in needed:
        if key not in top:
            raise SpecificationError(f"layout: {key} missing")
    return Layout(
        name=str(top["name"]),
        variant=str(top.get("variant", "")),
        source=str(top.get("source", "")),
        about=str(top.get("about", "")),
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
        outcome=decode_tagged(OUTCOMES, top["outcome"], "outcome"),
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
    bare = decode(_LatentWords, rest, f"latent {name}")
    return Latent(name, bare.kind, bare.unit, prior, bare.about, bare.noiseless)


def _derived(name: str, data: Mapping[str, object]) -> Derived:
    check_choices(data, dict.fromkeys(("unit", "link")), f"node {name}: key")
    link = decode_tagged(LINKS, data.get("link", {}), f"link of {name}")
    return Derived(name, str(data.get("unit", ONE)), link)


@dataclass(frozen=True, slots=True)
class _LatentWords:
    kind: Kind
    unit: str
    about: str = ""
    noiseless: float = 0.0


def _as_floats(value: Any) -> Any:
    """The same with every number a float: 0 in Python is the 0.0 that YAML is read as."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        return {key: _as_floats(entry) for key, entry in entries.items()}
    if isinstance(value, list):
        return [_as_floats(entry) for entry in cast("list[Any]", value)]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_number else value


def _without_name(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "name"}


def finite_range(prior: Prior) -> tuple[float | None, float | None]:
    """The range of a prior as JSON has it: None where it has no end."""
    low, high = prior.low, prior.high
    return (low if math.isfinite(low) else None, high if math.isfinite(high) else None)
