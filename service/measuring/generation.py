"""Makes instances on demand from families of arenas, for the demands that a layout asks for.

Where all demands of a layout are parameters of a family, offers form a grid over them. Elsewhere,
offers are the demands of arenas that were drawn from the family, always the same ones. What is then
made for an offer is another arena with these demands. It is stored complete with the decision to
play it, so that restarts, recordings and exports never have to make it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import Final, Protocol

import numpy as np

from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.grid import are_parameters, demand_grid
from animalcat.arena_configs.families.language import Paradigm
from animalcat.arena_configs.families.library import load_family
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES, read_features
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.model import STEPS_PER_UNIT, Arena
from animalcat.arena_configs.placement import place
from animalcat.layouts.adaptive.offers import InstanceGenerator, Offers
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import USUAL_STEPS, Battery
from animalcat.service.measuring.twins import Pooled, codes, make_twin, pool_of, stratum_of
from animalcat.values import Decision, MadeInstance

FAMILY: Final = "navigation"
"""The family that arenas are made of where those of a battery are of no use."""
_SAMPLE: Final = 6
"""Arenas of a paradigm that tell what all of them share."""


class InstanceSource(InstanceGenerator, Protocol):
    """A source of offers that can also make the instances to play."""

    def make(self, offer: str, seed: int, number: int) -> MadeInstance:
        """Make an instance; the same arguments always give the same instance.

        Args:
            offer: Name of the offer.
            seed: Seed of the session.
            number: Number of the episode that it is for.
        """
        ...


class FamilySource:
    """Makes arenas of a family: for a grid of demands, or for those of arenas drawn before."""

    def __init__(self, family: str, *, drawn: bool = True) -> None:
        """Name the family.

        Args:
            family: Its name.
            drawn: Whether demands of drawn arenas are offered where there is no grid.
        """
        self._family = load_family(family)
        self._ways = (self._grid, self._draw_arenas) if drawn else (self._grid,)

    def offers(self, layout: Layout) -> Offers:
        """Return the demands of what can be made and the layout covers.

        Raises:
            ValueError: The layout covers none of them.
        """
        self._layout = layout
        self._offered: dict[str, Pooled] = {}
        self._reasons = Counter[str]()
        for way in self._ways:
            pooled = way(layout)
            width = len(str(len(pooled)))
            for k, offered in enumerate(pooled):
                why = layout.why_not(offered.features.values, offered.features.missing)
                if why:
                    self._reasons[why] += 1
                else:
                    self._offered[f"{offered.family}-{offered.paradigm}-offer-{k:0{width}}"] = (
                        offered
                    )
            if self._offered:
                break
        else:
            common = self._reasons.most_common(1)
            why = common[0][0] if common else "not all demands are parameters of the family"
            raise ValueError(f"in arenas of {self._family.name}: {why}")
        rows = [
            [offered.features.values.get(f.name, np.nan) for f in layout.features]
            for offered in self._offered.values()
        ]
        limits = [
            max(0, offered.arena.time_limit) * STEPS_PER_UNIT for offered in self._offered.values()
        ]
        longest = max(limits) or USUAL_STEPS
        return Offers(
            names=list(self._offered),
            features=layout.check_features(rows, played=False),
            paradigms=[offered.paradigm for offered in self._offered.values()],
            seconds=np.array([limit or longest for limit in limits], np.float64),
        )

    def make(self, offer: str, seed: int, number: int) -> MadeInstance:
        """Make an arena with the demands of an offer, or the nearest to them that is found."""
        pooled = self._offered[offer]
        return make_twin(offer, pooled, self._layout, self._codes, f"{offer}.{number}", seed)

    @cached_property
    def _codes(self) -> frozenset[str]:
        """The layout's features that are codes or counts."""
        return codes(self._layout, [pooled.features.values for pooled in self._offered.values()])

    def _draw_arenas(self, layout: Layout) -> list[Pooled]:
        """Arenas that were drawn, always the same ones."""
        return pool_of(self._family.name)

    def _grid(self, layout: Layout) -> list[Pooled]:
        """A grid over the demands of the layout, in paradigms where all are parameters."""
        return [
            pooled
            for paradigm in self._family.paradigms
            for pooled in self._grid_of(layout, paradigm)
        ]

    def _grid_of(self, layout: Layout, paradigm: Paradigm) -> list[Pooled]:
        family = self._family
        names = tuple(name for name in layout.feature_names if name in FEATURES)
        if not are_parameters(family, paradigm, names):
            return []
        sample = _sample(family.name, paradigm.name)
        shared = _common_features(sample, layout)
        claimed = {claim.demand for claim in family.claims_of(paradigm)}
        for exclusion in layout.excludes:
            value = shared.get(exclusion.feature)
            why = "" if value is None else exclusion.broken_by(value)
            if value is None and exclusion.feature not in claimed:
                why = f"{exclusion.feature} is not the same in all arenas"
            if why:
                self._reasons[why] += 1
                return []
        return [
            Pooled(family.name, paradigm.name, sample[0], MeasuredFeatures(shared | row, {}))
            for row in _rows(family.name, paradigm.name, names)
        ]


