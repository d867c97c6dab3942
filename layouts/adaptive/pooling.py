"""How much each outcome of a table counts as evidence, so that the same is not counted twice.

The same arena, seed and deterministic agent played again is not new evidence. Within one session
its own weights say so. Where several sessions, or a table without sessions, hold plays of one arena
by one agent, the plays share what they tell together: k / (1 + (k - 1) determinism), as in
`retest`. How deterministic the agent is follows from how often two of its plays of one arena agree.
The order of the plays changes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.retest import Retest
from animalcat.text.counts import count_of

Floats: TypeAlias = npt.NDArray[np.float64]

_LESS: Final = 1.0 - 1e-9
"""A weight below this is less than that of a whole outcome."""


class ContradictionError(ValueError):
    """Two rows tell different outcomes of one attempt."""


@dataclass(frozen=True, slots=True)
class Play:
    """One outcome of a table.

    Attributes:
        agent: Name of the agent.
        item: What was played: an arena by its bytes and seed, or anything else by its id.
        outcome: What came of it.
        attempt: Which attempt of which session it was; empty where that is not known.
        session: The session; empty where that is not known.
        weight: What the session says that it counts as; None where that is not known.
        fingerprint: What identifies the agent beside its name; empty where that is not known.
    """

    agent: str
    item: Hashable
    outcome: float
    attempt: Hashable = ""
    session: str = ""
    weight: float | None = None
    fingerprint: str = ""


@dataclass(frozen=True, eq=False)
class OutcomeWeights:
    """What the outcomes of a table count as.

    Attributes:
        weights: (plays,): how many outcomes each counts as; 0 for a duplicate of an attempt.
        repeated: Number of duplicates.
        lowered: How many others count as less than one outcome.
        several: Agents under whose name more than one fingerprint played.
    """

    weights: Floats
    repeated: int
    lowered: int
    several: tuple[str, ...]

    @property
    def notes(self) -> list[str]:
        """What a reader has to know, in sentences; empty where every outcome counts as one."""
        sentences: list[str] = []
        if self.repeated:
            sentences.append(
                f"{count_of(self.repeated, 'row')} left out: the same attempt of the same session "
                "is already included"
            )
        if self.lowered:
            sentences.append(
                f"{self.lowered} row{'s count' if self.lowered != 1 else ' counts'} as less than "
                "one outcome each: the agent played the same arena more than once"
            )
        sentences += [
            f"agent {name}: several versions of it (fingerprints) are pooled under one name"
            for name in self.several
        ]
        return sentences


def weigh_outcomes(plays: Sequence[Play]) -> OutcomeWeights:
    """Say what each outcome counts as, whatever the order of the plays.

    Raises:
        ContradictionError: An attempt is there twice, with different outcomes.
    """
    weights = np.ones(len(plays))
    kept: dict[tuple[str, str, Hashable], int] = {}
    said: dict[int, set[float | None]] = {}
    for k, play in enumerate(plays):
        if not play.session:
            continue
        first = kept.setdefault((play.agent, play.session, play.attempt), k)
        if first != k:
            if (plays[first].item, plays[first].outcome) != (play.item, play.outcome):
                raise ContradictionError(
                    f"{play.session} of agent {play.agent} has the attempt {play.attempt} twice, "
                    "and the rows say different things of it; keep the one that is right"
                )
            weights[k] = 0.0
            said.setdefault(first, set()).add(play.weight)
    repeated = int(np.count_nonzero(weights == 0.0))
    groups: dict[tuple[str, str], dict[Hashable, list[int]]] = defaultdict(dict)
    for k in np.flatnonzero(weights).tolist():
        play = plays[k]
        groups[play.agent, play.fingerprint].setdefault(play.item, []).append(k)
    for own in groups.values():
        _weigh(plays, own, weights, said)
    known = Counter(agent for agent, fingerprint in groups if fingerprint)
    several = tuple(sorted(agent for agent, count in known.items() if count > 1))
    lowered = int(np.count_nonzero((weights > 0.0) & (weights < _LESS)))
    return OutcomeWeights(weights, repeated, lowered, several)


def _weigh(
    plays: Sequence[Play],
    items: Mapping[Hashable, Sequence[int]],
    weights: Floats,
    said: Mapping[int, set[float | None]],
) -> None:
    """Set the weights of one agent's plays, which are given by item.

    A session that was exported twice while it went on may say two weights of one attempt; neither
    is then known to be the last, so none is taken.
    """
    retest = _retest(plays, items)
    for rows in items.values():
        sessions = {plays[k].session for k in rows}
        stored = [
            plays[k].weight if said.get(k, set()) <= {plays[k].weight} else None for k in rows
        ]
        within = len(sessions) == 1 and "" not in sessions
        if within and all(weight is not None for weight in stored):
            weights[rows] = np.array(stored, np.float64)
        elif len(rows) > 1:
            weights[rows] = retest.weights(np.arange(len(rows))).mean()


def _retest(plays: Sequence[Play], items: Mapping[Hashable, Sequence[int]]) -> Retest:
    """What all pairs of plays of one item say of how deterministic the agent is.

    The k plays of an item have k - 1 independent comparisons, which all their pairs share.
    """
    every = [plays[k].outcome for rows in items.values() for k in rows]
    counts_of_all = Counter(every)
    retest = Retest()
    for rows in sorted(items.values(), key=len):
        k = len(rows)
        if k < 2:
            continue
        counts = Counter(plays[row].outcome for row in rows)
        pairs = k * (k - 1) / 2.0
        for value, count in sorted(counts.items()):
            chance = (counts_of_all[value] + 1.0) / (len(every) + 2.0)
            same, other = count * (count - 1) / 2.0, count * (k - count) / 2.0
            retest.update(True, chance, (k - 1.0) * same / pairs)
            retest.update(False, chance, (k - 1.0) * other / pairs)
    return retest
