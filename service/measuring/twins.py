"""Makes twins of a battery's instances: new arenas with the same demands and other details.

An instance of a family has twins of the same family, paradigm, control and part. If the battery has
a recipe, that is the family as the recipe's entry draws from it, also where it is one of the user's
own. Of an instance of which nobody knows how it was made (an arena file) there are only variations:
turned, shifted, mirrored, in other colours. What is made follows from the battery's instance, the
layout and a key.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np

from animalcat.arena_configs.families import Family, load_family
from animalcat.arena_configs.families.language import PARTS, Part
from animalcat.arena_configs.families.twins import SIDED, Stratum, Wanted, wanted
from animalcat.arena_configs.families.variations import Variation, variations
from animalcat.arena_configs.features import FEATURES, MeasuredFeatures
from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.arena_configs.sequence import merged
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.drafts import Draft, fixed_instance, instance_seed, measured
from animalcat.service.batteries.naming import TaskKind
from animalcat.service.batteries.readings import Reading
from animalcat.values import MadeAs, MadeInstance

NEAR: Final = 3.0
"""By how many times what may differ the demands of a family's arena may be off, before a variation
is taken in its place."""

STRATA: Final = 100
"""Most strata of recipes' entries that are kept."""
_strata: dict[tuple[str, str, str, str], Stratum] = {}
"""What twins of recipes' instances are drawn from, by battery, entry, paradigm and control."""
Suits: TypeAlias = Callable[[Mapping[str, float], Mapping[str, str]], bool]


class TwinSource(NamedTuple):
    """Where an instance comes from.

    Attributes:
        family: Name of its family.
        paradigm: Paradigm of that family.
        control: The control that it is; empty for none.
        part: The part that it belongs to; None if that is not known.
    """

    family: str
    paradigm: str
    control: str = ""
    part: Part | None = None


def source_of(instance: Instance) -> TwinSource | None:
    """Say where an instance comes from; None if nobody knows, as for an arena file."""
    origin = instance.origin
    if origin is None:
        return None
    source = TwinSource(origin.family, origin.paradigm, origin.control, _part(origin.part))
    return source if _is_known(source) else None


def _part(name: str) -> Part | None:
    return next((part for part in PARTS if part == name), None)


def _is_known(source: TwinSource) -> bool:
    """Whether there is such a family, with such a paradigm and control."""
    try:
        family = load_family(source.family)
    except ArenaError:  # of another package that is not here or not allowed, or of one's own
        return False
    paradigms = [paradigm.name for paradigm in family.paradigms]
    known = not source.control or source.control in family.controls
    return source.paradigm in paradigms and known


@cache
def stratum_of(family: str, paradigm: str, control: str = "") -> Stratum:
    """Return the stratum of a family; its pool is measured when it is first needed."""
    return _stratum(load_family(family), paradigm, control)


def _stratum(family: Family, paradigm: str, control: str) -> Stratum:
    taken = family.controls[control] if control else None
    return Stratum(family, family.paradigm(paradigm), taken, _measurer(0))


class Pooled(NamedTuple):
    """An arena that was drawn from a family and measured.

    Attributes:
        family: Name of the family.
        paradigm: Paradigm of that family.
        arena: The arena.
        features: What was measured on it.
    """

    family: str
    paradigm: str
    arena: Arena
    features: MeasuredFeatures


def pool_of(family: str) -> list[Pooled]:
    """Return arenas of all paradigms of a family, always the same ones."""
    return [
        Pooled(family, paradigm.name, arena, features)
        for paradigm in load_family(family).paradigms
        for arena, features in stratum_of(family, paradigm.name).pool
    ]


