"""Where chance comes from: a generator of our own, or Unity's, drawn in the order of a build.

Placement takes either. With numpy's generator it draws in an order of its own; with `UnityDraws` it
draws as a build of Animal-AI does (source: reference/unity-random.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from animalcat.arena_configs.builds import NEWEST, Build

_WORD: Final = 0xFFFFFFFF
_MULTIPLIER: Final = 1812433253
_MANTISSA: Final = 0x7FFFFF

State = tuple[int, int, int, int]
"""The four words of Unity's generator."""


class UnityRandom:
    """Unity's generator: Marsaglia's xorshift128, and its arithmetic in single precision."""

    def __init__(self, seed: int) -> None:
        """Begin a stream.

        Args:
            seed: The seed; of any number its lowest 32 bits count.
        """
        self.state: State = (0, 0, 0, 0)
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Begin the stream of another seed."""
        words = [seed & _WORD]
        for _ in range(3):
            words.append((words[-1] * _MULTIPLIER + 1) & _WORD)
        self.state = (words[0], words[1], words[2], words[3])

    def bits(self) -> int:
        """Draw 32 bits."""
        first, second, third, last = self.state
        mixed = (first ^ (first << 11)) & _WORD
        drawn = last ^ (last >> 19) ^ mixed ^ (mixed >> 8)
        self.state = (second, third, last, drawn)
        return drawn

    def uniform(self, low: float, high: float) -> float:
        """Draw a number; both ends are possible, and the first bits give `high`."""
        share = np.float32(self.bits() & _MANTISSA) / np.float32(_MANTISSA)
        return float(share * np.float32(low) + (np.float32(1.0) - share) * np.float32(high))

    def integers(self, count: int) -> int:
        """Draw a whole number from 0 to `count` - 1."""
        return self.bits() % count


@dataclass(frozen=True, slots=True)
class DrawRules:
    """What a build draws, where builds differ.

    Attributes:
        height: Whether a height that is exactly -1 is drawn from 0 to `HEIGHT`; otherwise it is 0.
        colored: Objects whose colour is drawn where it is not given.
        channels: Whether each missing channel of a colour is drawn by itself; otherwise one that
            is missing leaves all three to chance.
        agent_choice: Whether one of several positions of the agent is drawn; otherwise it is the
            first.
    """

    height: bool
    colored: frozenset[str]
    channels: bool
    agent_choice: bool


HEIGHT: Final = 100.0
"""Metres: the greatest height that is drawn."""
SKINS: Final = 3
"""Skins of the agent, of which one is drawn unless the arena names one."""

DRAW_RULES: Final[Mapping[Build, DrawRules]] = MappingProxyType(
    {
        "4.x": DrawRules(False, frozenset({"Wall", "Ramp"}), False, True),
        "4.2": DrawRules(False, frozenset(), False, False),
        "4.1": DrawRules(False, frozenset({"Wall", "Ramp", "CylinderTunnel"}), True, False),
        "3.1.3": DrawRules(True, frozenset({"Wall", "Ramp", "CylinderTunnel"}), True, False),
    }
)
"""Build -> its rules (the table at the end of reference/unity-random.md). Those of 3.1.3 are known
from real outcomes, the others from sources alone."""


class UnityDraws:
    """The one stream of a Unity process, and the rules of its build.

    The stream goes on from one arena to the next, as it does there.
    """

    def __init__(self, seed: int, build: Build = NEWEST) -> None:
        """Begin the stream of a process.

        Args:
            seed: The seed that the client tells the build; of any number its lowest 32 bits count.
            build: The build whose rules hold.
        """
        self.random = UnityRandom(seed)
        self.rules = DRAW_RULES[build]

    def uniform(self, low: float, high: float) -> float:
        """Draw a number from the stream."""
        return self.random.uniform(low, high)

    def integers(self, count: int) -> int:
        """Draw a whole number from 0 to `count` - 1 from the stream."""
        return self.random.integers(count)

    def aside(self) -> np.random.Generator:
        """A generator for what Unity draws elsewhere; it depends on the stream and leaves it be."""
        return np.random.default_rng(self.random.state)


Draws = np.random.Generator | UnityDraws
"""A source of chance; which one it is decides the order of draws as well."""

OWN: Final = "animalcat"
UNITY: Final = "unity"


def draws_by_name(name: str, seed: int, build: Build = NEWEST) -> Draws:
    """The source of chance that a name stands for.

    Args:
        name: "animalcat"; or "unity" for Unity's.
        seed: Its seed.
        build: The build that draws, if it is Unity.

    Raises:
        ValueError: There is no such source.
    """
    if name == OWN:
        return np.random.default_rng(seed)
    if name != UNITY:
        hint = " (name a build by itself)" if name.startswith(f"{UNITY}:") else ""
        raise ValueError(f"there is no rng {name!r}; there are: {OWN}, {UNITY}{hint}")
    return UnityDraws(seed, build)
