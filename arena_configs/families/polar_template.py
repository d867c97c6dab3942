"""The template of families that go to one goal: places are polar, from the agent's start."""

from __future__ import annotations

import math
from typing import Annotated, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from animalcat.arena_configs.catalogue import KINDS

T = TypeVar("T")


class _Template(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class UniformRange(_Template):
    """A uniform distribution between two numbers."""

    uniform: tuple[float, float]

    @field_validator("uniform")
    @classmethod
    def _ordered(cls, ends: tuple[float, float]) -> tuple[float, float]:
        if ends[0] > ends[1]:
            raise ValueError(f"the low end {ends[0]:g} is above the high end {ends[1]:g}")
        return ends


class LogUniformRange(_Template):
    """A log-uniform distribution between two positive numbers."""

    log_uniform: tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]]

    @field_validator("log_uniform")
    @classmethod
    def _ordered(cls, ends: tuple[float, float]) -> tuple[float, float]:
        if ends[0] > ends[1]:
            raise ValueError(f"the low end {ends[0]:g} is above the high end {ends[1]:g}")
        return ends


class NumberChoice(_Template):
    """One of several numbers."""

    choice: tuple[float, ...] = Field(min_length=1)


class NameChoice(_Template):
    """One of several names."""

    choice: tuple[str, ...] = Field(min_length=1)


Range = float | UniformRange | LogUniformRange | NumberChoice
"""A number, or a distribution to draw one from."""


def draw_value(value: Range, rng: np.random.Generator) -> float:
    """Draw a number from a range."""
    match value:
        case UniformRange(uniform=(low, high)):
            return float(rng.uniform(low, high))
        case LogUniformRange(log_uniform=(low, high)):
            return math.exp(rng.uniform(math.log(low), math.log(high)))
        case NumberChoice(choice=options):
            return options[int(rng.integers(len(options)))]
        case _:
            return float(value)


def range_limits(value: Range) -> tuple[float, float]:
    """Least and greatest number of a range."""
    match value:
        case UniformRange(uniform=ends) | LogUniformRange(log_uniform=ends):
            return ends
        case NumberChoice(choice=options):
            return min(options), max(options)
        case _:
            return float(value), float(value)


class Obstacle(_Template):
    """Something that stands between the agent and the goal."""

    kind: str | NameChoice
    along: Range
    """Fraction of the straight way from the agent to the goal."""
    aside: Range = 0.0
    """Metres to the right of that way."""
    turn: Range = 0.0
    """Degrees clockwise from standing across it."""
    size: tuple[Range, Range, Range]
    """Metres: across the way, up, along the way."""
    color: tuple[float, float, float] | None = None
    """rgb, 0 to 255; None for the kind's own look."""

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str | NameChoice) -> str | NameChoice:
        for name in (kind,) if isinstance(kind, str) else kind.choice:
            if name not in KINDS:
                raise ValueError(f"no such object: {name}. There are {', '.join(sorted(KINDS))}")
        return kind


class Paradigm(_Template):
    """A stratum of a family; values that it leaves out are the family's."""

    name: str
    weight: float = Field(gt=0)
    """Its share of the instances, beside the other paradigms' weights."""
    angle: Range
    """Degrees from the agent's heading to the goal, clockwise."""
    distance: Range | None = None
    size: Range | None = None
    time_limit: int | None = None
    obstacles: tuple[Obstacle, ...] = ()


class PolarFamily(_Template):
    """A family of arenas with one goal each."""

    name: str
    description: str
    goal: str
    distance: Range
    """Metres on the ground from the agent to the goal."""
    size: Range
    """Diameter of the goal in metres."""
    mirror: bool = False
    """Whether half of the instances are turned left to right."""
    time_limit: int = Field(gt=0)
    """In units of 0.1 s."""
    pass_within: float = Field(default=1.0, gt=0, le=1)
    """Fraction of the time limit within which reaching the goal is a success."""
    paradigms: tuple[Paradigm, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> PolarFamily:
        names = [paradigm.name for paradigm in self.paradigms]
        if len(set(names)) < len(names):
            raise ValueError(f"paradigms share a name: {', '.join(names)}")
        kind = KINDS.get(self.goal)
        if kind is None or not kind.ball or kind.reward != "good":
            raise ValueError(f"{self.goal} is not a goal that gives its size as a reward")
        return self

    def only(self, paradigm: str) -> PolarFamily:
        """The family with one of its paradigms alone.

        Args:
            paradigm: Name of the paradigm.
        """
        kept = tuple(one for one in self.paradigms if one.name == paradigm)
        return self.model_copy(update={"paradigms": kept})
