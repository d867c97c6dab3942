"""Makes instances on demand from families of arenas, for the demands that a layout asks for.

For a goal on open floor, offers form a grid over the demands that it can be solved for. For other
arenas, offers are the demands of arenas that were drawn from the families of the battery, always
the same ones; what is then made for an offer is another arena with these demands. The instance made
for an offer is stored complete with the decision to play it, so that restarts, recordings and
exports never have to make it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from animalcat.arena_configs.families import (
    POLAR,
    PolarFamily,
    distances,
    load_polar,
    places,
    sizes,
    solve,
)
from animalcat.arena_configs.features import measure_features
from animalcat.arena_configs.model import STEPS_PER_UNIT
from animalcat.arena_configs.placement import place
from animalcat.layouts.adaptive.offers import InstanceGenerator, Offers
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import USUAL_STEPS, Battery
from animalcat.service.batteries.drafts import Draft, fixed_instance, instance_seed
from animalcat.service.batteries.instance import Instance
from animalcat.service.measuring.twins import Pooled, codes, made_for, pool_of, source_of
from animalcat.service.model import Decision, Made

DISTANCES: Final = 16
"""Number of distances offered, evenly spaced from the least to the greatest."""
SIZES: Final = 12
"""Number of sizes offered, evenly spaced on a logarithmic scale."""

_SIDES: Final = {-1.0: "left", 0.0: "", 1.0: "right"}
_BEHIND: Final = {0.0: "front", 0.5: "side", 1.0: "behind"}


class InstanceSource(InstanceGenerator, Protocol):
    """A source of offers that can also make the instances to play."""

    def make(self, offer: str, seed: int, number: int) -> Made:
        """Make an instance; the same arguments always give the same instance.

        Args:
            offer: Name of the offer.
            seed: Seed of the session.
            number: Number of the episode that it is for.
        """
        ...


class PoolSource:
    """Makes arenas of families with the demands of arenas that were drawn and measured before."""

    def __init__(self, families: Sequence[str]) -> None:
        self._families = families

    def offers(self, layout: Layout) -> Offers:
        """Return the demands of the arenas that were drawn and that the layout covers.

        Raises:
            ValueError: The layout covers none of them.
        """
        self._layout = layout
        reasons = {
            name: layout.why_not(one.features.values, one.features.missing)
            for name, one in self._pool.items()
        }
        pool = {name: one for name, one in self._pool.items() if not reasons[name]}
        if not pool:
            why, _ = Counter(reasons.values()).most_common(1)[0]
            raise ValueError(f"in arenas of {', '.join(self._families)}: {why}")
        rows = [
            [one.features.values.get(f.name, np.nan) for f in layout.features]
            for one in pool.values()
        ]
        limits = [max(0, one.arena.time_limit) * STEPS_PER_UNIT for one in pool.values()]
        longest = max(limits) or USUAL_STEPS
        return Offers(
            names=list(pool),
            features=layout.check_features(rows),
            paradigms=[one.paradigm for one in pool.values()],
            seconds=np.array([limit or longest for limit in limits], np.float64),
        )

    def make(self, offer: str, seed: int, number: int) -> Made:
        """Make an arena with the demands of an offer, or the nearest to them that is found."""
        one = self._pool[offer]
        rows = [other.features.values for other in self._pool.values()]
        name = f"{offer}.{number}"
        return made_for(offer, one, self._layout, codes(self._layout, rows), name, seed)

    @cached_property
    def _pool(self) -> dict[str, Pooled]:
        """What was drawn, by the name of its offer."""
        found = [pooled for family in self._families for pooled in pool_of(family)]
        return {f"{one.family}-{one.paradigm}-offer-{k:03}": one for k, one in enumerate(found)}


class AllSources:
    """Several sources of offers as one."""

    def __init__(self, sources: Sequence[InstanceSource]) -> None:
        self._sources = sources
        self._of: dict[str, InstanceSource] = {}

    def offers(self, layout: Layout) -> Offers:
        """Return what any of the sources offers.

        Raises:
            ValueError: A source offers nothing that the layout covers.
        """
        found = [source.offers(layout) for source in self._sources]
        for source, offers in zip(self._sources, found, strict=True):
            self._of |= dict.fromkeys(offers.names, source)
        return Offers(
            names=[name for offers in found for name in offers.names],
            features=np.vstack([offers.features for offers in found]),
            paradigms=[paradigm for offers in found for paradigm in offers.paradigms],
            seconds=np.concatenate(
                [
                    np.ones(len(offers)) if offers.seconds is None else offers.seconds
                    for offers in found
                ]
            ),
        )

    def make(self, offer: str, seed: int, number: int) -> Made:
        """Make an instance from the source that has the offer."""
        return self._of[offer].make(offer, seed, number)


class ArenaSource:
    """Makes arenas of one family, on its open floor, for given demands."""

    def __init__(self, family: str) -> None:
        self._family: PolarFamily = load_polar(family)

    def offers(self, layout: Layout) -> Offers:
        """Return a grid of offers over distance, size and place of the reward.

        Raises:
            ValueError: The layout covers nothing that the family's open floor offers.
        """
        reasons = {name: layout.why_not(row, {}) for name, row in self._grid.items()}
        grid = {name: self._grid[name] for name, why in reasons.items() if not why}
        if not grid:
            why, _ = Counter(reasons.values()).most_common(1)[0]
            raise ValueError(f"on the open floor of family {self._family.name}: {why}")
        rows = [[row.get(f.name, np.nan) for f in layout.features] for row in grid.values()]
        steps = float(self._family.time_limit * STEPS_PER_UNIT)
        return Offers(
            names=list(grid),
            features=layout.check_features(rows),
            paradigms=[self._paradigms[row["rewardBehind"], row["XPos"]] for row in grid.values()],
            seconds=np.full(len(grid), steps),
        )

    def make(self, offer: str, seed: int, number: int) -> Made:
        """Make an arena with the demands of an offer; where things stand is drawn at random."""
        name = f"{offer}.{number}"
        solved = solve(self._family, self._grid[offer], rng(seed, "generate", number))
        draft = Draft(name, solved.paradigm, solved.arena, instance_seed(seed, name))
        fixed = fixed_instance(draft)
        return Made(offer, fixed.instance, fixed.text)

    @cached_property
    def _grid(self) -> dict[str, dict[str, float]]:
        """The features of every instance that can be made, by the name of its offer."""
        made: dict[str, dict[str, float]] = {}
        spots = places(self._family)
        for size in np.geomspace(*sizes(self._family), SIZES).round(2).tolist():
            near, far = distances(self._family, size)
            floor = self._floor(size, near, far)
            for distance in np.linspace(near, far, DISTANCES).round(1).clip(near, far).tolist():
                for spot in spots:
                    where = "-".join(filter(None, (_BEHIND[spot.behind], _SIDES[spot.side])))
                    name = f"{self._family.name}-{distance:.4g}m-{size:g}m-{where}"
                    made[name] = floor | {
                        "rewardDistance": distance,
                        "rewardSize": size,
                        "rewardBehind": spot.behind,
                        "XPos": spot.side,
                    }
        return made

    def _floor(self, size: float, near: float, far: float) -> dict[str, float]:
        """Return the features that all arenas with this size of reward share, found from some."""
        demands = [
            {
                "rewardSize": size,
                "rewardBehind": spot.behind,
                "XPos": spot.side,
                "rewardDistance": (near, far)[number % 2],
            }
            for number, spot in enumerate(places(self._family))
        ]
        arenas = [solve(self._family, wanted, rng(0, "floor", 0)).arena for wanted in demands]
        one, *others = (
            measure_features(place(arena, rng(0, "floor", 0))).values for arena in arenas
        )
        return {
            name: value
            for name, value in one.items()
            if all(other.get(name) == value for other in others)
        }

    @cached_property
    def _paradigms(self) -> dict[tuple[float, float], str]:
        """The paradigm by the codes (behind, side) of the reward's place."""
        return {(spot.behind, spot.side): spot.paradigm for spot in places(self._family)}


