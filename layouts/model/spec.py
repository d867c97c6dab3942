"""A measurement layout as data: features, latent nodes with priors, derived nodes, and outcomes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, Final, Self, cast

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, model_validator

from animalcat.layouts.model.calibration import (
    EASINESS,
    TAUGHT,
    Calibration,
    CalibrationText,
    InstanceCalibration,
)
from animalcat.layouts.model.codec import (
    STRICT,
    SpecificationError,
    Tagged,
    as_names,
    encode,
    encode_model,
)
from animalcat.layouts.model.expressions import ONE
from animalcat.layouts.model.links import LINKS, Gate
from animalcat.layouts.model.nodes import (
    KINDS,
    LIKELIHOODS,
    Bernoulli,
    Beta,
    Binomial,
    Cue,
    Derived,
    Exclusion,
    Feature,
    Kind,
    Latent,
    Likelihood,
    OutcomeNode,
    default_source,
    out_of_range,
)
from animalcat.layouts.model.priors import PRIORS, Prior
from animalcat.layouts.model.tables import guess
from animalcat.layouts.model.validation import check_graph, order_derived
from animalcat.text.marked_yaml import Marked, YamlError, validate

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Cue",
    "Derived",
    "Exclusion",
    "Feature",
    "Kind",
    "Latent",
    "Layout",
    "Likelihood",
    "OutcomeNode",
    "SpecificationError",
    "finite_range",
    "from_dict",
    "to_dict",
]


OWN: Final = "-own"
"""What is added to the name of a layout whose priors were changed."""


@dataclass(frozen=True, repr=False)
class Layout:
    """A measurement layout, checked when it is made; `load_layout` loads one.

    A notebook shows it as its graph.

    Attributes:
        name: Its name.
        variant: The name of this variant.
        features: The columns of every feature array, in this order.
        latents: The columns of every array of draws, in this order.
        derived: Derived nodes, in any order.
        outcomes: What is observed of an instance; the columns of arrays of several outcomes.
        excludes: Conditions under which it does not describe an instance.
        cues: What agents may go by that lack a capability and seem to have it.
        calibration: What earlier agents taught, if it was calibrated by their outcomes.
        source: The publication or project that it comes from.
        about: What this variant is, and how it differs from the source.
        prior_from: Where its priors come from, in a sentence; empty if that is not said.
        measures: Names of the capabilities that it is about; empty where it is about all.
        variants: Names of the variants of the text that it was loaded from, the default first.
        choices: The variants of that text that are for measuring, in order of preference: one of
            them is taken where no variant is asked for (`layouts.library.choice`). Empty where that
            is the default.

    Raises:
        SpecificationError: The graph is wrong; the message names the node.
    """

    name: str
    variant: str
    features: tuple[Feature, ...]
    latents: tuple[Latent, ...]
    derived: tuple[Derived, ...]
    outcomes: tuple[OutcomeNode, ...]
    excludes: tuple[Exclusion, ...] = ()
    cues: tuple[Cue, ...] = ()
    source: str = ""
    about: str = ""
    prior_from: str = ""
    calibration: Calibration | None = None
    measures: tuple[str, ...] = ()
    variants: tuple[str, ...] = field(default=(), compare=False)
    choices: tuple[Layout, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_graph(self.features, self.latents, self.derived, self.outcomes)
        for name in self.measures:
            known = [self.latents[k].name for k in self.capabilities]
            if name not in known:
                raise SpecificationError(
                    f"measures: {name!r} is not a capability; capabilities: {', '.join(known)}"
                )
        if self.calibration is not None:
            sharp = any(taught.sharpness != 1.0 for _, taught in self.calibration.instances)
            for name in TAUGHT if sharp else (EASINESS,):
                if name not in self.feature_names:
                    raise SpecificationError(f"calibration: the layout has no feature {name!r}")
        for exclusion in self.excludes:
            if exclusion.feature in self.feature_names:
                raise SpecificationError(
                    f"excludes {exclusion.feature}: it is a feature of the layout; narrow its range"
                )
        abilities = [self.latents[i].name for i in self.capabilities]
        for cue in self.cues:
            if cue.mimics not in abilities:
                raise SpecificationError(
                    f"cue {cue.name!r}: it mimics {cue.mimics!r}, which is not a capability of the "
                    f"layout; valid: {', '.join(abilities)}"
                )

    def __repr__(self) -> str:
        chosen = f" ({self.variant})" if self.variant else ""
        nodes, told = ", ".join(self.latent_names), ", ".join(self.outcome_names)
        return f"<Layout {self.name}{chosen}: {', '.join(self.feature_names)} -> {nodes} -> {told}>"

    def _repr_html_(self) -> str:
        # What draws stands above what is drawn, so it is looked up when something is shown.
        drawing: Any = import_module("animalcat.plots.graph")
        return drawing.layout_html(self)

    def with_prior(self, node: str, prior: Prior | Mapping[str, object], name: str = "") -> Layout:
        """Change the prior of a node.

        Args:
            node: Name of a latent node.
            prior: Its new prior, in the node's unit: one of `layouts.model.priors`, or as the text
                of a layout has it, such as `{"normal": {"mean": 5, "sd": 2}}`.
            name: Name of the new layout. By default it is the old with `-own` added, since
                sessions take no other layout under the name of a shipped one.

        Raises:
            SpecificationError: There is no such node, or this is no prior, or none that the layout
                can have.
        """
        if node not in self.latent_names:
            known = ", ".join(self.latent_names)
            raise SpecificationError(
                f"with_prior: layout {self.name} has no node {node!r}; nodes: {known}."
                f"{guess(str(node), self.latent_names)}"
            )
        if not isinstance(prior, tuple(PRIORS.values())):
            if not isinstance(prior, Mapping):
                raise SpecificationError(
                    f"with_prior: prior is {prior!r}, and no prior; give one as ScaledBeta(0, 10) "
                    'of animalcat.layouts, or {"scaled_beta": {"low": 0, "high": 10}}'
                )
            data = to_dict(self)
            data["latents"][node]["prior"] = prior
            prior = from_dict(data).latents[self.latent_names.index(node)].prior
        latents = [replace(own, prior=prior) if own.name == node else own for own in self.latents]
        own = self.name if self.name.endswith(OWN) else f"{self.name}{OWN}"
        return replace(self, name=name or own, latents=tuple(latents), variants=(), choices=())

    def to_yaml(self) -> str:
        """The layout as text, of which `load_layout` makes the same layout again."""
        import yaml

        return yaml.safe_dump(
            _brief(to_dict(self)), sort_keys=False, allow_unicode=True, default_flow_style=None,
            width=100,
        )  # fmt: skip

    @property
    def outcome(self) -> Likelihood:
        """Likelihood of the first outcome, for code that handles only one."""
        return self.outcomes[0].likelihood

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """Names of the outcomes, in the order of columns."""
        return tuple(o.name for o in self.outcomes)

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

    def from_standard(self, z: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Map independent standard normal values to the prior of the latent nodes.

        Args:
            z: (..., latents).

        Returns:
            The same shape, in the units of the nodes.
        """
        columns = [node.prior.from_standard(z[..., i]) for i, node in enumerate(self.latents)]
        return np.ascontiguousarray(np.stack(columns, axis=-1))

    def to_standard(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Map values of the latent nodes to independent standard normal values.

        Args:
            values: (draws, latents), in the units of the nodes.
        """
        columns = [node.prior.to_standard(values[:, i]) for i, node in enumerate(self.latents)]
        return np.stack(columns, axis=1)

    @cached_property
    def ordered(self) -> tuple[Derived, ...]:
        """The derived nodes, each after its parents."""
        return order_derived(self.derived)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the model alone, from which draws and predictions follow.

        Name, variant and explanations are left out, and so is everything at its default. So a new
        option of the format does not change the digest of layouts that do not use it.
        """
        model: dict[str, Any] = {
            "features": [[f.name, encode_model(f, ("name", "about"))] for f in self.features],
            "latents": [
                [
                    n.name,
                    encode_model(n, ("name", "about", "reads", "prior")),
                    _tag(_PRIOR_TAGS, n.prior),
                ]
                for n in self.latents
            ],
            "derived": {
                n.name: {"unit": n.unit, "link": _tag(_LINK_TAGS, n.link)} for n in self.derived
            },
            "outcomes": [_outcome_model(o) for o in self.outcomes],
        }
        text = json.dumps(_as_floats(model), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def identity(self) -> str:
        """SHA-256 of all that matters in a session: the model, its cues, and what it excludes.

        That of a calibrated layout covers what was learnt of its instances too. It equals the
        digest if it has none of these.
        """
        if not (self.excludes or self.cues or self.calibration):
            return self.digest
        excludes = {e.feature: [e.above, e.below, e.unit] for e in self.excludes}
        known: list[Any] = [self.digest, excludes]
        if self.cues:
            cues = ([c.mimics, c.feature, c.above, c.below, c.unit] for c in self.cues)
            known.append(sorted(cues, key=str))  # limits may be None, which nothing is less than
        if self.calibration is not None:
            known.append([self.calibration.name, self.calibration.digest])
        text = json.dumps(known, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def gates(self) -> frozenset[str]:
        """Features that decide gates, which are hence 0 or 1."""
        return frozenset(node.link.when for node in self.derived if isinstance(node.link, Gate))

    def why_not(self, values: Mapping[str, float], missing: Mapping[str, str]) -> str:
        """Why the layout does not describe an instance, in words; empty if it does.

        An unknown feature counts against it, unless the feature has a rule for missing values, or
        is filled in while an agent plays.

        Args:
            values: Features of the instance by name; others than the layout's may be among them.
            missing: Why other features are not known, if anything is known about that.
        """
        for feature in self.features:
            value = values.get(feature.name)
            if value is None and feature.counts:
                continue
            if value is None and feature.if_missing is None and not self._shut(feature, values):
                return missing.get(feature.name, f"no {feature.name}")
            if value is None:
                continue
            why = out_of_range(feature.name, value, feature.low, feature.high, feature.unit)
            if not why and feature.name in self.gates and value not in (0.0, 1.0):
                why = f"{feature.name} neither 0 nor 1"
            if why:
                return why
        for exclusion in self.excludes:
            value = values.get(exclusion.feature)
            if value is None:
                return missing.get(exclusion.feature, f"{exclusion.feature} not measured")
            if why := exclusion.broken_by(value):
                return why
        return ""

    def excluded(self, values: Mapping[str, float]) -> bool:
        """Whether an instance is known to ask for what the layout excludes.

        Args:
            values: Features of the instance by name.
        """
        return any(
            bool(exclusion.broken_by(values[exclusion.feature]))
            for exclusion in self.excludes
            if exclusion.feature in values
        )

    def row(self, name: str, values: Mapping[str, float]) -> list[float]:
        """The features of an instance in the layout's order, NaN where they are missing.

        A calibrated layout adds what it knows of the instance; the feature is missing, and so 0,
        where the calibration has no row for it.

        Args:
            name: Name of the instance.
            values: Features of the instance by name; others than the layout's may be among them.
        """
        row = [values.get(feature, math.nan) for feature in self.feature_names]
        if self.calibration is None:
            return row
        filled = np.array([row])
        self._fill_missing(filled)  # as they were where the calibration was made
        known = self.known_of(name, filled[0].tolist())
        for i in self.taught:
            row[i] = math.nan if known is None else known.value(self.feature_names[i])
        return row

    def known_of(self, name: str, row: Sequence[float]) -> InstanceCalibration | None:
        """What a calibration knows of an instance; None if nothing, or if there is none.

        Args:
            name: Name of the instance.
            row: Its features in the layout's order, missing ones filled in.
        """
        if self.calibration is None:
            return None
        others = {*self.taught, *self.counted}
        own = [value for i, value in enumerate(row) if i not in others]
        return self.calibration.known(name, own)

    @cached_property
    def counted(self) -> tuple[int, ...]:
        """Columns of the features that count what an agent has played before."""
        return tuple(i for i, feature in enumerate(self.features) if feature.counts)

    def count_on(
        self, values: npt.NDArray[np.float64], played_before: float | npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Fill in what is counted: the one place that does.

        Args:
            values: (instances, features).
            played_before: How many instances the agent has played before, or (instances,).

        Returns:
            The same where nothing is counted, else a copy.
        """
        if not self.counted:
            return values
        filled = values.copy()
        filled[:, self.counted] = np.reshape(played_before, (-1, 1))
        return filled

    @property
    def taught(self) -> tuple[int, ...]:
        """Columns of the features that a calibration knows by instance."""
        if self.calibration is None:
            return ()
        return tuple(i for i, name in enumerate(self.feature_names) if name in TAUGHT)

    def check_features(
        self,
        values: npt.ArrayLike,
        called: Callable[[int], str] = "row {}".format,
        *,
        played: bool = True,
    ) -> npt.NDArray[np.float64]:
        """Require finite features within their declared ranges.

        Args:
            values: (instances, features), in the units of the features; NaN if missing.
            called: What a message calls an instance, by its index; by default its row in the array,
                from 0.
            played: Whether somebody has played them, so that what is counted has to be known.

        Returns:
            A C-contiguous float64 copy, with missing values filled in by their declared rule.

        Raises:
            ValueError: The shape is wrong, or a value is out of range or missing without a rule.
        """
        array = np.array(values, dtype=np.float64, order="C")
        if array.ndim != 2 or array.shape[1] != len(self.features):
            raise ValueError(
                f"features have shape {array.shape}; layout {self.name} wants (instances, "
                f"{len(self.features)}): {', '.join(self.feature_names)}"
            )
        self._fill_missing(array)
        for column, feature in zip(array.T, self.features, strict=True):
            fits = (column >= feature.low) & (column <= feature.high)
            if feature.counts and (unknown := np.isnan(column)).any():
                if played:
                    raise ValueError(
                        f"feature {feature.name} of {called(int(unknown.argmax()))} is not known. "
                        "It counts how many instances the agent had played before: give it in a "
                        f"column {feature.name!r}"
                    )
                fits |= unknown
            bad = np.flatnonzero(~fits)
            wanted = f"{feature.low:g} to {feature.high:g}"
            if not bad.size and feature.name in self.gates:
                bad = np.flatnonzero((column != 0.0) & (column != 1.0))
                wanted = "0 or 1"
            if bad.size:
                problem = f"{column[bad[0]]:g} {feature.unit}"
                raise ValueError(
                    f"feature {feature.name} of {called(int(bad[0]))} is {problem}; "
                    f"layout {self.name} takes {wanted}"
                )
        return array

    def check_outcomes(
        self, values: npt.ArrayLike, features: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Require outcomes of the layout's kinds for every row of features.

        Args:
            values: 0 or 1, numbers of successful trials, or scores. For a layout with one outcome
                (instances,) or (instances, 1), none missing; with several (instances, outcomes),
                NaN where one is missing.
            features: (instances, features), as returned by `check_features`.

        Returns:
            A C-contiguous float64 array: (instances,) for a layout with one outcome, otherwise
            (instances, outcomes). Scores nearer to 0 or 1 than the declared edge are moved to it.

        Raises:
            ValueError: The number differs, a value does not fit, or an instance has no outcome.
        """
        array = np.array(values, dtype=np.float64, order="C")
        count = len(self.outcomes)
        if count == 1:
            if array.shape == (len(features), 1):
                array = array.ravel()
            if array.shape != (len(features),):
                raise ValueError(f"{array.shape} outcomes for {len(features)} rows of features")
            return self._check_outcome(self.outcomes[0], array, features, "outcome")
        if not array.size:
            array = array.reshape(-1, count)
        if array.shape != (len(features), count):
            raise ValueError(
                f"{array.shape} outcomes for {len(features)} rows of features; layout {self.name} "
                f"wants (instances, {count}), NaN where one is missing: "
                f"{', '.join(self.outcome_names)}"
            )
        there = ~np.isnan(array)
        if (empty := np.flatnonzero(~there.any(axis=1))).size:
            raise ValueError(
                f"row {empty[0]} has no outcome; expected one of {', '.join(self.outcome_names)}"
            )
        for k, outcome in enumerate(self.outcomes):
            rows, where = there[:, k], f"outcome {outcome.name} of row"
            checked = self._check_outcome(outcome, array[:, k], features, where, rows)
            array[rows, k] = checked[rows]
        return array

    def _check_outcome(
        self,
        outcome: OutcomeNode,
        array: npt.NDArray[np.float64],
        features: npt.NDArray[np.float64],
        where: str,
        there: npt.NDArray[np.bool_] | None = None,
    ) -> npt.NDArray[np.float64]:
        """Check the values (instances,) of one outcome where it is present."""
        match outcome.likelihood:
            case Bernoulli():
                fits = (array == 0.0) | (array == 1.0)
                wanted = "success is 1, failure 0"
            case Binomial(_, trials):
                most = features[:, self.feature_names.index(trials)]
                fits = (array >= 0.0) & (array <= most) & (array == np.floor(array))
                wanted = f"a whole number from 0 to {trials} is expected"
            case Beta(_, _, edge):
                fits = (array >= 0.0) & (array <= 1.0)
                if edge == 0.0:
                    fits &= (array != 0.0) & (array != 1.0)
                wanted = "a score within 0 and 1 is expected" + ", without its ends" * (edge == 0.0)
                array = np.where(fits, np.clip(array, edge, 1.0 - edge), array)
        bad = np.flatnonzero(~fits if there is None else ~fits & there)
        if bad.size:
            raise ValueError(f"{where} {bad[0]} is {array[bad[0]]:g}; {wanted}")
        return array

    def _shut(self, feature: Feature, values: Mapping[str, float]) -> bool:
        """Whether a feature plays no part in an instance because its `only_with` feature is 0."""
        if not feature.only_with:
            return False
        gate = next(f for f in self.features if f.name == feature.only_with)
        return values.get(gate.name, gate.if_missing) == 0.0

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
    """Convert the specification to plain data, in the form of a YAML file."""
    first = layout.outcomes[0]
    if layout.outcomes == (OutcomeNode.of(first.likelihood),):
        observed: dict[str, Any] = {"outcome": _tag(_LIKELIHOOD_TAGS, first.likelihood, encode)}
    else:
        observed = {
            "outcomes": {
                o.name: {"kind": o.kind, "source": o.source, **encode(o.likelihood)}
                for o in layout.outcomes
            }
        }
    return {
        "name": layout.name,
        "variant": layout.variant,
        "source": layout.source,
        "about": layout.about,
        **({"prior_from": layout.prior_from} if layout.prior_from else {}),
        "features": {f.name: _without(encode(f), "name") for f in layout.features},
        "latents": {
            n.name: {
                "kind": n.kind,
                "unit": n.unit,
                "prior": _tag(_PRIOR_TAGS, n.prior, encode),
                "about": n.about,
                "noiseless": n.noiseless,
                **({"reads": n.reads} if n.reads else {}),
            }
            for n in layout.latents
        },
        "derived": {
            n.name: {"unit": n.unit, "link": _tag(_LINK_TAGS, n.link, encode)}
            for n in layout.derived
        },
        **observed,
        "excludes": {e.feature: _without(encode(e), "feature") for e in layout.excludes},
        **(
            {"cues": {cue.name: _without(encode(cue), "name") for cue in layout.cues}}
            if layout.cues
            else {}
        ),
        **({"measures": list(layout.measures)} if layout.measures else {}),
        **({"calibration": layout.calibration.to_dict()} if layout.calibration else {}),
    }


def _brief(data: Any) -> Any:
    """Plain data without what is empty, which is the default, and whole numbers as such."""
    if isinstance(data, Mapping):
        entries = cast("Mapping[str, Any]", data).items()
        return {k: _brief(v) for k, v in entries if v is not None and v not in ("", {}, [])}
    if isinstance(data, list):
        return [_brief(entry) for entry in cast("list[Any]", data)]
    return int(data) if isinstance(data, float) and data.is_integer() else data


class _LayoutText(BaseModel):
    """A layout as its text has it, once names stand in what they name."""

    model_config = STRICT

    name: str
    variant: str = ""
    source: str = ""
    about: str = ""
    prior_from: str = ""
    features: dict[str, Feature]
    latents: dict[str, Latent]
    derived: dict[str, Derived]
    outcome: Annotated[Likelihood, Tagged(LIKELIHOODS)] | None = None
    outcomes: dict[str, OutcomeNode] | None = None
    excludes: dict[str, Exclusion] | None = None
    cues: dict[str, Cue] | None = None
    measures: list[str] | None = None
    calibration: CalibrationText | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.outcome is None) == (self.outcomes is None):
            raise ValueError("outcomes missing; give either outcomes or one outcome")
        return self


_NAMES: Final = {"excludes": "feature"} | dict.fromkeys(
    ("features", "latents", "derived", "outcomes", "cues"), "name"
)
"""Part of the text -> the field of what stands in it that its key is."""


def from_dict(
    data: object, variants: tuple[str, ...] = (), choices: tuple[Layout, ...] = ()
) -> Layout:
    """Make a layout from plain data.

    Args:
        data: The data, or a text's with lines.
        variants: Names of the variants of the text that it is from.
        choices: Those of them that are for measuring.

    Raises:
        SpecificationError: The data is wrong; the message says where and lists the choices.
    """
    marked = data if isinstance(data, Marked) else Marked(data)
    try:
        text = validate(_LayoutText, replace(marked, data=_add_names(marked.data)))
    except YamlError as error:
        raise SpecificationError(str(error)) from None
    observed = (OutcomeNode.of(text.outcome),) if text.outcome else (text.outcomes or {}).values()
    return Layout(
        name=text.name,
        variant=text.variant,
        source=text.source,
        about=text.about,
        prior_from=text.prior_from,
        features=tuple(text.features.values()),
        latents=tuple(text.latents.values()),
        derived=tuple(text.derived.values()),
        outcomes=tuple(observed),
        excludes=tuple((text.excludes or {}).values()),
        cues=tuple((text.cues or {}).values()),
        calibration=text.calibration.calibration if text.calibration else None,
        measures=as_names(text.measures or [], "measures"),
        variants=variants,
        choices=choices,
    )


def _add_names(data: Any) -> Any:
    """A layout's text in which everything has its name, and outcomes have their likelihood."""
    if not isinstance(data, Mapping):
        return data
    top = dict(cast("Mapping[str, Any]", data))
    for part, name in _NAMES.items():
        usual = {"unit": ONE} if part == "derived" else {}
        if isinstance(entries := top.get(part), Mapping):
            top[part] = {
                key: {name: key, **usual, **entry} if isinstance(entry, Mapping) else entry
                for key, entry in cast("Mapping[str, Any]", entries).items()
            }
    if isinstance(outcomes := top.get("outcomes"), Mapping):
        top["outcomes"] = {
            key: _with_likelihood(cast("Any", entry)) if isinstance(entry, Mapping) else entry
            for key, entry in cast("Mapping[str, Any]", outcomes).items()
        }
    return top


def _with_likelihood(entry: Mapping[str, Any]) -> dict[str, Any]:
    kind: Any = str(entry.get("kind"))
    head = {key: entry[key] for key in ("name", "kind", "source") if key in entry}
    if kind not in KINDS:  # that alone is wrong, whatever else stands there
        return {"source": "success", **head, "likelihood": {"bernoulli": {"probability": ""}}}
    own = {key: value for key, value in entry.items() if key not in head}
    likelihood = {_LIKELIHOOD_TAGS[KINDS[kind]]: own}
    return {"source": default_source(kind), **head, "likelihood": likelihood}


def _outcome_model(outcome: OutcomeNode) -> dict[str, Any]:
    """The fields of an outcome that are part of the model."""
    known = {"name": outcome.name, "kind": outcome.kind, **encode_model(outcome.likelihood)}
    plain = outcome.source == default_source(outcome.kind)
    return known if plain else {**known, "source": outcome.source}


def _tag(
    tags: Mapping[type[Any], str],
    value: object,
    encoded: Callable[[Any], dict[str, Any]] = encode_model,
) -> dict[str, Any]:
    """Encode one of several dataclasses as `{tag: fields}`."""
    return {tags[type(value)]: encoded(value)}


_PRIOR_TAGS: Final = {cls: name for name, cls in PRIORS.items()}
_LINK_TAGS: Final = {cls: name for name, cls in LINKS.items()}
_LIKELIHOOD_TAGS: Final = {cls: name for name, cls in LIKELIHOODS.items()}


def _as_floats(value: Any) -> Any:
    """Convert every number to a float: 0 in Python is the 0.0 that YAML is read as."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        return {key: _as_floats(entry) for key, entry in entries.items()}
    if isinstance(value, list):
        return [_as_floats(entry) for entry in cast("list[Any]", value)]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_number else value


def _without(data: dict[str, Any], left_out: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != left_out}


def finite_range(prior: Prior) -> tuple[float | None, float | None]:
    """The range of a prior for JSON: None in place of an infinite end."""
    low, high = prior.low, prior.high
    return (low if math.isfinite(low) else None, high if math.isfinite(high) else None)
