"""Agents with limits: any agent behind limits of what it sees and does, or with switches set."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from animalcat.envs.agents.limits.acting import (
    LEFT,
    RIGHT,
    ActionLimit,
    Delay,
    FollowsColor,
    GivesUp,
    Lapses,
    OneSide,
    Walk,
    check_color,
    limit_numbers,
)
from animalcat.envs.agents.limits.catalogue import COLORS, LAST_PLACE, SIDES, SWITCHES
from animalcat.envs.agents.limits.context import ContextAgent, Elsewhere, check_context
from animalcat.envs.agents.limits.seeing import (
    Resolution,
    SensorLimit,
    Sight,
    check_resolution,
    check_sight,
)
from animalcat.envs.answers import Actions, Noted, read_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from animalcat.envs.agents.base import Agent, EpisodeInfo
    from animalcat.envs.agents.limits.reference import Reference
    from animalcat.envs.answers import Answer
    from animalcat.envs.types import Observation, ObservationSpec

_FIELDS: Final = {
    "memory": "memory_seconds",
    "patience": "patience_s",
    "sight": "sight_m",
    "resolution": "resolution_degrees",
    "smallest": "smallest_m",
    "places": "places",
}
"""Limits that are numbers -> the setting that takes the number."""
_TAKEN: Final = {
    "no-permanence": "permanence",
    "no-search": "searches",
    "lava-blind": "fears_lava",
    "ramp-shy": "climbs",
    "platform-shy": "platforms",
}
"""Limits that act in a share of the episodes -> the setting that is then false."""


class LimitedAgent:
    """An agent behind limits of what it sees and does."""

    def __init__(
        self,
        agent: Agent,
        sensor_limits: Sequence[SensorLimit],
        action_limits: Sequence[ActionLimit],
    ) -> None:
        """Put limits before an agent.

        Args:
            agent: The agent.
            sensor_limits: Act on an observation one after the other.
            action_limits: Act on an action one after the other.
        """
        self.agent = agent
        self._sensor_limits, self._action_limits = tuple(sensor_limits), tuple(action_limits)
        self._looks = any(limit.looks for limit in self._action_limits)
        self._rest = deque[int]()

    def reset(self, info: EpisodeInfo) -> None:
        """Prepare for an episode.

        Raises:
            ValueError: The observation lacks what a limit acts on.
        """
        for part in (*self._sensor_limits, *self._action_limits):
            part.begin(info)
        self._rest.clear()
        self.agent.reset(info)

    def act(self, observation: Observation) -> Answer:
        """What is left of the agent's action, or of its several actions; its note stays.

        Where a limit goes by what is seen, several are handed out one at a time, and the agent is
        asked again when they are used up.

        Raises:
            ActionError: The agent's answer is no action.
        """
        if any(limit.over for limit in self._action_limits):
            return 0
        for limit in self._sensor_limits:
            observation = limit.see(observation)
        if self._rest:
            return self._delay_action(self._rest.popleft(), observation)
        wanted, notes = read_answer(self.agent.act(observation))
        if self._looks:
            self._rest.extend(wanted[1:])
            wanted = wanted[:1]
        done = [self._delay_action(action, observation) for action in wanted]
        left = done[0] if len(done) == 1 else Actions(done)
        return Noted(left, *notes) if notes else left

    def _delay_action(self, action: int, observation: Observation) -> int:
        for limit in self._action_limits:
            action = limit.do(action, observation)
        return action


class SwitchedAgent:
    """An agent with switches of its own, which some limits set anew in each episode."""

    def __init__(
        self, agent: Any, make_settings: Callable[..., object], reference: Reference
    ) -> None:
        """Limit an agent.

        Args:
            agent: The agent, which looks at its `settings` when it is reset.
            make_settings: Makes settings from those that are limited.
            reference: Which limits it has.
        """
        self.agent = agent
        self._make_settings = make_settings
        self._reference = reference

    def reset(self, info: EpisodeInfo) -> None:
        """Prepare for an episode."""
        self.agent.settings = self._make_settings(**settings_for(self._reference, info.seed))
        self.agent.reset(info)

    def act(self, observation: Observation) -> Answer:
        """What the agent does."""
        return self.agent.act(observation)


def settings_for(reference: Reference, seed: int) -> dict[str, object]:
    """The settings that the limits of a reference ask for in an episode.

    Args:
        reference: The reference.
        seed: Seed of the episode.
    """
    own = SWITCHES.get(reference.builtin, frozenset())
    settings: dict[str, object] = {}
    for name, value in reference.limits.items():
        if name not in own:
            continue
        if name in _FIELDS:
            settings[_FIELDS[name]] = value
        elif limit_numbers(name, seed).random() < reference.number(name, 0.0):
            settings |= {"side": name} if name in SIDES else {_TAKEN[name]: False}
    cue = reference.limits.get("follows")
    if cue == LAST_PLACE:
        settings |= {"permanence": False, "searches": False}
    elif cue in SIDES:
        settings |= {"side": cue}
    return settings


def limit_agent(agent: Agent, reference: Reference) -> Agent:
    """An agent with those limits of a reference that are possible with any agent.

    Observations are limited before the agent sees them. Its actions pass in this order: a colour
    that it follows, an apparatus that is not its own, turns to one side, random decisions, delay,
    standing still. The turn by which it looks round is limited too.

    Args:
        agent: The agent.
        reference: Which limits it has.
    """
    own = SWITCHES.get(reference.builtin, frozenset())
    has = {name: value for name, value in reference.limits.items() if name not in own}
    sensor_limits: list[SensorLimit] = []
    if "sight" in has:
        sensor_limits.append(Sight(reference.number("sight", 0.0)))
    if "resolution" in has:
        sensor_limits.append(Resolution(reference.number("resolution", 0.0)))
    if has.get("follows") in COLORS:
        agent = LimitedAgent(agent, (), (FollowsColor(str(has["follows"])),))
    context = None
    if "only-with" in has or "not-with" in has:
        agent = context = ContextAgent(
            agent,
            str(has.get("only-with", "")),
            str(has.get("not-with", "")),
            turn=LEFT if "left" in has else RIGHT,
            delay=reference.number("delay", 0.0),
        )
    action_limits: list[ActionLimit] = [
        OneSide(side, reference.number(side, 0.0)) for side in SIDES if side in has
    ]
    random = {name: reference.number(name, 0.0) for name in ("lapses", "tires", "learns", "days")}
    if random.keys() & has.keys():
        action_limits.append(Lapses(**random, seed=int(reference.number("seed", 0))))
    if "delay" in has:
        action_limits.append(Delay(reference.number("delay", 0.0)))
    if "path" in has:
        action_limits.append(Walk(reference.number("path", 0.0)))
    if "gives-up" in has:
        action_limits.append(GivesUp(reference.number("gives-up", 0.0)))
    if context is not None:
        action_limits.append(Elsewhere(context))
    return (
        LimitedAgent(agent, sensor_limits, action_limits)
        if sensor_limits or action_limits
        else agent
    )


def check_observation(reference: Reference, spec: ObservationSpec) -> None:
    """Check that the limits of a reference can act on a session's observations.

    Args:
        reference: The reference.
        spec: What its session shows.

    Raises:
        ValueError: One cannot.
    """
    own = SWITCHES.get(reference.builtin, frozenset())
    limits = reference.limits
    if "sight" in limits and "sight" not in own:
        check_sight(spec)
    if "resolution" in limits and "resolution" not in own:
        check_resolution(spec)
    if limits.get("follows") in COLORS:
        check_color(spec)
    for name in ("only-with", "not-with"):
        if name in limits:
            check_context(str(limits[name]), spec)
