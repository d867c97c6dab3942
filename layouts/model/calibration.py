"""What earlier agents taught of instances beyond their demands, and its provenance."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple

from pydantic import AllowInfNan, BaseModel, Field, field_validator

from animalcat.layouts.model.codec import STRICT

EASINESS: Final = "easiness"
SHARPNESS: Final = "sharpness"
TAUGHT: Final = (EASINESS, SHARPNESS)
"""The features of a calibrated layout that its calibration knows by instance."""
STRANGENESS: Final = "strangeness"
"""The latent node of a calibrated layout that says how little of this holds of the agent."""
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

    easiness: Annotated[float, Field(ge=-MOST, le=MOST)]
    features: str
    sharpness: Annotated[float, Field(ge=1.0 / SHARPEST, le=SHARPEST)] = 1.0

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


class CalibrationText(BaseModel):
    """A calibration as its text has it."""

    model_config = STRICT

    name: str
    base: tuple[str, str, str]
    agents: tuple[str, ...]
    episodes: int = 0
    outcomes: str = ""
    versions: dict[str, str] = {}
    fit: dict[str, Annotated[float, AllowInfNan()]] = {}
    instances: dict[str, InstanceCalibration]
    determinism: tuple[float, float] | None = None

    @field_validator("determinism")
    @classmethod
    def _check(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        random, fixed = value or (0.0, 0.0)
        if not (random >= 0.0 <= fixed and random + fixed <= 1.0 + 1e-9):
            raise ValueError(
                f"{random:g} and {fixed:g} are not shares of a whole; give those of agents that "
                "act at random and deterministically"
            )
        return value

    @property
    def calibration(self) -> Calibration:
        """What it says, as a value."""
        fields: dict[str, Any] = dict(self)
        for name in ("versions", "fit", "instances"):
            fields[name] = tuple(fields[name].items())
        return Calibration(**fields)


def features_digest(features: Sequence[float]) -> str:
    """Digest of an instance's features, to four digits; a missing feature counts as such."""
    text = " ".join("-" if math.isnan(value) else f"{value + 0.0:.4g}" for value in features)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
