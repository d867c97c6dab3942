"""The client for ordinary, blocking code: `AsyncClient` on an event loop of its own."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from animalcat.client.async_client import (
    AsyncClient,
    PendingConnection,
    SessionLike,
    aconnect,
)
from animalcat.client.connection import PrivateLoop
from animalcat.client.evaluation import AnyAgent, EvaluationSummary, PlayedEpisode
from animalcat.client.traces import shorten_trace
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.agents.watching import Watch
from animalcat.envs.types import ObservationSpec
from animalcat.errors import AnimalcatError

_P = ParamSpec("_P")
_T = TypeVar("_T")


def connect(
    address: str,
    *,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    wait_seconds: float = 0.0,
) -> Client:
    """Connect to a server.

        with animalcat.connect("localhost:50051") as client:
            print(client.list_batteries())

    It also works in a notebook, where an event loop is running already.

    Args:
        address: "host:port".
        token: The access token, or "@FILE" to read it from a file. A server on this machine
            usually needs none. None: that of `ANIMALCAT_TOKEN`.
        ca: How to verify a server that speaks TLS: a file with its certificate, or the fingerprint
            "sha256:..." that it prints. None: `ANIMALCAT_CA`, or else the certificates that this
            machine trusts.
        wait_seconds: How long to wait for a server that is still starting.

    Raises:
        AnimalcatError: The address is malformed, or no animalcat server answers there.
    """
    return Client(address, token=token, ca=ca, wait_seconds=wait_seconds)


def _blocking(
    method: Callable[Concatenate[AsyncClient, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[Client, _P], _T]:
    """A method that waits for a coroutine method of `AsyncClient`."""

    @wraps(method)
    def call(self: Client, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self.run(method(self.aio, *args, **kwargs))

    call.__qualname__ = f"Client.{method.__name__}"
    return call


def _iterating(
    method: Callable[Concatenate[AsyncClient, _P], AsyncGenerator[_T]],
) -> Callable[Concatenate[Client, _P], Iterator[_T]]:
    """A method that gives what an asynchronous generator of `AsyncClient` yields."""

    @wraps(method)
    def call(self: Client, *args: _P.args, **kwargs: _P.kwargs) -> Iterator[_T]:
        return self.iterate(method(self.aio, *args, **kwargs))

    call.__qualname__ = f"Client.{method.__name__}"
    shown = inspect.signature(method)
    returns = str(shown.return_annotation).replace("AsyncGenerator", "Iterator")
    vars(call)["__signature__"] = shown.replace(return_annotation=returns)
    return call


class Client:
    """A connection to a server; `connect` makes one. Only one thread at a time may use it.

        with animalcat.connect("localhost:50051") as client:
            session = client.create_session(agent="mine", battery="navigation")
            summary = client.evaluate(MyAgent(), session)
            for episode in client.episodes(session):
                print(episode.instance, episode.outcome)

    Sessions can be given as value, id or resource name. Every method raises `AnimalcatError` with
    the server's sentence where a call fails.

    A connection that was closed opens again when it is used.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        wait_seconds: float = 0.0,
    ) -> None:
        """Connect; see `connect`."""
        self._reach = partial(
            aconnect,
            address,
            token=token,
            ca=ca,
            wait_seconds=wait_seconds,
        )
        self._open: tuple[PrivateLoop, AsyncClient] | None = None
        self._open_loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open_loop(self) -> tuple[PrivateLoop, AsyncClient]:
        """The loop and the client on it, connected if they are not."""
        if self._open is None:
            connecting = self._reach()
            loop = PrivateLoop()
            try:
                self._open = loop, loop.run(_connect(connecting))
            except AnimalcatError as error:
                loop.close()
                raise shorten_trace(error) from None
            except BaseException:
                loop.close()
                raise
        return self._open

    @property
    def aio(self) -> AsyncClient:
        """The asynchronous client, for coroutines that are passed to `run`."""
        return self._open_loop()[1]

    @property
    def address(self) -> str:
        """The server's address, "host:port"."""
        return self.aio.address

    def close(self) -> None:
        """Close the connection; a session that is being played waits for its agent again.

        Calling it twice is fine.
        """
        if self._open is not None:
            loop, client = self._open
            loop.close(client.close())
            self._open = None

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine that uses `aio`, and return its result."""
        try:
            return self._open_loop()[0].run(coroutine)
        except Exception as error:  # noqa: BLE001  it is raised again, with a shorter trace
            raise shorten_trace(error) from error.__cause__

    def iterate(self, source: AsyncGenerator[_T]) -> Iterator[_T]:
        """Iterate over an asynchronous generator that uses `aio`."""
        return self._open_loop()[0].iterate(source)

    def evaluate(
        self,
        agent: AnyAgent,
        session: SessionLike = "",
        *,
        name: str | None = None,
        observation_spec: ObservationSpec | None = None,
        on_episode: Callable[[PlayedEpisode], None] | None = None,
        fingerprint: AgentFingerprint | Watch | None = None,
        same_agent: bool = False,
    ) -> EvaluationSummary:
        """Let an agent play a session to its end.

        Args:
            agent: An object with `reset(info)` and `act(observation)`; it plays in one slot. Or
                what makes such objects, such as a class: then every slot of the session has an
                agent of its own, in a thread of its own.
            session: The session; may be left empty if exactly one waits for an agent.
            name: Name of the agent; by default the one that the session is for.
            observation_spec: What the agent needs to see; a session that shows something else
                is refused. None: whatever the session shows.
            on_episode: Called with every episode that has ended.
            fingerprint: What identifies the agent, see `AgentFingerprint.declared`. None: the
                agent's code and what it holds, as they are now.
            same_agent: Whether to declare that this is the session's agent even if its fingerprint
                differs; the profile then says so.

        Raises:
            AnimalcatError: The server refuses, fails or is lost; the agent's answer is no action.
            Exception: Whatever the agent's code raises. If the token is an operator's, the session
                then waits until `judge_failure` says what the open episode counts as; otherwise
                that episode is void.
        """
        return self.run(
            self.aio.evaluate(
                agent,
                session,
                name=name,
                observation_spec=observation_spec,
                on_episode=on_episode,
                in_thread=False,
                fingerprint=fingerprint,
                same_agent=same_agent,
            )
        )

    create_session = _blocking(AsyncClient.create_session)
    get_ticket = _blocking(AsyncClient.get_ticket)
    hand_over = _blocking(AsyncClient.hand_over)
    audit = _iterating(AsyncClient.audit)
    get_session = _blocking(AsyncClient.get_session)
    find_session = _blocking(AsyncClient.find_session)
    list_sessions = _blocking(AsyncClient.list_sessions)
    sessions = _iterating(AsyncClient.sessions)
    watch_session = _iterating(AsyncClient.watch_session)
    cancel_session = _blocking(AsyncClient.cancel_session)
    pause_session = _blocking(AsyncClient.pause_session)
    extend_session = _blocking(AsyncClient.extend_session)
    note_session = _blocking(AsyncClient.note_session)
    session_notes = _blocking(AsyncClient.session_notes)
    verify_session = _blocking(AsyncClient.verify_session)
    resume_session = _blocking(AsyncClient.resume_session)
    delete_session = _blocking(AsyncClient.delete_session)
    invalidate_episode = _blocking(AsyncClient.invalidate_episode)
    judge_failure = _blocking(AsyncClient.judge_failure)
    dismiss_agents = _blocking(AsyncClient.dismiss_agents)
    episodes = _blocking(AsyncClient.episodes)
    iter_episodes = _iterating(AsyncClient.iter_episodes)
    stream_episode = _iterating(AsyncClient.stream_episode)
    profile = _blocking(AsyncClient.profile)
    verdict = _blocking(AsyncClient.verdict)
    explain_episode = _blocking(AsyncClient.explain_episode)
    draws = _blocking(AsyncClient.draws)
    export_profile = _blocking(AsyncClient.export_profile)
    save_profile = _blocking(AsyncClient.save_profile)
    outcomes = _blocking(AsyncClient.outcomes)
    create_campaign = _blocking(AsyncClient.create_campaign)
    get_campaign = _blocking(AsyncClient.get_campaign)
    campaigns = _iterating(AsyncClient.campaigns)
    common_outcomes = _blocking(AsyncClient.common_outcomes)
    delete_campaign = _blocking(AsyncClient.delete_campaign)
    import_battery = _blocking(AsyncClient.import_battery)
    build_battery = _blocking(AsyncClient.build_battery)
    shipped_batteries = _blocking(AsyncClient.shipped_batteries)
    get_battery = _blocking(AsyncClient.get_battery)
    list_batteries = _blocking(AsyncClient.list_batteries)
    instances = _iterating(AsyncClient.instances)
    delete_battery = _blocking(AsyncClient.delete_battery)
    get_layout = _blocking(AsyncClient.get_layout)
    list_layouts = _blocking(AsyncClient.list_layouts)
    operations = _iterating(AsyncClient.operations)
    wait = _blocking(AsyncClient.wait)
    placement = _blocking(AsyncClient.placement)


async def _connect(connecting: PendingConnection) -> AsyncClient:
    return await connecting
