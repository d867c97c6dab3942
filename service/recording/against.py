"""Plays a recorded episode on another backend, and says in words what came out otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from animalcat.arena_configs.builds import build_named
from animalcat.arena_configs.outcome import success
from animalcat.arena_configs.sequence import pass_mark
from animalcat.envs.backends import make_environment
from animalcat.envs.types import PHYSICS_STEP, EndedBy, Step
from animalcat.service.recording.about import NOTABLE
from animalcat.service.recording.reader import Recording, RecordingError
from animalcat.service.recording.verify import SIMULATOR, Make, load_arena, replay_episode
from animalcat.wire.steps import ended_by_from_proto, spec_from_proto

NEAR: Final = 0.01
"""Metres within which two places are the same to a reader."""
_SHOWN: Final = 5
"""Most rewards of each side that are listed."""


class Reward(NamedTuple):
    """A reward that is more than the small loss of every step: when, and how much."""

    step: int
    value: float


class EpisodeCourse(NamedTuple):
    """How an episode went.

    Attributes:
        steps: Decisions taken.
        episode_return: Sum of rewards.
        ended_by: Why it ended; None if it did not.
        passed: Whether its return is beyond the pass mark.
        rewards: Rewards that a reader would name.
    """

    steps: int
    episode_return: float
    ended_by: EndedBy | None
    passed: bool
    rewards: tuple[Reward, ...]


@dataclass(frozen=True, slots=True)
class Against:
    """A recorded episode beside the same actions on another backend.

    Attributes:
        backend: What played them.
        seconds: Simulation time of one decision.
        recorded: How the recorded episode went.
        played: How it went there.
        equal: Whether every place and every reward is the same to the bit.
        parted: First step at which the agent's places are more than `NEAR` apart; None if never.
        metres: The greatest distance between places at the same step, and that step.
        last_metres: The distance at the last step that both have.
    """

    backend: str
    seconds: float
    recorded: EpisodeCourse
    played: EpisodeCourse
    equal: bool
    parted: int | None
    metres: tuple[float, int]
    last_metres: float

    def sentences(self) -> list[str]:
        """What differs in the course, in the rewards and in the end, in words."""
        if self.equal:
            return [
                f"On {self.backend} every place and every reward of {self.recorded.steps} "
                f"decisions is the same to the bit. It {_end(self.recorded)}."
            ]
        return [self._course(), *self._rewards(), *self._ends()]

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "backend": self.backend,
            "equal": self.equal,
            "parted": self.parted,
            "metres": self.metres[0],
            "farthest": self.metres[1],
            "last_metres": self.last_metres,
            "recorded": _as_dict(self.recorded),
            "played": _as_dict(self.played),
            "sentences": self.sentences(),
        }

    def _course(self) -> str:
        far, when = self.metres
        if self.parted is None:
            return (
                f"On {self.backend} the agent takes the same course, to within {_length(far)}."
                if far
                else f"On {self.backend} the agent takes the same course to the bit."
            )
        return (
            f"On {self.backend} the agent takes another course from decision {self.parted} "
            f"({self._time(self.parted)}) on. The two are at most {_length(far)} apart, at "
            f"decision {when}, and {_length(self.last_metres)} at the last one that both have."
        )

    def _rewards(self) -> list[str]:
        here, there = self.recorded.rewards, self.played.rewards
        if [(step, round(value, 3)) for step, value in here] == [
            (step, round(value, 3)) for step, value in there
        ]:
            if not here:
                return [f"Neither has a reward beyond {NOTABLE:g} a decision."]
            return [f"Rewards come at the same decisions: {self._join_rewards(here)}."]
        return [
            f"Rewards were {self._join_rewards(here)}; there they are {self._join_rewards(there)}."
        ]

    def _ends(self) -> list[str]:
        here, there = self.recorded, self.played
        if _end(here) == _end(there):
            return [f"Either {_end(here)}."]
        words = ("a failure", "a success")
        outcome = (
            f"Either is {words[here.passed]}."
            if here.passed == there.passed
            else f"So {words[here.passed]} becomes {words[there.passed]}."
        )
        ends = f"It {_end(here)}; there it {_end(there)}."
        return [ends, outcome] if here.ended_by and there.ended_by else [ends]

    def _join_rewards(self, rewards: Sequence[Reward]) -> str:
        if not rewards:
            return "none"
        said = [f"{reward.value:+.3g} at {self._time(reward.step)}" for reward in rewards[:_SHOWN]]
        more = f" and {len(rewards) - _SHOWN} more" if len(rewards) > _SHOWN else ""
        return ", ".join(said) + more

    def _time(self, step: int) -> str:
        return f"{step * self.seconds:.2f} s"


def compare(recording: Recording, backend: str, make: Make | None = None) -> Against:
    """Play the recorded actions on another backend.

    Args:
        recording: The episode; a cut one is compared as far as it goes.
        backend: "sim" as it is here, "sim:BUILD" for the simulator as a build of Animal-AI such as
            3.1.3, "unity:auto" or "unity:PATH".
        make: Makes the environment instead.

    Raises:
        RecordingError: There is no step.
        ArenaError: The recorded arena cannot be built there.
        ValueError: There is no such backend or build.
        ImportError: The backend needs a package that is not installed.
    """
    if not recording.steps:
        raise RecordingError("no step is recorded, so there is nothing to compare")
    kind, _, name = backend.partition(":")
    chosen = backend
    if kind == SIMULATOR and name:
        chosen, make = SIMULATOR, partial(make_environment, build=build_named(name))
    played = list(replay_episode(recording, make or make_environment, chosen, camera=False))
    rewards = [float(step.reward) for step in recording.steps]
    places = np.array([step.observation.position[:] for step in recording.steps], np.float32)
    both = min(len(places), len(played))
    there = np.array([step.observation.position for step in played], np.float32)
    gaps = np.linalg.norm(places[:both] - there[:both], axis=1)
    apart = np.flatnonzero(gaps > NEAR)
    farthest = int(np.argmax(gaps))
    last = ended_by_from_proto(recording.steps[-1].ended_by)
    mark = pass_mark(load_arena(recording.header))
    return Against(
        backend=backend,
        seconds=spec_from_proto(recording.header.observation_spec).decision_period * PHYSICS_STEP,
        recorded=_course(rewards, last, mark),
        played=_course([step.reward for step in played], played[-1].ended_by, mark),
        equal=_same(recording, played),
        parted=int(apart[0]) if len(apart) else None,
        metres=(float(gaps[farthest]), farthest),
        last_metres=float(gaps[-1]),
    )


def _same(recording: Recording, played: Sequence[Step]) -> bool:
    """Whether places, rewards and ends are equal to the bit."""
    return len(played) == len(recording.steps) and all(
        np.array_equal(
            np.array(recorded.observation.position, np.float32), again.observation.position
        )
        and np.float32(recorded.reward) == np.float32(again.reward)
        and ended_by_from_proto(recorded.ended_by) is again.ended_by
        for recorded, again in zip(recording.steps, played, strict=True)
    )


def _course(rewards: Sequence[float], ended_by: EndedBy | None, mark: float) -> EpisodeCourse:
    total = sum(rewards)
    return EpisodeCourse(
        len(rewards) - 1,
        total,
        ended_by,
        success(total, mark),
        tuple(Reward(k, value) for k, value in enumerate(rewards) if abs(value) > NOTABLE),
    )


def _as_dict(course: EpisodeCourse) -> dict[str, Any]:
    return {
        "steps": course.steps,
        "return": course.episode_return,
        "ended_by": course.ended_by and course.ended_by.name.lower(),
        "passed": course.passed,
        "rewards": [reward._asdict() for reward in course.rewards],
    }


def _end(course: EpisodeCourse) -> str:
    how = "ended by " + course.ended_by.name.lower().replace("_", " ") if course.ended_by else ""
    return (
        f"{how or 'had not ended'} after {course.steps} decisions with return "
        f"{course.episode_return:.4g}"
    )


def _length(metres: float) -> str:
    return f"{metres:.3g} m" if metres >= NEAR else f"{1000 * metres:.2g} mm"
