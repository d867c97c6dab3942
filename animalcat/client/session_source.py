"""Lets code that was written for Animal-AI play a session, through the stand-in of a build."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from animalcat.client.remote_episodes import RemoteEpisodes, SessionOver, StepResult
from animalcat.envs.answers import MAX_ACTIONS
from animalcat.envs.mlagents.source import ScheduledStep, SourceFailedError, SourceOver
from animalcat.envs.types import Observation, Phase, Step
from animalcat.errors import AnimalcatError

if TYPE_CHECKING:
    from animalcat.arena_configs.model import ArenaConfig
    from animalcat.envs.mlagents.peer import MakeSource
    from animalcat.envs.types import ObservationSpec

logger = logging.getLogger(__name__)

SERVER: Final = "ANIMALCAT_SERVER"
"""Environment variable: host and port of the server."""
SESSION: Final = "ANIMALCAT_SESSION"
"""Environment variable: id of the session."""

SAME_AGENT: Final = "ANIMALCAT_SAME_AGENT"
"""Environment variable: 1 declares that this is the session's agent, whatever the process."""

_NOOPS: Final = bytes(MAX_ACTIONS)


class SessionSource:
    """The episodes of a session, as their agent is given them.

    Clients reset in their constructor and then once more. So a reset before the first decision of
    an episode gives its first observation again. After the end of an episode a reset goes on to the
    next, like the automatic restart. In mid-episode it gives the episode up: the agent stands still
    for the rest of it, and the outcome counts. The end of an episode is a step of its own, so that
    a client has seen the last one when there is nothing more to play.
    """

    def __init__(self, episodes: RemoteEpisodes) -> None:
        """Wait for the first episode here, because making a source may take longer than a reset.

        Args:
            episodes: The session's episodes; `close` closes them.

        Raises:
            SourceFailedError: The server fails.
            SourceOver: The session has no further episode.
        """
        self._episodes = episodes
        self._told = False
        self._first()

    def use(self, config: ArenaConfig) -> None:
        """Ignore the client's arenas, and say so once."""
        if not self._told:
            logger.info("the client's arenas are not played: the session chooses them")
        self._told = True

    def reset(self) -> ScheduledStep:
        """Go to the first observation of an episode in which nothing was decided yet."""
        if self._episodes.opening is not None and self._episodes.steps > 0:
            self._give_up()
        return self._first()

    def restart(self) -> ScheduledStep:
        """Go on to the next episode."""
        return self._first()

    def step(self, action: int) -> ScheduledStep:
        """Take one decision."""
        answer = self._act(bytes((action,)))
        if answer.fault:
            logger.warning("what plays arenas failed: the episode does not count")
        phase = Phase.LAST if answer.ended else Phase.MID
        # Why it ended is not for the agent to know.
        return ScheduledStep(Step(phase, answer.reward, None, answer.observation))

    def close(self) -> None:
        """Leave the session; an open episode is voided."""
        self._episodes.close()

    def _first(self) -> ScheduledStep:
        return ScheduledStep(Step(Phase.FIRST, 0.0, None, self._opening()))

    def _opening(self) -> Observation:
        if self._episodes.spent:
            name, most = self._episodes.welcome.session, self._episodes.welcome.max_episodes
            raise SourceOver(f"{name} has had its {most} episodes; its profile is being made")
        try:
            return (self._episodes.opening or self._episodes.begin()).observation
        except SessionOver as over:
            raise SourceOver(str(over)) from None
        except AnimalcatError as error:
            raise _failure(error) from error

    def _give_up(self) -> None:
        """Stand still until the episode is over."""
        opening, done = self._episodes.opening, self._episodes.steps
        assert opening is not None
        number = opening.info.episode
        if opening.info.time_budget_steps == 0:
            raise SourceFailedError(
                f"episode {number} was left at decision {done} and has no time limit: in a "
                "session episodes are played to their end"
            )
        logger.warning(
            "episode %d was left at decision %d: the agent stands still for the rest of it, "
            "and its outcome counts",
            number,
            done,
        )
        while not self._act(_NOOPS).ended:
            pass

    def _act(self, actions: bytes) -> StepResult:
        try:
            return self._episodes.act(actions)
        except AnimalcatError as error:
            raise _failure(error) from error


def source_maker(variables: Mapping[str, str] = os.environ) -> MakeSource | None:
    """What makes the source that environment variables ask for; None if they ask for none.

    Args:
        variables: The environment variables: both `SERVER` and `SESSION`, or neither.

    Raises:
        ValueError: One of the two is missing.
    """
    server, session = variables.get(SERVER, ""), variables.get(SESSION, "")
    if not server and not session:
        return None
    if not server:
        raise ValueError(f"{SESSION} is set and {SERVER} is not: give the server, HOST:PORT")
    if not session:
        raise ValueError(
            f"{SERVER} is set and {SESSION} is not: name the session, or take {SERVER} out of the "
            "environment to play the client's own arenas"
        )

    def make(spec: ObservationSpec, seed: int) -> SessionSource:
        try:
            episodes = RemoteEpisodes(
                server,
                session,
                observation_spec=spec,
                same_agent=variables.get(SAME_AGENT, "") not in ("", "0"),
            )
        except AnimalcatError as error:
            if error.code == "SESSION_OVER":
                raise SourceOver(str(error)) from None
            raise _failure(error) from error
        try:
            logger.info("playing %s of %s", episodes.welcome.session, server)
            return SessionSource(episodes)
        except BaseException:
            episodes.close()
            raise

    return make


def _failure(error: AnimalcatError) -> SourceFailedError:
    unreachable = error.code in ("UNAVAILABLE", "SHUTTING_DOWN")
    return SourceFailedError(str(error), unreachable=unreachable)
