"""Tells two agents apart by what they did on the same instances, whenever one looks.

Each pair of outcomes is a bet. Under the hypothesis that the mean difference of the two agents is
m, no betting wins in the long run, so the capital of a bettor is seldom large: it ever reaches 1/a
with a probability of at most a (Ville's inequality). The capital is therefore evidence that may be
looked at after every pair (Waudby-Smith & Ramdas 2024, Estimating means of bounded random variables
by betting, sections 4 and 5). The bettor spreads the stake over all constant bets by Jeffreys's
prior, Beta(1/2, 1/2) on the share that is bet on "the first agent is better", which loses little to
the best of them in hindsight (Krichevsky & Trofimov 1981).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays as portable
from animalcat.portable import scalars

Floats: TypeAlias = npt.NDArray[np.float64]

ERROR: Final = 0.05
"""Share of equal pairs of agents that may ever be called different."""
DECISIVE: Final = 1.0 / ERROR
"""E-value at which two agents are told apart."""

_NAMED: Final = 5
"""Instances that are named in a sentence, at most."""
_NODES: Final = 64
_ANGLES: Final = (2 * np.arange(_NODES) + 1) * np.pi / (2 * _NODES)
_SHARES: Final[Floats] = np.array([(1.0 + scalars.cos(angle)) / 2.0 for angle in _ANGLES.tolist()])
"""Equal weights at these points integrate over Beta(1/2, 1/2) (Gauss-Chebyshev)."""
_MOST: Final = 700.0
"""Logarithm of the largest capital that is told."""
_MEANS: Final[Floats] = np.linspace(-0.999, 0.999, 1999)
"""Mean differences that an interval is made of."""


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """What pairs of outcomes say about the difference of two agents.

    Attributes:
        pairs: Number of pairs.
        ahead: Pairs in which the first agent did better.
        behind: Pairs in which the second agent did better.
        difference: Mean outcome of the first agent less that of the second.
        low: Lower end of the difference's interval, which holds at all times together with
            probability 1 - `ERROR`, or as `compare` was asked.
        high: Its upper end.
        e_value: Evidence against equal agents, by which a bettor's capital has grown; at
            `DECISIVE`, 20, the agents are told apart.
    """

    pairs: int
    ahead: int
    behind: int
    difference: float
    low: float
    high: float
    e_value: float

    @property
    def apart(self) -> bool:
        """Whether the agents are told apart."""
        return self.e_value >= DECISIVE

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {**asdict(self), "apart": self.apart}

    def row(self) -> dict[str, str]:
        """The cells of a table for people, by column."""
        verdict = "told apart" if self.apart else "cannot be told apart"
        return {
            "arenas": str(self.pairs),
            "only it passed": str(self.ahead),
            "only the other": str(self.behind),
            "difference": f"{self.difference:+.2f} ({self.low:+.2f} to {self.high:+.2f})",
            "e-value": f"{self.e_value:.3g}",
            "is": verdict,
        }


@dataclass(frozen=True, slots=True)
class CommonInstances:
    """Who passed what, of the instances that two agents played.

    Attributes:
        both_passed: Instances that both passed.
        both_failed: Instances that neither passed.
        only_first: Instances that the first agent alone passed.
        only_second: Instances that the second agent alone passed.
    """

    both_passed: tuple[str, ...]
    both_failed: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def pairs(self) -> int:
        """How many instances both played."""
        alike = len(self.both_passed) + len(self.both_failed)
        return alike + len(self.only_first) + len(self.only_second)

    def words(self, first: str, second: str) -> str:
        """What is the same and what differs, as a clause.

        Args:
            first: What the first agent is called.
            second: What the second agent is called.
        """
        passed, failed, pairs = len(self.both_passed), len(self.both_failed), self.pairs
        if not pairs:
            return "they played no arena in common"
        if pairs in (passed, failed):
            how = "passed" if passed else "failed"
            return f"both {how} all {pairs} arenas that both played"
        of = f"of the {pairs} arenas that both played"
        if pairs == passed + failed:
            return f"{of}, both passed the same {passed} and failed the same {failed}"
        apart = "; ".join(
            f"only {who} passed {len(names)}{_few(names)}"
            for who, names in ((first, self.only_first), (second, self.only_second))
        )
        return f"{of}, both passed {passed} and both failed {failed}; {apart}"


def common_instances(first: Mapping[str, bool], second: Mapping[str, bool]) -> CommonInstances:
    """Look at who passed what, of the instances that two agents played.

    Args:
        first: By instance, whether the first agent passed it.
        second: The same of the second agent.
    """
    kinds: dict[tuple[bool, bool], list[str]] = {}
    for name, passed in first.items():
        if name in second:
            kinds.setdefault((passed, second[name]), []).append(name)
    order = ((True, True), (False, False), (True, False), (False, True))
    return CommonInstances(*(tuple(kinds.get(kind, ())) for kind in order))


def _few(names: Sequence[str]) -> str:
    """Some names in brackets; empty without any."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f" ({', '.join(names[:_NAMED])}{more})" if names else ""


