"""Makes twins: arenas of a family with the demands of another one, and other details.

A stratum (a paradigm of a family, with or without a control) has a pool of arenas that were drawn
and measured. From it, a smooth function of the parameters is fitted to each demand. To make a twin,
parameters are drawn at random, and those are built and measured whose demands should be nearest to
what is wanted. Then the best one is changed until its demands are near enough. Parameters that are
demands are set to what is wanted, so where all demands are, the first arena is a twin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.families.aims import Aims, aims_at, claimed_values
from animalcat.arena_configs.families.build import (
    UnfitError,
    build_arena,
    controlled,
    parameter_values,
    scope_of,
)
from animalcat.arena_configs.families.claims import Measure
from animalcat.arena_configs.families.generate import base_arena, checked, part_of
from animalcat.arena_configs.families.instance import variant_name
from animalcat.arena_configs.families.language import Control, Family, Paradigm, Part
from animalcat.arena_configs.families.sampling import Draw, draw_parameters, fits, fitting_values
from animalcat.arena_configs.families.scope import Value
from animalcat.arena_configs.features import MeasuredFeatures
from animalcat.arena_configs.model import Arena
from animalcat.portable import arrays as portable
from animalcat.portable import scalars
from animalcat.portable.products import product

POOL: Final = 24
"""Arenas of a stratum that are drawn and measured before any twin is made."""
LOOKS: Final = 12
"""Arenas that are measured for one twin, at most."""
WITHIN: Final = 0.05
"""Share of a demand by which a twin's may differ; of a demand below 1, this much in its unit."""
SIDED: Final = frozenset({"XPos", "wayBearing", "goalBearing", "goalSide", "rightLeftPosition"})
"""Demands whose sign is the other one in a mirror image."""

_FIRST: Final = 3
"""Looks at draws from the whole stratum; later looks are at changes of the best one as well."""
_DRAWN: Final = 200
"""Draws from the whole stratum from which one to look at is taken."""
_CHANGED: Final = 100
"""Changes of the best arena from which one to look at is taken."""
_TRIES: Final = 400
"""Draws of an arena for the pool, of which most may not fit, before fewer have to do."""
_SEEDS: Final[int] = 2**31
"""Seeds of colours that are drawn at random."""
_STEP: Final = 0.25
"""Least difference of a demand of whole numbers that predictions are asked to see."""

Floats = npt.NDArray[np.float64]


class Wanted(NamedTuple):
    """What a twin is to have of one demand.

    Attributes:
        value: The value; None if the demand must not apply.
        within: By how much it may differ.
    """

    value: float | None
    within: float

    def off(self, made: float | None) -> float:
        """Return how far a value is from the wanted one, in multiples of the allowed difference.

        It is infinite where only one of the two is None, or where they differ though nothing may.

        Args:
            made: The value of an arena; None if the demand does not apply to it.
        """
        if made is None or self.value is None:
            return 0.0 if made is self.value else math.inf
        gap = abs(made - self.value)
        return gap / self.within if self.within else (0.0 if gap < 1e-6 else math.inf)


def wanted(
    features: Mapping[str, float], names: Sequence[str], exact: Callable[[str], bool]
) -> dict[str, Wanted]:
    """Say what an arena with these demands has to have.

    Args:
        features: The demands, by name; those that do not apply are absent.
        names: The demands that count.
        exact: Whether a demand has to be equal, because it is a code or a count.
    """
    found: dict[str, Wanted] = {}
    for name in names:
        value = features.get(name)
        within = 0.0 if value is None or exact(name) else WITHIN * max(1.0, abs(value))
        found[name] = Wanted(value, within)
    return found


class Twin(NamedTuple):
    """An arena that was made for given demands.

    Attributes:
        arena: The arena; every value is explicit.
        paradigm: Name of its paradigm.
        variant: Whether it is a mirror image, and how it is turned.
        measured: What was measured on it.
        off: For each demand, how far it is from the wanted value, in multiples of the allowed
            difference (`Wanted.off`).
    """

    arena: Arena
    paradigm: str
    variant: str
    measured: MeasuredFeatures
    off: Mapping[str, float]

    @property
    def worst(self) -> float:
        """The largest of `off`: at most 1 for a twin; infinite where a code or count differs."""
        return max(self.off.values(), default=0.0)

    @property
    def equal(self) -> bool:
        """Whether its demands are as wanted."""
        return self.worst <= 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class _Sample:
    """A draw that was measured.

    Attributes:
        draw: The draw.
        values: Its parameters and derived values.
        demands: Its demands, with the signs of an arena that is no mirror image.
    """

    draw: Draw
    values: Mapping[str, Value]
    demands: Mapping[str, float]


