"""A recorded episode: how it began, its steps, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.answers import Note
from animalcat.envs.types import EndedBy, Observation, ObservationSpec
from animalcat.text import names
from animalcat.values.attempts import Outcome
from animalcat.values.decisions import Decision


@dataclass(frozen=True, slots=True)
class EpisodeHeader:
    """How a recorded episode began: all that is needed to play it again.

    Attributes:
        session: Id of the session.
        number: Number within the session, from 0.
        attempt: Which try at this number, from 0.
        instance: Name of the instance.
        arena_yaml: The arena with every value fixed.
        seed: Of the episode.
        observation_spec: What the agent saw.
        backend: What played it.
        versions: Versions of what could change the numbers, by package.
        decision: Why the instance was chosen.
        agent: Name of the agent.
        pixels: Whether steps hold camera images.
        protocol: Number of the protocol that the recording was written by; 0: before numbers.
        places: Places of which the first that the agent is in is its choice.
    """

    session: str
    number: int
    attempt: int
    instance: str
    arena_yaml: str
    seed: int
    observation_spec: ObservationSpec
    backend: str
    versions: Mapping[str, str]
    decision: Decision
    agent: str
    pixels: bool
    protocol: int = 0
    places: tuple[MarkedPlace, ...] = ()

    @property
    def name(self) -> str:
        """Resource name, "sessions/{session}/episodes/{number}-{attempt}"."""
        return names.episode_name(self.session, self.number, self.attempt)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedStep:
    """One decision of a recorded episode, and what it led to.

    Attributes:
        step: Number of decisions taken so far; step 0 holds the first observation.
        action: 3 x move + turn; None in step 0.
        reward: Since the step before.
        observation: What the agent perceived; without an image unless the header says `pixels`.
        ended_by: Why the episode ended; None unless this is the last step.
        camera_digest: Digest of the camera image (BLAKE2b, 16 bytes); empty without a camera.
        notes: What the agent remarked since the step before.
    """

    step: int
    action: int | None
    reward: float
    observation: Observation
    ended_by: EndedBy | None
    camera_digest: bytes
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class EpisodeFooter:
    """How a recorded episode ended.

    Attributes:
        outcome: What became of it.
        episode_return: Sum of rewards.
        steps: Decisions taken.
        ended_by: Why it ended.
        outcomes: What was observed, by source, as in `Episode`.
    """

    outcome: Outcome | None
    episode_return: float
    steps: int
    ended_by: EndedBy | None
    outcomes: Mapping[str, float]
