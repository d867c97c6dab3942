"""Limits of what an agent does."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol
from zlib import crc32

import numpy as np
import numpy.typing as npt

from animalcat.envs.types import ACTIONS, PHYSICS_STEP
from animalcat.portable.products import product

if TYPE_CHECKING:
    from animalcat.envs.agents.base import EpisodeInfo
    from animalcat.envs.types import Observation, ObservationSpec

EPISODES_OF_A_DAY: Final = 10
STOPPING: Final = 0.22
"""Metres that the agent rolls on for each m/s when it stops, with the decision that it takes."""
_SPENT: Final = 0.05
"""Metres that it does not get up for any more."""
RIGHT: Final = 1
LEFT: Final = 2
_FORWARD: Final = 3


class ActionLimit(Protocol):
    """A limit on what an agent does: it may replace each action by another.

    Attributes:
        over: Whether every action of the rest of the episode becomes none.
        looks: Whether it depends on what the agent saw last, so that several actions of one
            answer have to be taken one at a time.
    """

    over: bool
    looks: bool

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode.

        Raises:
            ValueError: The observation lacks what the limit needs.
        """
        ...

    def do(self, action: int, observation: Observation) -> int:
        """What becomes of an action.

        Args:
            action: What the agent wants to do.
            observation: What it saw last.
        """
        ...


def limit_numbers(name: str, *seeds: int) -> np.random.Generator:
    """The random numbers of a limit, which no other limit draws from."""
    return np.random.default_rng([crc32(name.encode()), *seeds])


def decisions_of(delay: float, info: EpisodeInfo) -> int:
    """A delay in whole decisions, at least one.

    Args:
        delay: The delay in seconds.
        info: The episode.
    """
    period = info.observation_spec.decision_period * PHYSICS_STEP
    return max(1, round(delay / period))


class Lapses:
    """Makes a share of the decisions random; the share may depend on the episode."""

    over: bool = False
    looks: bool = False

    def __init__(
        self,
        lapses: float = 0.0,
        tires: float = 0.0,
        learns: float = 0.0,
        days: float = 0.0,
        seed: int = 0,
    ) -> None:
        """Set the limit.

        Args:
            lapses: Share of decisions that are random in every episode.
            tires: Episodes after which all are, rising from none; 0: it does not tire.
            learns: Episodes after which none are, falling from all; 0: it does not learn.
            days: Share of days on which all are.
            seed: Seed of which days these are.
        """
        self._lapses, self._tires, self._learns, self._days = lapses, tires, learns, days
        self._seed = seed

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode."""
        self._random = limit_numbers("lapses", info.seed)
        kept = 1.0 - self._lapses
        if self._tires:
            kept *= 1.0 - min(1.0, info.episode / self._tires)
        if self._learns:
            kept *= min(1.0, info.episode / self._learns)
        day = info.episode // EPISODES_OF_A_DAY
        if limit_numbers("days", self._seed, day).random() < self._days:
            kept = 0.0
        self.share = 1.0 - kept

    def do(self, action: int, observation: Observation) -> int:
        """The action, or a random one."""
        lapses = self._random.random() < self.share
        other = int(self._random.integers(ACTIONS))
        return other if lapses else action


class OneSide:
    """In a share of the episodes there are no turns to one side."""

    over: bool = False
    looks: bool = False

    def __init__(self, side: str, share: float) -> None:
        """Set the limit.

        Args:
            side: The side to which it can turn: `left` or `right`.
            share: Share of the episodes.
        """
        self._side, self._share = side, share
        self._lost = RIGHT if side == "left" else LEFT

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode."""
        self._now = limit_numbers(self._side, info.seed).random() < self._share

    def do(self, action: int, observation: Observation) -> int:
        """The action, without a turn to the other side."""
        return action - self._lost if self._now and action % 3 == self._lost else action