def made_for(
    offer: str, pooled: Pooled, layout: Layout, exact: frozenset[str], name: str, seed: int
) -> MadeInstance:
    """Make an arena with the demands of a pooled one, or with the nearest that are found.

    Args:
        offer: Name of the offer.
        pooled: The pooled arena.
        layout: The layout to whose features the demands belong.
        exact: Features that have to be equal.
        name: Name of the new instance.
        seed: Seed of the session.
    """
    demands = demands_of(layout, pooled.features.values, exact)
    rng = np.random.default_rng([seed, crc32(name.encode()), crc32(b"offer")])
    played = instance_seed(seed, name)
    measure = _measurer(played, lambda features, missing: not layout.why_not(features, missing))
    twin = stratum_of(pooled.family, pooled.paradigm).twin(demands, rng, measure)
    usable = twin is not None and bool(twin.measured.values)
    arena = twin.arena if twin is not None and usable else pooled.arena
    reading = Reading(*twin.measured) if twin is not None and usable else None
    fixed = fixed_instance(Draft(name, pooled.paradigm, arena, played), reading=reading)
    has = fixed.instance.features
    return MadeInstance(
        offer,
        fixed.instance,
        fixed.text,
        MadeAs.OFFER,
        distance(demands, has),
        differences(demands, has),
    )


def _measurer(
    seed: int, fits: Suits = lambda features, missing: True
) -> Callable[[Arena], MeasuredFeatures]:
    """Return what measures an arena; one that does not fit has no demands."""

    def measure(arena: Arena) -> MeasuredFeatures:
        reading = measured(Draft("arena", "", arena, seed))
        if not fits(reading.features, reading.missing):
            return MeasuredFeatures({}, {})
        return MeasuredFeatures(dict(reading.features), dict(reading.missing))

    return measure


class Twins:
    """Makes twins of the instances of one battery, for one layout."""

    def __init__(self, battery: Battery, layout: Layout) -> None:
        self._battery = battery
        self._layout = layout

    def twin(self, name: str, key: str) -> MadeInstance:
        """Make a twin of an instance; the same arguments always give the same one.

        Args:
            name: Name of the instance.
            key: What the twin is drawn for.
        """
        instance = self._battery.instances[self._battery.index[name]]
        demands = demands_of(self._layout, instance.features, self._codes)
        stratum = self._stratum(instance)
        rng = np.random.default_rng([crc32(f"{key}/{name}".encode()), crc32(b"twin")])
        seed = instance_seed(0, f"{key}/{name}")
        measure = _measurer(seed, self._fits(instance))
        if stratum is not None:
            part = None if instance.origin is None else _part(instance.origin.part)
            twin = stratum.twin(demands, rng, measure, part)
            if twin is not None and twin.worst <= NEAR:
                made = _made(instance, twin.arena, seed, MadeAs.TWIN, demands)
                if instance.origin is None:
                    return made
                origin = replace(instance.origin, variant=twin.variant, task="", control_of="")
                return replace(made, instance=replace(made.instance, origin=origin))
        return self._variation(instance, demands, rng, seed)

    def _stratum(self, instance: Instance) -> Stratum | None:
        """What twins of an instance are drawn from; None if nobody knows how it was made."""
        origin = instance.origin
        entry = None if origin is None else self._battery.entries.get(origin.entry)
        if origin is not None and entry is not None:
            key = self._battery.digest, entry.name, origin.paradigm, origin.control
            return kept_stratum(
                key, lambda: _stratum(entry.family, origin.paradigm, origin.control)
            )
        source = source_of(instance)
        return source and stratum_of(source.family, source.paradigm, source.control)

    def _variation(
        self,
        instance: Instance,
        demands: Mapping[str, Wanted],
        rng: np.random.Generator,
        seed: int,
    ) -> MadeInstance:
        arena = merged(load_text(self._battery.arena_yaml(instance), instance.name).config)
        sides = [aim.value for name, aim in demands.items() if name in SIDED]
        measure = _measurer(seed, self._fits(instance))
        own = {name: v for name, v in instance.features.items() if name not in FEATURES}
        variation = Variation(arena, flipped=False, degrees=0.0, dx=0.0, dz=0.0, painted=False)
        for candidate in variations(arena, rng, mirror=not any(sides)):
            values = {**own, **measure(candidate.arena).values}
            if all(aim.off(values.get(name)) <= 1.0 for name, aim in demands.items()):
                variation = candidate
                break
        made = _made(instance, variation.arena, seed, MadeAs.VARIATION, demands, variation.told)
        places = tuple(
            place._replace(x=x, z=z)
            for place in instance.places
            for x, z in [variation.point(place.x, place.z)]
        )
        features = {**made.instance.features, **own}
        return replace(made, instance=replace(made.instance, features=features, places=places))

    def _fits(self, instance: Instance) -> Suits:
        """Whether the layout covers an arena, with the instance's own features."""
        own = {name: v for name, v in instance.features.items() if name not in FEATURES}
        return lambda features, missing: not self._layout.why_not({**features, **own}, missing)

    @cached_property
    def _codes(self) -> frozenset[str]:
        """The layout's features that are codes or counts."""
        return codes(self._layout, [instance.features for instance in self._battery.instances])