class Stratum:
    """A paradigm of a family, with or without a control, from which twins are made."""

    def __init__(
        self, family: Family, paradigm: Paradigm, control: Control | None, measure: Measure
    ) -> None:
        """Name what arenas are drawn from.

        Args:
            family: The family.
            paradigm: The paradigm.
            control: The control; None for the paradigm's own arenas.
            measure: Measures the demands of the pool.
        """
        self.family = family
        self.paradigm = paradigm
        self.control = control
        self._variants = frozenset(family.variants.parameters)
        self._measure = measure

    @property
    def pool(self) -> list[tuple[Arena, MeasuredFeatures]]:
        """Arenas that are drawn and measured when they are first needed, always the same ones.

        Raises:
            ArenaError: Nothing satisfies the constraints.
        """
        return [(arena, measured) for arena, measured, _ in self._drawn_pool]

    @property
    def _pool(self) -> list[_Sample]:
        return [sample for _, _, sample in self._drawn_pool]

    @cached_property
    def _drawn_pool(self) -> list[tuple[Arena, MeasuredFeatures, _Sample]]:
        rng = np.random.default_rng(0)
        found: list[tuple[Arena, MeasuredFeatures, _Sample]] = []
        for _ in range(_TRIES):
            if len(found) == POOL:
                break
            draw = self._wide(rng)
            try:
                values = self._values(draw)
                arena = self._built(draw, values, False, 0)
            except UnfitError:
                continue
            measured = self._measure(arena)
            found.append((arena, measured, _Sample(draw, values, measured.values)))
        return found

    def twin(
        self,
        demands: Mapping[str, Wanted],
        rng: np.random.Generator,
        measure: Measure,
        part: Part | None = None,
    ) -> Twin | None:
        """Make an arena with given demands.

        Args:
            demands: What it has to have.
            rng: Source of all randomness.
            measure: Measures the demands of an arena.
            part: The part that it has to be of; None for any.

        Returns:
            The first arena whose demands are as wanted, else the nearest of all that were measured;
            None if none could be built.
        """
        flipped = self._flip(demands, rng)
        quarters = int(rng.integers(4)) if self.family.variants.turns else 0
        sign = -1.0 if flipped else 1.0
        aims = _sided(demands, sign)
        fixed = self._set(aims)
        seen: list[_Sample] = []
        best: tuple[float, Twin, _Sample] | None = None
        width = 0.2
        for look in range(LOOKS):
            near = self._near(aims, best, seen) if look >= _FIRST else None
            for draw, values in self._proposed(aims, fixed, seen, near, width, rng):
                try:
                    if part is not None and part_of(base_arena(self.family, draw)) != part:
                        continue
                    arena = self._built(draw, values, flipped, quarters)
                except UnfitError:
                    continue
                break
            else:
                continue
            measured = measure(arena)
            off = {name: one.off(measured.values.get(name)) for name, one in demands.items()}
            here = {
                name: value * sign if name in SIDED else value
                for name, value in measured.values.items()
            }
            sample = _Sample(draw, values, here)
            seen.append(sample)
            made = Twin(arena, self.paradigm.name, variant_name(flipped, quarters), measured, off)
            loss = _loss(aims, here)
            if best is None or (made.worst, loss) < (best[1].worst, best[0]):
                best = loss, made, sample
            else:
                width *= 0.7
            if best[1].equal:
                break
        return None if best is None else best[1]

    def _flip(self, demands: Mapping[str, Wanted], rng: np.random.Generator) -> bool:
        """Whether to make a mirror image: by chance where both may have the side that is wanted."""
        if not self.family.variants.mirror:
            return False
        first = bool(rng.integers(2))
        either = (first, not first)
        able = (one for one in either if self._can_have(_sided(demands, -1.0 if one else 1.0), rng))
        return next(able, first)

    def _can_have(self, aims: Mapping[str, Wanted], rng: np.random.Generator) -> bool:
        """Whether codes and counts can be as wanted, by what is set or else by the pool."""
        fixed = self._set(aims)
        if not fixed.demands >= aims.keys():
            return any(_codes_fit(aims, one.demands) for one in self._pool)
        try:
            values = self._values(fixed.at(self._drawn(None, 0.0, rng)))
        except UnfitError:
            return True
        scope = scope_of(self.family, self.paradigm, values)
        return _codes_fit(aims, claimed_values(self.family, self.paradigm, scope, self.control))

    def _near(
        self,
        aims: Mapping[str, Wanted],
        best: tuple[float, Twin, _Sample] | None,
        seen: Sequence[_Sample],
    ) -> Draw | None:
        """The draw of which changes are to be looked at; None for draws of the whole stratum."""
        if best is not None and math.isfinite(best[1].worst):
            return best[2].draw
        fitting = [one for one in (*self._pool, *seen) if _codes_fit(aims, one.demands)]
        if not fitting:
            return None
        return min(fitting, key=lambda one: _loss(aims, one.demands)).draw

    def _wide(self, rng: np.random.Generator) -> Draw:
        """A draw that is likelier than others to be near the ends of ranges."""
        draw = draw_parameters(self.family, self.paradigm, rng)
        wide = {
            n: scalars.square(scalars.sin(share * math.pi / 2)) for n, share in draw.shares.items()
        }
        other = Draw(draw.paradigm, wide, draw.seed)
        return other if fits(self.family, other) else draw

    def _built(
        self, draw: Draw, values: Mapping[str, Value], flipped: bool, quarters: int
    ) -> Arena:
        """The arena of a draw and its values.

        Raises:
            UnfitError: It does not fit.
        """
        scope = scope_of(self.family, self.paradigm, values)
        built = build_arena(self.family, scope, self.control, draw.seed)
        return checked(self.family, built, flipped, quarters)

    def _values(self, draw: Draw) -> Mapping[str, Value]:
        return self._controlled(parameter_values(self.family, self.paradigm, draw.shares))

    def _controlled(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        if self.control is None:
            return values
        return controlled(self.family, self.paradigm, self.control, values)

    def _set(self, aims: Mapping[str, Wanted]) -> Aims:
        """What parameters have to be, of those that are demands."""
        values = {name: one.value for name, one in aims.items() if one.value is not None}
        return aims_at(self.family, self.paradigm, values, control=self.control)

    def _proposed(
        self,
        aims: Mapping[str, Wanted],
        fixed: Aims,
        seen: Sequence[_Sample],
        near: Draw | None,
        width: float,
        rng: np.random.Generator,
    ) -> Iterator[tuple[Draw, Mapping[str, Value]]]:
        """Draws that fit, those first from which the nearest demands are expected."""
        draws = (
            fixed.at(self._drawn(near, width, rng))
            for _ in range(_DRAWN if near is None else _CHANGED)
        )
        fitting = (
            (draw, self._controlled(values))
            for draw in draws
            if (values := fitting_values(self.family, draw)) is not None
        )
        free = {name: aim for name, aim in aims.items() if name not in fixed.demands}
        if not free:
            yield from fitting
            return
        found = [*fitting]
        if found:
            guess = _Guess([*self._pool, *seen], free, self._variants)
            losses = guess([values for _, values in found])
            order: list[int] = np.argsort(losses, kind="stable").tolist()
            yield from (found[k] for k in order)

    def _drawn(self, near: Draw | None, width: float, rng: np.random.Generator) -> Draw:
        """A draw from the whole stratum, or a change of another one."""
        names = [*self.family.ranges_of(self.paradigm)]
        shares: Floats
        if near is None:
            shares = rng.random(len(names))
        else:
            before = np.array([near.shares[name] for name in names], np.float64)
            changed = rng.random(len(names)) < 0.5
            step = rng.normal(0.0, width, len(names)) * changed
            # Shares beyond an end come back from it.
            folded = np.abs((before + step + 1.0) % 2.0 - 1.0)
            shares = np.minimum(folded, 1.0 - 1e-9)
        numbers: list[float] = shares.tolist()
        seed = int(rng.integers(_SEEDS)) if near is None else near.seed
        return Draw(self.paradigm, dict(zip(names, numbers, strict=True)), seed)


def _sided(demands: Mapping[str, Wanted], sign: float) -> dict[str, Wanted]:
    """What is wanted, as an arena that is no mirror image has it."""
    return {
        name: one._replace(value=one.value * sign)
        if name in SIDED and one.value is not None
        else one
        for name, one in demands.items()
    }


def _codes_fit(aims: Mapping[str, Wanted], demands: Mapping[str, float]) -> bool:
    """Whether all codes and counts are as wanted, and what must not apply does not."""
    return all(math.isfinite(aim.off(demands.get(name))) for name, aim in aims.items())


def _loss(aims: Mapping[str, Wanted], demands: Mapping[str, float]) -> float:
    """How far demands are from what is wanted, with codes and counts as if they were smooth."""
    total = 0.0
    for name, aim in aims.items():
        made = demands.get(name)
        if made is None or aim.value is None:
            total += 0.0 if made is aim.value else 1e4
        else:
            total += scalars.square(
                (made - aim.value) / max(aim.within, _STEP * (aim.within == 0.0))
            )
    return math.sqrt(total)


class _Guess:
    """Predicts how far draws are from what is wanted, from those that were measured.

    Each demand is the sum of a linear and a smooth function of parameters and derived values: a
    Gaussian process, of which the mean is used.
    """

    def __init__(
        self, samples: Sequence[_Sample], aims: Mapping[str, Wanted], without: frozenset[str]
    ) -> None:
        known = samples[0].values if samples else dict[str, Value]()
        self._names = [name for name in known if name not in without]
        self._words = {
            name: sorted({str(one.values[name]) for one in samples})
            if isinstance(known[name], str)
            else []
            for name in self._names
        }
        raw = self._raw([one.values for one in samples])
        self._middle = raw.mean(axis=0) if len(raw) else np.zeros(raw.shape[1])
        spread = raw.std(axis=0) if len(raw) else np.ones(raw.shape[1])
        self._scale = np.where(spread > 1e-9, spread, np.inf)
        x = (raw - self._middle) / self._scale
        self._terms: list[tuple[Floats, Floats, float, Wanted]] = []
        for name, aim in aims.items():
            if aim.value is None:
                continue
            rows = [k for k, one in enumerate(samples) if name in one.demands]
            if not rows:
                continue
            y = np.array([samples[k].demands[name] for k in rows])
            mean, spread_y = float(y.mean()), float(y.std())
            if spread_y < 1e-9:
                continue
            gram = _kernel(x[rows], x[rows]) + 1e-3 * np.eye(len(rows))
            weights: Floats = portable.solve(gram, y - mean)
            self._terms.append((x[rows], weights, mean, aim))

    def __call__(self, values: Sequence[Mapping[str, Value]]) -> Floats:
        """The loss that is expected of draws with these parameters and derived values."""
        x = (self._raw(values) - self._middle) / self._scale
        total = np.zeros(len(values))
        for known, weights, mean, aim in self._terms:
            assert aim.value is not None
            guess = mean + product(_kernel(x, known), weights)
            within = max(aim.within, _STEP * (aim.within == 0.0))
            total += scalars.square((guess - aim.value) / within)
        return np.sqrt(total)

    def _raw(self, values: Sequence[Mapping[str, Value]]) -> Floats:
        rows: list[list[float]] = []
        for one in values:
            row: list[float] = []
            for name in self._names:
                value = one[name]
                words = self._words[name]
                if words:
                    row += [float(value == word) for word in words]
                else:
                    row.append(value if isinstance(value, float | int) else 0.0)
            rows.append(row)
        width = sum(len(words) or 1 for words in self._words.values())
        return np.array(rows, np.float64).reshape(len(rows), width)


def _kernel(a: Floats, b: Floats) -> Floats:
    """Covariance of a linear function plus a smooth one."""
    size = max(a.shape[1], 1)
    square = np.square(a).sum(1)[:, None] + np.square(b).sum(1)[None, :] - product(2.0 * a, b.T)
    return product(a, b.T) / size + portable.exp(-np.maximum(square, 0.0) / (2.0 * size))
