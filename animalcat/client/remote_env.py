"""A Gymnasium environment whose episodes a server chooses: the agent keeps its usual loop."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium

from animalcat.client.async_client import SessionLike
from animalcat.client.evaluation import Welcome
from animalcat.client.remote_episodes import RemoteEpisodes
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.answers import Answer, Note, read_answer
from animalcat.envs.spaces import (
    GymObservation,
    action_space,
    choose_sensors,
    observation_space,
    read_pair,
    to_gym,
)
from animalcat.envs.types import Observation
from animalcat.errors import AnimalcatError


class RemoteEnv(gymnasium.Env[GymObservation, Answer]):
    """Play one session of a server.

    `reset` starts the episode that the service has chosen, and raises `SessionOver` when there is
    none. `session_over` says that beforehand:

        env = animalcat.RemoteEnv("localhost:50051", session="s1")
        while not env.session_over:
            observation, info = env.reset()
            ended = False
            while not ended:
                observation, reward, terminated, truncated, info = env.step(policy(observation))
                ended = terminated or truncated

    `reset` in mid-episode is an error, except straight after another `reset`: then it returns the
    same first observation again. `close` in mid-episode makes the episode void. The spaces are
    those of `animalcat/Arena-v0`.
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
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        fingerprint: AgentFingerprint | None = None,
        same_agent: bool = False,
    ) -> None:
        """Connect as the agent of a session.

        Args:
            address: The server's address, "host:port".
            session: The session; may be left empty if exactly one waits for an agent.
            agent: Name of the agent; by default the one that the session is for.
            sensors: The sensors to show; None for all of the session's. Observations of one sensor
                are a plain array.
            flat_actions: Whether actions are Discrete(9) instead of MultiDiscrete([3, 3]).
            token: The access token; see `connect`.
            ca: How to verify the server; see `connect`.
            fingerprint: What identifies the agent, see `AgentFingerprint.declared`. None: unknown;
                then `same_agent` continues a session that has episodes, and nothing else does.
            same_agent: Whether to declare that this is the session's agent even if its fingerprint
                differs; the profile then says so.

        Raises:
            AnimalcatError: No server answers, or it refuses; the session plays several episodes
                at once.
            ValueError: The session has no such sensor.
        """
        self._episodes = RemoteEpisodes(
            address,
            session,
            agent=agent,
            token=token,
            ca=ca,
            fingerprint=fingerprint,
            same_agent=same_agent,
        )
        spec = self.welcome.observation_spec
        try:
            self._sensors = choose_sensors(spec, sensors)
        except ValueError:
            self.close()
            raise
        self.observation_space = observation_space(spec, self._sensors)
        self.action_space = action_space(flat=flat_actions)

    @property
    def welcome(self) -> Welcome:
        """What the service said before the first episode."""
        return self._episodes.welcome

    @property
    def session_over(self) -> bool:
        """Whether no episode will follow. Between episodes this waits until the service decides."""
        return self._episodes.over

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[GymObservation, dict[str, Any]]:
        """Start the next episode that the service has chosen.

        Args:
            seed: Seed of `np_random` alone; the service chooses the episode.
            options: Ignored.

        Returns:
            The first observation, and `number` (of the episode), `agent_seed` (for the agent's own
            randomness) and `time_budget_steps` (decisions; 0: no limit).

        Raises:
            SessionOver: There is no further episode.
            AnimalcatError: The episode is not over, or the server fails.
        """
        super().reset(seed=seed)
        opening = self._episodes.opening or self._episodes.begin()
        info, observation = opening
        if self._episodes.steps > 0:
            raise AnimalcatError(
                f"episode {info.episode} is not over: step until terminated or truncated; "
                "a service's episodes are played to their end"
            )
        return self._to_observation(observation), {
            "number": info.episode,
            "agent_seed": info.seed,
            "time_budget_steps": info.time_budget_steps,
        }

    def step(self, action: Answer) -> tuple[GymObservation, float, bool, bool, dict[str, Any]]:
        """Take one decision, or several one after the other, of which the reward is the sum.

        Args:
            action: Any form of action that agents may answer with (see `animalcat.envs.answers`);
                a note on it goes into the recording.

        Returns:
            As Gymnasium has it; the info holds the episode's `number`, and at the end `fault`:
            the backend failed, and the episode does not count; and `cause`: "out_of_time" or
            "out_of_tokens" where the agent spent more than it may, else empty.

        Raises:
            ValueError: It is no action; the text shows it, and the right forms.
            AnimalcatError: No episode is open, or the server fails.
        """
        opening = self._episodes.opening
        if opening is None:
            raise AnimalcatError("no episode is open: call reset() first")
        read = read_answer(read_pair(action, self.action_space))
        for note in read.notes:
            self._episodes.note(note)
        answer = self._episodes.act(read.actions)
        info: dict[str, Any] = {"number": opening.info.episode}
        if answer.ended:
            info["fault"], info["cause"] = answer.fault, answer.cause
        truncated = answer.truncated or answer.fault
        terminated = answer.ended and not truncated
        return self._to_observation(answer.observation), answer.reward, terminated, truncated, info

    def note(
        self,
        text: str = "",
        *,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        cost: float | None = None,
        currency: str = "",
    ) -> None:
        """Make a remark about the next step, and say what that step cost.

        It goes into the recording with the next `step`.

        Args:
            text: The remark, at most 4,096 bytes.
            tokens_in: Tokens that a language model was given for the step.
            tokens_out: Tokens that it gave.
            cost: What these tokens cost, in the currency.
            currency: Three letters of ISO 4217, such as "EUR"; goes with a cost.

        Raises:
            AnimalcatError: No episode is open.
        """
        if self._episodes.opening is None:
            raise AnimalcatError(
                "no episode is open, and a note goes with a step of one: call reset() first"
            )
        self._episodes.note(Note(text, tokens_in, tokens_out, cost, currency))

    def close(self) -> None:
        """Leave the session; an open episode is voided. Calling it twice is fine."""
        self._episodes.close()

    def _to_observation(self, observation: Observation) -> GymObservation:
        return to_gym(observation, self._sensors)
