"""Deciding that it is enough, with a status for every capability."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import History
from animalcat.layouts.adaptive.information import ExpectedGains, GainEstimator
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.summary import hdi
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Status: TypeAlias = Literal[
    "measuring",
    "measured",
    "budget",
    "limited by the battery",
    "limited by noise",
    "layout contradicted",
]

HORIZON: Final = 25
"""Episodes that futility looks ahead."""

WORTHWHILE: Final = 0.1
"""Share by which standard deviations would have to fall without noise for noise to be the limit."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to stop.

    Attributes:
        stop: Whether.
        reason: Why, in words; empty while it goes on.
        status: Per capability.
        expected_fall: Per capability, by which share its standard deviation is expected to fall
            over the next 25 episodes.
        episodes_needed: Per capability, how many more episodes its target is expected to take; None
            where the battery cannot reach it.
    """

    stop: bool
    reason: str
    status: Mapping[str, Status]
    expected_fall: Mapping[str, float]
    episodes_needed: Mapping[str, int | None]


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """What conditions look at. Arrays hold a value for each capability."""

    rule: StoppingRule
    measured: Mask
    futile: Mask
    played: int
    seconds: float


class _Condition(Protocol):
    def __call__(self, state: _State) -> str: ...


class Stopper:
    """Applies one rule."""

    def __init__(self, layout: Layout, rule: StoppingRule) -> None:
        """Make ready.

        Raises:
            ValueError: The rule names a capability that the layout has not.
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
    ) -> Verdict:
        """Judge after an episode.

        Args:
            posterior: What is known.
            chooser: What could be played next.
            history: What was played; repeats count for the budget.
            seconds: How long the session has taken.
            contradicted: The alarm says that the layout does not describe the agent.
        """
        columns = list(self.layout.capabilities)
        theta, weights = posterior.particles[:, columns], posterior.weights
        sd = np.sqrt(weights @ (theta - weights @ theta) ** 2)
        spans = np.array([self.layout.latents[i].prior.span for i in columns])
        target = np.array([self.rule.target(name) for name in self._names])
        measured = sd <= target * spans
        if self.rule.target_width:
            widths = np.array([np.ptp(hdi(theta[:, k], weights)) for k in range(len(columns))])
            measured &= widths <= self.rule.target_width * spans
        left = chooser.available(history, distrust=contradicted)
        scores = chooser.scores(posterior, history)
        fall = _expected_fall(scores, left)
        futile = (fall < self.rule.futility) & (self.rule.futility > 0.0)
        if contradicted:  # then standard deviations mean nothing
            measured, futile = np.zeros((2, len(columns)), dtype=np.bool_)
        state = _State(self.rule, measured, futile, len(history.played), seconds)

        reason = _reason(state)
        if contradicted and self.rule.stop_at_alarm:
            reason = "the layout does not describe this agent"
        elif not left.any() and not measured.all():
            reason = "the battery is exhausted"
        return Verdict(
            stop=bool(reason),
            reason=reason,
            status=self._status(state, reason, contradicted, posterior, chooser.gains),
            expected_fall=dict(zip(self._names, fall.tolist(), strict=True)),
            episodes_needed={
                name: 0 if measured[k] else needed(scores, left, k, target[k] * spans[k])
                for k, name in enumerate(self._names)
            },
        )

    def _status(
        self,
        state: _State,
        reason: str,
        contradicted: bool,
        posterior: LivePosterior,
        gains: GainEstimator,
    ) -> dict[str, Status]:
        rest: list[Status] = ["measuring"] * len(self._names)
        if contradicted:
            rest = ["layout contradicted"] * len(self._names)
        elif reason and (_episodes(state) or _seconds(state)):
            rest = ["budget"] * len(self._names)
        elif reason and not state.measured.all():
            rest = _limits(posterior, gains)
        return {
            name: "measured" if state.measured[k] else rest[k] for k, name in enumerate(self._names)
        }


def _settled(state: _State) -> str:
    if state.measured.all():
        return "every capability is measured"
    if (state.measured | state.futile).all():
        return (
            f"{HORIZON} more episodes are expected to lower no standard deviation that is "
            f"still above its target by {state.rule.futility:.1%}"
        )
    return ""


def _episodes(state: _State) -> str:
    most = state.rule.max_episodes
    return f"the budget of {most} episodes is used up" if state.played >= most else ""


def _seconds(state: _State) -> str:
    most = state.rule.max_seconds
    return f"the budget of {most:g} s is used up" if 0.0 < most <= state.seconds else ""


def _reason(state: _State) -> str:
    """Why the rule says stop; empty where it does not."""
    rule = state.rule
    conditions: list[_Condition] = [_episodes]
    if rule.wants_measures or rule.combine == "any":
        conditions.insert(0, _settled)
    if rule.max_seconds:
        conditions.append(_seconds)
    met = [condition(state) for condition in conditions]
    if state.rule.combine == "any":
        return next(filter(None, met), "")
    return "; ".join(met) if all(met) else ""


def _limits(posterior: LivePosterior, gains: GainEstimator) -> list[Status]:
    """What stands in the way: the same battery would tell more about an agent without noise.

    The whole battery is asked, as it was before anything was played.
    """
    everything = np.ones(len(gains.bank), dtype=np.bool_)
    noisy = _expected_fall(gains.scores(posterior), everything)
    clean = _expected_fall(gains.noiseless(posterior), everything)
    by_noise = (clean >= WORTHWHILE) & (clean > 2.0 * noisy)
    return ["limited by noise" if noise else "limited by the battery" for noise in by_noise]


def needed(scores: ExpectedGains, left: Mask, capability: int, target: float) -> int | None:
    """How many of the best instances left lower a standard deviation to its target.

    Every drop is taken at today's posterior, as for futility. None where all of them do not.
    """
    variance = max(float(scores.variance[capability]), 1e-300)
    shares = np.clip(scores.drops[left, capability] / variance, 0.0, 1.0)
    least_sd = math.sqrt(variance * float(np.prod(1.0 - shares)))
    if not target or not shares.size or least_sd > target * (1.0 + 1e-9):
        return None  # not by all together
    # So many at least, if all told as much as the best: sorting those will mostly do.
    most = min(max(float(shares.max()), 1e-9), 0.999999)
    least = math.log(target**2 / variance) / math.log1p(-most)
    count = max(HORIZON, 2 * math.ceil(least))
    while True:
        after = np.sqrt(variance * np.cumprod(1.0 - _largest(shares, count)))
        reached = np.flatnonzero(after <= target)
        if reached.size or count >= len(shares):
            return int(reached[0]) + 1 if reached.size else None
        count *= 8


def _expected_fall(scores: ExpectedGains, left: Mask) -> Floats:
    """Share by which standard deviations fall if each capability's best instances are played.

    Every drop is taken at today's posterior, so it is somewhat hopeful: what is futile by it is.
    """
    rest = np.empty(len(scores.variance))
    for k, variance in enumerate(np.maximum(scores.variance, 1e-300)):
        shares = _largest(scores.drops[left, k], HORIZON) / variance
        rest[k] = np.prod(np.clip(1.0 - shares, 0.0, 1.0))
    return 1.0 - np.sqrt(rest)


def _largest(values: Floats, count: int) -> Floats:
    """The largest of some values, in falling order."""
    start = max(len(values) - count, 0)
    if start:
        values = np.partition(values, start)[start:]
    return np.sort(values)[::-1]
