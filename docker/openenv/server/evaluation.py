"""The evaluation environment: the arenas of a session, as its server chooses them."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from animalcat_openenv.models import AnimalcatObservation, AnimalcatState
from animalcat_openenv.server.spoken import Moved, SpokenEnvironment

from animalcat.client.remote_episodes import RemoteEpisodes, SessionOver
from animalcat.doors.speech import Tongue
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.answers import AnswerKind, Note
from animalcat.errors import AnimalcatError
from animalcat.wire.protocol import version

NO_CHOICE: Final = (
    "reset takes no {} here: the session chooses the arenas and draws the seeds, so that they tell "
    "most and cannot be picked"
)
ENDED: Final = "The session is over. There is no further trial. Thank you."
_NOTE_BYTES: Final = 4096


class EvaluationEnvironment(SpokenEnvironment):
    """Plays a session as its agent.

    `reset` begins the arena that the session has chosen. Neither arena nor seed can be asked for,
    and nothing tells of demands or scores. Who leaves in mid-episode makes it void.
    """

    about = "A session of animalcat, which chooses arenas of Animal-AI to measure what an agent can"

    def __init__(
        self, address: str, session: str = "", agent: str | None = None, tongue: Tongue = Tongue()
    ) -> None:
        """Say which session is played; it is connected to at the first reset.

        Args:
            address: The server, "host:port".
            session: The session; empty: the one that waits for an agent.
            agent: The agent's name; None: the one that the session is for.
            tongue: How the agent is told and answers, which is part of its identity.
        """
        super().__init__()
        self._tongue = tongue
        self._where = address, session, agent
        self._episodes: RemoteEpisodes | None = None

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> AnimalcatObservation:
        """Begin the next episode of the session.

        Args:
            seed: Refused.
            episode_id: What the episode is called here; by default a random name.
            **kwargs: Refused.

        Returns:
            The first observation. It is done at once where the session has no further episode.

        Raises:
            ValueError: A seed or another choice is asked for.
            AnimalcatError: An episode is open, or the server refuses.
        """
        if seed is not None or kwargs:
            raise ValueError(NO_CHOICE.format("seed" if seed is not None else sorted(kwargs)[0]))
        if self._talk is not None:
            raise AnimalcatError("an episode is open, and is played to its end: step until done")
        if self._episodes is None:
            address, session, agent = self._where
            declared = AgentFingerprint.declared(
                "openenv", version=version(), options=self._tongue.options
            )
            self._episodes = RemoteEpisodes(address, session, agent=agent, fingerprint=declared)
        self._state = AnimalcatState(
            episode_id=episode_id or str(uuid4()), evaluation=True, tongue=str(self._tongue)
        )
        try:
            opening = self._episodes.begin()
        except SessionOver:
            self._state.over = True
            return AnimalcatObservation(text=ENDED, done=True)
        first = "A practice trial begins." if opening.info.practice else "A trial begins."
        return self._opened(self._tongue, opening.info, opening.observation, first)

    def close(self) -> None:
        """Leave the session; an open episode is void."""
        self._talk = None
        if self._episodes is not None:
            self._episodes.close()
            self._episodes = None

    def _note_answer(self, answer: str, kind: AnswerKind) -> None:
        assert self._episodes is not None  # an episode is open
        said = answer.encode()[:_NOTE_BYTES].decode(errors="ignore")
        self._episodes.note(Note(said, answer=kind))

    def _act(self, actions: bytes) -> Moved:
        assert self._episodes is not None  # an episode is open
        try:
            result = self._episodes.act(actions)
        except AnimalcatError:
            self._talk = None
            raise
        if result.fault:
            self._talk = None
            raise RuntimeError("the simulator failed: the attempt does not count; call reset")
        return Moved(result.observation, result.reward, result.ended)
