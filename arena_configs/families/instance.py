"""What an instance of a family is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from animalcat.arena_configs.families.language import Part
from animalcat.arena_configs.families.scope import Value
from animalcat.arena_configs.model import Arena


@dataclass(frozen=True, slots=True)
class FamilyInstance:
    """An arena of a family.

    Attributes:
        name: Its name, unique in the family for this seed.
        arena: The arena; every value is explicit.
        paradigm: The stratum it was drawn for.
        parameters: Its parameters and derived values.
        variant: Which variant of its task it is: mirrored or not, and how it is turned.
        task: The draw of parameters that its variants share.
        part: The part that it belongs to, whatever the seed.
        control: The control that made it of another instance; "" for none.
        control_of: Name of that instance.
    """

    name: str
    arena: Arena
    paradigm: str
    parameters: Mapping[str, Value] = field(default_factory=dict[str, Value])
    variant: str = ""
    task: str = ""
    part: Part = "test"
    control: str = ""
    control_of: str = ""


def variant_name(flipped: bool, quarters: int) -> str:
    """The name of a variant; "" for the arena as it is built."""
    parts = ["mirror"] * flipped + [f"turn{90 * quarters}"] * (quarters > 0)
    return "-".join(parts)


def variant_of(name: str) -> tuple[bool, int]:
    """Whether a variant is a mirror image, and the quarters by which it is turned."""
    return name.startswith("mirror"), int(name.partition("turn")[2] or 0) // 90
