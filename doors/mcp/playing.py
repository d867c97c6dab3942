"""A server of MCP whose client plays a session as its agent, and learns nothing more of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Annotated, Any, Final, TypeAlias

import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from animalcat.client.remote_episodes import RemoteEpisodes, SessionOver
from animalcat.doors.speech import Conversation, Tongue, UnreadableError, prompt, read_call
from animalcat.doors.speech.reading import GO_METRES, TURN_DEGREES, WAIT_SECONDS
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.answers import AnswerKind, Note
from animalcat.errors import AnimalcatError
from animalcat.values import Session
from animalcat.wire.protocol import version

Result: TypeAlias = list[Any]
"""What a tool returns: a text, and a picture if there is one."""
NOT_BEGUN: Final = "No trial is open. Call next_arena to begin one."


def fingerprint(tongue: Tongue) -> AgentFingerprint:
    """What is known of an agent that comes through this door: how it is told, and how it answers.

    Which model thinks behind it, its client alone knows.
    """
    return AgentFingerprint.declared("mcp", version=version(), options=tongue.options)


def agent_server(play: Trials) -> MCPServer[Any]:
    """Make a server whose client plays a session.

    Its tools are `look`, `go`, `turn`, `wait` and `next_arena`. Each returns a text and one
    picture. Nothing tells of demands, rewards or scores.

    Args:
        play: The session's trials.
    """
    spec = play.session.spec
    server: MCPServer[Any] = MCPServer(
        "animalcat",
        title="An arena to act in",
        version=version(),
        log_level="WARNING",  # else the address, which is a secret, is printed with each call
        instructions=f"{prompt(play.tongue, EpisodeInfo(0, 0, spec.observation_spec))}\n\nCall "
        "next_arena to begin a trial, and again after its end. A trial that rests for more than "
        f"{spec.action_timeout_seconds:g} s is over.",
    )

    async def run_call(call: Callable[[], Result]) -> Result:
        # Steps wait for the service, so they must not hold up the loop that serves the client.
        try:
            return await anyio.to_thread.run_sync(call)
        except (UnreadableError, AnimalcatError) as error:
            raise ToolError(str(error)) from None

    @server.tool(structured_output=False)
    async def next_arena() -> Result:
        """Begin the next trial, once the one before it is over."""
        return await run_call(play.begin)

    @server.tool(structured_output=False, annotations=ToolAnnotations(read_only_hint=True))
    async def look() -> Result:
        """See again what you see now. It takes no time in the arena."""
        return await run_call(play.look)

    @server.tool(structured_output=False)
    async def go(
        metres: Annotated[
            float, Field(description=f"-{GO_METRES:g} to {GO_METRES:g}; below 0 is backward.")
        ],
    ) -> Result:
        """Go straight ahead, or backward."""
        return await run_call(partial(play.do, "go", {"metres": metres}))

    @server.tool(structured_output=False)
    async def turn(
        degrees: Annotated[
            float,
            Field(description=f"-{TURN_DEGREES:g} to {TURN_DEGREES:g}; below 0 is to the left."),
        ],
    ) -> Result:
        """Turn on the spot."""
        return await run_call(partial(play.do, "turn", {"degrees": degrees}))

    @server.tool(structured_output=False)
    async def wait(
        seconds: Annotated[float, Field(description=f"0 to {WAIT_SECONDS:g}.")],
    ) -> Result:
        """Stand still for a while."""
        return await run_call(partial(play.do, "wait", {"seconds": seconds}))

    return server


class Trials:
    """The trials of a session; one call at a time, however many a client makes at once.

    Attributes:
        session: The session.
        tongue: How the client is told what it perceives.
    """

    def __init__(
        self, join: Callable[[], RemoteEpisodes], session: Session, tongue: Tongue
    ) -> None:
        """Prepare them; the session is joined with the first, so that nobody waits before it.

        Args:
            join: Joins the session as its agent.
            session: The session.
            tongue: How the client is told what it perceives.
        """
        self.session = session
        self.tongue = tongue
        self._join = join
        self._episodes: RemoteEpisodes | None = None
        self._talk: Conversation | None = None
        self._said = ""
        self._since = 0.0
        self._lock = threading.Lock()

    def close(self) -> None:
        """Leave the session; an open trial is void."""
        episodes, self._episodes, self._talk = self._episodes, None, None
        if episodes is not None:
            episodes.close()

    def begin(self) -> Result:
        """Begin the next trial."""
        with self._lock:
            first = ""
            if monotonic() - self._since > self.session.spec.action_timeout_seconds:
                first = f"{self._rested} " * (self._talk is not None)
                self.close()
            if self._talk is not None:
                raise ToolError("A trial is open already. Look, and act until it is over.")
            try:
                self._episodes = self._episodes or self._join()
                opening = self._episodes.begin()
            except (SessionOver, AnimalcatError) as error:
                if isinstance(error, AnimalcatError) and error.code != "SESSION_OVER":
                    self.close()
                    raise
                return ["The session is over. There is no further trial. Thank you."]
            talk = self._talk = Conversation(self.tongue, opening.info)
            self._said, self._since = "", monotonic()
            talk.next(opening.observation)
            practice = "practice " * opening.info.practice
            return _result_words(talk, f"{first}A {practice}trial begins.")

    @property
    def _rested(self) -> str:
        seconds = self.session.spec.action_timeout_seconds
        return f"The trial before rested for more than {seconds:g} s, and is over."

    def look(self) -> Result:
        """Show again what is perceived."""
        with self._lock:
            return _result_words(self._open)

    def do(self, name: str, arguments: dict[str, float]) -> Result:
        """Do what the call of a tool asks for."""
        with self._lock:
            talk = self._open
            called = f"{name}({', '.join(f'{value:g}' for value in arguments.values())})"
            kind: AnswerKind = "repeat" if called == self._said else "read"
            self._said = called
            try:
                talk.hear([read_call(name, arguments)])
            except UnreadableError as error:
                kind = "unparseable"
                talk.mishear(str(error))
            assert self._episodes is not None  # a trial is open
            self._episodes.note(Note(called, answer=kind))
            told = self._carry_out(talk, self._episodes)
        if kind == "unparseable":
            raise ToolError(told[0])
        return told

    @property
    def _open(self) -> Conversation:
        if self._talk is None:
            raise ToolError(NOT_BEGUN)
        return self._talk

    def _carry_out(self, talk: Conversation, episodes: RemoteEpisodes) -> Result:
        """Do what was said, until it is the client's turn or the trial is over."""
        actions = talk.next(talk.seen)
        while actions:
            try:
                result = episodes.act(actions)
            except AnimalcatError as error:
                self.close()
                over = f"The trial is over: {error}. Call next_arena to begin anew."
                raise ToolError(over) from None
            self._since = monotonic()
            if result.ended:
                self._talk = None
                return ["The trial is over. Call next_arena for the next one."]
            actions = talk.next(result.observation)
        return _result_words(talk)


def _result_words(talk: Conversation, first: str = "") -> Result:
    shown = talk.show()
    text = f"{first} {shown.text}".strip()
    return [text] if shown.picture is None else [text, Image(data=shown.picture, format="png")]
