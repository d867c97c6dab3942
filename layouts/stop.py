"""Deciding that it is enough, with a status for every capability."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.live import LivePosterior
from animalcat.layouts.select import Scores, Selector
from animalcat.layouts.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Status: TypeAlias = Literal[
    "measuring", "measured", "budget", "limited by the battery", "limited by noise"
]

HORIZON: Final = 25
"""Episodes that futility looks ahead."""

WORTHWHILE: Final = 0.1
"""Share by which standard deviations would have to fall without noise for noise to be the limit."""


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When measuring is enough. Whatever comes first ends the session.

    Attributes:
        max_episodes: Budget.
        target_sd: A capability is measured at this standard deviation, in shares of its range;
            0: never.
        futility: A capability is given up where its standard deviation is expected to fall by less
            than this share over the next 25 episodes; 0: never.
    """

    max_episodes: int = 100
    target_sd: float = 0.1
    futility: float = 0.01

    def __post_init__(self) -> None:
        if self.max_episodes < 1:
            raise ValueError(f"max_episodes {self.max_episodes} must be 1 at least")
        if not 0.0 <= self.target_sd < 1.0:
            raise ValueError(f"target_sd {self.target_sd} is not in [0, 1)")
        if not 0.0 <= self.futility < 1.0:
            raise ValueError(f"futility {self.futility} is not in [0, 1)")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to stop.

    Attributes:
        stop: Whether.
        reason: Why, in words; empty while it goes on.
        status: Per capability.
        expected_fall: Per capability, by which share its standard deviation is expected to fall
            over the next 25 episodes.
    """

    stop: bool
    reason: str
    status: Mapping[str, Status]
    expected_fall: Mapping[str, float]


class Stopper:
    """Applies one rule."""

    def __init__(self, layout: Layout, rule: StoppingRule) -> None:
        self.layout = layout
        self.rule = rule

    def verdict(
        self, posterior: LivePosterior, selector: Selector, used: Collection[int]
    ) -> Verdict:
        """Judge after an episode.

        Args:
            posterior: What is known.
            selector: What could be played next.
            used: Instances played so far, with repeats as often as they were played; their number
                is what the budget counts.
        """
        columns = list(self.layout.capabilities)
        names = [self.layout.latents[i].name for i in columns]
        theta, weights = posterior.particles[:, columns], posterior.weights
        sd = np.sqrt(weights @ (theta - weights @ theta) ** 2)
        spans = np.array([self.layout.latents[i].prior.span for i in columns])
        measured = sd <= self.rule.target_sd * spans
        left = selector.available(used)
        fall = _expected_fall(selector.scores(posterior), left)
        futile = (fall < self.rule.futility) & (self.rule.futility > 0.0)
        falls = dict(zip(names, fall.tolist(), strict=True))

        reason = ""
        rest: list[Status] = ["measuring"] * len(names)
        if measured.all():
            reason = "every capability is measured"
        elif not left.any():
            reason = "the battery is exhausted"
            rest = self._limits(posterior, selector)
        elif len(used) >= self.rule.max_episodes:
            reason = f"the budget of {self.rule.max_episodes} episodes is used up"
            rest = ["budget"] * len(names)
        elif (measured | futile).all():
            reason = (
                f"{HORIZON} more episodes are expected to lower no standard deviation that is "
                f"still above its target by {self.rule.futility:.1%}"
            )
            rest = self._limits(posterior, selector)
        status: dict[str, Status] = {
            name: "measured" if measured[k] else rest[k] for k, name in enumerate(names)
        }
        return Verdict(bool(reason), reason, status, falls)

    def _limits(self, posterior: LivePosterior, selector: Selector) -> list[Status]:
        """What stands in the way: the same battery would tell more about an agent without noise.

        The whole battery is asked, as it was before anything was played.
        """
        everything = np.ones(len(selector), dtype=np.bool_)
        noisy = _expected_fall(selector.scores(posterior), everything)
        clean = _expected_fall(selector.noiseless_scores(posterior), everything)
        by_noise = (clean >= WORTHWHILE) & (clean > 2.0 * noisy)
        return ["limited by noise" if noise else "limited by the battery" for noise in by_noise]


def _expected_fall(scores: Scores, left: npt.NDArray[np.bool_]) -> Floats:
    """Share by which standard deviations fall if each capability's best instances are played.

    Every drop is taken at today's posterior, so it is somewhat hopeful: what is futile by it is.
    """
    shares = scores.drops[left] / np.maximum(scores.variance, 1e-300)
    best = np.sort(shares, axis=0)[::-1][:HORIZON]
    return 1.0 - np.sqrt(np.prod(np.clip(1.0 - best, 0.0, 1.0), axis=0))