def source_for(layout: Layout, battery: Battery | None = None) -> InstanceSource:
    """Return a source of arenas from the families of a battery that the layout covers.

    If the layout covers none of them, or nobody knows how the battery's arenas were made, the
    source is the first of the families that go to one goal.

    Args:
        layout: The layout.
        battery: The battery; None for no matter which.

    Raises:
        ValueError: There is none; the message says why.
    """
    instances = () if battery is None else battery.instances
    families = [*dict.fromkeys(one.family for i in instances if (one := source_of(i)))]
    reasons: list[str] = []
    found: list[InstanceSource] = []
    for family in families:
        both: list[InstanceSource] = [PoolSource([family])]
        if family in POLAR:
            both.insert(0, ArenaSource(family))
        for source in both:
            try:
                source.offers(layout)
            except ValueError as error:
                reasons.append(str(error))
            else:
                found.append(source)
                break
    if found:
        return found[0] if len(found) == 1 else AllSources(found)
    for family in POLAR:
        source = ArenaSource(family)
        try:
            source.offers(layout)
        except ValueError as error:
            reasons.append(str(error))
        else:
            return source
    raise ValueError(
        f"nothing can be made on demand for layout {layout.name}: {'; '.join(reasons)}"
    )


def played_instance(battery: Battery, decision: Decision) -> Instance:
    """Return the instance of a decision, whether from the battery or made on demand."""
    if decision.made is not None:
        return decision.made.instance
    return battery.instances[battery.index[decision.instance]]


def played_arena(battery: Battery, decision: Decision) -> str:
    """Return the fixed arena of a decision's instance, as YAML in the current grammar."""
    if decision.made is not None:
        return decision.made.arena_yaml
    return battery.arena_yaml(played_instance(battery, decision))
