"""Finds an instance of a family that has given demands, or the nearest that there is.

The search begins where the family claims the demands that are asked for. It builds and measures
those instances first. Then it fits a linear model to what was measured near the best instance, and
builds and measures what that model proposes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.families.aims import ALIKE, Aims, aims_at
from animalcat.arena_configs.families.build import (
    UnfitError,
    apply_control,
    build_arena,
    parameter_values,
    scope_of,
)
from animalcat.arena_configs.families.claims import Measure, bounds
from animalcat.arena_configs.families.generate import (
    base_arena,
    check_asked,
    part_of,
    turn_and_check,
)
from animalcat.arena_configs.families.instance import FamilyInstance, variant_name
from animalcat.arena_configs.families.language import Claim, Control, Family, Paradigm, Part
from animalcat.arena_configs.families.library import load_family
from animalcat.arena_configs.families.sampling import Draw, draw_parameters, fits
from animalcat.arena_configs.families.scope import Value
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.model import ArenaError
from animalcat.portable import arrays as portable
from animalcat.portable import scalars
from animalcat.portable.products import product

SHORT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "distance": "rewardDistance",
        "size": "rewardSize",
        "side": "XPos",
        "behind": "rewardBehind",
        "way": "wayLength",
        "turns": "wayTurns",
        "time": "timeNeeded",
        "seen": "goalSeen",
        "choices": "choiceWays",
        "hidden": "timeUnderOcc",
        "places": "hidingPlaces",
    }
)
"""Short names of demands, for the command line."""

LOOKS: Final = 80
"""Instances that are measured at most."""
_FIRST: Final = 400
"""Draws whose claims are looked at to begin with."""
_STARTS: Final = 10
"""Of these, how many are measured at least; and how many measurements may bring nothing."""
_PROPOSED: Final = 40
"""Changes of the best instance that are thought of before each further measurement."""
_MISSING: Final = 1e3
"""How far an instance is off in a demand that does not apply to it."""

Floats = npt.NDArray[np.float64]
Tick = Callable[[int, int], None]
"""Told how many instances are measured, of how many at most."""
Enough = Callable[[MeasuredFeatures], bool]
"""Whether an instance on which this was measured will do."""


class SearchResult(NamedTuple):
    """An instance that was found for given demands.

    Attributes:
        instance: The instance.
        asked: What was asked for, by demand.
        made: What it has; None where a demand does not apply.
        measured: All that was measured on it.
    """

    instance: FamilyInstance
    asked: Mapping[str, float]
    made: Mapping[str, float | None]
    measured: MeasuredFeatures

    @property
    def exact(self) -> bool:
        """Whether it has what was asked for, within a hundredth."""
        return all(_off(self.asked[name], self.made[name]) <= 1.0 for name in self.asked)

    @property
    def distance(self) -> float:
        """How far it is from what was asked.

        It is the root of the sum of squares, over the demands, of the relative differences.
        """
        return math.sqrt(
            math.fsum(
                scalars.square(ALIKE * _off(self.asked[name], self.made[name]))
                for name in self.asked
            )
        )


def search(
    family: str | Family,
    demands: Mapping[str, float],
    rng: np.random.Generator,
    measure: Measure,
    *,
    part: Part | None = None,
    paradigm: str | None = None,
    control: Control | None = None,
    given: Mapping[str, Value] = MappingProxyType({}),
    looks: int = LOOKS,
    enough: Enough = lambda features: False,
    tick: Tick = lambda done, total: None,
) -> SearchResult:
    """Find an instance that has given demands, or the nearest.

    Args:
        family: Name of a family, or a family.
        demands: What is asked for, by name in `FEATURES` or in `SHORT`.
        rng: Source of all randomness.
        measure: Measures the demands of an arena; it has to play it if a demand takes that.
        part: Only instances of this part; None for both.
        paradigm: Only instances of this paradigm; None for all.
        control: Make this control of an instance; None for the instance itself.
        given: Parameters that are set.
        looks: Instances that are measured at most.
        enough: What will do although it is not exactly what was asked for.
        tick: Told how many are measured.

    Raises:
        ArenaError: There is no such family, demand, part, paradigm or parameter, a number is not
            finite, or no instance could be built.
    """
    chosen = load_family(family) if isinstance(family, str) else family
    asked = demands_of(demands)
    check_asked(chosen, part, paradigm, given=given)
    return _Search(
        chosen, asked, rng, measure, part, paradigm, control, given, looks, enough, tick
    ).run()


def demands_of(demands: Mapping[str, float]) -> dict[str, float]:
    """Demands by their full names.

    Raises:
        ArenaError: There is no demand of a name, it is there twice, or it is not finite.
    """
    found: dict[str, float] = {}
    for name, value in demands.items():
        full = SHORT.get(name, name)
        if full not in FEATURES:
            raise ArenaError(
                f"there is no demand {name!r}; `animalcat arena features` lists them all, and "
                f"short names are {', '.join(SHORT)}"
            )
        if full in found:
            raise ArenaError(f"demand {full} is asked for twice, as {name} as well; give it once")
        if not math.isfinite(value):
            raise ArenaError(f"demand {name} is asked to be {value}; give a finite number")
        found[full] = value
    return found


def _off(asked: float, made: float | None) -> float:
    """How far a demand is from what is asked, in multiples of the allowed difference."""
    return _MISSING if made is None else abs(made - asked) / (ALIKE * max(1.0, abs(asked)))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A draw that may be built, with what the family's claims say of its demands."""

    draw: Draw
    flipped: bool
    point: Floats
    claimed: Mapping[str, float]
    """Demands that are claimed exactly, or lie at the near end of what is claimed."""


