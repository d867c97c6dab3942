"""Scales the counts of a recipe to a number of instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from animalcat.arena_configs.batteries.language import Entry, Recipe
from animalcat.arena_configs.model import ArenaError


class Counts(NamedTuple):
    """How many instances an entry has.

    Attributes:
        instances: Besides controls.
        controls: How many of them are followed by each control.
    """

    instances: int
    controls: Mapping[str, int]

    @property
    def total(self) -> int:
        """Instances and controls together."""
        return self.instances + sum(self.controls.values())


def full_counts(recipe: Recipe) -> list[Counts]:
    """The counts that a recipe asks for, an item for each entry."""
    return [
        Counts(
            entry.count,
            {
                name: entry.eligible(name, entry.count) if number is None else number
                for name, number in entry.controls.items()
            },
        )
        for entry in recipe.entries
    ]


def total(counts: Sequence[Counts]) -> int:
    """Instances of all entries, with controls."""
    return sum(entry.total for entry in counts)


def full_size(recipe: Recipe) -> int:
    """Instances of a recipe's battery: all that its entries ask for, or so many as are kept."""
    return total(full_counts(recipe)) if recipe.separable is None else recipe.separable


def counts_for(recipe: Recipe, size: int | None) -> list[Counts]:
    """The counts of a recipe in proportion to a number of instances.

    Every entry keeps at least one instance. Entries and controls get their shares rounded down,
    and what is left goes to the largest remainders, earlier ones first. A control has no more than
    the instances that may have it.

    Of a recipe that keeps some of its instances only, these are the counts of what is drawn, which
    is more than the battery will have.

    Args:
        recipe: The recipe.
        size: Number of instances of the battery, with controls; None for what the recipe asks for.

    Raises:
        ArenaError: There are more entries than instances, or no counts give this number.
    """
    full = full_counts(recipe)
    asked = total(full)
    if size is None:
        return full
    if size < len(full):
        raise ArenaError(
            f"{recipe.file}: {size} instances are fewer than its {len(full)} entries, which have "
            "at least one each"
        )
    if recipe.separable is not None:
        size = max(size, round(size * asked / recipe.separable))
    if size == asked:
        return full
    scaled = _ScaledCounts(recipe.entries, full, size / asked)
    while (missing := size - scaled.total()) != 0:
        if not scaled.step(1 if missing > 0 else -1):
            raise ArenaError(
                f"{recipe.file}: no counts in proportion to its entries give {size} instances; "
                f"{size - missing} are the nearest"
            )
    return scaled.counts()


class _ScaledCounts:
    """Counts of entries and of their controls, each a line with a share and a number."""

    def __init__(self, entries: Sequence[Entry], full: Sequence[Counts], factor: float) -> None:
        self._entries = entries
        self._lines = [
            (k, control) for k, entry in enumerate(full) for control in ("", *entry.controls)
        ]
        self._shares = {
            (k, control): factor * (full[k].controls[control] if control else full[k].instances)
            for k, control in self._lines
        }
        self._now = {line: int(share + 1e-9) for line, share in self._shares.items()}
        for line in self._lines:
            self._now[line] = max(self._now[line], self._least(line))
        for line in self._lines:
            self._now[line] = min(self._now[line], self._most(line))

    def _least(self, line: tuple[int, str]) -> int:
        return 0 if line[1] else 1

    def _most(self, line: tuple[int, str]) -> int:
        k, control = line
        if not control:
            return 2**31
        return self._entries[k].eligible(control, self._now[k, ""])

    def total(self) -> int:
        return sum(self._now.values())

    def step(self, by: int) -> bool:
        """Add one instance, or take one away, where the share asks for it most."""
        for line in sorted(
            self._lines, key=lambda line: by * (self._now[line] - self._shares[line])
        ):
            after = self._now[line] + by
            if not self._least(line) <= after <= self._most(line):
                continue
            self._now[line] = after
            fits = all(
                self._now[other] <= self._most(other)
                for other in self._lines
                if other[0] == line[0]
            )
            if fits:
                return True
            self._now[line] = after - by
        return False

    def counts(self) -> list[Counts]:
        return [
            Counts(
                self._now[k, ""],
                {
                    control: self._now[k, control]
                    for own, control in self._lines
                    if own == k and control
                },
            )
            for k in range(len(self._entries))
        ]
