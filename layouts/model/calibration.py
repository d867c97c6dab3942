"""What earlier agents taught of instances beyond their demands, and its provenance."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, cast

from animalcat.layouts.model.codec import SpecificationError, as_mapping, check_choices

EASINESS: Final = "easiness"
SHARPNESS: Final = "sharpness"
TAUGHT: Final = (EASINESS, SHARPNESS)
"""The features of a calibrated layout that its calibration knows by instance."""
MOST: Final = 8.0
"""Largest size of an instance's easiness, in logits."""
SHARPEST: Final = 10.0
"""Largest sharpness of an instance; its inverse is the least."""


class InstanceCalibration(NamedTuple):
    """What earlier agents taught of one instance.

    Attributes:
        easiness: In logits; 0 for an instance that is as hard as its demands say.
        features: Digest of the instance's features, so that another instance of the same name is
            not taken for it.
        sharpness: Factor of the logit of success; 1 for an instance that tells agents apart as its
            demands say.
    """

    easiness: float
    features: str
    sharpness: float = 1.0

    def value(self, feature: str) -> float:
        """The value of a feature of `TAUGHT`: the easiness or the sharpness."""
        return self.easiness if feature == EASINESS else self.sharpness


@dataclass(frozen=True)
class Calibration:
    """Where a calibrated layout comes from, and what it knows of every instance.

    Attributes:
        name: Its name.
        base: Name, variant and digest of the layout that was calibrated.
        agents: Names of the agents to whose outcomes it was fitted.
        episodes: Number of their outcomes.
        outcomes: SHA-256 of these outcomes.
        instances: What is known of every instance, by its name.
        determinism: Shares of earlier agents that act fully at random and fully deterministically;
            None if nothing is known of that.
        versions: Versions of what fitted it, by name.
        fit: Quality of the fit and of its predictions for agents held out, by name.
    """

    name: str
    base: tuple[str, str, str]
    agents: tuple[str, ...]
    episodes: int
    outcomes: str
    instances: tuple[tuple[str, InstanceCalibration], ...]
    determinism: tuple[float, float] | None = None
    versions: tuple[tuple[str, str], ...] = ()
    fit: tuple[tuple[str, float], ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, InstanceCalibration]:
        """What is known of every instance, by its name."""
        return dict(self.instances)

    def known(self, name: str, features: Sequence[float]) -> InstanceCalibration | None:
        """What is known of an instance; None if it has no row, or its demands are not the row's.

        Args:
            name: Name of the instance.
            features: Its values of the layout's own features, missing ones filled in.
        """
        known = self.by_name.get(name)
        if known is None or known.features != features_digest(features):
            return None
        return known

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what a session depends on: what is known of instances, and determinism."""
        rows = sorted(
            f"{name}\t{row.easiness!r}\t{row.features}"
            + (f"\t{row.sharpness!r}" if row.sharpness != 1.0 else "")
            for name, row in self.instances
        )
        if self.determinism is not None:
            rows.append(f"determinism\t{self.determinism!r}")
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data, in the form of a YAML file."""
        return {
            "name": self.name,
            "base": list(self.base),
            "agents": list(self.agents),
            "episodes": self.episodes,
            "outcomes": self.outcomes,
            **({"determinism": list(self.determinism)} if self.determinism else {}),
            "versions": dict(self.versions),
            "fit": dict(self.fit),
            "instances": {name: list(row) for name, row in self.instances},
        }


def calibration_from_dict(data: object) -> Calibration:
    """Make a calibration from plain data.

    Raises:
        SpecificationError: The data is wrong; the message says where.
    """
    top = as_mapping(data, "calibration")
    keys = ("name", "base", "agents", "episodes", "outcomes", "versions", "fit", "instances")
    check_choices(top, dict.fromkeys((*keys, "determinism")), "calibration: key")
    if missing := [key for key in ("name", "base", "agents", "instances") if key not in top]:
        raise SpecificationError(f"calibration: {missing[0]} missing")
    base = tuple(map(str, _listed(top["base"], "calibration: base")))
    if len(base) != 3:
        raise SpecificationError("calibration: base: expected name, variant and digest")
    rows = as_mapping(top["instances"], "calibration: instances")
    return Calibration(
        name=str(top["name"]),
        base=(base[0], base[1], base[2]),
        agents=tuple(map(str, _listed(top["agents"], "calibration: agents"))),
        episodes=int(_number(top.get("episodes", 0), "calibration: episodes")),
        outcomes=str(top.get("outcomes", "")),
        instances=tuple((name, _ease(row, name)) for name, row in rows.items()),
        determinism=_shares(top["determinism"]) if top.get("determinism") else None,
        versions=tuple(
            (k, str(v)) for k, v in as_mapping(top.get("versions") or {}, "versions").items()
        ),
        fit=tuple(
            (k, _number(v, f"calibration: fit: {k}"))
            for k, v in as_mapping(top.get("fit") or {}, "fit").items()
        ),
    )


def features_digest(features: Sequence[float]) -> str:
    """Digest of an instance's features, to four digits; a missing feature counts as such."""
    text = " ".join("-" if math.isnan(value) else f"{value + 0.0:.4g}" for value in features)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _shares(value: object) -> tuple[float, float]:
    where = "calibration: determinism"
    entries = _listed(value, where)
    if len(entries) != 2:
        raise SpecificationError(f"{where}: expected the shares of random and deterministic agents")
    random, fixed = (_number(entry, where) for entry in entries)
    if not (random >= 0.0 <= fixed and random + fixed <= 1.0 + 1e-9):
        raise SpecificationError(f"{where}: {random:g} and {fixed:g} are no shares of a whole")
    return random, fixed


def _ease(row: object, name: str) -> InstanceCalibration:
    where = f"calibration: instance {name}"
    entries = _listed(row, where)
    if len(entries) not in (2, 3):
        raise SpecificationError(
            f"{where}: expected its easiness, the digest of its features and its sharpness"
        )
    easiness = _number(entries[0], where)
    if not abs(easiness) <= MOST:
        raise SpecificationError(f"{where}: an easiness of {easiness:g} is beyond {MOST:g} logits")
    sharpness = _number(entries[2], where) if len(entries) == 3 else 1.0
    if not 1.0 / SHARPEST <= sharpness <= SHARPEST:
        raise SpecificationError(
            f"{where}: a sharpness of {sharpness:g} is not from {1.0 / SHARPEST:g} to {SHARPEST:g}"
        )
    return InstanceCalibration(easiness, str(entries[1]), sharpness)


def _listed(value: object, where: str) -> list[object]:
    if not isinstance(value, list | tuple):
        raise SpecificationError(f"{where}: expected a list, not {value!r}")
    return list(cast("Sequence[object]", value))


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SpecificationError(f"{where}: expected a number, not {value!r}")
    return float(value)