def e_value(differences: Sequence[float] | Floats) -> float:
    """Evidence against equal agents; the `PairedComparison.e_value` of `compare`, which says more.

    Args:
        differences: (n,), as for `compare`.

    Raises:
        ValueError: A difference is not between -1 and 1.
    """
    return float(
        portable.exp(min(_MOST, log_capital(*_count_differences(differences), np.zeros(1))[0]))
    )


def compare(differences: Sequence[float] | Floats, error: float = ERROR) -> PairedComparison:
    """Compare two agents by their outcomes on the same instances.

    The e-value tests that both agents have the same expected outcome on each instance, given all
    that came before. So instances may be chosen by anything, earlier outcomes included. The
    interval supposes more: that the expected difference is the same each time, as it is where
    instances are drawn at random.

    Args:
        differences: (n,), outcome of the first agent less that of the second for each pair, each
            outcome between 0 and 1.
        error: Share of intervals that may miss the truth at any time.

    Raises:
        ValueError: A difference is not between -1 and 1.
    """
    values, counts = _count_differences(differences)
    pairs = int(counts.sum())
    mean = float(portable.dot(values, counts)) / pairs if pairs else 0.0
    kept = _MEANS[log_capital(values, counts, _MEANS) < portable.log(1.0 / error)]
    low, high = (kept[0], kept[-1]) if kept.size else (mean, mean)
    return PairedComparison(
        pairs=pairs,
        ahead=int(counts[values > 0].sum()),
        behind=int(counts[values < 0].sum()),
        difference=mean,
        low=float(low) if low > _MEANS[0] else -1.0,
        high=float(high) if high < _MEANS[-1] else 1.0,
        e_value=e_value(differences),
    )


def log_capital(values: Floats, counts: npt.NDArray[np.int64], means: Floats) -> Floats:
    """Logarithm of a bettor's capital against each mean difference.

    Args:
        values: (k,), differences that occurred.
        counts: (k,), how often each did.
        means: (m,), hypotheses, between -1 and 1.

    Returns:
        (m,).
    """
    outcome = (1.0 + values) / 2.0
    mean = ((1.0 + means) / 2.0)[:, np.newaxis, np.newaxis]
    share = _SHARES[:, np.newaxis]
    gain = outcome * share / mean + (1.0 - outcome) * (1.0 - share) / (1.0 - mean)
    logs = portable.dot(portable.log(gain), counts.astype(np.float64))
    return portable.logsumexp(logs, axis=-1) - portable.log(_NODES)


def _count_differences(
    differences: Sequence[float] | Floats,
) -> tuple[Floats, npt.NDArray[np.int64]]:
    given = np.asarray(differences, np.float64)
    if not np.all(np.abs(given) <= 1.0):
        raise ValueError("differences of outcomes between 0 and 1 lie between -1 and 1")
    values, counts = np.unique(given, return_counts=True)
    return values, counts
