"""Makes twins of a battery's instances: new arenas with the same demands and other details.

An instance of a family has twins of the same family, paradigm, control and part. If the battery has
a recipe, that is the family as the recipe's entry draws from it, also where it is one of the user's
own. Parameters that are demands are set, and other demands are searched for. Of an instance of
which nobody knows how it was made (an arena file) there are only variations: turned, shifted,
mirrored, in other colours. What is made follows from the battery's instance, the layout and a key.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import chain
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np

from animalcat.arena_configs.families.aims import Aims, aims_at, claimed_values
from animalcat.arena_configs.families.build import (
    UnfitError,
    apply_control,
    build_arena,
    parameter_values,
    scope_of,
)
from animalcat.arena_configs.families.claims import Measure
from animalcat.arena_configs.families.generate import base_arena, generate, part_of, turn_and_check
from animalcat.arena_configs.families.instance import variant_name
from animalcat.arena_configs.families.language import PARTS, Control, Family, Paradigm, Part
from animalcat.arena_configs.families.library import load_family
from animalcat.arena_configs.families.sampling import fitting_values, random_draw
from animalcat.arena_configs.families.scope import Value
from animalcat.arena_configs.families.search import search
from animalcat.arena_configs.families.variants import (
    colours,
    mirror_arena,
    repaint_arena,
    shift_arena,
    shifted_point,
)
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ARENA_SIDE, RGB, Arena, ArenaError
from animalcat.arena_configs.placement import AGENT_RADIUS, place
from animalcat.arena_configs.sequence import episode_arenas, merge_arenas, of_parts
from animalcat.layouts.model.spec import Layout
from animalcat.portable import scalars
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.drafts import Draft, fixed_instance, instance_seed, reading_of
from animalcat.service.batteries.naming import TaskKind
from animalcat.service.batteries.readings import Reading
from animalcat.values import MadeAs, MadeInstance

POOL: Final = 24
"""Arenas of a paradigm that are drawn and measured, whose demands are then offered."""
LOOKS: Final = 48
"""Arenas that are measured for one twin, at most."""
WITHIN: Final = 0.05
"""Share of a demand by which a twin's may differ; of a demand below 1, this much in its unit."""
NEAR: Final = 3.0
"""By how many times what may differ the demands of a family's arena may be off, before a variation
is taken in its place."""
SIDED: Final = frozenset({"XPos", "wayBearing", "goalBearing", "goalSide", "rightLeftPosition"})
"""Demands whose sign is the other one in a mirror image."""
SHIFTS: Final = 40
"""Turns that are tried for one at which everything still has room."""
MARGIN: Final = 1e-3
"""Metres that are left to the outer walls, since positions are whole millimetres."""

_SET_LOOKS: Final = 12
"""Looks at arenas of which all demands are set: the first is right where the layout covers it."""
_DRAWS: Final = 200
"""Draws of parameters from which one that fits is taken."""

Suits: TypeAlias = Callable[[Mapping[str, float], Mapping[str, str]], bool]


class Target(NamedTuple):
    """What a twin is to have of one demand.

    Attributes:
        value: The value; None if the demand must not apply.
        within: By how much it may differ.
    """

    value: float | None
    within: float

    def off(self, made: float | None) -> float:
        """Return how far a value is from the target, in multiples of the allowed difference.

        It is infinite where only one of the two is None, or where they differ though nothing may.

        Args:
            made: The value of an arena; None if the demand does not apply to it.
        """
        if made is None or self.value is None:
            return 0.0 if made is self.value else math.inf
        gap = abs(made - self.value)
        return gap / self.within if self.within else (0.0 if gap < 1e-6 else math.inf)


Targets: TypeAlias = Mapping[str, Target]


def worst(targets: Targets, features: Mapping[str, float]) -> float:
    """How far the demand is off that is furthest off (`Target.off`): at most 1 for a twin."""
    return max((aim.off(features.get(name)) for name, aim in targets.items()), default=0.0)


