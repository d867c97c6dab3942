"""Deciding when to stop, with a status for every capability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import History
from animalcat.layouts.adaptive.information import ExpectedGains, GainEstimator
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.summary import NodeSummary, hdi
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Status: TypeAlias = Literal[
    "measuring",
    "precise, if the layout holds",
    "budget",
    "limited by the battery",
    "limited by noise",
    "layout contradicted",
]

EXHAUSTED: Final = "the battery is exhausted"
"""Why a session ends that has played all that there is."""
PRECISE: Final[Status] = "precise, if the layout holds"
"""Status of a capability whose target is reached: as good as the layout is."""
_HORIZON: Final = 25
"""Number of episodes that futility looks ahead."""

WORTHWHILE: Final = 0.1
"""Least share by which a standard deviation would have to fall without noise for noise to be named
as the limit."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to stop, and the status of every capability.

    Attributes:
        stop: Whether to stop.
        reason: Why, in words; empty while the test goes on.
        status: Status of each capability.
        expected_fall: For each capability, the share by which its standard deviation is expected to
            fall over the next 25 episodes.
        episodes_needed: For each capability, how many more episodes it is expected to take to reach
            its target; None if the battery cannot reach it.
    """

    stop: bool
    reason: str
    status: Mapping[str, Status]
    expected_fall: Mapping[str, float]
    episodes_needed: Mapping[str, int | None]


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """What the stopping conditions look at; arrays hold one value for each capability."""

    rule: StoppingRule
    measured: Mask
    futile: Mask
    played: int
    seconds: float
    contradicted: bool


class _Condition(Protocol):
    def __call__(self, state: _State) -> str: ...


class Stopper(Protocol):
    """Something that can tell when to stop: `Learner(stopper=...)` takes any.

    Its answer follows from its arguments alone, so that a test can be told again.
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
    ) -> Verdict:
        """Judge after an episode.

        Args:
            posterior: The current posterior.
            chooser: Knows which instances could be played next, and what they would tell.
            history: What was played; repeats count towards the budget.
            seconds: How long the agent has played.
            contradicted: Whether the alarm says that the layout does not describe the agent.
            settles: Whether it is a reason to stop that every capability is known or given up.
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
    ) -> Verdict:
        """Judge after an episode, as `Stopper.verdict` says."""
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
        state = _State(self.rule, measured, futile, len(history.played), seconds, contradicted)

        reason = _reason(state, settles=settles)
        if contradicted and self.rule.stop_at_alarm:
            reason = "the layout does not describe this agent"
        elif not left.any() and not (reason and measured.all()):
            reason = EXHAUSTED
        return Verdict(
            stop=bool(reason),
            reason=reason,
            status=self._status(state, reason, posterior, chooser.gains),
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
        posterior: LivePosterior,
        gains: GainEstimator,
    ) -> dict[str, Status]:
        rest: list[Status] = ["measuring"] * len(self._names)
        if state.contradicted:
            rest = ["layout contradicted"] * len(self._names)
        elif reason and (_episodes(state) or _seconds(state)):
            rest = ["budget"] * len(self._names)
        elif reason and not state.measured.all():
            rest = _limits(posterior, gains)
        return {
            name: PRECISE if state.measured[k] else rest[k] for k, name in enumerate(self._names)
        }


def precise(layout: Layout, rule: StoppingRule, nodes: Sequence[NodeSummary]) -> dict[str, bool]:
    """Whether each capability reaches its target by given summaries, as those of a fit.

    Args:
        layout: The layout.
        rule: The stopping rule, with the targets.
        nodes: Summaries of the nodes, in the layout's order.
    """
    met: dict[str, bool] = {}
    for i in layout.capabilities:
        node, span = nodes[i], layout.latents[i].prior.span
        width = node.hdi[1] - node.hdi[0]
        narrow = not rule.target_width or width <= rule.target_width * span
        met[node.name] = node.sd <= rule.target(node.name) * span and narrow
    return met


def settled_status(
    status: Mapping[str, str],
    layout: Layout,
    rule: StoppingRule,
    nodes: Sequence[NodeSummary],
    contradicted: bool,
) -> dict[str, str]:
    """Statuses of capabilities, by a fit where its precision decides.

    Args:
        status: The statuses by the live posterior.
        layout: The layout.
        rule: The stopping rule, with the targets.
        nodes: Summaries of the fit's nodes, in the layout's order.
        contradicted: Whether an alarm stands; then no precision decides.
    """
    if contradicted:
        return dict(status)
    reached = precise(layout, rule, nodes)
    return {
        name: PRECISE if reached[name] else "budget" if word == PRECISE else word
        for name, word in status.items()
    }


def _settled(state: _State) -> str:
    if state.measured.all():
        return "every capability became precise while it ran, if the layout holds"
    if (state.measured | state.futile).all():
        return (
            f"{_HORIZON} more episodes are expected to lower no standard deviation that is "
            f"still above its target by {state.rule.futility:.1%}"
        )
    return ""


def _episodes(state: _State) -> str:
    most = state.rule.max_episodes
    return f"the budget of {most} episodes is used up" if state.played >= most else ""


def _seconds(state: _State) -> str:
    most = state.rule.max_seconds
    return f"the budget of {most:g} s is used up" if 0.0 < most <= state.seconds else ""


def _reason(state: _State, *, settles: bool) -> str:
    """Why the rule says stop; empty if it does not.

    A contradicted layout measures nothing, so that only budgets are conditions; as where nothing is
    to be settled.
    """
    rule = state.rule
    conditions: list[_Condition] = [_episodes]
    if settles and not state.contradicted and (rule.wants_measures or rule.combine == "any"):
        conditions.insert(0, _settled)
    if rule.max_seconds:
        conditions.append(_seconds)
    met = [condition(state) for condition in conditions]
    if rule.combine == "any":
        return next(filter(None, met), "")
    return "; ".join(met) if all(met) else ""


def _limits(posterior: LivePosterior, gains: GainEstimator) -> list[Status]:
    """What limits each capability: the agent's noise, or the battery.

    Noise is the limit if the same battery would tell more about an agent without noise. The whole
    battery is considered, including what was already played.
    """
    everything = np.ones(len(gains.bank), dtype=np.bool_)
    noisy = _expected_fall(gains.scores(posterior), everything)
    clean = _expected_fall(gains.noiseless(posterior), everything)
    by_noise = (clean >= WORTHWHILE) & (clean > 2.0 * noisy)
    return ["limited by noise" if noise else "limited by the battery" for noise in by_noise]


def needed(scores: ExpectedGains, left: Mask, capability: int, target: float) -> int | None:
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
    least = math.log(target**2 / variance) / math.log1p(-most)
    count = max(_HORIZON, 2 * math.ceil(least))
    while True:
        after = np.sqrt(variance * np.cumprod(1.0 - _largest(shares, count)))
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
        shares = _largest(scores.drops[left, k], _HORIZON) / variance
        rest[k] = np.prod(np.clip(1.0 - shares, 0.0, 1.0))
    return 1.0 - np.sqrt(rest)


def _largest(values: Floats, count: int) -> Floats:
    """The largest `count` values, in descending order."""
    start = max(len(values) - count, 0)
    if start:
        values = np.partition(values, start)[start:]
    return np.sort(values)[::-1]
