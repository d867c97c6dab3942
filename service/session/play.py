"""Plays one attempt at an episode: agent, worker and recorder, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.outcome import EpisodeMonitor, OutcomeRules
from animalcat.envs.types import EndedBy, Phase, Step
from animalcat.envs.worker_client import WorkerClient, WorkerFault
from animalcat.service.model import Cause
from animalcat.service.recording import EpisodeRecorder
from animalcat.service.session.link import AgentLeftError, AgentLink, EpisodeOpening

BATCH: Final = 100
"""Actions that a worker is given at once; with a camera ten, since each brings an image."""

RECORDINGS: Final = "recordings"
"""Folder of the recordings in a data directory; one folder a session in it."""


@dataclass(slots=True)
class Course:
    """How an attempt went.

    Attributes:
        watch: What was seen on the way.
        steps: Decisions taken.
        episode_return: Sum of rewards.
        ended_by: Why it ended; None where the agent left.
        reward: Reward since the agent's last observation.
        last: The last step; None before the first.
        fault: What was wrong with the backend; empty where nothing was.
        left: Why the agent can play no further; None where it can.
    """

    watch: EpisodeMonitor
    steps: int = 0
    episode_return: float = 0.0
    ended_by: EndedBy | None = None
    reward: float = 0.0
    last: Step | None = None
    fault: str = ""
    left: Cause | None = None

    def take(self, steps: Sequence[Step]) -> None:
        """Add steps that were played, one at least."""
        rewards = [step.reward for step in steps]
        self.steps += len(steps)
        self.reward += sum(rewards)
        for step in steps:
            self.episode_return += step.reward  # one by one, as the recorder adds them
            x, _, z = step.observation.position.tolist()
            self.watch.see(step.reward, x, z)
        self.last = steps[-1]
        if self.last.phase is Phase.LAST:
            self.ended_by = self.last.ended_by
            if self.ended_by is EndedBy.FAULT:
                self.fault = "the backend ended the episode with a fault"


async def play(
    link: AgentLink,
    worker: WorkerClient,
    recorder: EpisodeRecorder,
    opening: EpisodeOpening,
    arena_yaml: str,
    seed: int,
    task: OutcomeRules,
) -> Course:
    """Play until the arena ends the episode, the backend fails, or the agent leaves.

    The recorder has every step, and is left open; the agent has not been told of the end.

    Args:
        link: The agent.
        worker: What plays the arena.
        recorder: Where every step goes.
        opening: What the agent is told first.
        arena_yaml: The arena, fixed.
        seed: Seed of the episode.
        task: What can be observed of it.
    """
    course = Course(EpisodeMonitor(task))
    try:
        await _play(course, link, worker, recorder, opening, arena_yaml, seed)
    except AgentLeftError as left:
        course.left = left.cause
    except (WorkerFault, ArenaError) as fault:
        course.fault = str(fault)
        course.ended_by = EndedBy.FAULT
    return course


async def _play(
    course: Course,
    link: AgentLink,
    worker: WorkerClient,
    recorder: EpisodeRecorder,
    opening: EpisodeOpening,
    arena_yaml: str,
    seed: int,
) -> None:
    batch = BATCH if worker.spec.camera is None else BATCH // 10
    step = await worker.load(arena_yaml, seed)
    course.last = step
    recorder.step(step, None)
    await link.begin(opening, step)
    while True:
        actions = await link.actions(course.steps)
        notes = link.take_notes()
        course.reward = 0.0
        for start in range(0, len(actions), batch):
            part = actions[start : start + batch]
            steps = await worker.step(part)
            course.take(steps)
            more = course.ended_by is None and start + batch < len(actions)
            try:
                if course.ended_by is None and not more:
                    await link.ask(course.steps, course.reward, steps[-1])
            finally:
                # While the agent thinks. The worker stops at the episode's end, so there may be
                # fewer steps than actions.
                for action, step in zip(part, steps, strict=False):
                    recorder.step(step, action, notes)
                    notes = []
            if course.ended_by is not None:
                return


def recording_path(data: Path, session: str, number: int, attempt: int) -> Path:
    """Where the recording of an attempt is, in a data directory."""
    return data / RECORDINGS / session / f"{number}-{attempt}.mcap"
