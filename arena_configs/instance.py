"""Describes one arena of a battery, as sessions use it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from animalcat.arena_configs.origin import Origin
from animalcat.arena_configs.outcome import MarkedPlace, OutcomeRules


@dataclass(frozen=True, slots=True)
class Instance:
    """One arena with every value fixed.

    Attributes:
        name: Path of its file without the suffix, or the name that its family gives it.
        paradigm: The kind of task; selection is balanced over paradigms.
        features: Meta-features by name, in the units of the battery's table.
        pass_mark: Return that an episode must exceed to be a success.
        time_limit_steps: Physics steps until the time limit; 0 for none.
        seed: Seed of its episodes, so that the same instance always plays the same.
        arena: File of the arena within the battery's folder; empty if it has none.
        missing: Why a meta-feature does not apply to it, by the feature's name.
        places: Right and wrong places to choose from; the first that the agent reaches decides.
        origin: Where it comes from; None for an arena file.
        suite: The suite of tasks that it belongs to; empty if nothing says it.
        task_name: The task of which it is a variant; empty if nothing says it.
        variant: Which variant of its task it is; empty if nothing says it.
        control: The control that it is of another instance, for an arena file; empty for none.
        control_of: Name of that instance; empty where it is not in the battery.
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
    origin: Origin | None = None
    suite: str = ""
    task_name: str = ""
    variant: str = ""
    control: str = ""
    control_of: str = ""

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