class Delay:
    """Actions come later; until the first of them it does nothing."""

    over: bool = False
    looks: bool = False

    def __init__(self, seconds: float) -> None:
        """Set the limit.

        Args:
            seconds: The delay, rounded to whole decisions, at least one.
        """
        self._seconds = seconds

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode."""
        self._waiting = deque([0] * decisions_of(self._seconds, info))

    def do(self, action: int, observation: Observation) -> int:
        """The action of some time ago."""
        self._waiting.append(action)
        return self._waiting.popleft()


class GivesUp:
    """It stands still after some seconds of an episode."""

    over: bool = False
    looks: bool = False

    def __init__(self, seconds: float) -> None:
        """Set the limit.

        Args:
            seconds: Seconds after which it stands still.
        """
        self._seconds = seconds

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode."""
        self._period = info.observation_spec.decision_period * PHYSICS_STEP
        self._left = self._seconds
        self.over = False

    def do(self, action: int, observation: Observation) -> int:
        """The action, or none."""
        self._left -= self._period
        self.over = self._left <= -1e-9
        return 0 if self.over else action


class Walk:
    """It stands still after some metres of an episode."""

    over: bool = False
    looks: bool = True

    def __init__(self, metres: float) -> None:
        """Set the limit.

        Args:
            metres: Horizontal metres of its way after which it stands still. It brakes in time.
        """
        self._metres = metres

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode."""
        self._gone, self.over = 0.0, False
        self._last: npt.NDArray[np.float32] | None = None

    def do(self, action: int, observation: Observation) -> int:
        """The action, or none."""
        here = observation.position
        if self._last is not None:
            self._gone += math.hypot(here[0] - self._last[0], here[2] - self._last[2])
        self._last = here
        self.over = self._gone >= self._metres - _SPENT
        rolls = STOPPING * float(np.hypot(observation.velocity[0], observation.velocity[2]))
        return action if self._gone + rolls < self._metres else 0


class FollowsColor:
    """It steers to the largest patch of a colour while the camera shows one."""

    over: bool = False
    looks: bool = True

    LEAST: Final = 0.002
    """Share of the picture from which a patch counts."""

    def __init__(self, color: str) -> None:
        """Set the cue.

        Args:
            color: red, green, blue, yellow or pink.
        """
        self._color = color

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode.

        Raises:
            ValueError: The observation has no camera in colour.
        """
        check_color(info.observation_spec)

    def do(self, action: int, observation: Observation) -> int:
        """The action, or one toward the colour."""
        assert observation.camera is not None
        met = _has_color(observation.camera, self._color)
        if met.mean() < self.LEAST:
            return action
        columns = met.sum(axis=0)
        middle = float(product(columns, np.arange(len(columns)))) / float(columns.sum())
        off = (middle + 0.5) / len(columns) - 0.5
        turn = 0 if abs(off) < 0.05 else RIGHT if off > 0 else LEFT
        return (_FORWARD if abs(off) < 0.2 else 0) + turn


def check_color(spec: ObservationSpec) -> None:
    """Check that an agent can follow a colour.

    Raises:
        ValueError: It cannot.
    """
    if spec.camera is None or spec.camera.grayscale:
        raise ValueError(
            "following a colour needs a camera in colour, and the observation has none: turn it "
            "on with --camera"
        )


def _has_color(image: npt.NDArray[np.uint8], color: str) -> npt.NDArray[np.bool_]:
    """Which pixels are of a colour: its channels are half as bright again as the others."""
    red, green, blue = np.moveaxis(image.astype(np.float64), 2, 0) + 8.0
    match color:
        case "red":
            return red > 1.5 * np.maximum(green, blue)
        case "green":
            return green > 1.5 * np.maximum(red, blue)
        case "blue":
            return blue > 1.5 * np.maximum(red, green)
        case "yellow":
            return np.minimum(red, green) > 1.5 * blue
        case _:
            return np.minimum(red, blue) > 1.5 * green
