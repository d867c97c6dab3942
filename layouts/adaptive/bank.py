"""The instances of a battery, prepared once so that every episode can choose among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.alarm import Scheme, schemes
from animalcat.layouts.adaptive.offers import Offers
from animalcat.layouts.adaptive.retest import Retest
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


class Bank:
    """Instances to choose from; they never change.

    Instances with equal features that give the same outcomes tell the same: what they tell is
    worked out once for all of them. Those of the battery come first; what could be made on demand
    stands behind them.

    Attributes:
        layout: What is measured.
        paradigms: The paradigm of each instance.
        names: The name of each instance.
        features: (instances, features), in the layout's order and units.
        outside: Meta-features that the layout does not know, each (instances,); NaN: unknown.
        variants: (instances,), the number of the group of variants that each is of.
        seconds: (instances,), how long an episode is expected to take.
        distinct: (distinct, columns): the prepared columns of each distinct instance.
        gives: (distinct, outcomes): which outcomes each gives.
        place: (instances,): the row in `distinct` of each instance.
        demands: (instances, capabilities): NaN where an instance demands nothing of a capability.
        offered: (instances,): which could be made on demand, and are not in the battery.
    """

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
    ) -> None:
        """Prepare the instances.

        Args:
            layout: What is measured.
            features: (instances, features), in the layout's order and units.
            paradigms: The paradigm of each instance, for balance.
            names: The name of each instance; empty: their numbers.
            variants: The group of variants that each instance is of; empty: those are variants of
                one another that have equal features, and differ in what the layout does not know.
            seconds: (instances,), how long an episode is expected to take; by default all equal.
            offers: What could be made on demand.
            outside: Meta-features of the instances that the layout does not know, each
                (instances,): the alarm looks for misfits by them.
            observes: (instances, outcomes), which of the layout's outcomes each instance gives; by
                default all. What could be made on demand gives all.

        Raises:
            ValueError: A feature is out of range, an instance gives no outcome, or the lengths
                differ.
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
        columns = self.evaluator.columns(values)
        n = len(columns)
        self.features: Floats = columns[:, : len(layout.features)]
        unknown = np.full(n - own, np.nan)
        self.outside: dict[str, Floats] = {
            name: np.concatenate([np.asarray(column, np.float64), unknown])
            for name, column in (outside or {}).items()
        }
        self.offered: Mask = np.arange(n) >= own
        for what, length in (
            ("paradigms", len(self.paradigms)),
            ("names", len(self.names)),
            ("variants", len(variants) + n - own if variants else n),
            ("seconds", len(self.seconds)),
            *((name, len(column)) for name, column in self.outside.items()),
        ):
            if length != n:
                raise ValueError(f"{length} {what}, {n} instances")
        if not (np.isfinite(self.seconds) & (self.seconds > 0.0)).all():
            raise ValueError("seconds of an episode must be above 0")
        gives = self._outcomes_of(own, n, observes)
        if n:
            told = columns if gives.all() else np.column_stack([columns, gives])
            _, first, place = np.unique(told, axis=0, return_index=True, return_inverse=True)
            order = np.argsort(first)  # as they come, so that neighbours stay neighbours
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
    def of(cls, layout: Layout, instances: Instances) -> Bank:
        """A bank of a table of instances; what the layout does not know of them is `outside`.

        Raises:
            ValueError: A column is not there, or a value is missing or out of its range.
        """
        known = layout.feature_names
        return cls(
            layout,
            instances.features(layout),
            instances.paradigms or ("",) * len(instances),
            names=instances.names,
            outside={c: instances.column(c) for c in instances.columns if c not in known},
        )

    def without(self, names: Collection[str]) -> Bank:
        """The bank without some instances or offers."""
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
        )

    def _outcomes_of(self, own: int, n: int, observes: npt.ArrayLike | None) -> Mask:
        """Which outcomes each of n instances gives, of which the battery holds the first ones."""
        gives = np.ones((n, len(self.layout.outcomes)), dtype=np.bool_)
        if observes is None:
            return gives
        given = np.asarray(observes, dtype=np.bool_)
        if given.shape != (own, gives.shape[1]):
            raise ValueError(
                f"observes has shape {given.shape}; (instances, outcomes) is wanted, that is "
                f"{(own, gives.shape[1])}: {', '.join(self.layout.outcome_names)}"
            )
        gives[:own] = given
        if (empty := np.flatnonzero(~gives.any(axis=1))).size:
            raise ValueError(f"instance {self.names[empty[0]]} gives no outcome of the layout")
        return gives

    def __len__(self) -> int:
        return len(self.paradigms)

    @cached_property
    def schemes(self) -> tuple[Scheme, ...]:
        """Ways to part the instances into strata: by paradigm, and by what is `outside`."""
        return schemes(self.paradigms, self.outside)

    @cached_property
    def members(self) -> dict[str, Ints]:
        """The battery's rows of each paradigm, the paradigms in order of their names."""
        names = np.array(self.paradigms)
        own = ~self.offered
        return {str(name): np.flatnonzero((names == name) & own) for name in np.unique(names[own])}

    @cached_property
    def groups(self) -> tuple[Ints, ...]:
        """Rows in `distinct` of each paradigm, and of what could be made on demand."""
        members = [*self.members.values(), np.flatnonzero(self.offered)]
        return tuple(np.unique(self.place[rows]) for rows in members if rows.size)


@dataclass(frozen=True, slots=True)
class History:
    """What was played, in order, with repeats as often as they were played, and what is being.

    Attributes:
        played: Rows with a known outcome.
        pending: Rows of episodes that are being played now.
        retest: What repeats have told of how random the agent is; None: each counts as one.
    """

    played: Sequence[int] = ()
    pending: Sequence[int] = ()
    retest: Retest | None = None

    @property
    def started(self) -> tuple[int, ...]:
        """Rows of every episode that was begun."""
        return (*self.played, *self.pending)

    def exposures(self, size: int) -> Ints:
        """How often each instance was begun, (instances,)."""
        return np.bincount(np.array(self.started, dtype=np.int64), minlength=size)

    def weights(self, size: int) -> Floats:
        """As how many outcomes one more play of each instance counts, (instances,)."""
        if self.retest is None:
            return np.ones(size)
        return self.retest.weights(self.exposures(size))

    def plays(self, bank: Bank) -> Counter[str]:
        """How often each paradigm of the battery was begun."""
        return Counter(bank.paradigms[i] for i in self.started if not bank.offered[i])