@cache
def _rows(family: str, paradigm: str, names: tuple[str, ...]) -> list[dict[str, float]]:
    """Combinations of demands of a paradigm, which all sessions share."""
    chosen = load_family(family)
    return demand_grid(chosen, chosen.paradigm(paradigm), names)


@cache
def _sample(family: str, paradigm: str) -> list[Arena]:
    """Some arenas of a paradigm, always the same ones."""
    drawn = generate(family, _SAMPLE, np.random.default_rng(0), paradigm=paradigm)
    return [instance.arena for instance in drawn]


def _common_features(arenas: Sequence[Arena], layout: Layout) -> dict[str, float]:
    """Features that all arenas share, of those by which the layout leaves arenas out."""
    names = [
        exclusion.feature
        for exclusion in layout.excludes
        if exclusion.feature in FEATURES and FEATURES[exclusion.feature].measured == "placement"
    ]
    first, *others = (
        read_features(Survey(place(arena, np.random.default_rng(0))), names).values
        for arena in arenas
    )
    return {
        name: value
        for name, value in first.items()
        if all(other.get(name) == value for other in others)
    }


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
        all_offers = [source.offers(layout) for source in self._sources]
        for source, offers in zip(self._sources, all_offers, strict=True):
            self._of |= dict.fromkeys(offers.names, source)
        return Offers(
            names=[name for offers in all_offers for name in offers.names],
            features=np.vstack([offers.features for offers in all_offers]),
            paradigms=[paradigm for offers in all_offers for paradigm in offers.paradigms],
            seconds=np.concatenate(
                [
                    np.ones(len(offers)) if offers.seconds is None else offers.seconds
                    for offers in all_offers
                ]
            ),
        )

    def make(self, offer: str, seed: int, number: int) -> MadeInstance:
        """Make an instance from the source that has the offer."""
        return self._of[offer].make(offer, seed, number)


def source_for(layout: Layout, battery: Battery | None = None) -> InstanceSource:
    """Return a source of arenas from the families of a battery that the layout covers.

    If the layout covers none of them, or nobody knows how the battery's arenas were made, the
    source is the family `FAMILY`.

    Args:
        layout: The layout.
        battery: The battery; None for no matter which.

    Raises:
        ValueError: There is none; the message says why.
    """
    instances = () if battery is None else battery.instances
    families = [*dict.fromkeys(s.family.name for i in instances if (s := stratum_of(i)))]
    reasons: list[str] = []

    def usable(sources: Iterable[FamilySource]) -> list[InstanceSource]:
        kept: list[InstanceSource] = []
        for source in sources:
            try:
                source.offers(layout)
            except ValueError as error:
                reasons.append(str(error))
            else:
                kept.append(source)
        return kept

    sources = usable(map(FamilySource, families))
    if not sources and FAMILY not in families:
        sources = usable([FamilySource(FAMILY, drawn=False)])
    if not sources:
        raise ValueError(
            f"nothing can be made on demand for layout {layout.name}: {'; '.join(reasons)}"
        )
    return sources[0] if len(sources) == 1 else AllSources(sources)


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
