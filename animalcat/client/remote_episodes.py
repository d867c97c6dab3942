"""A session's episodes for code that asks for each step itself."""

from __future__ import annotations

import os
import uuid
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple, TypeVar

from animalcat.client.async_client import SessionLike
from animalcat.client.blocking_client import connect
from animalcat.client.connection import translated_errors
from animalcat.client.stream import EvaluationStream
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.fingerprint import AgentFingerprint, unknown
from animalcat.envs.answers import Note
from animalcat.envs.types import Observation, ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.v1 import gateway_pb2, sessions_pb2, types_pb2
from animalcat.wire.codec import word

_T = TypeVar("_T")

_WITHDRAW_SECONDS: Final = 5.0
"""How long the service may take to notice that an agent leaves between episodes."""


class SessionOver(Exception):  # noqa: N818  no error: the session has what it wanted
    """The session has ended: there is no further episode."""


class EpisodeOpening(NamedTuple):
    """How an episode begins.

    Attributes:
        info: What the agent may know of the episode.
        observation: The first observation.
    """

    info: EpisodeInfo
    observation: Observation


class StepResult(NamedTuple):
    """The reward, the observation and the end, if any, that the latest actions led to.

    Attributes:
        reward: Sum of rewards since the previous observation.
        observation: The observation now; after a fault, the last one before it.
        ended: Whether the episode is over.
        truncated: Whether time ran out.
        fault: Whether the backend failed, so that the episode does not count.
        cause: "out_of_time" or "out_of_tokens" where the agent spent more than it may; else empty.
    """

    reward: float
    observation: Observation
    ended: bool = False
    truncated: bool = False
    fault: bool = False
    cause: str = ""


class RemoteEpisodes:
    """The episodes of a session of one slot, for code that asks for each step itself.

    Attributes:
        welcome: What the service said first.
        opening: How the open episode began; None while there is none.
        steps: Decisions taken in the open episode.
    """

    def __init__(
        self,
        address: str,
        session: SessionLike = "",
        *,
        agent: str | None = None,
        observation_spec: ObservationSpec | None = None,
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
            observation_spec: What the agent needs to see; None: whatever the session shows.
            token: The access token; see `connect`.
            ca: How to verify the server; see `connect`.
            fingerprint: What identifies the agent; None: unknown.
            same_agent: Whether to declare that this is the session's agent even if its fingerprint
                differs.

        Raises:
            AnimalcatError: No server answers, or it refuses; the session plays several episodes
                at once.
        """
        self._client = connect(address, token=token, ca=ca)
        try:
            channel = self._client.aio.channel
            self._stream = EvaluationStream(
                channel,
                uuid.uuid4().hex,
                fingerprint or unknown(),
                same_agent=same_agent,
                returns=True,
            )
            target = self._client.find_session(session)
            name = target.spec.agent if agent is None else agent
            self.welcome = self._run(self._stream.open(target.name, name, observation_spec))
            if self.welcome.slots != 1:
                raise AnimalcatError(
                    f"the session plays {self.welcome.slots} episodes at once; "
                    "a single environment plays one"
                )
        except BaseException:
            self._client.close()
            raise
        self.opening: EpisodeOpening | None = None
        self.steps = 0
        self._notes: list[Note] = []
        self._closed = False
        self._counted = self.welcome.episodes_done
        self._next: gateway_pb2.EvaluateResponse | None = None

    @property
    def over(self) -> bool:
        """Whether no episode will follow. Between episodes this waits until the service decides."""
        return self.opening is None and self._decision().HasField("session_end")

    @property
    def spent(self) -> bool:
        """Whether the budget of episodes is used up; known before the profile is made."""
        return self.opening is None and self._counted >= self.welcome.max_episodes

    def begin(self) -> EpisodeOpening:
        """Start the episode that the service has chosen.

        Raises:
            SessionOver: There is no further episode.
            AnimalcatError: The server fails.
        """
        frame = self._decision()
        if frame.HasField("session_end"):
            over = frame.session_end
            state = word(sessions_pb2.SessionState, over.state)
            raise SessionOver(
                f"{over.session} is {state} after {over.episodes} episodes that counted"
            )
        self._next = None
        start = frame.episode_start
        self._last = self._stream.observation(start.observation)
        self.opening = EpisodeOpening(self._stream.episode_info(start), self._last)
        self.steps = 0
        self._notes.clear()
        return self.opening

    def note(self, note: Note) -> None:
        """Make a remark, which is sent with the next actions.

        Raises:
            AnimalcatError: No episode is open.
        """
        if self.opening is None:
            raise AnimalcatError("no episode is open: a note goes with a step of one")
        self._notes.append(note)

    def act(self, actions: bytes) -> StepResult:
        """Take decisions one after the other, until the episode or the list ends.

        Args:
            actions: One byte an action, 0 to 8; 1 to `MAX_ACTIONS` of them.

        Raises:
            AnimalcatError: No episode is open, or the server fails.
        """
        if self.opening is None:
            raise AnimalcatError("no episode is open: begin one first")
        frame = self._run(self._turn(actions))
        if frame.HasField("ask"):
            self.steps = frame.ask.step
            self._last = self._stream.observation(frame.ask.observation)
            return StepResult(frame.ask.reward, self._last)
        end = frame.episode_end
        self.opening = None
        self._counted += not end.fault
        if end.HasField("observation"):  # a backend that failed has nothing more to show
            self._last = self._stream.observation(end.observation)
        cause = word(types_pb2.Cause, end.cause)
        return StepResult(end.reward, self._last, True, end.truncated, end.fault, cause)

    def close(self, *, dismissed: bool = False) -> None:
        """Leave the session; an open episode is voided. Calling it twice is fine.

        Between episodes the service has already chosen the next one and sent it. Closing there
        makes that attempt void. Closing there for the second time, before anything was done, makes
        it a failure.

        Args:
            dismissed: Whether the agent is taken off, and does not leave by itself.
        """
        if not self._closed and not self.spent:
            if self.opening is None:
                self._run(self._stream.withdraw(_WITHDRAW_SECONDS))
            else:
                self._run(self._stream.leave(dismissed=dismissed))
        self._closed = True
        self._client.close()

    async def _turn(self, actions: bytes) -> gateway_pb2.EvaluateResponse:
        notes, self._notes = self._notes, []
        await self._stream.act(0, self.steps, actions, notes)
        return await self._stream.receive()

    def _decision(self) -> gateway_pb2.EvaluateResponse:
        """What follows an episode: the next one's start, or the session's end."""
        if self._next is None:
            self._next = self._run(self._stream.receive())
        return self._next

    def _run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        with translated_errors(self._client.address):
            return self._client.run(coroutine)
