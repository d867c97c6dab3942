"""Agents that act by the apparatus: they play only where some kind of object is, or is not."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

from animalcat.arena_configs.tags import LOGGED_TAGS, RAY_TAGS, UNLISTED
from animalcat.envs.agents.limits.acting import RIGHT, decisions_of
from animalcat.envs.rays import Rays
from animalcat.envs.types import STATE_COLUMNS

if TYPE_CHECKING:
    from animalcat.envs.agents.base import Agent, EpisodeInfo
    from animalcat.envs.answers import Answer
    from animalcat.envs.types import Observation, ObservationSpec

TAGS: Final = {
    "wall": ("Immovable",),
    "block": ("Movable", "HollowObj"),
    "ramp": ("Ramp",),
    "lava": ("DeathZone",),
    "hot-zone": ("HotZone",),
    "bad-goal": ("badGoal", "badGoalMulti"),
    "button": ("PillarButton",),
    "spawner": ("GoalSpawner",),
    "decoy": ("DecoyGoal", "DecoyGoalBounce"),
}
"""Kind of object -> its tags."""

# Here because these agents run on the base install, which lacks what `envs.state` needs; tests
# compare them.
TAG_COLUMN: Final = 2
"""Column of a state that holds the tag."""
SHAPE_COLUMN: Final = 1
"""Column of a state that holds the shape."""
WEDGE: Final = 2
"""The shape of ramps, which alone tells them in builds where they have the tag of walls."""
_DEGREES_PER_STEP: Final = 2.0

assert TAG_COLUMN < STATE_COLUMNS


class ContextAgent:
    """An agent that stands still where the apparatus is not its own.

    It knows what is there from the state, if it is shown that. Else it turns round once and looks
    with its rays, before the agent within begins. Rays tell ramps from walls in some builds only.
    While it is held at the start it cannot turn. The first fall of its health tells it that it may
    move. Where time is not limited, health does not fall, and it takes that for granted.

    Attributes:
        elsewhere: Whether the apparatus is not its own, as far as it has found out.
    """

    elsewhere: bool = False

    def __init__(
        self, agent: Agent, only_with: str, not_with: str, *, turn: int = RIGHT, delay: float = 0.0
    ) -> None:
        """Limit an agent.

        Args:
            agent: The agent.
            only_with: Kind of object that must be there; empty for none.
            not_with: Kind of object that must not be there; empty for none.
            turn: The action that turns it round.
            delay: Seconds by which its actions come later.
        """
        self.agent = agent
        self._only_with, self._not_with = only_with, not_with
        self._turn, self._delay = turn, delay

    def reset(self, info: EpisodeInfo) -> None:
        """Prepare for an episode.

        Raises:
            ValueError: The observation does not show such objects.
        """
        spec = info.observation_spec
        for kind in (self._only_with, self._not_with):
            check_context(kind, spec)
        self._rays = spec.rays
        turn = _DEGREES_PER_STEP * spec.decision_period
        self._turns = 0 if spec.privileged else math.ceil(360.0 / turn)
        late = decisions_of(self._delay, info) if self._delay else 0
        self._underway = deque([False] * late)
        self._held = info.time_budget_steps > 0
        self._health: float | None = None
        self._met: set[str | None] = set()
        self.elsewhere = False
        self.agent.reset(info)

    def act(self, observation: Observation) -> Answer:
        """Look round; then do what the agent does, or nothing."""
        if observation.state is not None:
            tags = observation.state[:, TAG_COLUMN].astype(int)
            tags[observation.state[:, SHAPE_COLUMN] == WEDGE] = RAY_TAGS.index("Ramp")
            self._met |= {LOGGED_TAGS[tag] for tag in tags.tolist() if tag != UNLISTED}
        elif observation.rays is not None and self._turns > 0:
            self._met |= {ray.kind for ray in Rays(observation.rays, self._rays)}
            self._count(observation.health)
            if self._turns > 0:
                turns = self._held or sum(self._underway) < self._turns
                self._underway.append(turns)
                return self._turn if turns else 0
        wrong = self._only_with and not self._met.intersection(TAGS[self._only_with])
        wrong = wrong or (self._not_with and self._met.intersection(TAGS[self._not_with]))
        self.elsewhere = bool(wrong)
        return 0 if wrong else self.agent.act(observation)

    def _count(self, health: float) -> None:
        """Count the turn of the decision before, if it was one and it could turn."""
        if self._health is not None:
            self._held = self._held and health >= self._health
            turned = self._underway.popleft()
            self._turns -= turned and not self._held
        self._health = health


class Elsewhere:
    """It stands still where the apparatus is not its own, whatever other limits would do there."""

    over: bool = False
    looks: bool = False

    def __init__(self, agent: ContextAgent) -> None:
        """Set the limit.

        Args:
            agent: The agent that knows where it is.
        """
        self._agent = agent

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode."""

    def do(self, action: int, observation: Observation) -> int:
        """The action, or none."""
        return 0 if self._agent.elsewhere else action


def check_context(kind: str, spec: ObservationSpec) -> None:
    """Check that an agent can tell whether a kind of object is there.

    Args:
        kind: The kind; empty for none.
        spec: What the agent is shown.

    Raises:
        ValueError: It cannot.
    """
    if not kind or spec.privileged:
        return
    if spec.rays is None:
        raise ValueError(f"acting by whether there is a {kind} needs rays, and there are none")
    if not set(TAGS[kind]).intersection(spec.rays.columns):
        raise ValueError(
            f"acting by whether there is a {kind} needs rays that tell it: these have "
            f"{spec.rays.tags} tags, and it is not among them"
        )
