"""Strata of instances: by paradigm, by meta-feature, and by pairs of meta-features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Group: TypeAlias = Literal[
    "paradigm", "outside", "cue", "feature", "pair", "time", "dependence", "sum"
]

PARADIGM: Final = "paradigm"
"""Name of the stratification by paradigm."""
MISLEADS: Final = "misleads"
"""Name of the stratum in which a cue misleads."""
FEW: Final = 6
"""A meta-feature with at most this many values has a stratum for each value; the range of any other
is cut into three."""
_FEW_OF_PAIR: Final = 3
"""The same for a meta-feature of the layout, so that the cells of pairs stay large."""
_MOST_PAIRED: Final = 20
"""Most meta-features of which pairs are made, the first of the layout: 190 pairs."""
_COMMON: Final = 0.2
"""Share of the instances from which a single value of a many-valued meta-feature has its own
stratum. Such a value often means that the thing which has the feature is absent."""


@dataclass(frozen=True, slots=True, eq=False)
class Stratification:
    """One way to divide the instances into strata.

    Attributes:
        name: What the strata are defined by: `PARADIGM`, a meta-feature, or a pair of these.
        strata: Names of the strata.
        labels: (instances,): the stratum of each instance, as an index into `strata`; -1 for those
            in none, since their value is unknown. A missing value says nothing of an instance, so
            nothing is bet on it.
        group: What kind of stratification it is.
        phrases: (strata,), each stratum in words: "lavaPresence is 1 and rampPresence is 0". They
            follow from name and strata if they are not given.
        parents: For a pair, the names of its two stratifications.
        places: (strata,): for a pair, the stratum of either parent.
    """

    name: str
    strata: tuple[str, ...]
    labels: Ints
    group: Group = "outside"
    phrases: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    places: tuple[tuple[int, int], ...] = ()

    def phrase(self, stratum: int) -> str:
        """Say in words what a stratum is."""
        return self.phrases[stratum] if self.phrases else f"{self.name} is {self.strata[stratum]}"


def stratifications(
    paradigms: Sequence[str], outside: Mapping[str, npt.ArrayLike]
) -> tuple[Stratification, ...]:
    """Stratify instances by paradigm, and by every meta-feature that the layout does not use.

    A stratification with a single stratum is left out.

    Args:
        paradigms: The paradigm of each instance.
        outside: Meta-features that are not in the layout, each (instances,); NaN where unknown.
    """
    names, labels = np.unique(np.array(paradigms), return_inverse=True)
    whole = np.ravel(labels).astype(np.int64)
    schemes = [Stratification(PARADIGM, tuple(map(str, names)), whole, "paradigm")]
    schemes += [_by_feature(name, np.asarray(v, dtype=np.float64)) for name, v in outside.items()]
    return tuple(scheme for scheme in schemes if len(scheme.strata) > 1)


def cue_stratification(name: str, misleads: Floats) -> Stratification:
    """The instances in which a cue misleads; all others are in no stratum.

    Who goes by a cue does worse where it misleads. Where it leads to the goal nothing can be told.

    Args:
        name: What an agent may go by: "where it last saw the goal".
        misleads: (instances,): 1 where it misleads, 0 where it leads there, NaN where it is not.
    """
    labels = np.where(misleads == 1.0, 0, -1).astype(np.int64)
    return Stratification(name, (MISLEADS,), labels, "cue", (f"{name} {MISLEADS}",))


def known_stratifications(features: Mapping[str, Floats]) -> tuple[Stratification, ...]:
    """Stratify instances by every meta-feature that the layout uses, and by every pair of them.

    A stratification with a single stratum is left out, and so is a pair whose strata are those of
    one of the two.

    Args:
        features: The meta-features of the layout, each (instances,); NaN where missing.
    """
    alone = [
        _by_feature(name, column, _FEW_OF_PAIR, "feature") for name, column in features.items()
    ]
    alone = [way for way in alone if len(way.strata) > 1]
    paired = [_pair(a, b) for a, b in combinations(alone[:_MOST_PAIRED], 2)]
    return (*alone, *(way for way in paired if way is not None))


def _pair(a: Stratification, b: Stratification) -> Stratification | None:
    """Cross two stratifications; None if that tells no more than one of them."""
    known = (a.labels >= 0) & (b.labels >= 0)
    crossed = a.labels[known] * len(b.strata) + b.labels[known]
    there, places_of = np.unique(crossed, return_inverse=True)
    if len(there) <= max(len(a.strata), len(b.strata)):
        return None
    labels = np.full(len(known), -1, np.int64)
    labels[known] = np.ravel(places_of)
    places = [divmod(int(cell), len(b.strata)) for cell in there]
    return Stratification(
        f"{a.name} and {b.name}",
        tuple(f"{a.strata[i]}, {b.strata[j]}" for i, j in places),
        labels,
        "pair",
        tuple(f"{a.phrase(i)} and {b.phrase(j)}" for i, j in places),
        (a.name, b.name),
        tuple(places),
    )


def _by_feature(
    name: str, values: Floats, few: int = FEW, group: Group = "outside"
) -> Stratification:
    known = values[np.isfinite(values)]
    levels, counts = np.unique(known, return_counts=True)
    if len(levels) <= few:
        own, cuts = levels, np.empty(0)
    else:
        own = levels[counts >= _COMMON * len(known)]
        rest = known[~np.isin(known, own)]
        cuts = np.unique(np.quantile(rest, [1 / 3, 2 / 3])) if len(rest) else np.empty(0)
    strata = [f"{level:g}" for level in own]
    labels = np.full(len(values), len(strata))
    for i, level in enumerate(own):
        labels[values == level] = i
    if len(cuts):
        common = np.isin(values, own)
        labels[~common] = len(strata) + np.digitize(values[~common], cuts)
        ends = [f"{cut:g}" for cut in cuts]
        inner = [f"{low} to {high}" for low, high in pairwise(ends)]
        strata += [f"below {ends[0]}", *inner, f"from {ends[-1]}"]
    labels = np.where(np.isfinite(values), labels, -1)
    return Stratification(name, tuple(strata), labels.astype(np.int64), group)
