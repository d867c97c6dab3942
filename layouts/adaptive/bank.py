"""The item bank: the instances of a battery, prepared once so that choosing is quick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.offers import Offers
from animalcat.layouts.adaptive.retest import Retest
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import LayoutSource, load_layout
from animalcat.layouts.library.choice import load_for
from animalcat.layouts.model.frames import insist_described, insist_frame, instances_in
from animalcat.layouts.model.instances import Instances, check_chances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.watching.strata import (
    Stratification,
    cue_stratification,
    known_stratifications,
    stratifications,
)
from animalcat.text.showing import table_html

if TYPE_CHECKING:
    import pandas as pd

_SHOWN: Final = 8
"""Items that a notebook shows of a bank."""
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


class Bank:
    """The instances to choose from; a bank never changes.

    Instances with equal features that give the same outcomes are equally informative, so what they
    tell is computed once for all of them. The battery's own instances come first; those that could
    be made on demand follow.

    Attributes:
        layout: The layout that is measured.
        paradigms: The paradigm of each instance.
        names: The name of each instance.
        features: (instances, features), in the layout's order and units.
        outside: Meta-features that the layout does not use, each (instances,); NaN where unknown.
        variants: (instances,), the number of the group of variants to which each instance belongs.
        seconds: (instances,), the expected duration of an episode.
        distinct: (distinct, columns): the prepared columns of each distinct instance.
        gives: (distinct, outcomes): which outcomes each distinct instance gives.
        place: (instances,): the row in `distinct` of each instance.
        demands: (instances, capabilities); NaN where an instance demands nothing of a capability.
        offered: (instances,): whether an instance could be made on demand and is not in the
            battery.
        control_of: The name of the instance of which each is a control; empty for none.
        played_before: How many instances the agent is taken to have played before it comes to any
            of these; `at` gives the bank for another number.
        assumed: What the layout has filled in by itself in a table, in sentences without ends.
    """

    assumed: tuple[str, ...] = ()

    def __init__(
        self,
        layout: Layout,
        features: npt.ArrayLike,
        paradigms: Sequence[str],
        *,
        names: Sequence[str] = (),
        variants: Sequence[str] = (),
        seconds: npt.ArrayLike | None = None,
        offers: Offers | None = None,
        outside: Mapping[str, npt.ArrayLike] | None = None,
        observes: npt.ArrayLike | None = None,
        control_of: Sequence[str] = (),
        played_before: int = 0,
    ) -> None:
        """Prepare the instances.

        Args:
            layout: The layout that is measured.
            features: (instances, features), in the layout's order and units; what the layout counts
                is filled in.
            paradigms: The paradigm of each instance; random draws are balanced over them.
            names: The name of each instance; their row numbers if empty.
            variants: The group of variants to which each instance belongs. If empty, instances with
                equal features are variants of one another: they differ only in what the layout does
                not use.
            seconds: (instances,), the expected duration of an episode; by default all equal.
            offers: Instances that could be made on demand.
            outside: Meta-features that the layout does not use, each (instances,). The alarm looks
                for misfit by them.
            observes: (instances, outcomes), which of the layout's outcomes each instance gives; by
                default all. Instances made on demand give all.
            control_of: The name of the instance of which each is a control, empty for none; by
                default none is. A name that is not here is as good as none.
            played_before: How many instances the agent has played before.

        Raises:
            ValueError: A feature is out of range, an instance gives no outcome, lengths differ, or
                two instances have one name.
        """
        self.layout = layout
        self.paradigms = tuple(paradigms)
        self.names = tuple(names) or tuple(map(str, range(len(self.paradigms))))
        self.evaluator = Evaluator(layout)
        values = np.asarray(features, dtype=np.float64).reshape(-1, len(layout.features))
        own = len(values)
        self.seconds = np.ones(own) if seconds is None else np.asarray(seconds, dtype=np.float64)
        if offers is not None:
            values = np.vstack([values, offers.features])
            self.paradigms += tuple(offers.paradigms)
            self.names += tuple(offers.names)
            extra = np.ones(len(offers)) if offers.seconds is None else offers.seconds
            self.seconds = np.concatenate([self.seconds, extra])
        self.played_before = played_before
        columns = self.evaluator.columns(layout.count_on(values, played_before))
        n = len(columns)
        self.features: Floats = columns[:, : len(layout.features)]
        unknown = np.full(n - own, np.nan)
        self.outside: dict[str, Floats] = {
            name: np.concatenate([np.asarray(column, np.float64), unknown])
            for name, column in (outside or {}).items()
        }
        self.offered: Mask = np.arange(n) >= own
        self.control_of = (*(control_of or ("",) * own), *("",) * (n - own))
        for what, length in (
            ("paradigms", len(self.paradigms)),
            ("names", len(self.names)),
            ("variants", len(variants) + n - own if variants else n),
            ("seconds", len(self.seconds)),
            ("names of what they are controls of", len(self.control_of)),
            *((name, len(column)) for name, column in self.outside.items()),
        ):
            if length != n:
                raise ValueError(f"{length} {what}, {n} instances")
        if twice := [name for name, count in Counter(self.names).items() if count > 1]:
            raise ValueError(
                f"some names occur more than once, such as {twice[0]!r}; give every instance a "
                "name of its own"
            )
        if not (np.isfinite(self.seconds) & (self.seconds > 0.0)).all():
            raise ValueError("seconds of an episode must be above 0")
        gives = self._outcomes_of(own, n, observes)
        if n:
            rows = columns if gives.all() else np.column_stack([columns, gives])
            _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
            order = np.argsort(first)  # in the original order, so that neighbours stay neighbours
            self.distinct, self.gives = columns[first[order]], gives[first[order]]
            self.place: Ints = np.argsort(order)[np.ravel(place)]
        else:
            self.distinct, self.gives, self.place = columns, gives, np.empty(0, np.int64)
        self.demands = self.evaluator.demands(self.distinct)[self.place]
        self.variants = self.place
        self._grouped = bool(variants)
        if variants:
            groups = np.array([*variants, *self.names[own:]])
            self.variants = np.unique(groups, return_inverse=True)[1]

    @classmethod
    def of(cls, layout: LayoutSource, items: pd.DataFrame | Instances) -> Bank:
        """Make a bank from a table of items.

        The table has a row for each item, and a column for each meta-feature of the layout,
        perhaps with a unit in brackets, as in `length [cm]`. Items are called as the column
        `instance` says, or else the index; the column `paradigm` may have the kind of each. Its
        other columns of numbers become `outside`.

        Args:
            layout: The layout, or what `load_layout` makes one of.
            items: A pandas table, or instances as `read_csv` reads them.

        Raises:
            TypeError: It is no such table.
            ValueError: A column is absent, a value is missing or out of range, or the layout does
                not describe an item.
        """
        if isinstance(items, Instances):
            instances, layout = items, load_layout(layout)
        else:
            frame = insist_frame(items, "Bank.of(layout, df)")
            layout = load_for(layout, frame)
            instances = instances_in(frame, layout)
            insist_described(instances, frame, layout)
        check_chances(layout, instances.columns, "a learner")
        known = layout.feature_names
        for k in layout.counted:
            if known[k] in instances:
                raise ValueError(
                    f"column {known[k]!r}: layout {layout.name} counts it while an agent plays; "
                    "leave the column out"
                )
        bank = cls(
            layout,
            instances.features(layout, played=False),
            instances.paradigms or ("",) * len(instances),
            names=instances.names,
            outside={c: instances.column(c) for c in instances.columns if c not in known},
        )
        bank.assumed = instances.covered(layout).notes
        return bank

    def __repr__(self) -> str:
        first = f"{', '.join(self.names[:3])}..."
        told = "; ".join((first, *self.assumed))
        return f"<Bank of {len(self)} items for {self.layout.name}: {told}>"

    def _repr_html_(self) -> str:
        features = self.layout.features
        heads = [f"{f.name} ({f.unit})" if f.unit != "1" else f.name for f in features]
        kinds = [("paradigm", self.paradigms)] * any(self.paradigms)
        return table_html(
            ["item", *(name for name, _ in kinds), *heads],
            [
                [self.names[k], *(values[k] for _, values in kinds), *self.features[k].tolist()]
                for k in range(min(len(self), _SHOWN))
            ],
            "; ".join((f"{len(self)} items for {self.layout.name}", *self.assumed)),
            f"and {len(self) - _SHOWN} more" * (len(self) > _SHOWN),
        )

    def without(self, names: Collection[str]) -> Bank:
        """Copy the bank without some instances or offers, given by name."""
        if not names:
            return self
        kept = np.array([name not in names for name in self.names])
        own, offered = np.flatnonzero(kept & ~self.offered), np.flatnonzero(kept & self.offered)

        def pick(values: Sequence[str], rows: Ints) -> list[str]:
            return [values[int(row)] for row in rows]

        offers = Offers(
            pick(self.names, offered),
            self.features[offered],
            pick(self.paradigms, offered),
            self.seconds[offered],
        )
        return Bank(
            self.layout,
            self.features[own],
            pick(self.paradigms, own),
            names=pick(self.names, own),
            variants=[str(self.variants[row]) for row in own] if self._grouped else (),
            seconds=self.seconds[own],
            offers=offers if self.offered.any() else None,
            outside={name: column[own] for name, column in self.outside.items()},
            observes=self.gives[self.place[own]],
            control_of=pick(self.control_of, own),
            played_before=self.played_before,
        )

    def at(self, played_before: int) -> Bank:
        """The same instances for an agent that has played another number before.

        It is this bank where the layout does not count.
        """
        if not self.layout.counted or played_before == self.played_before:
            return self
        there = copy(self)
        for name in ("touched", "by_demand"):  # are worked out anew
            there.__dict__.pop(name, None)
        there.played_before = played_before
        there.features = self.layout.count_on(self.features, played_before)
        own = self.distinct[:, : len(self.layout.features)]
        there.distinct = self.evaluator.columns(self.layout.count_on(own, played_before))
        there.demands = self.evaluator.demands(there.distinct)[self.place]
        return there

    def in_order(self, rows: Ints) -> Floats:
        """Features of instances for an agent that plays them one after the other."""
        counts = self.played_before + np.arange(len(rows), dtype=np.float64)
        return self.layout.count_on(self.features[rows], counts)

    def _outcomes_of(self, own: int, n: int, observes: npt.ArrayLike | None) -> Mask:
        """Which outcomes each of n instances gives, of which the first `own` are the battery's."""
        gives = np.ones((n, len(self.layout.outcomes)), dtype=np.bool_)
        if observes is None:
            return gives
        given = np.asarray(observes, dtype=np.bool_)
        if given.shape != (own, gives.shape[1]):
            raise ValueError(
                f"observes has shape {given.shape}; expected (instances, outcomes), that is "
                f"{(own, gives.shape[1])}: {', '.join(self.layout.outcome_names)}"
            )
        gives[:own] = given
        if (empty := np.flatnonzero(~gives.any(axis=1))).size:
            raise ValueError(f"instance {self.names[empty[0]]} gives no outcome of the layout")
        return gives

    def __len__(self) -> int:
        return len(self.paradigms)

    @cached_property
    def stratifications(self) -> tuple[Stratification, ...]:
        """Stratifications of the instances, by which the layout is watched.

        They are by paradigm, by each meta-feature in `outside`, by each cue, by each feature of the
        layout, and by pairs of these. What a calibration taught is no demand, and says nothing of
        where an agent fails. A feature that says where a cue misleads has no strata of its own.
        """
        names, taught = self.layout.feature_names, self.layout.taught
        known = {name: self.features[:, i] for i, name in enumerate(names) if i not in taught}
        told = {cue.feature for cue in self.layout.cues}
        outside = {name: column for name, column in self.outside.items() if name not in told}
        cues = [cue_stratification(name, there) for name, there in self.misleading.items()]
        return (
            *stratifications(self.paradigms, outside),
            *(way for way in cues if (way.labels >= 0).any()),
            *known_stratifications(known),
        )

    @cached_property
    def misleading(self) -> dict[str, Floats]:
        """By the name of each cue of the layout, whether it misleads, (instances,): 1 or 0.

        It is NaN where there is no such cue. Cues of which nothing is known are left out.
        """
        own = zip(self.layout.feature_names, self.features.T, strict=True)
        columns = {**self.outside, **dict(own)}
        cues = [cue for cue in self.layout.cues if cue.feature in columns]
        return {cue.name: cue.misleads(columns[cue.feature]) for cue in cues}

    @cached_property
    def members(self) -> dict[str, Ints]:
        """The rows of the battery's instances by paradigm, in the order of the paradigms' names."""
        names = np.array(self.paradigms)
        own = ~self.offered
        return {str(name): np.flatnonzero((names == name) & own) for name in np.unique(names[own])}

    @cached_property
    def touched(self) -> Mask:
        """Which latent nodes affect an outcome of each instance, (instances, latents)."""
        return self.evaluator.touched(self.distinct)[self.place]

    @cached_property
    def by_demand(self) -> tuple[Ints, ...]:
        """For each capability, the rows of what demands something of it, the easiest first."""
        ranked = (np.argsort(column, kind="stable") for column in self.demands.T)
        known = np.isfinite(self.demands).sum(axis=0)
        return tuple(rows[:n] for rows, n in zip(ranked, known.tolist(), strict=True))

    @cached_property
    def sets(self) -> Ints:
        """(instances,): the row of the arena of which each is a control, or else its own row.

        So an arena and its controls, as far as they are here, have one number.
        """
        rows = {name: row for row, name in enumerate(self.names)}
        return np.array([rows.get(of, row) for row, of in enumerate(self.control_of)], np.int64)

    @cached_property
    def groups(self) -> tuple[Ints, ...]:
        """Rows in `distinct` of each paradigm, followed by those of the offers."""
        members = [*self.members.values(), np.flatnonzero(self.offered)]
        return tuple(np.unique(self.place[rows]) for rows in members if rows.size)