def kept_stratum(key: tuple[str, str, str, str], make: Callable[[], Stratum]) -> Stratum:
    """Return the stratum of a recipe's entry, made unless it is among the last that were.

    Several threads may ask at once, and drop what another has just kept.

    Args:
        key: Battery, entry, paradigm and control.
        make: Makes the stratum.
    """
    found = _strata.get(key)
    if found is None:
        for oldest in list(_strata)[: max(0, len(_strata) + 1 - STRATA)]:
            _strata.pop(oldest, None)
        found = _strata[key] = make()
    return found


def codes(layout: Layout, rows: Sequence[Mapping[str, float]]) -> frozenset[str]:
    """The layout's features that are whole or half numbers wherever they are known."""
    whole: set[str] = set()
    for name in layout.feature_names:
        values = [row[name] for row in rows if name in row]
        if all((2.0 * value).is_integer() for value in values):
            whole.add(name)
    return frozenset(whole)


def demands_of(
    layout: Layout, features: Mapping[str, float], exact: frozenset[str]
) -> dict[str, Wanted]:
    """Say what an arena must have so that a layout takes it to be as hard as another one.

    Args:
        layout: The layout.
        features: Features of the other one.
        exact: Features that have to be equal.
    """
    names = [
        feature.name
        for feature in layout.features
        if (feature.name in FEATURES or feature.name in features)
        and not (feature.only_with and features.get(feature.only_with) == 0.0)
    ]
    return wanted(features, names, exact.__contains__)


def _made(
    instance: Instance,
    arena: Arena,
    seed: int,
    made_as: MadeAs,
    demands: Mapping[str, Wanted],
    variation: str = "",
) -> MadeInstance:
    """Return an arena as an instance made in the place of another one, of the same kind of task."""
    kind = TaskKind(instance.suite, instance.paradigm, instance.task_name, instance.variant)
    fixed = fixed_instance(Draft(instance.name, instance.paradigm, arena, seed, kind=kind))
    digest = hashlib.sha256(f"{seed}\0{fixed.text}".encode()).hexdigest()[:8]
    own = replace(fixed.instance, name=f"{instance.name}.{digest}")
    far = distance(demands, own.features)
    note = "; ".join(filter(None, (variation, differences(demands, own.features))))
    return MadeInstance(instance.name, own, fixed.text, made_as, far, note)


def distance(demands: Mapping[str, Wanted], features: Mapping[str, float]) -> float:
    """How far demands are off: the root of the summed squares of their shares of difference."""
    return math.sqrt(
        math.fsum(
            ((features[name] - aim.value) / max(1.0, abs(aim.value))) ** 2
            for name, aim in demands.items()
            if aim.value is not None and name in features
        )
    )


def differences(demands: Mapping[str, Wanted], features: Mapping[str, float]) -> str:
    """Say which demands are not as wanted; empty if all are."""
    sentences: list[str] = []
    for name, aim in demands.items():
        has = features.get(name)
        if aim.off(has) <= 1.0 + 1e-9:
            continue
        shown = "has no value" if has is None else f"is {has:.4g}"
        asked = "none" if aim.value is None else f"{aim.value:.4g}"
        sentences.append(f"{name} {shown}, asked for {asked}")
    return f"the nearest that was found: {'; '.join(sentences)}" if sentences else ""
