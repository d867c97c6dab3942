"""A Gymnasium environment whose episodes a server chooses: the agent keeps its usual loop."""

from __future__ import annotations

import uuid
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import gymnasium

from animalcat.client import SessionLike, connect
from animalcat.envs.spaces import (
    GymAction,
    GymObservation,
    action_space,
    choose_sensors,
    observation_space,
    to_action,
    to_gym,
)
from animalcat.errors import AnimalcatError
from animalcat.evaluation import EvaluationStream
from animalcat.v1 import gateway_pb2, types_pb2

_T = TypeVar("_T")


class SessionOver(Exception):  # noqa: N818  no error: the session has what it wanted
    """The session has ended: `reset` has no further episode."""


class RemoteEnv(gymnasium.Env[GymObservation, GymAction]):
    """Plays one session of a server.

    `reset` starts the episode that the service has chosen, and raises `SessionOver` when there is
    none; `session_over` says so before:

        env = animalcat.RemoteEnv("localhost:50051", session="s1")
        while not env.session_over:
            observation, info = env.reset()
            ended = False
            while not ended:
                observation, reward, terminated, truncated, info = env.step(policy(observation))
                ended = terminated or truncated

    An episode is played to its end: `reset` before that is an error, except straight after
    another `reset`, which gives the same first observation again. Leaving in mid-episode (`close`)
    voids it. Spaces are those of `animalcat/Arena-v0`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  Gymnasium's own declaration

    def __init__(
        self,
        address: str,
        session: SessionLike = "",
        *,
        agent: str | None = None,
        sensors: Sequence[str] | None = None,
        flat_actions: bool = False,
    ) -> None:
        """Connect and take the session's seat.

        Args:
            address: Of the server, "host:port".
            session: Which; may be empty where exactly one session waits for an agent.
            agent: Name of the agent; by default the one that the session is for.
            sensors: Which sensors to show; None for all of the session's. With one, observations
                are its plain array.
            flat_actions: Discrete(9) instead of MultiDiscrete([3, 3]).

        Raises:
            AnimalcatError: No server answers, or it refuses; the session plays several episodes
                at once.
            ValueError: The session has no such sensor.
        """
        self._client = connect(address)
        try:
            self._stream = EvaluationStream(self._client.connection.channel, uuid.uuid4().hex)
            target = self._client.find_session(session)
            name = target.spec.agent if agent is None else agent
            self.welcome = self._run(self._stream.open(target.name, name, None))
            if self.welcome.slots != 1:
                raise AnimalcatError(
                    f"the session plays {self.welcome.slots} episodes at once; "
                    "a Gymnasium environment plays one"
                )
            spec = self.welcome.observation_spec
            self._sensors = choose_sensors(spec, sensors)
        except BaseException:
            self._client.close()
            raise
        self.observation_space = observation_space(spec, self._sensors)
        self.action_space = action_space(flat=flat_actions)
        self._frame: gateway_pb2.EvaluateResponse | None = None
        self._start: gateway_pb2.EpisodeStart | None = None
        self._steps = 0

    @property
    def session_over(self) -> bool:
        """Whether no episode will follow. Between episodes it waits for the service to decide."""
        return self._start is None and self._next_frame().HasField("session_end")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[GymObservation, dict[str, Any]]:
        """Start the next episode that the service has chosen.

        Args:
            seed: Seeds `np_random` alone: the service chooses the episode.
            options: Ignored.

        Returns:
            The first observation, and `number` (of the episode), `agent_seed` (for the agent's own
            randomness) and `time_budget_steps` (decisions; 0: no limit).

        Raises:
            SessionOver: There is no further episode.
            AnimalcatError: The episode is not over, or the server fails.
        """
        super().reset(seed=seed)
        if self._start is None:
            frame = self._next_frame()
            if frame.HasField("session_end"):
                over = frame.session_end
                raise SessionOver(
                    f"{over.session} is {over.state} after {over.episodes} episodes that counted"
                )
            self._frame = None
            self._start = frame.episode_start
            self._steps = 0
        elif self._steps > 0:
            raise AnimalcatError(
                f"episode {self._start.episode} is not over: step until terminated or truncated; "
                "a service's episodes are played to their end"
            )
        info = self._stream.episode_info(self._start)
        return self._seen(self._start.observation), {
            "number": info.episode,
            "agent_seed": info.seed,
            "time_budget_steps": info.time_budget_steps,
        }

    def step(self, action: GymAction) -> tuple[GymObservation, float, bool, bool, dict[str, Any]]:
        """Take one decision.

        Returns:
            As Gymnasium has it; the info holds the episode's `number`, and at the end `fault`:
            the backend failed, and the episode does not count.

        Raises:
            ValueError: The action is not in the action space.
            AnimalcatError: No episode is open, or the server fails.
        """
        if self._start is None:
            raise AnimalcatError("no episode is open: call reset() first")
        number = to_action(action)
        frame = self._run(self._turn(number))
        info: dict[str, Any] = {"number": self._start.episode}
        if frame.HasField("ask"):
            self._steps = frame.ask.step
            return self._seen(frame.ask.observation), frame.ask.reward, False, False, info
        end = frame.episode_end
        self._start = None
        truncated = end.truncated or end.fault
        info["fault"] = end.fault
        # A backend that failed has nothing more to show.
        seen = self._seen(end.observation) if end.HasField("observation") else self._last
        return seen, end.reward, not truncated, truncated, info

    def close(self) -> None:
        """Leave the session; an open episode is voided. Calling it twice is fine."""
        self._client.close()

    async def _turn(self, action: int) -> gateway_pb2.EvaluateResponse:
        await self._stream.act(0, self._steps, bytes((action,)))
        return await self._stream.receive()

    def _next_frame(self) -> gateway_pb2.EvaluateResponse:
        """What follows an episode: the next one's start, or the session's end."""
        if self._frame is None:
            self._frame = self._run(self._stream.receive())
        return self._frame

    def _seen(self, message: types_pb2.Observation) -> GymObservation:
        self._last = to_gym(self._stream.observation(message), self._sensors)
        return self._last

    def _run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return self._client.connection.run(coroutine)
