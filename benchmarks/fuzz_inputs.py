"""Damaged inputs, and the count of what came of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SLOW_SECONDS: Final = 1.0
"""CPU seconds that an input may take at most."""
MOST_BYTES: Final = 64 * 1024
MOST_MEMORY: Final = 512 * 1024 * 1024
"""Bytes by which a process that reads may grow at most."""
SPECIAL: Final = (
    *(b"", b"\0", b"\xff" * 8, b"-1", b"0", b"1e999", b"nan", b"9" * 400, b"\xef\xbb\xbf"),
    *(b"[" * 200, b"{" * 200, b"&a [*a, *a]", b"!Arena ", b'"', b"'", b",", b"\n", b"\t", b": "),
    *("ä\u2028\U0001f600".encode(), b"../../etc/passwd", b"%s%n", b"2**9**9"),
)
"""What tends to be read wrongly."""
ARENA: Final = b"""!ArenaConfig
arenas:
  0: !Arena
    pass_mark: 0
    t: 30
    items:
    - !Item {name: Agent, positions: [!Vector3 {x: 20, y: 0, z: 3}], rotations: [0]}
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 6}]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
"""
"""An arena that is whole."""


@dataclass(slots=True)
class Tally:
    """What came of the inputs of one kind.

    Attributes:
        inputs: How many there were.
        accepted: How many were read without complaint.
        slowest: CPU seconds of the slowest.
        slow: What took longer than `SLOW_SECONDS`, with how often.
        wrong: What should not have come, with how often.
    """

    inputs: int = 0
    accepted: int = 0
    slowest: float = 0.0
    slow: dict[str, int] = field(default_factory=dict[str, int])
    wrong: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, seconds: float, *, accepted: bool, wrong: str = "", what: str = "input") -> None:
        """Count an input."""
        self.inputs += 1
        self.accepted += accepted
        self.slowest = max(self.slowest, seconds)
        if seconds > SLOW_SECONDS:
            self.slow[what] = self.slow.get(what, 0) + 1
        if wrong:
            self.wrong[wrong] = self.wrong.get(wrong, 0) + 1

    def row(self, name: str) -> dict[str, Any]:
        """Return it as a row of the benchmark."""
        slow = {f"{what} over {SLOW_SECONDS:g} s": n for what, n in self.slow.items()}
        found = [f"{n} x {what}" for what, n in (self.wrong | slow).items()]
        return {
            "name": f"{name}: inputs",
            "value": self.inputs,
            "met": not self.wrong and not self.slow,
            "wrong": sum(self.wrong.values()),
            "note": "; ".join([f"{self.accepted} accepted, slowest {self.slowest:.3f} s", *found]),
        }


def mutate(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return one of the seeds with one to eight changes."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((0, 1, 2, 8, 64)))
        match rng.randrange(6):
            case 0 if data:
                place = rng.randrange(len(data))
                data[place] = rng.randrange(256)
            case 1:
                del data[at:]
            case 2:
                data[at:end] = rng.choice(SPECIAL)
            case 3:
                data[at:at] = data[at:end] * rng.choice((1, 2, 50))
            case 4:
                other = rng.choice(seeds)
                start = rng.randrange(len(other) + 1)
                data[at:end] = other[start : start + rng.choice((1, 16, 256))]
            case _:
                data[at:end] = rng.randbytes(end - at)
    return bytes(data[:MOST_BYTES])
