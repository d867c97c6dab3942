"""The asynchronous client, which is the definition of both clients."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from operator import index
from pathlib import Path
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    Final,
    Literal,
    Self,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    Unpack,
    cast,
)

import grpc
import numpy as np

from animalcat.arenas.arena_files import (
    MAX_TABLE_BYTES,
    battery_files,
    battery_id,
    check_sizes,
    is_yaml,
)
from animalcat.arenas.battery_reference import battery_name
from animalcat.client.connection import open_channel, translated_errors
from animalcat.client.credentials import Credentials, credentials
from animalcat.client.evaluation import (
    NO_ACTION,
    AnyAgent,
    EvaluationSummary,
    PlayedEpisode,
    evaluate_session,
)
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.agents.watching import Watch
from animalcat.envs.types import ObservationSpec
from animalcat.errors import AnimalcatError, is_broken
from animalcat.machine.files import whole_file
from animalcat.machine.marks import mark
from animalcat.text import names
from animalcat.v1 import (
    access_pb2,
    access_pb2_grpc,
    campaigns_pb2,
    campaigns_pb2_grpc,
    layouts_pb2,
    layouts_pb2_grpc,
    operations_pb2,
    operations_pb2_grpc,
    results_pb2,
    results_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
    types_pb2,
)
from animalcat.values import (
    AuditLine,
    Battery,
    Campaign,
    CampaignSpec,
    Episode,
    EpisodeFooter,
    EpisodeHeader,
    Feature,
    Instance,
    Layout,
    Operation,
    OwnerFilter,
    Ownership,
    PosteriorDraws,
    ProcessPlacement,
    RecipeText,
    RecordedStep,
    Session,
    SessionEvent,
    SessionNote,
    SessionSpec,
    SessionVerification,
    Ticket,
    Verdict,
    verdict_of,
)
from animalcat.values.options import (
    CampaignOptions,
    SessionOptions,
    describe_options,
    given_options,
)
from animalcat.wire.codec import decode, encode, number, put
from animalcat.wire.steps import step_from_proto

if TYPE_CHECKING:
    from pandas import DataFrame
from animalcat.wire.words import FORMATS

SessionLike: TypeAlias = str | Session
"""A session, its id or its resource name."""
OnProgress: TypeAlias = Callable[[Operation], None]
"""Called with an operation whenever it has progressed."""
Recorded: TypeAlias = EpisodeHeader | RecordedStep | EpisodeFooter
"""Part of a recorded episode."""

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")
_Value = TypeVar("_Value")

_PASSED: Final = {types_pb2.OUTCOME_SUCCESS: True, types_pb2.OUTCOME_FAILURE: False}
_PAGE: Final = 500
"""Items of a list that are asked for at once."""
_PAGE_OF_ARENAS: Final = 50
"""The same, of instances that bring their arenas: one may have a megabyte."""
_READ_PAUSES: Final = (0.05, 0.2, 0.5)
"""Seconds between attempts to read what a broken connection took: gRPC needs a moment to see it."""


def aconnect(
    address: str,
    *,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    wait_seconds: float = 0.0,
) -> PendingConnection:
    """Connect to a server from asynchronous code.

    In a program, the connection closes with the block:

        async with animalcat.aconnect("localhost:50051") as client:
            print(await client.list_batteries())

    In a notebook, it stays open from cell to cell:

        client = await animalcat.aconnect("localhost:50051")

    Args:
        address: "host:port".
        token: The access token, or "@FILE" to read it from a file. A server on this machine
            usually needs none. None: that of `ANIMALCAT_TOKEN`.
        ca: How to verify a server that speaks TLS: a file with its certificate, or the fingerprint
            "sha256:..." that it prints. None: `ANIMALCAT_CA`, or else the certificates that this
            machine trusts.
        wait_seconds: How long to wait for a server that is still starting.

    Raises:
        AnimalcatError: The address is malformed, or (when awaited) no animalcat server answers
            there.
    """
    shown = credentials(token, ca)
    return PendingConnection(checked_address(address), wait_seconds, shown)


class PendingConnection:
    """A connection that is about to be made: `await` it, or enter it with `async with`."""

    def __init__(self, address: str, wait_seconds: float, shown: Credentials) -> None:
        self._address, self._wait_seconds, self._shown = address, wait_seconds, shown

    def __await__(self) -> Generator[Any, None, AsyncClient]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncClient:
        self._client = await self._open()
        return self._client

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.close()

    async def _open(self) -> AsyncClient:
        channel = await open_channel(self._address, self._wait_seconds, self._shown)
        return AsyncClient(self._address, channel)


class AsyncClient:
    """A connection to a server, for asynchronous code; `aconnect` makes one.

        async with animalcat.aconnect("localhost:50051") as client:
            session = await client.create_session(agent="mine", battery="navigation")
            summary = await client.evaluate(MyAgent(), session)
            async for episode in client.watch_session(session, from_start=True):
                print(episode)

    It has the methods of `Client`: those that give one value are coroutines, those that give an
    iterator are asynchronous generators. Sessions can be given as value, id or resource name. Every
    method raises `AnimalcatError` with the server's sentence where a call fails.
    """

    def __init__(self, address: str, channel: grpc.aio.Channel) -> None:
        """Use a channel of the running event loop, which `close` closes; see `aconnect`."""
        self.address: Final = address
        self.channel: Final = channel
        self._access = access_pb2_grpc.AccessStub(channel)
        self._batteries = sessions_pb2_grpc.BatteriesStub(channel)
        self._sessions = sessions_pb2_grpc.SessionsStub(channel)
        self._campaigns = campaigns_pb2_grpc.CampaignsStub(channel)
        self._layouts = layouts_pb2_grpc.LayoutsStub(channel)
        self._operations = operations_pb2_grpc.OperationsStub(channel)
        self._profiles = results_pb2_grpc.ProfilesStub(channel)
        self._episodes = results_pb2_grpc.EpisodesStub(channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; a session that is being played waits for its agent again."""
        await self.channel.close()

    async def evaluate(
        self,
        agent: AnyAgent,
        session: SessionLike = "",
        *,
        name: str | None = None,
        observation_spec: ObservationSpec | None = None,
        on_episode: Callable[[PlayedEpisode], None] | None = None,
        in_thread: bool = True,
        fingerprint: AgentFingerprint | Watch | None = None,
        same_agent: bool = False,
    ) -> EvaluationSummary:
        """Let an agent play a session to its end.

        Args:
            agent: An object with `reset(info)` and `act(observation)`, which may be coroutines; it
                plays in one slot. Or what makes such objects, such as a class: then every slot of
                the session has an agent of its own.
            session: The session; may be left empty if exactly one waits for an agent of this name.
            name: Name of the agent; by default the one that the session is for.
            observation_spec: What the agent needs to see; a session that shows something else
                is refused. None: whatever the session shows.
            on_episode: Called with every episode that has ended.
            in_thread: Whether an agent without coroutines runs in a thread, so that the event loop
                goes on meanwhile. With several slots agents always do.
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
        target = await self.find_session(session, agent=name or "")
        try:
            with translated_errors(self.address):
                return await evaluate_session(
                    self.channel,
                    target,
                    agent,
                    name=name,
                    observation_spec=observation_spec,
                    on_episode=on_episode,
                    in_thread=in_thread,
                    fingerprint=fingerprint,
                    same_agent=same_agent,
                )
        except Exception as error:
            await self._note(error, target)
            raise

    async def _note(self, error: Exception, session: Session) -> None:
        """Say with the error of an agent's code what to do about its session, if anything."""
        if isinstance(error, AnimalcatError) and error.code != NO_ACTION:
            return
        with suppress(AnimalcatError):
            now = await self.get_session(session)
            if now.unjudged:
                error.add_note(
                    f"Session {now.id} is paused at episode {now.unjudged[-1]}, whose arena the "
                    "agent has seen. Say what the episode counts as, then let the agent play on: "
                    f"judge_failure({now.id!r}, 'repeat'), 'failure', or 'fault'; or animalcat "
                    f"session resume {now.id} --as repeat"
                )

    @describe_options(SessionOptions)
    async def create_session(
        self,
        *,
        agent: str,
        battery: str,
        layout: str | os.PathLike[str] = "",
        layout_variant: str = "",
        observation_spec: ObservationSpec | None = None,
        against: SessionLike = "",
        prior: SessionLike = "",
        request_id: str = "",
        **options: Unpack[SessionOptions],
    ) -> Session:
        """Create a session that waits for its agent.

        Options that are left out have the server's defaults; the returned session has all values.

        Args:
            agent: Name of the agent that is to be measured.
            battery: Id or resource name.
            layout: Name of the layout, or a file of one's own (its name ends in .yaml or .yml). By
                default the one that the battery names, or "aaio" if it names none.
            layout_variant: Variant of the layout.
            observation_spec: What the agent sees; rays by default. The options `camera`,
                `decision_period` and `privileged` change parts of it.
            against: Another agent's session: play the arenas that it has played, in the same
                order, until the two agents are told apart.
            prior: An earlier session of the same agent: what it has found is known from the start.
            request_id: Repeating a call with the same id returns the same session.
            **options: The options below.

        Raises:
            AnimalcatError: An option has a value that it does not take; the layout's file cannot
                be read; the server refuses.
            TypeError: There is no such option.
        """
        spec = _session_spec(agent, battery, layout, layout_variant)
        if against:
            spec.against.session = session_name(against)
        if prior:
            spec.prior.session = session_name(prior)
        put(SessionSpec, spec, _options_by_place(SessionOptions, options, observation_spec))
        request = sessions_pb2.CreateSessionRequest(spec=spec, request_id=request_id)
        answer = await self._call(self._sessions.CreateSession, request)
        return decode(Session, answer.session)

    async def get_session(self, session: SessionLike) -> Session:
        """A session in its present state."""
        request = sessions_pb2.GetSessionRequest(name=session_name(session))
        answer = await self._read(self._sessions.GetSession, request)
        return decode(Session, answer.session)

    async def get_ticket(self, session: SessionLike) -> Ticket:
        """A ticket, which allows the process of an agent to play this session and nothing else."""
        request = access_pb2.GetTicketRequest(session=session_name(session))
        answer = await self._call(self._access.GetTicket, request)
        return decode(Ticket, answer)

    async def hand_over(self, name: str, owner: str) -> Ownership:
        """Give something another owner; only for administrators.

        Args:
            name: Resource name of a session, campaign, battery or layout.
            owner: Subject of the new owner; empty for nobody.
        """
        request = access_pb2.HandOverRequest(name=name, owner=owner)
        answer = await self._call(self._access.HandOver, request)
        return decode(Ownership, answer.ownership)

    def audit(
        self,
        *,
        subject: str = "",
        action: str = "",
        about: str = "",
        since: datetime | None = None,
    ) -> AsyncGenerator[AuditLine]:
        """Who did what, newest first, asked for page by page; only for administrators.

        Args:
            subject: Only what this subject did.
            action: Only this action, such as "CancelSession".
            about: Only what this resource name was about.
            since: Only from this time on, with time zone.
        """
        request = access_pb2.ListAuditRequest(
            page_size=_PAGE, subject=subject, action=action, object=about
        )
        if since is not None:
            request.since.FromDatetime(since.astimezone(UTC))
        return self._pages(self._access.ListAudit, request, "lines", partial(decode, AuditLine))

    async def find_session(self, session: SessionLike = "", *, agent: str = "") -> Session:
        """The session that is meant; where none is named, the one that waits for an agent.

        Args:
            session: The session; empty for the one that waits.
            agent: Name of the agent for which it waits; empty for any.

        Raises:
            AnimalcatError: There is no such session; none is named, and not exactly one waits.
        """
        if isinstance(session, Session):
            return session
        if session:
            return await self.get_session(session)
        found = self.sessions(states=["waiting"], agent=agent, limit=21)
        waiting = [candidate async for candidate in found]
        if len(waiting) != 1:
            more = ", ..." if len(waiting) > 20 else ""
            listed = ", ".join(candidate.id for candidate in waiting[:20]) + more or "none"
            whom = f"for {agent}" if agent else "for an agent"
            raise AnimalcatError(
                f"no session is named, and not exactly one waits {whom}; waiting: {listed}",
                "INVALID_REQUEST",
            )
        return waiting[0]

    async def list_sessions(self, whose: OwnerFilter = OwnerFilter()) -> list[Session]:
        """All sessions that one may see, newest first.

        Of many take `sessions`, which asks for them as they come.

        Args:
            whose: Only these of them.
        """
        return [session async for session in self.sessions(whose=whose)]

    def sessions(
        self,
        *,
        agent: str = "",
        battery: str = "",
        states: Iterable[str] = (),
        whose: OwnerFilter = OwnerFilter(),
        limit: int | None = None,
    ) -> AsyncGenerator[Session]:
        """Sessions, newest first, asked for page by page.

        Args:
            agent: Only those of this agent.
            battery: Only those on this battery, by id or resource name.
            states: Only those in one of these: waiting, running, finished, cancelled, failed.
            whose: Only these of the sessions that one may see.
            limit: How many at most; None for all.

        Raises:
            AnimalcatError: There is no such state.
        """
        request = sessions_pb2.ListSessionsRequest(
            whose=encode(whose),
            agent=agent,
            battery=battery_name(battery) if battery else "",
            states=[_number(sessions_pb2.SessionState, state, "state") for state in states],
        )
        return self._pages(
            self._sessions.ListSessions, request, "sessions", partial(decode, Session), limit
        )

    def watch_session(
        self, session: SessionLike, *, from_start: bool = False
    ) -> AsyncGenerator[SessionEvent]:
        """Yield the events of a session as they happen, until it is over.

        Args:
            session: The session.
            from_start: Whether past episodes come first.
        """
        request = sessions_pb2.WatchSessionRequest(
            name=session_name(session), from_start=from_start
        )
        return self._stream(self._sessions.WatchSession, request, partial(decode, SessionEvent))

    async def cancel_session(self, session: SessionLike) -> Session:
        """Cancel a session; its outcomes and what they tell of the agent stay."""
        request = sessions_pb2.CancelSessionRequest(name=session_name(session))
        answer = await self._call(self._sessions.CancelSession, request)
        return decode(Session, answer.session)

    async def verify_session(self, session: SessionLike) -> SessionVerification:
        """Check whether a session's records and recordings are as they were stored."""
        request = sessions_pb2.VerifySessionRequest(name=session_name(session))
        answer = await self._read(self._sessions.VerifySession, request)
        notes = tuple(answer.notes)
        return SessionVerification(tuple(answer.problems), answer.links, answer.head, notes)

    async def pause_session(self, session: SessionLike) -> Session:
        """Begin no further episode of a session; what is being played is played to its end."""
        request = sessions_pb2.PauseSessionRequest(name=session_name(session))
        answer = await self._call(self._sessions.PauseSession, request)
        return decode(Session, answer.session)

    async def resume_session(self, session: SessionLike) -> Session:
        """Go on with a session that was paused."""
        request = sessions_pb2.ResumeSessionRequest(name=session_name(session))
        answer = await self._call(self._sessions.ResumeSession, request)
        return decode(Session, answer.session)

    async def extend_session(
        self, session: SessionLike, max_episodes: int = 0, target_sd: float | None = None
    ) -> Session:
        """Give a session more episodes, or a finer target; a finished one then goes on.

        It waits for its agent, which plays on where it was. The profile is made anew when the
        session ends again.

        Args:
            session: Which; no agent may be playing it, and it must be in no campaign.
            max_episodes: Budget of episodes from now on, all that were played counted in; 0 for as
                it is.
            target_sd: Target of all capabilities from now on, as a share of their ranges; None for
                as it is.
        """
        request = sessions_pb2.ExtendSessionRequest(
            name=session_name(session), max_episodes=max_episodes, target_sd=target_sd
        )
        answer = await self._call(self._sessions.ExtendSession, request)
        return decode(Session, answer.session)

    async def invalidate_episode(
        self, session: SessionLike, episode: int, reason: str, attempt: int | None = None
    ) -> Episode:
        """Declare an outcome invalid: it no longer counts, and its instance may be played again.

        Args:
            session: Which; no agent may be playing it, and it must not be over.
            episode: Number within the session.
            reason: Why, in words.
            attempt: Which try; None for the one that counts.
        """
        request = sessions_pb2.InvalidateEpisodeRequest(
            name=_episode_name(session, episode, attempt), reason=reason
        )
        answer = await self._call(self._sessions.InvalidateEpisode, request)
        return decode(Episode, answer.episode)

    async def judge_failure(
        self, session: SessionLike, ruling: Literal["repeat", "failure", "fault"]
    ) -> Session:
        """Judge the episode in which the agent's code failed, and let the session go on.

        The profile says how many episodes were judged, and as what.

        Args:
            session: Which; no agent may be playing it, and it must not be over.
            ruling: "repeat": the arena is played again, though the agent has seen it; "failure":
                it counts as one; "fault": it was no doing of the agent's, and is played again.
        """
        if ruling not in ("repeat", "failure", "fault"):
            raise AnimalcatError(
                f"{ruling!r} is not a ruling: say 'repeat', 'failure' or 'fault'", "INVALID_REQUEST"
            )
        request = sessions_pb2.JudgeFailureRequest(
            name=session_name(session), ruling=_number(types_pb2.Ruling, ruling, "ruling")
        )
        answer = await self._call(self._sessions.JudgeFailure, request)
        return decode(Session, answer.session)

    async def dismiss_agents(self, session: SessionLike, failure: str = "") -> Session:
        """Take the agents of a session off at once; what they play is held against nobody.

        Args:
            session: The session.
            failure: How the process of an agent ended, in words, if its code is to blame. Then only
                agents whose connection broke are taken off, and `judge_failure` says what their
                episodes count as.
        """
        request = sessions_pb2.DismissAgentsRequest(name=session_name(session), failure=failure)
        answer = await self._call(self._sessions.DismissAgents, request)
        return decode(Session, answer.session)

    async def note_session(self, session: SessionLike, text: str) -> None:
        """Take a note on a session; the audit log keeps it, and nothing else changes.

        Args:
            session: The session.
            text: The note, 1 to 400 characters.
        """
        request = sessions_pb2.NoteSessionRequest(name=session_name(session), text=text)
        await self._call(self._sessions.NoteSession, request)

    async def session_notes(self, session: SessionLike) -> list[SessionNote]:
        """The latest notes on a session, newest first, 100 at most."""
        request = sessions_pb2.ListNotesRequest(name=session_name(session))
        answer = await self._read(self._sessions.ListNotes, request)
        return [decode(SessionNote, note) for note in answer.notes]

    async def delete_session(self, session: SessionLike) -> None:
        """Forget a session that is not being played, its episodes and their recordings."""
        request = sessions_pb2.DeleteSessionRequest(name=session_name(session))
        await self._call(self._sessions.DeleteSession, request)

    @describe_options(CampaignOptions)
    async def create_campaign(
        self,
        *,
        agents: Sequence[str],
        battery: str,
        budget: int,
        layout: str | os.PathLike[str] = "",
        layout_variant: str = "",
        observation_spec: ObservationSpec | None = None,
        request_id: str = "",
        **options: Unpack[CampaignOptions],
    ) -> Campaign:
        """Create a campaign of several agents, whose sessions wait for them.

        Options that are left out have the server's defaults. Repeating a call with the same values
        returns the same campaign.

        Args:
            agents: Names of the agents, 2 to 1,000, each once.
            battery: Id or resource name.
            budget: Episodes of all agents together; each plays an equal share of them.
            layout: As in `create_session`.
            layout_variant: Variant of the layout.
            observation_spec: What the agents see.
            request_id: An id of the request; it changes nothing.
            **options: The options below.

        Raises:
            AnimalcatError: An option has a value that it does not take; the layout's file cannot
                be read; the server refuses.
            TypeError: There is no such option.
        """
        places = _options_by_place(CampaignOptions, options, observation_spec)
        spec = campaigns_pb2.CampaignSpec(
            agents=agents, session=_session_spec("", battery, layout, layout_variant)
        )
        put(CampaignSpec, spec, {"budget": _whole("budget", budget)})
        for path, value in places.items():
            at = path if path in ("common", "take") else f"session.{path}"
            put(CampaignSpec, spec, {at: value})
        request = campaigns_pb2.CreateCampaignRequest(spec=spec, request_id=request_id)
        answer = await self._call(self._campaigns.CreateCampaign, request)
        return decode(Campaign, answer.campaign)

    async def get_campaign(self, campaign: str) -> Campaign:
        """A campaign in its present state.

        Args:
            campaign: Its id.
        """
        request = campaigns_pb2.GetCampaignRequest(name=names.campaign_name(campaign))
        answer = await self._read(self._campaigns.GetCampaign, request)
        return decode(Campaign, answer.campaign)

    async def common_outcomes(self, campaign: str) -> dict[str, list[bool | None]]:
        """By agent, whether it passed the arenas that all play first, in order.

        Of an arena that was played more than once, the first outcome that counts is told; None: it
        was not played.

        Args:
            campaign: The campaign's id.
        """
        request = campaigns_pb2.GetCampaignRequest(name=names.campaign_name(campaign), common=True)
        answer = await self._read(self._campaigns.GetCampaign, request)
        return {
            agent: [_PASSED.get(outcome) for outcome in played.outcomes]
            for agent, played in zip(answer.campaign.spec.agents, answer.common, strict=True)
        }

    def campaigns(
        self, *, whose: OwnerFilter = OwnerFilter(), limit: int | None = None
    ) -> AsyncGenerator[Campaign]:
        """Campaigns, newest first, without their sessions, asked for page by page.

        Args:
            whose: Only these of the campaigns that one may see.
            limit: How many at most; None for all.
        """
        request = campaigns_pb2.ListCampaignsRequest(whose=encode(whose))
        convert = partial(decode, Campaign)
        return self._pages(self._campaigns.ListCampaigns, request, "campaigns", convert, limit)

    async def delete_campaign(self, campaign: str) -> None:
        """Forget a campaign that is over; its sessions stay.

        Args:
            campaign: Its id.
        """
        request = campaigns_pb2.DeleteCampaignRequest(name=names.campaign_name(campaign))
        await self._call(self._campaigns.DeleteCampaign, request)

    def operations(self, *, states: Iterable[str] = ()) -> AsyncGenerator[Operation]:
        """The long operations of the server, running and ended, newest first.

        Args:
            states: Only those in one of these: running, done, failed, cancelled, aborted.

        Raises:
            AnimalcatError: There is no such state.
        """
        request = operations_pb2.ListOperationsRequest(
            states=[_number(operations_pb2.OperationState, state, "state") for state in states],
        )
        return self._pages(
            self._operations.ListOperations,
            request,
            "operations",
            partial(decode, Operation),
        )

    async def wait(
        self, operation: str | Operation, on_progress: OnProgress | None = None
    ) -> Operation:
        """Wait for the end of an operation, which goes on whether or not anybody waits.

        Args:
            operation: The operation, its id or its resource name.
            on_progress: Called with the operation whenever it has progressed.

        Raises:
            AnimalcatError: It failed, was cancelled, or was aborted as the server stopped.
        """
        request = operations_pb2.WatchOperationRequest(name=_operation_name(operation))
        now: Operation | None = None
        events = self._stream(
            self._operations.WatchOperation,
            request,
            lambda event: decode(Operation, event.operation),
        )
        async with aclosing(events):
            async for now in events:
                if on_progress is not None:
                    on_progress(now)
        if now is None:
            raise AnimalcatError(f"the server said nothing of {request.name}", "UNKNOWN")
        if now.error:
            raise AnimalcatError(now.error, now.error_code)
        return now

    async def placement(self) -> ProcessPlacement:
        """Where the server's simulators and fits are, and which sessions wait for what."""
        answer = await self._read(
            self._operations.GetPlacement, operations_pb2.GetPlacementRequest()
        )
        return decode(ProcessPlacement, answer)

    async def profile(self, session: SessionLike) -> dict[str, Any]:
        """The profile, by the schema "profile": certified once the session is finished."""
        request = results_pb2.GetProfileRequest(name=_profile_name(session))
        return json.loads((await self._read(self._profiles.GetProfile, request)).profile_json)

    async def draws(self, session: SessionLike, *, played: bool = False) -> PosteriorDraws:
        """The draws of the posterior with the profile: what a comparison needs, and no more.

        Args:
            session: Which.
            played: Whether to say what was played, and what came of it.
        """
        request = results_pb2.GetDrawsRequest(name=_profile_name(session), played=played)
        answer = await self._read(self._profiles.GetDraws, request)
        layout: dict[str, Any] = json.loads(answer.layout_json)
        nodes, features = len(layout["latents"]), len(layout["features"])
        return PosteriorDraws(
            profile=json.loads(answer.profile_json),
            layout=layout,
            draws=np.frombuffer(answer.draws, "<f8").reshape(answer.chains, -1, nodes),
            features=np.frombuffer(answer.features, "<f8").reshape(-1, features),
            passed=dict(answer.passed),
        )

    async def export_profile(
        self,
        session: SessionLike,
        form: str = "json",
    ) -> bytes:
        """The profile as a file's content; `save_profile` holds little of it at a time.

        "json" and "html" are the profile as it is. "csv" and "parquet" are the table of outcomes,
        which `animalcat.outcomes` reads. "netcdf" is the posterior with its draws, for ArviZ, and
        "draws" the same without predictions and log likelihood of every episode. Any other form is
        the name of a plugin of the server.
        """
        buffer = io.BytesIO()
        await self._export(session, form, buffer)
        return buffer.getvalue()

    async def save_profile(
        self, session: SessionLike, path: str | os.PathLike[str], form: str = "json"
    ) -> tuple[str, ...]:
        """Write the profile to a file, completely or not at all.

        Args:
            session: Which.
            path: Where to; folders are made.
            form: As for `export_profile`.

        Returns:
            What the file leaves out, in sentences: of very many episodes, it does not keep the
            predictions of all draws.

        Raises:
            OSError: It cannot be written.
        """
        with whole_file(Path(path)) as file:
            return await self._export(session, form, file)

    async def _export(self, session: SessionLike, form: str, file: BinaryIO) -> tuple[str, ...]:
        """Write the profile to an open file, and return what was left out of it."""
        request = results_pb2.ExportProfileRequest(name=_profile_name(session))
        if form in FORMATS:
            request.format = FORMATS[form]
        else:
            request.plugin = form

        async def receive(request: results_pb2.ExportProfileRequest) -> tuple[str, ...]:
            file.seek(0)  # it may be another attempt
            file.truncate()
            head: results_pb2.ExportProfileResponse | None = None
            answers = self._answers(self._profiles.ExportProfile, request)
            async with aclosing(answers):
                async for answer in answers:
                    head = answer if head is None else head
                    file.write(answer.content)
            if head is None or file.tell() != head.size:
                raise AnimalcatError(f"{request.name} was not sent completely", "UNAVAILABLE")
            return tuple(head.notes)

        return await self._read(receive, request)

    async def outcomes(self, session: SessionLike) -> DataFrame:
        """The table of outcomes as a pandas frame, with the columns of `animalcat.outcomes`.

        It needs pandas and pyarrow, which the extra `server` brings.
        """
        from animalcat.outcomes import read_outcomes

        return read_outcomes(await self.export_profile(session, "parquet"), "parquet")

    async def episodes(self, session: SessionLike | None = None) -> list[Episode]:
        """The episodes of a session in the order they were played, all attempts.

        Args:
            session: Which, a person's (`animalcat arena play`) too; None for those of all.
        """
        return [episode async for episode in self.iter_episodes(session)]

    def iter_episodes(
        self,
        session: SessionLike | None = None,
        *,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> AsyncGenerator[Episode]:
        """What `episodes` gives, asked for page by page.

        Args:
            session: Which; None for the episodes of all, the oldest session first.
            limit: How many at most; None for all.
            newest_first: Whether the last ones come first, which is for one session alone.
        """
        parent = names.EVERY_SESSION if session is None else session_name(session)
        request = results_pb2.ListEpisodesRequest(parent=parent, newest_first=newest_first)
        convert = partial(decode, Episode)
        return self._pages(self._episodes.ListEpisodes, request, "episodes", convert, limit)

    async def explain_episode(
        self, session: SessionLike, episode: int, attempt: int | None = None
    ) -> dict[str, Any]:
        """Why an episode ended as it did, by the schema "episode_explain".

        Args:
            session: The session.
            episode: Its number.
            attempt: Which try at it; None for the one that counts.
        """
        name = names.episode_name(names.parse_session(session_name(session)), episode, attempt)
        request = results_pb2.ExplainEpisodeRequest(name=name)
        answer = await self._read(self._episodes.ExplainEpisode, request)
        return json.loads(answer.explanation_json)

    async def verdict(self, session: SessionLike) -> Verdict:
        """The verdict that ends the profile."""
        return verdict_of(await self.profile(session))

    def stream_episode(
        self, session: SessionLike, episode: int, attempt: int | None = None
    ) -> AsyncGenerator[Recorded]:
        """A recorded episode: its header, its steps, and its footer unless it was cut short.

        Args:
            session: The session.
            episode: Number within the session.
            attempt: Which try; None for the last.

        Raises:
            AnimalcatError: There is no such recording; it is damaged, which is said after the steps
                that can be read.
        """
        request = results_pb2.StreamEpisodeRequest(name=_episode_name(session, episode, attempt))
        header: EpisodeHeader | None = None

        def convert(message: results_pb2.StreamEpisodeResponse) -> Recorded:
            nonlocal header
            if message.HasField("header"):
                header = decode(EpisodeHeader, message.header)
                return header
            if message.HasField("footer"):
                return decode(EpisodeFooter, message.footer)
            assert header is not None, "a recording begins with its header"
            return step_from_proto(message.step, header.observation_spec, pixels=header.pixels)

        return self._stream(self._episodes.StreamEpisode, request, convert)

    async def import_battery(
        self,
        path: str | os.PathLike[str] | Mapping[str, str],
        name: str | None = None,
        *,
        seed: int = 0,
        features: str | os.PathLike[str] | DataFrame | None = None,
        layout: str = "",
        layout_variant: str = "",
        replace: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Battery:
        """Store arena files as a battery; the same content again gives the same battery.

        A name that stands for other content, such as the files before an edit, is only reassigned
        with `replace`. Sessions keep the content that they began with.

        Args:
            path: A YAML file, or a folder of them; or the YAML texts of arenas by their names.
            name: Name of the battery; by default made from the path.
            seed: Seed of the values that the files leave to chance.
            features: A CSV file, or a pandas frame, that describes the instances: a column
                `instance`, any of `suite`, `paradigm`, `task` and `variant`, and one for each
                meta-feature of your own, with its unit in brackets if it has one. Without a
                paradigm there, it is what stands first in a name.
            layout: Name of the layout of sessions that name none themselves; by default "aaio".
            layout_variant: Variant of that layout; by default the usual one.
            replace: Whether the name may be taken from other content.
            on_progress: Called with the operation whenever it has progressed.

        Raises:
            AnimalcatError: There are no arena files at the path, a file cannot be used, or the name
                is taken: by other content, or by a battery that comes with the server.
        """
        files = _arena_texts(path)
        if isinstance(features, str | os.PathLike):
            check_sizes([Path(features)], MAX_TABLE_BYTES)
            table = _content(features)
            mark(Path(features).parent)
        else:
            table = None if features is None else _csv(features)

        async def frames() -> AsyncGenerator[sessions_pb2.ImportBatteryRequest]:
            named = "arenas" if isinstance(path, Mapping) else battery_id(Path(path))
            header = sessions_pb2.BatteryHeader(
                name=name or named,
                seed=seed,
                layout=layout,
                layout_variant=layout_variant,
                replace=replace,
            )
            yield sessions_pb2.ImportBatteryRequest(header=header)
            for relative, content in files:
                arena = sessions_pb2.ArenaFile(path=relative, content=content())
                yield sessions_pb2.ImportBatteryRequest(file=arena)
            if table is not None:
                yield sessions_pb2.ImportBatteryRequest(
                    table=sessions_pb2.FeatureTable(content=table)
                )

        begun = await self._call(self._batteries.ImportBattery, frames())
        return await self._await_battery(begun.operation, on_progress)

    async def build_battery(
        self,
        family: str | RecipeText,
        instances: int | None = None,
        *,
        seed: int | None = None,
        name: str = "",
        replace: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Battery:
        """Build a battery from a recipe or a family of arenas.

        Args:
            family: Name of a recipe or of a family that the server knows, for example
                "navigation"; the recipe if both have this name. Or a recipe of your own.
            instances: Number of instances. By default 450 of a family, and as many of a recipe as
                it asks for; another number scales the recipe's counts.
            seed: Seed of the drawing. By default 0 for a family, and the recipe's for a recipe.
            name: Name of the battery. By default that of the recipe or family, followed by a size
                or seed that is not the usual one: "navigation-60" or "navigation-60-seed7".
            replace: Whether the name may be taken from other content. Without it, the name of a
                recipe or family only ever stands for its usual battery.
            on_progress: Called with the operation whenever it has progressed.

        Raises:
            AnimalcatError: There is no such recipe or family, the name is taken, or the recipe is
                wrong; the message names the place.
        """
        own = None
        if isinstance(family, RecipeText):
            own = sessions_pb2.Recipe(
                file=family.file, text=family.text, families=dict(family.families)
            )
        request = sessions_pb2.BuildBatteryRequest(
            family="" if isinstance(family, RecipeText) else family,
            recipe=own,
            instances=instances,
            seed=seed or 0,
            recipe_seed=seed is None,
            name=name,
            replace=replace,
        )
        begun = await self._call(self._batteries.BuildBattery, request)
        return await self._await_battery(begun.operation, on_progress)

    async def delete_battery(self, battery: str) -> None:
        """Forget a battery that no session and no campaign was made with.

        Args:
            battery: Id or resource name.
        """
        request = sessions_pb2.DeleteBatteryRequest(name=battery_name(battery))
        await self._call(self._batteries.DeleteBattery, request)

    async def list_batteries(self, whose: OwnerFilter = OwnerFilter()) -> list[Battery]:
        """All batteries that one may see, by name; without their features.

        Args:
            whose: Only these of them.
        """
        request = sessions_pb2.ListBatteriesRequest(whose=encode(whose))
        pages = self._pages(
            self._batteries.ListBatteries, request, "batteries", partial(decode, Battery)
        )
        return [battery async for battery in pages]

    async def shipped_batteries(self) -> frozenset[str]:
        """Names of the batteries that come with the server; nothing else may take them."""
        request = sessions_pb2.ListBatteriesRequest(page_size=1)
        answer = await self._read(self._batteries.ListBatteries, request)
        return frozenset(answer.shipped)

    async def get_battery(self, battery: str) -> Battery:
        """One battery, with the meta-features that its instances may have.

        Args:
            battery: Id or resource name.
        """
        request = sessions_pb2.GetBatteryRequest(name=battery_name(battery))
        answer = await self._read(self._batteries.GetBattery, request)
        return replace(
            decode(Battery, answer.battery),
            features=tuple(map(partial(decode, Feature), answer.features)),
            manifest=json.loads(answer.manifest_json or "{}"),
        )

    def instances(self, battery: str, *, arenas: bool = False) -> AsyncGenerator[Instance]:
        """The instances of a battery with their meta-features, by name.

        Args:
            battery: Id or resource name.
            arenas: Whether each brings its arena, as YAML.
        """
        request = sessions_pb2.ListInstancesRequest(parent=battery_name(battery), arenas=arenas)
        convert, most = partial(decode, Instance), _PAGE_OF_ARENAS if arenas else _PAGE
        return self._pages(self._batteries.ListInstances, request, "instances", convert, most=most)

    async def list_layouts(
        self, whose: OwnerFilter = OwnerFilter(), *, texts: bool = False
    ) -> list[Layout]:
        """The layouts that one may see, the shipped ones first.

        Args:
            whose: Only these of them.
            texts: Whether those have their texts that are not shipped.
        """
        request = layouts_pb2.ListLayoutsRequest(texts=texts, whose=encode(whose))
        pages = self._pages(self._layouts.ListLayouts, request, "layouts", partial(decode, Layout))
        return [layout async for layout in pages]

    async def get_layout(self, layout: str, variant: str = "") -> Layout:
        """One layout with its text.

        Args:
            layout: Its digest, or the name of a shipped one.
            variant: Variant of a shipped one.
        """
        name = layout if "/" in layout else names.layout_name(layout)
        request = layouts_pb2.GetLayoutRequest(name=name, variant=variant)
        answer = await self._read(self._layouts.GetLayout, request)
        return decode(Layout, answer.layout)

    async def _await_battery(
        self, begun: operations_pb2.Operation, on_progress: OnProgress | None
    ) -> Battery:
        """The battery that an operation makes."""
        done = await self.wait(decode(Operation, begun), on_progress)
        return await self.get_battery(done.resource)

    async def _pages(
        self,
        method: Callable[[Any], Awaitable[Any]],
        request: Any,
        field: str,
        convert: Callable[[Any], _Value],
        limit: int | None = None,
        most: int = _PAGE,
    ) -> AsyncGenerator[_Value]:
        """What a list holds, page by page.

        Args:
            method: Asks for a page.
            request: What is asked for.
            field: Where the answer has the items.
            convert: Makes a value of an item.
            limit: How many items at most; None for all.
            most: Most items of a page.
        """
        left = sys.maxsize if limit is None else limit
        while left:
            request.page_size = min(left, most)
            answer = await self._read(method, request)
            items = getattr(answer, field)
            for message in items:
                yield convert(message)
            left -= len(items)
            request.page_token = answer.next_page_token
            if not request.page_token:
                return

    async def _call(
        self, method: Callable[[_Request], Awaitable[_Answer]], request: _Request
    ) -> _Answer:
        with translated_errors(self.address):
            return await method(request)

    async def _read(
        self, method: Callable[[_Request], Awaitable[_Answer]], request: _Request
    ) -> _Answer:
        """A call that changes nothing: it is made again where its connection broke meanwhile."""
        with translated_errors(self.address):
            for pause in _READ_PAUSES:
                try:
                    return await method(request)
                except grpc.aio.AioRpcError as error:
                    if not is_broken(error):
                        raise
                await asyncio.sleep(pause)
            return await method(request)

    async def _stream(
        self,
        method: Callable[[_Request], AsyncIterable[_Answer]],
        request: _Request,
        convert: Callable[[_Answer], _Value],
    ) -> AsyncGenerator[_Value]:
        """The messages with which a method answers; the call ends when nobody listens."""
        with translated_errors(self.address):
            answers = self._answers(method, request)
            async with aclosing(answers):
                async for message in answers:
                    yield convert(message)

    async def _answers(
        self, method: Callable[[_Request], AsyncIterable[_Answer]], request: _Request
    ) -> AsyncGenerator[_Answer]:
        """The same, with gRPC's own errors."""
        call: Any = method(request)
        try:
            async for message in call:
                yield message
        finally:
            call.cancel()


def checked_address(address: str) -> str:
    """The address of a server, if it is "host:port" or "unix:PATH".

    Raises:
        AnimalcatError: It is not.
    """
    if not isinstance(address, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise AnimalcatError(f"address is {address!r}; give HOST:PORT, as in 'localhost:{address}'")
    if address.startswith("unix:/"):
        return address
    if "://" in address:
        bare = address.partition("://")[2].rstrip("/")
        raise AnimalcatError(f"address {address!r} is an URL; give HOST:PORT alone, as in {bare!r}")
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise AnimalcatError(f"address {address!r} is not HOST:PORT, such as localhost:50051")
    return address


def session_name(session: SessionLike) -> str:
    """Resource name of a session.

    Raises:
        AnimalcatError: The name is malformed.
    """
    known: Any = getattr(session, "session", session)  # a result has it
    if isinstance(known, Session):
        return known.name
    if not isinstance(session, str):
        raise AnimalcatError(
            f"session is {session!r:.60} (a {type(session).__name__}); give its id, such as "
            "'mine-1a2b3c4d', the session, or its result",
            "INVALID_REQUEST",
        )
    try:
        return names.session_name(names.parse_session(session) if "/" in session else session)
    except names.BadNameError as error:
        raise AnimalcatError(str(error), "INVALID_NAME") from None


def _episode_name(session: SessionLike, episode: int, attempt: int | None) -> str:
    return names.episode_name(names.parse_session(session_name(session)), episode, attempt)


def _operation_name(operation: str | Operation) -> str:
    if isinstance(operation, Operation):
        return operation.name
    return operation if "/" in operation else names.operation_name(operation)


def _profile_name(session: SessionLike) -> str:
    return names.profile_name(names.parse_session(session_name(session)))


def _session_spec(
    agent: str, battery: str, layout: str | os.PathLike[str], variant: str
) -> sessions_pb2.SessionSpec:
    if not isinstance(agent, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise AnimalcatError(
            f"agent is a {type(agent).__name__}; give its name: the agent itself goes to evaluate",
            "INVALID_REQUEST",
        )
    named, definition = _named_layout(layout)
    return sessions_pb2.SessionSpec(
        agent=agent,
        battery=battery_name(battery) if battery else "",
        layout=named,
        layout_definition=definition,
        layout_variant=variant,
    )


def _options_by_place(
    kind: type, options: Mapping[str, Any], observation_spec: ObservationSpec | None
) -> dict[str, Any]:
    """What is asked for by options, by its place in the specification."""
    try:
        return given_options(kind, options, observation_spec)
    except ValueError as error:
        raise AnimalcatError(str(error), "INVALID_REQUEST") from error


def _number(enum: Any, text: str, what: str) -> Any:
    """The number of an enum of the wire that a word stands for."""
    try:
        return number(enum, text, what)
    except ValueError as error:
        raise AnimalcatError(str(error)) from error


def _whole(name: str, value: Any) -> int:
    """Insist on a whole number of 0 or more."""
    wrong = isinstance(value, bool) or not isinstance(value, SupportsIndex)
    if wrong or index(cast("SupportsIndex", value)) < 0:
        raise AnimalcatError(
            f"{name} is {value!r}; give a whole number of 0 or more", "INVALID_REQUEST"
        )
    return index(value)


def _named_layout(layout: Any) -> tuple[str, str]:
    """A layout's name, or the text of one's own; the other is empty.

    Args:
        layout: A name, a file, YAML text (which has a line break), or a layout.

    Raises:
        AnimalcatError: The file cannot be read; it is no layout.
    """
    if isinstance(layout, Layout):
        return (layout.title, "") if layout.shipped else ("", layout.text)
    if hasattr(layout, "to_yaml"):
        return "", str(layout.to_yaml())
    if not isinstance(layout, str | os.PathLike):
        raise AnimalcatError(
            f"layout is {layout!r:.60} (a {type(layout).__name__}); give a name such as 'aaio', a "
            "file, YAML text, or a layout of animalcat.layouts",
            "INVALID_REQUEST",
        )
    name = str(os.fspath(cast("str | os.PathLike[str]", layout)))
    if "\n" in name:
        return "", name
    if not is_yaml(name):
        return name, ""
    try:
        return "", _content(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AnimalcatError(f"{name}: not UTF-8 text (byte {error.start})") from error


def _arena_texts(
    source: str | os.PathLike[str] | Mapping[str, str],
) -> list[tuple[str, Callable[[], bytes]]]:
    """The arenas of a battery as files: their paths in it, and what reads each."""
    if not isinstance(source, Mapping):
        found = battery_files(Path(source)).files
        mark(Path(source) if os.path.isdir(source) else Path(source).parent)
        return [(relative, file.read_bytes) for relative, file in found]
    return [(f"{name}.yaml", partial(str.encode, text)) for name, text in source.items()]


def _csv(frame: DataFrame) -> bytes:
    """A pandas frame as a table; its index is the column `instance` where it has no such column.

    Raises:
        AnimalcatError: Neither names the arenas.
    """
    indexed = "instance" not in frame.columns
    if indexed and frame.index.dtype.kind in "iufb":
        raise AnimalcatError(
            "features has no column 'instance', and its index has numbers: name the arenas, as in "
            "features.set_index('NAME'), or in a column 'instance'",
            "INVALID_REQUEST",
        )
    text = frame.to_csv(index=indexed, index_label="instance" if indexed else None)
    return text.encode()


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise AnimalcatError(f"{path}: {error.strerror or 'cannot be read'}") from error
