"""Adds up how an attempt has gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from animalcat.arena_configs.outcome import EpisodeMonitor
from animalcat.envs.types import EndedBy, Phase, Step
from animalcat.service.recording.reader import Recording
from animalcat.service.session.player import PlayReport
from animalcat.values import NOTHING, Cause, Spent


@dataclass(slots=True)
class Playthrough:
    """How an attempt has gone.

    Attributes:
        watch: Collects what is observed for the outcome.
        steps: Number of decisions taken.
        episode_return: Sum of all rewards.
        ended_by: Why the episode ended; None if it has not, or the agent left.
        reward: Reward since the agent's last observation.
        last: The last step; None before the first.
        fault: What went wrong with the backend; empty if nothing did.
        starved: Whether that was for want of memory.
        left: Why the agent can no longer play; None if it can.
        detail: What else is known of that, in words.
        spent: What the agent has spent.
        exceeded: Which allowance it exceeded, so that the attempt is a failure; empty for none.
        restored: Rewards of the decisions that were taken with a worker that was lost.
    """

    watch: EpisodeMonitor
    steps: int = 0
    episode_return: float = 0.0
    ended_by: EndedBy | None = None
    reward: float = 0.0
    last: Step | None = None
    fault: str = ""
    starved: bool = False
    left: Cause | None = None
    detail: str = ""
    spent: Spent = NOTHING
    exceeded: str = ""
    restored: Sequence[float] = ()

    def take(self, report: PlayReport) -> None:
        """Take in how the worker says that it went."""
        self.last, self.reward = report.last, report.reward
        self.spent, self.exceeded = report.spent, report.exceeded
        for reward in (*self.restored, *report.trace):
            self.steps += 1
            self.episode_return += reward
            self.watch.see(reward, report.last.reached)
        if report.last.phase is Phase.LAST:
            self.ended_by = report.last.ended_by
            if self.ended_by is EndedBy.FAULT:
                self.fault = "the backend ended the episode with a fault"

    def take_recording(self, recording: Recording) -> None:
        """Take in what is recorded, with rewards rounded to float32, of a worker that was lost."""
        self.steps = max(0, len(recording.steps) - 1)
        self.episode_return = sum(step.reward for step in recording.steps)