@dataclass(frozen=True, slots=True)
class _MeasuredCandidate:
    candidate: _Candidate
    instance: FamilyInstance
    features: MeasuredFeatures
    loss: float
    exact: bool


@dataclass(slots=True)
class _Search:
    family: Family
    asked: Mapping[str, float]
    rng: np.random.Generator
    measure: Measure
    part: Part | None
    paradigm: str | None
    control: Control | None
    given: Mapping[str, Value]
    looks: int
    enough: Enough
    tick: Tick

    def run(self) -> SearchResult:
        """Search."""
        first = self._first()
        drawn = len(first)
        starts = min(len(first), max(_STARTS, self.looks // 4))
        measured: list[_MeasuredCandidate] = []
        best: _MeasuredCandidate | None = None
        unfit, width, done = "", 0.3, 0
        while done < self.looks:
            if best is None and not first and drawn < _FIRST:
                first = self._first()  # none of the others is for the part, or could be built
                drawn += len(first)
            fresh = len(measured) < starts and bool(first)
            candidate = first.pop(0) if fresh else self._propose_change(measured, best, width)
            if candidate is None:
                break
            try:
                one = self._look(candidate)
            except UnfitError as error:
                unfit, width = str(error), max(0.02, width * 0.9)
                done += not fresh
                continue
            done += 1
            self.tick(done, self.looks)
            measured.append(one)
            if best is None or one.loss < best.loss:
                best, width = one, min(0.3, width * 1.2)
            elif not fresh:
                width = max(0.01, width * 0.8)
            if best.exact or (done >= starts + _STARTS and self._is_stuck(measured)):
                break
        if best is None:
            raise ArenaError(
                f"family {self.family.name}: no instance could be built; the last try: {unfit}"
            )
        values = best.features.values
        made = {name: values.get(name) for name in self.asked}
        return SearchResult(best.instance, self.asked, made, best.features)

    def _is_stuck(self, measured: Sequence[_MeasuredCandidate]) -> bool:
        """Whether the last measurements brought nothing."""
        before = min(one.loss for one in measured[:-_STARTS])
        return min(one.loss for one in measured) > 0.99 * before

    def _first(self) -> list[_Candidate]:
        """Draws in the order of what is claimed of them, from each paradigm in turn."""
        strata = [one for one in self.family.paradigms if self.paradigm in (None, one.name)]
        flips = (False, True) if self.family.variants.mirror else (False,)
        columns: list[list[_Candidate]] = []
        for stratum in strata:
            # Where all that is asked for is set, one draw is as good as another.
            all_set = self._aims(stratum, False).demands >= self.asked.keys()
            drawn: list[_Candidate] = []
            for number in range(_STARTS if all_set else max(_FIRST // len(strata), 20)):
                draw = draw_parameters(self.family, stratum, self.rng, self.given)
                flipped = flips[number % len(flips)]
                drawn.append(self._candidate(self._fitting(draw, flipped) or draw, flipped))
            columns.append(sorted(drawn, key=self._claimed_loss))
        # A paradigm that cannot have the demands, by what it claims, is looked at only if none can.
        able = [column for column in columns if self._claimed_loss(column[0]) <= 1.0]
        columns = able or columns
        # Chance decides among paradigms that are as near.
        columns.sort(key=lambda column: (self._claimed_loss(column[0]), column[0].draw.seed))
        return [one for row in zip_longest(*columns) for one in row if one is not None]

    def _aims(self, paradigm: Paradigm, flipped: bool) -> Aims:
        return aims_at(
            self.family,
            paradigm,
            self.asked,
            mirrored=flipped,
            control=self.control,
            given=self.given,
        )

    def _values(self, draw: Draw) -> Mapping[str, Value]:
        values = parameter_values(self.family, draw.paradigm, draw.shares, self.given)
        if self.control is None:
            return values
        return apply_control(self.family, draw.paradigm, self.control, values, self.given)

    def _fitting(self, draw: Draw, flipped: bool) -> Draw | None:
        """A draw with the demands that can be set, or as it is; None if neither fits."""
        set_ = self._aims(draw.paradigm, flipped).at(draw)
        either = (draw,) if set_ is draw else (set_, draw)
        return next((one for one in either if fits(self.family, one, self.given)), None)

    def _candidate(self, draw: Draw, flipped: bool) -> _Candidate:
        values = self._values(draw)
        scope = scope_of(self.family, draw.paradigm, values, flipped)
        claimed: dict[str, float] = {}
        for claim in self.family.claims_of(draw.paradigm, self.control):
            if claim.demand in self.asked and not claim.absent:
                value = self._near(claim, scope, self.asked[claim.demand])
                if value is not None:
                    claimed[claim.demand] = value
        point = np.array([draw.shares[name] for name in self.family.ranges])
        return _Candidate(draw, flipped, point, claimed)

    def _near(self, claim: Claim, scope: Mapping[str, Value], asked: float) -> float | None:
        """What a claim says of a demand: its value, or the end of its bounds that is nearer."""
        if claim.when is not None and not claim.when.holds(scope):
            return None
        if claim.exact is not None:
            return claim.exact.number(scope)
        low, high = bounds(claim, scope)
        return None if low <= asked <= high else min(max(asked, low), high)

    def _claimed_loss(self, candidate: _Candidate) -> float:
        return math.hypot(*(_off(self.asked[n], value) for n, value in candidate.claimed.items()))

    def _look(self, candidate: _Candidate) -> _MeasuredCandidate:
        draw = candidate.draw
        base = base_arena(self.family, draw, self.given)
        if self.part is not None and part_of(base) != self.part:
            raise UnfitError(f"it is not for {self.part}")
        values = self._values(draw)
        scope = scope_of(self.family, draw.paradigm, values)
        built = build_arena(self.family, scope, self.control, draw.seed)
        quarters = draw.seed % 4 if self.family.variants.turns else 0
        arena = turn_and_check(self.family, built, candidate.flipped, quarters)
        features = self.measure(arena)
        offs = [_off(asked, features.values.get(name)) for name, asked in self.asked.items()]
        loss = math.hypot(*offs)
        name = f"{self.family.name}-made"
        variant = variant_name(candidate.flipped, quarters)
        instance = FamilyInstance(
            name, arena, draw.paradigm.name, values, variant, name, part_of(base)
        )
        exact = max(offs) <= 1.0 or self.enough(features)
        return _MeasuredCandidate(candidate, instance, features, loss, exact)

    def _propose_change(
        self, measured: Sequence[_MeasuredCandidate], best: _MeasuredCandidate | None, width: float
    ) -> _Candidate | None:
        """The change of the best instance from which most is hoped for."""
        if best is None:
            return None
        options: list[_Candidate] = []
        before = best.candidate
        for _ in range(_PROPOSED):
            moved = self.rng.random(len(before.point)) < 0.5
            step = self.rng.normal(0.0, width, len(before.point)) * moved
            # Shares beyond an end come back from it.
            folded = np.abs((before.point + step + 1.0) % 2.0 - 1.0)
            point = np.minimum(folded, 1.0 - 1e-9)
            shares = dict(zip(self.family.ranges, point.tolist(), strict=True))
            changed = Draw(before.draw.paradigm, shares, before.draw.seed)
            draw = self._fitting(changed, before.flipped)
            if draw is not None:
                options.append(self._candidate(draw, before.flipped))
        models = self._models(measured, best)
        options.sort(key=lambda one: self._expected_loss(one, best, models))
        return next(filter(self._is_for_part, options), None)

    def _is_for_part(self, candidate: _Candidate) -> bool:
        try:
            base = base_arena(self.family, candidate.draw, self.given)
        except UnfitError:
            return False
        return self.part in (None, part_of(base))

    def _models(
        self, measured: Sequence[_MeasuredCandidate], best: _MeasuredCandidate
    ) -> Mapping[str, Floats]:
        """Slopes of demands that are not claimed, from what was measured in this paradigm."""
        alike = [
            one
            for one in measured
            if one.candidate.draw.paradigm is best.candidate.draw.paradigm
            and one.candidate.flipped == best.candidate.flipped
        ]
        slopes: dict[str, Floats] = {}
        for name in self.asked:
            rows = [(one.candidate.point, one.features.values.get(name)) for one in alike]
            known = [(point, value) for point, value in rows if value is not None]
            here = best.features.values.get(name)
            if here is None or len(known) < 4:
                continue
            x = np.array([point - best.candidate.point for point, _ in known])
            y = np.array([value - here for _, value in known])
            near = portable.exp(-np.square(x).sum(axis=1))
            gram = product((x * near[:, None]).T, x) + 1e-2 * np.eye(x.shape[1])
            slopes[name] = portable.solve(gram, product((x * near[:, None]).T, y))
        return slopes

    def _expected_loss(
        self, option: _Candidate, best: _MeasuredCandidate, models: Mapping[str, Floats]
    ) -> float:
        """The loss that is expected of a change of the best instance."""
        offs: list[float] = []
        for name, asked in self.asked.items():
            here = best.features.values.get(name)
            if here is None:
                continue
            if name in option.claimed and name in best.candidate.claimed:
                there = here + option.claimed[name] - best.candidate.claimed[name]
            elif name in models:
                there = here + float(product(models[name], option.point - best.candidate.point))
            else:
                there = here
            offs.append(_off(asked, there))
        return math.hypot(*offs)
