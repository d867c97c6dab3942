"""Deciding when to stop, with a status for every capability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.information import ExpectedGains, GainEstimator
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.adaptive.statuses import (
    HORIZON,
    Asked,
    End,
    Facts,
    Status,
    judge,
    knowledge_of,
    target_sd,
)
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.spec import Layout
from animalcat.portable import arrays as portable
from animalcat.portable import scalars

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

WORTHWHILE: Final = 0.1
"""Least share by which a standard deviation would have to fall without noise for noise to be named
as the limit."""
_OFTEN: Final = 3
"""How often the hardest demand must have been asked, or the easiest, as one outcome may be luck."""


@dataclass(frozen=True, slots=True)
class StopVerdict:
    """Whether to stop, and the status of every capability.

    Attributes:
        stop: Whether to stop.
        reason: Why, in words; empty while the test goes on.
        status: Status of each capability.
        expected_fall: For each capability, the share by which its standard deviation is expected to
            fall over the next 25 episodes.
        episodes_needed: For each capability, how many more episodes it is expected to take to reach
            its target; None if the battery cannot reach it.
        end: Why, in a word; None while the test goes on, or where the stopper has no such words.
        facts: What the end and the statuses follow from, so that a session can judge again with
            its last fit; None where the stopper has no such facts.
    """

    stop: bool
    reason: str
    status: Mapping[str, Status]
    expected_fall: Mapping[str, float]
    episodes_needed: Mapping[str, int | None]
    end: End | None = None
    facts: Facts | None = None

    def judged(self, **facts: Any) -> StopVerdict:
        """Judge again, with some of the facts changed.

        Args:
            **facts: Attributes of `Facts`, for example what the last fit reaches.
        """
        assert self.facts is not None, "this stopper has no facts"
        changed = replace(self.facts, **facts)
        judgement = judge(changed)
        return replace(
            self,
            stop=judgement.end is not None,
            reason=judgement.reason,
            status=judgement.status,
            end=judgement.end,
            facts=changed,
        )


class Stopper(Protocol):
    """Something that can tell when to stop: `Learner(stopper=...)` takes any.

    Its answer follows from its arguments alone, so that a test can be repeated from its record.
    """

    def verdict(
        self,
        posterior: LivePosterior,
        chooser: Chooser,
        history: History,
        *,
        seconds: float = 0.0,
        contradicted: bool = False,
        settles: bool = True,
    ) -> StopVerdict:
        """Judge after an episode.

        Args:
            posterior: The current posterior.
            chooser: Knows which instances could be played next, and what they would tell.
            history: What was played; repeats count towards the budget.
            seconds: How long the agent has played.
            contradicted: Whether the alarm says that the layout does not describe the agent.
            settles: Whether to stop once every capability is known or given up.
        """
        ...


class RuleStopper:
    """Stops by a rule, which is data."""

    def __init__(self, layout: Layout, rule: StoppingRule) -> None:
        """Check the rule against the layout.

        Raises:
            ValueError: The rule names something that is not a capability of the layout.
        """
        names = [layout.latents[i].name for i in layout.capabilities]
        if unknown := sorted(set(rule.targets) - set(names)):
            raise ValueError(f"target of {unknown[0]}: no capability; there are {', '.join(names)}")
        self.layout = layout
        self.rule = rule
        self._names = names

    def verdict(
        self,
        posterior: LivePosterior,
        chooser: Chooser,
        history: History,
        *,
        seconds: float = 0.0,
        contradicted: bool = False,
        settles: bool = True,
    ) -> StopVerdict:
        """Judge after an episode, as `Stopper.verdict` says."""
        left = chooser.available(history, distrust=contradicted)
        targets = [target_sd(self.rule, self.layout.latents[i]) for i in self.layout.capabilities]
        asked = demand_ends(chooser.bank, history.times(len(chooser.bank)), left, targets)
        known = knowledge_of(self.layout, self.rule, posterior.summary(), asked)
        measured = np.array([known[name] != "open" for name in self._names])
        scores = chooser.scores(posterior, history)
        fall = _expected_fall(scores, left)
        every = len(history.played) + int(left.sum())
        whole = every <= min(HORIZON, self.rule.max_episodes)  # so few are all played
        futile = (fall < self.rule.futility) & (self.rule.futility > 0.0 and not whole)
        wanted = not contradicted and bool(futile.any() and (measured | futile).all())
        facts = Facts(
            self.rule,
            len(history.played),
            seconds,
            bool(left.any()),
            live=known,
            futile=self._by_name(futile),
            noisy=self._by_name(_by_noise(posterior, chooser.gains)) if wanted else {},
            asked=asked,
            contradicted=contradicted,
            settles=settles,
        )
        if contradicted:  # then standard deviations mean nothing
            measured = np.zeros_like(measured)
        return StopVerdict(
            stop=False,
            reason="",
            status={},
            expected_fall=dict(zip(self._names, fall.tolist(), strict=True)),
            episodes_needed={
                name: 0 if measured[k] else count_needed(scores, left, k, targets[k])
                for k, name in enumerate(self._names)
            },
            facts=facts,
        ).judged()

    def _by_name(self, values: Mask) -> dict[str, bool]:
        return dict(zip(self._names, values.tolist(), strict=True))


def demand_ends(bank: Bank, times: Ints, left: Mask, same: Sequence[float]) -> dict[str, Asked]:
    """Find the ends of what a battery asks of each capability, where they were really asked.

    Args:
        bank: The battery.
        times: (instances,), how often each was played.
        left: (instances,), whether each may still be played.
        same: For each capability, by how much a demand may be greater and still count as asked.
    """
    layout = bank.layout
    found: dict[str, Asked] = {}
    for k, i in enumerate(layout.capabilities):
        node, demands = layout.latents[i], bank.demands[:, k]
        rows = bank.by_demand[k]
        asked = times[rows]
        if int(asked.sum()) < _OFTEN:
            continue
        easiest = float(demands[rows[_first_often(asked)]])
        hardest = float(demands[rows[-1 - _first_often(asked[::-1])]])
        rest = demands[rows[left[rows]]]
        least = float(rest.min(initial=easiest))
        most = float(rest.max(initial=hardest))
        found[node.name] = Asked(
            least if easiest - least <= same[k] else -math.inf,
            most if most - hardest <= same[k] else math.inf,
        )
    return found


def _first_often(times: Ints) -> int:
    """Where the counts, summed from the first on, reach `_OFTEN`."""
    return int(np.argmax(np.cumsum(times) >= _OFTEN))


def _by_noise(posterior: LivePosterior, gains: GainEstimator) -> Mask:
    """Whether each capability is limited by the agent's noise; else it is by the battery.

    Noise is the limit if the same battery would tell more about an agent without noise. The whole
    battery is considered, including what was already played.
    """
    everything = np.ones(len(gains.bank), dtype=np.bool_)
    noisy = _expected_fall(gains.scores(posterior), everything)
    clean = _expected_fall(gains.noiseless(posterior), everything)
    return (clean >= WORTHWHILE) & (clean > 2.0 * noisy)


def count_needed(scores: ExpectedGains, left: Mask, capability: int, target: float) -> int | None:
    """How many of the best remaining instances bring a standard deviation down to its target.

    Every drop is computed for the current posterior, as for futility. None if all of them together
    do not suffice.
    """
    variance = max(float(scores.variance[capability]), 1e-300)
    shares = np.clip(scores.drops[left, capability] / variance, 0.0, 1.0)
    least_sd = math.sqrt(variance * float(np.prod(1.0 - shares)))
    if not target or not shares.size or least_sd > target * (1.0 + 1e-9):
        return None  # not even all together reach it
    # A lower bound, as if all told as much as the best; sorting this many usually suffices.
    most = min(max(float(shares.max()), 1e-9), 0.999999)
    least = scalars.log(target * target / variance) / portable.log1p(-most)
    count = max(HORIZON, 2 * math.ceil(least))
    while True:
        after = np.sqrt(variance * np.cumprod(1.0 - portable.descending(shares, count)))
        reached = np.flatnonzero(after <= target)
        if reached.size or count >= len(shares):
            return int(reached[0]) + 1 if reached.size else None
        count *= 8


def _expected_fall(scores: ExpectedGains, left: Mask) -> Floats:
    """Share by which standard deviations fall if each capability's best instances are played.

    Every drop is computed for the current posterior, which is somewhat optimistic. So what it calls
    futile is futile.
    """
    rest = np.empty(len(scores.variance))
    for k, variance in enumerate(np.maximum(scores.variance, 1e-300)):
        shares = portable.descending(scores.drops[left, k], HORIZON) / variance
        rest[k] = np.prod(np.clip(1.0 - shares, 0.0, 1.0))
    return 1.0 - np.sqrt(rest)
