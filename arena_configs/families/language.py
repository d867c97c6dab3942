"""What a family of arenas is: parameters, an arena of formulas, and what it claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, TypeAlias

import numpy as np

from animalcat.arena_configs.families.ranges import Constant, Range
from animalcat.arena_configs.families.scope import Formula, Place

Part: TypeAlias = Literal["practice", "test"]
PARTS: Final[tuple[Part, ...]] = ("practice", "test")

MIRROR: Final = "mirror"
"""Name of a number that formulas may use: -1 in a mirror image, else 1."""
TRIAL: Final = "trial"
"""Name of a number that formulas of an arena with trials may use: the number of the trial."""
PARADIGM: Final = "paradigm"
"""Name of a word that formulas may use: the paradigm."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of an arena.

    Attributes:
        formula: What it is.
        whole: Whether it has to be a whole number, and is rounded to one.
        digits: Decimals that it is rounded to: 3 for millimetres.
    """

    formula: Formula
    whole: bool = False
    digits: int = 6


@dataclass(frozen=True, slots=True)
class Text:
    """A text of an arena: itself, or with a dollar sign before it the word of a parameter.

    Attributes:
        text: As it was written.
        place: Where.
    """

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Paint:
    """A colour by its name, by a parameter whose word is one, or drawn at random.

    Attributes:
        text: As it was written.
        place: Where.
    """

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false.

    Attributes:
        value: Which.
    """

    value: bool


@dataclass(frozen=True, slots=True)
class RecordTemplate:
    """Fields by name, of a vector, a colour, an item or an operation.

    Attributes:
        fields: By the names of the Animal-AI grammar.
        operation: Which operation it is; "" for anything else.
        place: Where.
    """

    fields: Mapping[str, Template]
    place: Place
    operation: str = ""