class Rows(Sequence[int]):
    """Rows of instances in order, which need not be copied to be counted."""

    def __init__(self, rows: Ints) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    def __getitem__(self, index: int | slice) -> int | Rows:
        """Return the row at a place, or those of a slice."""
        return Rows(self._rows[index]) if isinstance(index, slice) else int(self._rows[index])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Ints:
        return np.array(self._rows, dtype, copy=copy)


@dataclass(frozen=True, slots=True)
class History:
    """What was played, in order and including repeats, and what is being played now.

    Attributes:
        played: Rows of the episodes with a known outcome.
        pending: Rows of the episodes being played now.
        retest: How random the agent is, as repeats have shown; if None, every repeat counts as one
            outcome.
        counts: (instances,): how often each was played, where that is known already.
    """

    played: Sequence[int] = ()
    pending: Sequence[int] = ()
    retest: Retest | None = None
    counts: Ints | None = None

    @property
    def started(self) -> Ints:
        """The row of every episode that was begun, (episodes,)."""
        parts = (np.asarray(rows, dtype=np.int64) for rows in (self.played, self.pending))
        return np.concatenate([*parts])

    def times(self, size: int) -> Ints:
        """Count how often each instance was played, (instances,); not to be written to."""
        if self.counts is not None:
            return self.counts
        return np.bincount(np.asarray(self.played, dtype=np.int64), minlength=size)

    def exposures(self, size: int) -> Ints:
        """Count how often each instance was begun, (instances,); not to be written to."""
        if not len(self.pending):
            return self.times(size)
        pending = np.asarray(self.pending, dtype=np.int64)
        return self.times(size) + np.bincount(pending, minlength=size)

    def weights(self, size: int) -> Floats:
        """How many outcomes one more play of each instance would count as, (instances,)."""
        if self.retest is None:
            return np.ones(size)
        return self.retest.weights(self.exposures(size))

    def plays(self, bank: Bank) -> Counter[str]:
        """Count how often each paradigm of the battery was begun."""
        begun = self.exposures(len(bank))
        return Counter({name: int(begun[rows].sum()) for name, rows in bank.members.items()})
