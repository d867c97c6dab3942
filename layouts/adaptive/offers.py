"""Instances that could be made on demand, to be chosen among like the battery's own.

A layout knows no arenas. Whatever can make instances for given demands says which demands those
are. In the bank these offers follow the battery's instances, and they are chosen where no instance
of the battery would tell enough (`Policy.generate`). The generator then makes the chosen one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Offers:
    """Demands for which instances can be made.

    Attributes:
        names: The name of each; it must differ from all instances of the battery.
        features: (offers, features), in the layout's order and units.
        paradigms: The paradigm of each; balancing over paradigms does not count them.
        seconds: (offers,), the expected duration of an episode, in the same measure as the
            battery's; None if all are 1.
    """

    names: Sequence[str]
    features: Floats
    paradigms: Sequence[str]
    seconds: Floats | None = None

    def __len__(self) -> int:
        return len(self.names)

    def without(self, names: Collection[str]) -> Offers:
        """Copy the offers without those of some names."""
        kept = [k for k, name in enumerate(self.names) if name not in names]
        return Offers(
            [self.names[k] for k in kept],
            self.features[kept],
            [self.paradigms[k] for k in kept],
            None if self.seconds is None else self.seconds[kept],
        )


class InstanceGenerator(Protocol):
    """Something that can make instances for given demands."""

    def offers(self, layout: Layout) -> Offers:
        """List what it can make; always the same for the same layout.

        Raises:
            ValueError: It can make nothing that the layout covers.
        """
        ...
