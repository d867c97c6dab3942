"""Takes the variant of a layout that covers most of what is to be played, where none is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from animalcat.layouts.library import LayoutSource, load_layout
from animalcat.layouts.model.frames import instances_in
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import TableError

if TYPE_CHECKING:
    import pandas as pd

Look: TypeAlias = Callable[[Layout], Sequence[bool | None]]
"""Says of each instance whether a layout covers it; None where an exclusion leaves it out."""
MANY_MORE: Final = 0.1
"""Share of the instances that another variant covers more, from which on that is said."""


@dataclass(frozen=True)
class Choice:
    """The variant that is meant where none is named, and how much each one covers.

    An instance that one of the variants for measuring excludes counts for none of them: it asks for
    what the layout does not describe, and a variant that does not look is none the better for it.

    Attributes:
        layout: The layout in that variant.
        covered: Number of instances that each variant for measuring covers, in order of preference;
            empty where the layout has but one.
        of: Number of instances that count.
    """

    layout: Layout
    covered: Mapping[str, int]
    of: int

    @property
    def counts(self) -> str:
        """How much each variant covers, in words."""
        return ", ".join(f"{variant} {covered}" for variant, covered in self.covered.items())


def choose(layout: Layout, look: Look) -> Choice:
    """Choose the variant of a layout that covers most instances, of equals the preferred one.

    Args:
        layout: The layout as it is loaded without the name of a variant, which is what is taken
            where no variant covers anything.
        look: Looks at the instances.
    """
    if not layout.choices:
        return Choice(layout, {}, 0)
    seen = [look(choice) for choice in layout.choices]
    counting = [None not in of_each for of_each in zip(*seen, strict=True)]
    covered = {
        choice.variant: sum(bool(c) for c, counts in zip(own, counting, strict=True) if counts)
        for choice, own in zip(layout.choices, seen, strict=True)
    }
    best = max(layout.choices, key=lambda choice: covered[choice.variant])
    if covered[best.variant]:
        layout = replace(best, variants=layout.variants, choices=layout.choices)
    return Choice(layout, covered, sum(counting))


def look_at(instances: Instances) -> Look:
    """Look at the instances of a table; one that lacks a layout's columns has none that it covers.

    Args:
        instances: The instances.
    """

    def look(layout: Layout) -> Sequence[bool | None]:
        try:
            return instances.looked(layout)
        except TableError:
            return [False] * len(instances)

    return look


def load_for(source: LayoutSource, frame: pd.DataFrame, without: Sequence[str] = ()) -> Layout:
    """Load a layout for a table, in the variant that is meant.

    Args:
        source: What `load_layout` makes a layout of; a layout is returned as it is.
        frame: The table, with a row for each instance.
        without: Its columns that are no meta-features.

    Raises:
        SpecificationError: There is no such layout.
    """
    layout = load_layout(source)
    if layout is source:
        return layout

    def look(one: Layout) -> Sequence[bool | None]:
        try:
            return instances_in(frame, one, without).looked(one)
        except TableError:
            return [False] * len(frame)

    return choose(layout, look).layout


def words_of_choice(layout: Layout, choice: Choice, named: str = "") -> str:
    """Say which variant of a layout is taken, and why, in a sentence.

    Args:
        layout: The layout that is taken.
        choice: What `choose` gives of it.
        named: The variant that the battery names for this layout; empty if it names none.

    Returns:
        The sentence; empty where it is the usual one and there was nothing to choose.
    """
    usual = layout.variants[:1] in ((), (layout.variant,))
    if not layout.variant or (usual and not named and not choice.covered):
        return ""
    taken = f"The layout {layout.name} is used in its variant {layout.variant}"
    if named:
        return f"{taken}, " + (
            "which the battery names."
            if layout.variant == named
            else f"chosen by name; the battery names {named}."
        )
    if not choice.covered or layout.variant != choice.layout.variant:
        return f"{taken}, chosen by name."
    most = max(choice.covered.values())
    alone = list(choice.covered.values()).count(most) == 1
    why = "which covers most" if alone else "the first of those that cover as much as any"
    return f"{taken}, {why} of {choice.of} arenas ({choice.counts})."


def hint(layout: Layout, choice: Choice, look: Look) -> str:
    """Say that another variant covers many more instances than the one that is taken.

    Args:
        layout: The layout that is taken.
        choice: What `choose` gives of it.
        look: Looks at the instances.

    Returns:
        A sentence; empty where there is no such variant.
    """
    other = choice.layout
    if not choice.covered or other.variant == layout.variant:
        return ""
    own, most = (sum(map(bool, look(one))) for one in (layout, other))
    total = len(look(layout))
    if most - own < MANY_MORE * total:
        return ""
    return (
        f"The variant {other.variant} of {layout.name} covers {most} of {total} arenas, and "
        f"{layout.variant} {own}: take it with --variant {other.variant} "
        f"(layout_variant={other.variant!r})."
    )
