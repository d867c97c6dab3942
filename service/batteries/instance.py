"""One arena of a battery, as sessions know it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from animalcat.arena_configs.outcome import MarkedPlace, OutcomeRules


@dataclass(frozen=True, slots=True)
class Instance:
    """One arena with every value fixed.

    Attributes:
        name: Path of its file without the suffix, or what its family calls it.
        paradigm: What kind of task it is; selection is balanced over them.
        features: Meta-features, in the units of the battery's table.
        pass_mark: Return that an episode must exceed to be a success.
        time_limit_steps: Physics steps until the time limit; 0: none.
        seed: Seed of its episodes, so that the same instance plays the same.
        arena: Its file in the battery's folder.
        missing: Why a meta-feature that batteries have does not apply to it, by name.
        places: Places that are choices, right or wrong ones; the first that the agent reaches
            decides.
    """

    name: str
    paradigm: str
    features: Mapping[str, float]
    pass_mark: float
    time_limit_steps: int
    seed: int
    arena: str
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    places: tuple[MarkedPlace, ...] = ()

    @property
    def task(self) -> OutcomeRules:
        """What can be observed of its episodes."""
        known = self.features
        return OutcomeRules(
            self.pass_mark,
            self.time_limit_steps,
            known.get("leastReturn", math.nan),
            known.get("greatestReturn", math.nan),
            known.get("rewards", math.nan),
            self.places,
        )
