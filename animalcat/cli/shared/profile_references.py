"""The agents that others are compared with, whose profiles come with animalcat."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import animalcat

PREFIX: Final = "reference:"
"""How a reference begins, as in `reference:scout` or `reference:scout@navigation`."""
FOLDER: Final = Path(animalcat.__file__).parent / "references"


@dataclass(frozen=True, slots=True)
class Reference:
    """An agent whose profiles are shipped.

    Attributes:
        agent: What plays: a reference of an agent, or a class of `agents.py` in the folder.
        about: What it is.
    """

    agent: str
    about: str


REFERENCES: Final = {
    "random": Reference("builtin:random", "each of the nine actions with equal chances"),
    "braitenberg": Reference(
        "builtin:braitenberg", "turns to food that its rays meet, and away from what harms"
    ),
    "scout": Reference("builtin:scout", "explores by its rays and remembers where it has been"),
    "scout-path-15": Reference("builtin:scout+path=15", "the scout, which stops after 15 m"),
    "scout-sight-8": Reference("builtin:scout+sight=8", "the scout, which sees only 8 m far"),
    "ppo-introductory": Reference(
        "agents.py:PpoIntroductory", "PPO by rays, 100,000 steps on the family introductory"
    ),
    "ppo-navigation": Reference(
        "agents.py:PpoNavigation", "PPO by rays, 100,000 steps on the family navigation"
    ),
    "ppo-object-permanence": Reference(
        "agents.py:PpoObjectPermanence",
        "PPO by rays, 50,000 steps on the family object-permanence",
    ),
}


_ENDING: Final = ".nc.gz"


def file_name_of(agent: str, battery: str) -> str:
    """The name of a shipped file."""
    return f"{agent}@{battery}{_ENDING}"


def batteries(agent: str) -> list[str]:
    """The batteries on which the profile of an agent is shipped, by name."""
    files = FOLDER.glob(file_name_of(agent, "*"))
    return sorted(path.name.partition("@")[2].removesuffix(_ENDING) for path in files)


def is_reference(name: str) -> bool:
    """Whether this names a shipped profile, and not a session or a file."""
    return name.startswith(PREFIX)


def reference_content(name: str, battery: str) -> bytes:
    """The shipped file that a reference means: what `profile export --format netcdf` writes.

    Args:
        name: `reference:AGENT` or `reference:AGENT@BATTERY`.
        battery: The battery of what it is compared with; "" where nothing else is given.

    Raises:
        ValueError: There is no such agent, its battery is not said, or it was not measured on it.
    """
    agent, _, asked = name.removeprefix(PREFIX).partition("@")
    if agent not in REFERENCES:
        raise ValueError(f"{name}: there is no such agent; there are {_join([*REFERENCES])}")
    there = batteries(agent)
    chosen = asked or battery
    if not chosen:
        raise ValueError(
            f"{name}: say on which battery, as in {PREFIX}{agent}@{there[0]}; there are "
            f"{_join(there)}"
        )
    if chosen not in there:
        raise ValueError(
            f"{name}: {agent} was not measured on {chosen}; it was on {_join(there)}. Profiles "
            "of different batteries can be compared where their layouts are the same: name one "
            f"behind {PREFIX}{agent}@"
        )
    return gzip.decompress((FOLDER / file_name_of(agent, chosen)).read_bytes())


def _join(names: Sequence[str]) -> str:
    return ", ".join(names)
