"""What a recipe of a battery is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from animalcat.arena_configs.families.language import Family, Part, shares
from animalcat.arena_configs.families.scope import Place


def only(family: Family, paradigms: Collection[str]) -> Family:
    """A family with some of its paradigms alone."""
    return replace(family, paradigms=tuple(p for p in family.paradigms if p.name in paradigms))


class DemandRange(NamedTuple):
    """The range in which a demand of an instance has to be; both ends are equal for one number."""

    least: float
    most: float


@dataclass(frozen=True)
class Entry:
    """Instances of one family.

    Attributes:
        name: Its name; names of instances begin with it.
        family: The family as it is drawn from here: with the paradigms, ranges and variants that
            the entry asks for.
        count: How many instances there are, besides controls.
        part: practice or test; None for both.
        controls: By control, how many of the instances are followed by it; None for all.
        control: A control. The instances are then this control of what is drawn, and what is drawn
            is itself left out; "" for none.
        demands: By demand, the range in which it has to be for every instance.
        place: Where it is in the recipe.
        suite: The suite of tasks that its instances belong to, with the sub-suite behind a slash;
            "" for none.
    """

    name: str
    family: Family
    count: int
    part: Part | None
    controls: Mapping[str, int | None]
    control: str
    demands: Mapping[str, DemandRange]
    place: Place
    suite: str = ""

    def eligible(self, control: str, count: int) -> int:
        """Of so many instances, how many are of paradigms that have a control."""
        paradigms = self.family.paradigms
        parts = shares([paradigm.weight for paradigm in paradigms], count)
        chosen = self.family.controls[control]
        return sum(
            n for paradigm, n in zip(paradigms, parts, strict=True) if chosen.is_of(paradigm)
        )


@dataclass(frozen=True)
class Recipe:
    """A recipe of a battery.

    Attributes:
        name: Its name, which is that of the battery.
        about: What it is for.
        licence: Licence of its arenas; "" where none is given.
        seed: Seed of the drawing, unless another is given.
        layout: Name of the layout that it is meant for; "" for none.
        variant: Variant of that layout; "" for its default.
        entries: Its entries.
        separable: How many instances are kept of those that the entries ask for, so that the
            layout's demands go together as little as possible; None to keep all.
        file: Name of its file, for messages.
        digest: SHA-256 of its text and of the texts of families of its own.
        text: Its text.
        families: Texts of families of its own, by the name that it gives the file.
    """

    name: str
    about: str
    licence: str
    seed: int
    layout: str
    variant: str
    entries: tuple[Entry, ...]
    separable: int | None = None
    file: str = ""
    digest: str = field(default="", compare=False)
    text: str = field(default="", compare=False, repr=False)
    families: Mapping[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)
