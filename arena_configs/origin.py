"""Where an instance of a battery comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an instance comes from.

    Attributes:
        entry: Entry of the recipe; "" in a battery of one family.
        family: Family that it was drawn from.
        paradigm: Paradigm of that family.
        part: practice or test.
        task: Name of the first instance of the same draw; its variants share it.
        variant: Which variant of the draw it is, such as `mirror-turn90`; "" for the plain one.
        control: The control that made it of another instance; "" for none.
        control_of: Name of that instance; "" where it is not in the battery.
    """

    entry: str
    family: str
    paradigm: str
    part: str
    task: str = ""
    variant: str = ""
    control: str = ""
    control_of: str = ""