class Stratum(NamedTuple):
    """What twins are drawn from: a paradigm of a family, or a control of it."""

    family: Family
    paradigm: Paradigm
    control: Control | None = None

    def values(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Values of parameters as the control changes them."""
        if self.control is None:
            return values
        return apply_control(self.family, self.paradigm, self.control, values)


class Twin(NamedTuple):
    """An arena that was made for given demands.

    Attributes:
        arena: The arena; every value is explicit.
        variant: Whether it is a mirror image, and how it is turned.
        measured: What was measured on it.
    """

    arena: Arena
    variant: str
    measured: MeasuredFeatures


def stratum_of(instance: Instance) -> Stratum | None:
    """Say where an instance comes from; None if nobody knows, as for an arena file."""
    origin = instance.origin
    if origin is None:
        return None
    try:
        family = load_family(origin.family)
    except ArenaError:  # of another package that is not here or not allowed, or of one's own
        return None
    return _stratum(family, origin.paradigm, origin.control)


def _stratum(family: Family, paradigm: str, control: str) -> Stratum | None:
    if paradigm not in [one.name for one in family.paradigms]:
        return None
    if control and control not in family.controls:
        return None
    return Stratum(family, family.paradigm(paradigm), family.controls[control] if control else None)


def twin(
    stratum: Stratum,
    targets: Targets,
    rng: np.random.Generator,
    measure: Measure,
    part: Part | None = None,
) -> Twin | None:
    """Make an arena with given demands.

    Args:
        stratum: What it is drawn from.
        targets: What it has to have.
        rng: Source of all randomness.
        measure: Measures the demands of an arena.
        part: The part that it has to be of; None for any.

    Returns:
        The first arena whose demands are as asked for, else the nearest of all that were measured;
        None if none could be built.
    """
    asked = {name: aim.value for name, aim in targets.items() if aim.value is not None}
    family, paradigm, control = stratum
    if aims_at(family, paradigm, asked, control=control).demands >= asked.keys():
        return _set_twin(stratum, targets, asked, rng, measure, part)
    if not asked.keys() <= FEATURES.keys():
        return None
    try:
        nearest = search(
            family,
            asked,
            rng,
            measure,
            part=part,
            paradigm=paradigm.name,
            control=control,
            looks=LOOKS,
            enough=lambda found: worst(targets, found.values) <= 1.0,
        )
    except ArenaError:
        return None
    return Twin(nearest.instance.arena, nearest.instance.variant, nearest.measured)


def _set_twin(
    stratum: Stratum,
    targets: Targets,
    asked: Mapping[str, float],
    rng: np.random.Generator,
    measure: Measure,
    part: Part | None,
) -> Twin | None:
    """Make an arena of which all demands are parameters."""
    family, paradigm, control = stratum
    flipped = False
    if family.variants.mirror:
        first = bool(rng.integers(2))
        either = (first, not first)
        flipped = next((one for one in either if _can_be(stratum, one, targets, asked, rng)), first)
    quarters = int(rng.integers(4)) if family.variants.turns else 0
    aims = aims_at(family, paradigm, asked, mirrored=flipped, control=control)
    best: Twin | None = None
    for _ in range(_SET_LOOKS):
        arena = next(_build_fitting(stratum, aims, flipped, quarters, rng, part), None)
        if arena is None:
            continue
        made = Twin(arena, variant_name(flipped, quarters), measure(arena))
        off = worst(targets, made.measured.values)
        if best is None or off < worst(targets, best.measured.values):
            best = made
        if off <= 1.0:
            break
    return best


def _can_be(
    stratum: Stratum,
    flipped: bool,
    targets: Targets,
    asked: Mapping[str, float],
    rng: np.random.Generator,
) -> bool:
    """Whether codes and counts can be as asked for in a mirror image, or in what is none."""
    family, paradigm, control = stratum
    aims = aims_at(family, paradigm, asked, mirrored=flipped, control=control)
    draw = aims.at(random_draw(family, paradigm, rng))
    try:
        values = stratum.values(parameter_values(family, paradigm, draw.shares))
    except UnfitError:
        return True
    scope = scope_of(family, paradigm, values, flipped)
    claimed = claimed_values(family, paradigm, scope, control)
    return math.isfinite(worst({name: targets[name] for name in asked}, claimed))


def _build_fitting(
    stratum: Stratum,
    aims: Aims,
    flipped: bool,
    quarters: int,
    rng: np.random.Generator,
    part: Part | None,
) -> Iterator[Arena]:
    """Arenas of draws that fit."""
    family, paradigm, control = stratum
    for _ in range(_DRAWS):
        draw = aims.at(random_draw(family, paradigm, rng))
        values = fitting_values(family, draw)
        if values is None:
            continue
        try:
            if part is not None and part_of(base_arena(family, draw)) != part:
                continue
            scope = scope_of(family, paradigm, stratum.values(values))
            yield turn_and_check(
                family, build_arena(family, scope, control, draw.seed), flipped, quarters
            )
        except UnfitError:
            continue


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


@cache
def pool_of(family: str) -> list[Pooled]:
    """Return arenas of all paradigms of a family, always the same ones."""
    measure = _measurer(0)
    return [
        Pooled(family, paradigm.name, one.arena, measure(one.arena))
        for paradigm in load_family(family).paradigms
        for one in generate(family, POOL, np.random.default_rng(0), paradigm=paradigm.name)
    ]


def make_twin(
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
    targets = targets_of(layout, pooled.features.values, exact)
    rng = np.random.default_rng([seed, crc32(name.encode()), crc32(b"offer")])
    played = instance_seed(seed, name)
    measure = _measurer(played, lambda features, missing: not layout.why_not(features, missing))
    family = load_family(pooled.family)
    made = twin(Stratum(family, family.paradigm(pooled.paradigm)), targets, rng, measure)
    usable = made is not None and bool(made.measured.values)
    arena = made.arena if made is not None and usable else pooled.arena
    reading = Reading(*made.measured) if made is not None and usable else None
    fixed = fixed_instance(Draft(name, pooled.paradigm, arena, played), reading=reading)
    has = fixed.instance.features
    return MadeInstance(
        offer,
        fixed.instance,
        fixed.text,
        MadeAs.OFFER,
        distance(targets, has),
        differences(targets, has),
    )


def _measurer(seed: int, fits: Suits = lambda features, missing: True) -> Measure:
    """Return what measures an arena; one that does not fit has no demands."""

    def measure(arena: Arena) -> MeasuredFeatures:
        reading = reading_of(Draft("arena", "", arena, seed))
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
        targets = targets_of(self._layout, instance.features, self._codes)
        rng = np.random.default_rng([crc32(f"{key}/{name}".encode()), crc32(b"twin")])
        seed = instance_seed(0, f"{key}/{name}")
        origin = instance.origin
        stratum = self._stratum(instance)
        if origin is not None and stratum is not None:
            part: Part | None = next((one for one in PARTS if one == origin.part), None)
            made = twin(stratum, targets, rng, _measurer(seed, self._fits(instance)), part)
            if made is not None and worst(targets, made.measured.values) <= NEAR:
                played = _make_instance(instance, made.arena, seed, MadeAs.TWIN, targets)
                own = replace(origin, variant=made.variant, task="", control_of="")
                return replace(played, instance=replace(played.instance, origin=own))
        return self._variation(instance, targets, rng, seed)

    def _stratum(self, instance: Instance) -> Stratum | None:
        """What twins of an instance are drawn from; None if nobody knows how it was made."""
        origin = instance.origin
        entry = None if origin is None else self._battery.entries.get(origin.entry)
        if origin is not None and entry is not None:
            return _stratum(entry.family, origin.paradigm, origin.control)
        return stratum_of(instance)

    def _variation(
        self, instance: Instance, targets: Targets, rng: np.random.Generator, seed: int
    ) -> MadeInstance:
        arena = merge_arenas(load_text(self._battery.arena_yaml(instance), instance.name).config)
        sides = [aim.value for name, aim in targets.items() if name in SIDED]
        measure = _measurer(seed, self._fits(instance))
        own = {name: v for name, v in instance.features.items() if name not in FEATURES}
        variation = Variation(arena, False, 0.0, 0.0, 0.0)
        for candidate in variations(arena, rng, mirror=not any(sides)):
            if worst(targets, {**own, **measure(candidate.arena).values}) <= 1.0:
                variation = candidate
                break
        made = _make_instance(instance, variation.arena, seed, MadeAs.VARIATION, targets)
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


def codes(layout: Layout, rows: Sequence[Mapping[str, float]]) -> frozenset[str]:
    """The layout's features that are whole or half numbers wherever they are known."""
    whole: set[str] = set()
    for name in layout.feature_names:
        values = [row[name] for row in rows if name in row]
        if all((2.0 * value).is_integer() for value in values):
            whole.add(name)
    return frozenset(whole)


def targets_of(
    layout: Layout, features: Mapping[str, float], exact: frozenset[str]
) -> dict[str, Target]:
    """Say what an arena must have so that a layout takes it to be as hard as another one.

    Args:
        layout: The layout.
        features: Features of the other one.
        exact: Features that have to be equal.
    """
    targets: dict[str, Target] = {}
    for feature in layout.features:
        name = feature.name
        if not (name in FEATURES or name in features):
            continue
        if feature.only_with and features.get(feature.only_with) == 0.0:
            continue
        value = features.get(name)
        equal = value is None or name in exact
        targets[name] = Target(value, 0.0 if equal else WITHIN * max(1.0, abs(value or 0.0)))
    return targets


def _make_instance(
    instance: Instance, arena: Arena, seed: int, made_as: MadeAs, targets: Targets
) -> MadeInstance:
    """Return an arena as an instance made in the place of another one, of the same kind of task."""
    kind = TaskKind(instance.suite, instance.paradigm, instance.task_name, instance.variant)
    fixed = fixed_instance(Draft(instance.name, instance.paradigm, arena, seed, kind=kind))
    digest = hashlib.sha256(f"{seed}\0{fixed.text}".encode()).hexdigest()[:8]
    own = replace(fixed.instance, name=f"{instance.name}.{digest}")
    far, note = distance(targets, own.features), differences(targets, own.features)
    return MadeInstance(instance.name, own, fixed.text, made_as, far, note)


def distance(targets: Targets, features: Mapping[str, float]) -> float:
    """How far demands are off: the root of the summed squares of their shares of difference."""
    return math.sqrt(
        math.fsum(
            ((features[name] - aim.value) / max(1.0, abs(aim.value))) ** 2
            for name, aim in targets.items()
            if aim.value is not None and name in features
        )
    )


def differences(targets: Targets, features: Mapping[str, float]) -> str:
    """Say which demands are not as asked for; empty if all are."""
    sentences: list[str] = []
    for name, aim in targets.items():
        has = features.get(name)
        if aim.off(has) <= 1.0 + 1e-9:
            continue
        shown = "has no value" if has is None else f"is {has:.4g}"
        asked = "none" if aim.value is None else f"{aim.value:.4g}"
        sentences.append(f"{name} {shown}, asked for {asked}")
    return f"the nearest that was found: {'; '.join(sentences)}" if sentences else ""


class Variation(NamedTuple):
    """An arena varied in what no demand depends on, and how points of its floor moved.

    Unlike a twin, it is the same task to whoever has learnt it by heart from the agent's own view.

    Attributes:
        arena: The arena.
        flipped: Whether it is a mirror image, before it is turned and shifted.
        degrees: By how much it is turned about its middle, clockwise; of arenas that merge the
            first, as for the shifts.
        dx: Metres by which it is shifted along x.
        dz: Metres by which it is shifted along z.
    """

    arena: Arena
    flipped: bool
    degrees: float
    dx: float
    dz: float

    def point(self, x: float, z: float) -> tuple[float, float]:
        """Where a point of the original arena's floor is."""
        return shifted_point(
            ARENA_SIDE - x if self.flipped else x, z, self.degrees, self.dx, self.dz
        )


def variations(arena: Arena, rng: np.random.Generator, *, mirror: bool) -> Iterator[Variation]:
    """Vary an arena, in the order of how much each differs; every one is another draw.

    First everything is turned and shifted at random, if it has room anywhere else than where it is;
    then it is turned by quarters of a circle and shifted, then only turned. Each comes in other
    colours first. Arenas that merge are mirrored together, and turned and shifted each by itself.

    Args:
        arena: An arena with every value explicit, or several that merge.
        rng: Source of all randomness.
        mirror: Whether it may be a mirror image.
    """
    flipped = mirror and bool(rng.integers(2))
    parts = episode_arenas(arena)
    plain = [mirror_arena(part) if flipped else part for part in parts]
    paint = {old: _colour(rng) for old in dict.fromkeys(chain(*map(colours, parts)))}
    moves = [
        [*_room(part, rng, 1.0), *_room(part, rng, 90.0), (90.0 * rng.integers(1, 4), 0.0, 0.0)]
        for part in plain
    ]
    tried = min(map(len, moves))
    for move in zip(*(own[-tried:] for own in moves), strict=True):
        moved = [shift_arena(part, *own) for part, own in zip(plain, move, strict=True)]
        if paint:
            yield Variation(_repaint(moved, paint), flipped, *move[0])
        yield Variation(of_parts(moved), flipped, *move[0])
    if paint:
        yield Variation(_repaint(plain, paint), flipped, 0.0, 0.0, 0.0)


def _repaint(parts: Sequence[Arena], paint: Mapping[RGB, RGB]) -> Arena:
    return of_parts([repaint_arena(part, paint) for part in parts])


def _colour(rng: np.random.Generator) -> RGB:
    red, green, blue = (float(rng.integers(256)) for _ in range(3))
    return RGB(r=red, g=green, b=blue)


def _room(arena: Arena, rng: np.random.Generator, grid: float) -> list[tuple[float, float, float]]:
    """A turn and a shift at random with which everything is within the arena; none if none is.

    Args:
        arena: The arena.
        rng: Source of all randomness.
        grid: The turn is so many degrees times a whole number.
    """
    placement = place(arena, np.random.default_rng(0))
    start = placement.agent.position
    corners = _corners(start.x, start.z, AGENT_RADIUS, AGENT_RADIUS, 0.0)
    for thing in placement.objects:
        for solid in thing.solids():
            half, at = solid.half, solid.center
            corners += _corners(at.x, at.z, half.x, half.z, solid.yaw)
    for _ in range(SHIFTS):
        degrees = grid * float(rng.integers(round(360 / grid)))
        points = np.array([shifted_point(x, z, degrees, 0.0, 0.0) for x, z in corners])
        low = MARGIN - points.min(axis=0)
        high = ARENA_SIDE - MARGIN - points.max(axis=0)
        if (low < high).all():
            dx = round(float(rng.uniform(float(low[0]), float(high[0]))), 3)
            dz = round(float(rng.uniform(float(low[1]), float(high[1]))), 3)
            return [(degrees, dx, dz)]
    return []


def _corners(
    x: float, z: float, half_x: float, half_z: float, yaw: float
) -> list[tuple[float, float]]:
    sin, cos = scalars.sin(math.radians(yaw)), scalars.cos(math.radians(yaw))
    return [
        (x + dx * cos + dz * sin, z + dz * cos - dx * sin)
        for dx in (-half_x, half_x)
        for dz in (-half_z, half_z)
    ]