Template: TypeAlias = "Number | Text | Paint | Flag | RecordTemplate | tuple[Template, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """How often an item or a group is there, and the names under which formulas count.

    Attributes:
        kind: times, ring or grid.
        counts: How often; columns and rows of a grid.
        name: The number of the copy, from 0; a ring has `angle` as well, a grid `column` and `row`.
    """

    kind: Literal["times", "ring", "grid"]
    counts: tuple[Formula, ...]
    name: str = "i"

    @property
    def names(self) -> tuple[str, ...]:
        """Names that formulas inside may use."""
        more = {"times": (), "ring": ("angle",), "grid": ("column", "row")}[self.kind]
        return (self.name, *more)


@dataclass(frozen=True, slots=True)
class ItemTemplate:
    """An item of a family's arena.

    Attributes:
        id: What controls call it; "" if they do not.
        when: It is left out unless this holds; None to leave it in.
        repeat: How often it is there; None for once.
        fields: Its fields by the names of the Animal-AI grammar.
        place: Where it is.
    """

    id: str
    when: Formula | None
    repeat: Repeat | None
    fields: Mapping[str, Template]
    place: Place


@dataclass(frozen=True, slots=True)
class Group:
    """Items that are moved and turned together.

    Attributes:
        id: What controls call it; "" if they do not.
        when: It is left out unless this holds; None to leave it in.
        repeat: How often it is there; None for once.
        at: Where its own point (0, 0, 0) is.
        turn: Degrees clockwise by which it is turned about that point.
        entries: Items and groups in it, whose positions are relative to that point.
        place: Where it is.
    """

    id: str
    when: Formula | None
    repeat: Repeat | None
    at: RecordTemplate
    turn: Formula
    entries: tuple[Entry, ...]
    place: Place


Entry: TypeAlias = ItemTemplate | Group


@dataclass(frozen=True, slots=True)
class ArenaTemplate:
    """A family's arena.

    Attributes:
        fields: Its fields but for the items, by the names of the Animal-AI grammar.
        entries: Its items, and groups of them.
        trials: How often it is built; an episode goes on from each to the next. None for once.
            Formulas name the number of the trial, from 0.
    """

    fields: Mapping[str, Template]
    entries: tuple[Entry, ...]
    trials: Formula | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """What a family says about a demand of its arenas.

    Attributes:
        demand: Name of the demand, in `features.FEATURES`.
        exact: Its value; None if only bounds are claimed.
        within: By how much the value may differ.
        least: Least value; None for no such bound.
        most: Greatest value; None for no such bound.
        absent: Whether it claims that the demand does not apply.
        when: The claim is made where this holds; None for everywhere.
        place: Where it is claimed.
    """

    demand: str
    exact: Formula | None
    within: Formula | None
    least: Formula | None
    most: Formula | None
    absent: bool
    when: Formula | None
    place: Place


@dataclass(frozen=True, slots=True)
class Paradigm:
    """A stratum of a family.

    Attributes:
        name: Its name.
        weight: Its share of the instances, beside the other paradigms' weights.
        parameters: By parameter, the range that it is drawn from here, if not the family's.
        claims: Claims that are made here, beside those of the family or in their place.
        order: All parameters and derived values, each after those that it depends on.
        place: Where it is; the family's name where the family has no paradigms.
    """

    name: str
    weight: float
    parameters: Mapping[str, Range]
    claims: Mapping[str, Claim | None]
    order: tuple[str, ...]
    place: Place = field(compare=False)


@dataclass(frozen=True, slots=True)
class Variants:
    """Ways in which instances differ that no demand should depend on.

    Attributes:
        mirror: Whether half of the instances are mirror images.
        turns: Whether arenas are turned by quarters of a circle.
        each: How many variants of each draw of the parameters there are.
        parameters: Parameters, such as colours, that differ between variants of one draw.
    """

    mirror: bool = False
    turns: bool = False
    each: int = 1
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Control:
    """A change that takes a demand away, and keeps everything else.

    Attributes:
        name: Its name.
        description: What it is for.
        remove: Ids of items and groups that it takes out.
        parameters: Parameters and derived values that it sets.
        items: Fields that it sets, by the id of the item.
        fields: Fields of the arena that it sets.
        takes: Demands that have to differ between an instance and its control.
        keeps: Demands that have to be equal.
        claims: Claims in the place of the family's; None for one that is not made.
        paradigms: The paradigms that have it; empty for all.
    """

    name: str
    description: str
    remove: tuple[str, ...]
    parameters: Mapping[str, Formula]
    items: Mapping[str, Mapping[str, Template]]
    fields: Mapping[str, Template]
    takes: tuple[str, ...]
    keeps: tuple[str, ...]
    claims: Mapping[str, Claim | None]
    paradigms: tuple[str, ...] = ()

    def is_of(self, paradigm: Paradigm) -> bool:
        """Whether instances of a paradigm have it."""
        return not self.paradigms or paradigm.name in self.paradigms


@dataclass(frozen=True)
class Family:
    """A family of arenas.

    Attributes:
        name: Its name.
        description: What its arenas ask for.
        nodes: By layout, the nodes that it is meant to measure.
        parameters: What each parameter is drawn from.
        derived: Values that follow from parameters.
        constraints: What has to hold; draws for which it does not are drawn again.
        variants: Ways in which instances differ that no demand should depend on.
        paradigms: Its strata; at least one.
        arena: The arena.
        controls: Changes that take a demand away, by name.
        claims: What it says about demands, by demand.
        allow: Codes of warnings of `check_arena` that its arenas may have.
    """

    name: str
    description: str
    nodes: Mapping[str, tuple[str, ...]]
    parameters: Mapping[str, Range]
    derived: Mapping[str, Formula]
    constraints: tuple[Formula, ...]
    variants: Variants
    paradigms: tuple[Paradigm, ...]
    arena: ArenaTemplate
    controls: Mapping[str, Control]
    claims: Mapping[str, Claim]
    words: frozenset[str] = field(repr=False, default=frozenset())
    allow: tuple[str, ...] = ()

    @cached_property
    def ranges(self) -> Mapping[str, Range]:
        """Parameters and derived values together, by name."""
        return {**self.parameters, **{name: Constant(f) for name, f in self.derived.items()}}

    def ranges_of(self, paradigm: Paradigm) -> Mapping[str, Range]:
        """Parameters and derived values of a paradigm, by name."""
        return {**self.ranges, **paradigm.parameters}

    def claims_of(self, paradigm: Paradigm, control: Control | None = None) -> list[Claim]:
        """The claims that are made about an instance."""
        claims: dict[str, Claim | None] = {**self.claims, **paradigm.claims}
        if control is not None:
            claims |= control.claims
        return [claim for claim in claims.values() if claim is not None]

    def paradigm(self, name: str) -> Paradigm:
        """The paradigm of a name."""
        return next(paradigm for paradigm in self.paradigms if paradigm.name == name)


def shares(weights: Sequence[float], n: int) -> list[int]:
    """How many of n instances each paradigm gets: by weight, largest remainders first."""
    exact = n * np.array(weights) / np.sum(weights)
    counts = np.floor(exact).astype(int)
    extra = np.argsort(counts - exact, kind="stable")[: n - int(counts.sum())]
    counts[extra] += 1
    return [int(count) for count in counts]
