"""Serves calls on sessions: create, get, list, watch, cancel, pause, resume and delete them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from animalcat.extending import plugins
from animalcat.layouts.adaptive.plan import POLICIES, RULES
from animalcat.service import calls
from animalcat.service.access.audit import Audit
from animalcat.service.access.belongings import whose_filter
from animalcat.service.access.callers import Caller, Role, present
from animalcat.service.access.secret import ServerSecret
from animalcat.service.calls import owner_of_new
from animalcat.service.errors import Code, ServiceError, unknown
from animalcat.service.ids import session_id
from animalcat.service.library.batteries import BatteryLibrary
from animalcat.service.library.bounded import read_bounded
from animalcat.service.library.layouts import (
    knows_agent,
    meant_layout,
    own_layout,
    record_of,
    refuse_known_agent,
)
from animalcat.service.library.plugins import plugins_of
from animalcat.service.measuring.against import facing, specify_comparison
from animalcat.service.measuring.coverage import taught_layout
from animalcat.service.measuring.earlier import insist_goes_on, insist_open
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.rpc.asked import asked_spec, checked_id, state_of
from animalcat.service.rpc.paging import page_of_list, stored_page
from animalcat.service.rpc.requests import Requests
from animalcat.service.session.engines import Engines
from animalcat.service.session.intact import look
from animalcat.service.session.turns import MAX_FAILURE
from animalcat.service.storage.audit import AuditFilter
from animalcat.service.storage.listing import Page, SessionFilter, WhoseFilter
from animalcat.text import names
from animalcat.text.terminals import harmless
from animalcat.v1 import sessions_pb2, sessions_pb2_grpc, types_pb2
from animalcat.values import (
    NOBODY,
    Earlier,
    Episode,
    Identity,
    Opponent,
    Ruling,
    Session,
    SessionNote,
    SessionSpec,
)
from animalcat.values.sessions import AS_WRITTEN
from animalcat.wire.codec import encode, word

MAX_NOTE: Final = 400
"""Most characters of a person's note."""
MOST_NOTES: Final = 100
"""Most notes that are listed."""
MAX_REASON: Final = 1000
"""Most characters of the reason why an outcome is invalid."""


class Sessions(sessions_pb2_grpc.SessionsServicer):
    """Servicer of test sessions."""

    def __init__(
        self,
        engines: Engines,
        library: BatteryLibrary,
        requests: Requests,
        clock: Callable[[], datetime],
        secret: ServerSecret,
        audit: Audit | None = None,
    ) -> None:
        self._secret = secret
        self._audit = audit
        self._engines = engines
        self._library = library
        self._requests = requests
        self._clock = clock

    async def CreateSession(  # noqa: N802
        self, request: sessions_pb2.CreateSessionRequest, context: Any
    ) -> sessions_pb2.CreateSessionResponse:
        """Create a session that waits for its agent; a repeated call returns the same session."""
        checked_id(request.request_id)
        definition = request.spec.layout_definition
        secret = None if request.spec.HasField("secret") else self._secret.of_session
        asked = asked_spec(request.spec)
        spec, measurement = await self.checked(
            replace(asked, prior=None), definition, secret=secret
        )
        identity = NOBODY
        if asked.prior is not None:
            prior, identity = await self._goes_on(spec, asked.prior.session, request.request_id)
            going_on = replace(asked, prior=prior)
            if measurement.learner.layout.counted:
                before = max(asked.played_before, sum(prior.episodes.values()))
                going_on = replace(going_on, played_before=before)
            spec, measurement = await self.checked(going_on, definition, secret=secret)
            await asyncio.to_thread(insist_open, measurement, prior.session)
        if spec.against is not None:
            opponent = await self._opponent(spec, spec.against.session, request.request_id)
            covered = sorted(measurement.coverage.features)
            faced = specify_comparison(spec, opponent, covered)
            spec, _ = await self.checked(faced, definition, secret=secret)
        try:
            session = await asyncio.to_thread(
                self._engines.parts.store.create_session,
                session_id(spec),
                spec,
                self._clock(),
                request.request_id,
                owner=owner_of_new(),
                identity=identity,
            )
        except ValueError as error:
            raise ServiceError(Code.REQUEST_ID_REUSED, str(error)) from error
        return sessions_pb2.CreateSessionResponse(session=encode(session))

    async def _opponent(self, spec: SessionSpec, session: str, request_id: str) -> Opponent:
        """Return what a new session faces; in a repeated call what it faced in the first one.

        The other session may have gone on meanwhile, or have been deleted.
        """
        known = await self._requested(request_id)
        faced = None if known is None else known.spec.against
        if faced is not None and faced.session == session:
            return faced
        other = await self._engines.stored(session)
        return facing(spec, other, await self._engines.episodes(other.id))

    async def _goes_on(
        self, spec: SessionSpec, session: str, request_id: str
    ) -> tuple[Earlier, Identity]:
        """Return what a new session knows from an earlier one, and who played that.

        In a repeated call it is what the first one found, as in `_opponent`.
        """
        known = await self._requested(request_id)
        prior = None if known is None else known.spec.prior
        if known is not None and prior is not None and prior.session == session:
            return prior, known.identity
        other = await self._engines.stored(session)
        insist_goes_on(spec, other)
        engine = await self._engines.get(session)
        return await engine.known(), other.identity

    async def _requested(self, request_id: str) -> Session | None:
        """Return the session that an earlier call with the same request id made; None if none."""
        if not request_id:
            return None
        return await asyncio.to_thread(self._engines.parts.store.requested, request_id)

    async def GetSession(  # noqa: N802
        self, request: sessions_pb2.GetSessionRequest, context: Any
    ) -> sessions_pb2.GetSessionResponse:
        """Return one session."""
        session = await self._engines.session(names.parse_session(request.name))
        return sessions_pb2.GetSessionResponse(session=encode(session))

    async def ListSessions(  # noqa: N802
        self, request: sessions_pb2.ListSessionsRequest, context: Any
    ) -> sessions_pb2.ListSessionsResponse:
        """List the sessions that match the request, newest first; for an agent, its own alone."""
        caller = present.get()
        if caller.role is Role.AGENT and caller.sessions:
            return await self._list_own(caller, request)
        agent, battery = request.agent, request.battery
        if caller.role is Role.AGENT:  # it must not find out by filters what its sessions are of
            agent, battery = caller.agent, ""
        asked = SessionFilter(
            agent=agent,
            battery=names.parse_battery(battery) if battery else "",
            states=tuple(map(state_of, request.states)),
            whose=whose_filter(request) if caller.role is not Role.AGENT else _of_agent(caller),
        )
        sessions = await self._engines.sessions(asked, stored_page(request))
        return sessions_pb2.ListSessionsResponse(
            sessions=map(encode, sessions), next_page_token=sessions.next
        )

    async def _list_own(
        self, caller: Caller, request: sessions_pb2.ListSessionsRequest
    ) -> sessions_pb2.ListSessionsResponse:
        """List the sessions to which an agent is restricted."""
        states = tuple(map(state_of, request.states))
        sessions: list[Session] = []
        for name in sorted(caller.sessions):
            with suppress(ServiceError):  # a session that was deleted
                session = await self._engines.session(name)
                if caller.plays(session) and (not states or session.state in states):
                    sessions.append(session)
        page = page_of_list(sessions, lambda session: session.id, request)
        return sessions_pb2.ListSessionsResponse(
            sessions=map(encode, page), next_page_token=page.next
        )

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def WatchSession(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request: sessions_pb2.WatchSessionRequest, context: Any
    ) -> None:
        """Stream a session's progress as it happens, until the session is over."""
        name = names.parse_session(request.name)
        session = await self._engines.session(name)
        sent: set[tuple[int, int, str]] = set()
        with self._engines.parts.bus.watch(name) as events:
            # Watch before reading, so that no event is missed; what comes twice is dropped.
            if request.from_start:
                for episode in await asyncio.to_thread(self._engines.parts.store.episodes, name):
                    if episode.outcome is not None:
                        sent.add(_version(episode))
                        await context.write(
                            sessions_pb2.WatchSessionResponse(
                                session=encode(session),
                                episode=encode(episode),
                            )
                        )
            session = await self._engines.session(name)
            await context.write(sessions_pb2.WatchSessionResponse(session=encode(session)))
            while not session.state.over:
                session, episode = await events.get()
                if episode is not None and _version(episode) in sent:
                    continue
                await context.write(
                    sessions_pb2.WatchSessionResponse(
                        session=encode(session),
                        episode=None if episode is None else encode(episode),
                    )
                )

    async def CancelSession(  # noqa: N802
        self, request: sessions_pb2.CancelSessionRequest, context: Any
    ) -> sessions_pb2.CancelSessionResponse:
        """Cancel a session and keep what it has learnt."""
        engine = await self._engines.get(names.parse_session(request.name))
        await self._requests.once(request, engine.cancel)
        return sessions_pb2.CancelSessionResponse(session=encode(engine.session))

    async def VerifySession(  # noqa: N802
        self, request: sessions_pb2.VerifySessionRequest, context: Any
    ) -> sessions_pb2.VerifySessionResponse:
        """Look whether a session is as it was stored."""
        session = names.parse_session(request.name)
        await self._engines.session(session)
        parts = self._engines.parts
        integrity = await asyncio.to_thread(look, parts.store, parts.files, session)
        return sessions_pb2.VerifySessionResponse(
            problems=integrity.problems,
            links=integrity.links,
            head=integrity.head,
            notes=integrity.notes,
        )

    async def PauseSession(  # noqa: N802
        self, request: sessions_pb2.PauseSessionRequest, context: Any
    ) -> sessions_pb2.PauseSessionResponse:
        """Begin no further episode until the session is resumed."""
        engine = await self._engines.get(names.parse_session(request.name))
        await self._requests.once(request, engine.pause)
        return sessions_pb2.PauseSessionResponse(session=encode(engine.session))

    async def ResumeSession(  # noqa: N802
        self, request: sessions_pb2.ResumeSessionRequest, context: Any
    ) -> sessions_pb2.ResumeSessionResponse:
        """Let a paused session go on."""
        engine = await self._engines.get(names.parse_session(request.name))
        await self._requests.once(request, engine.resume)
        return sessions_pb2.ResumeSessionResponse(session=encode(engine.session))

    async def ExtendSession(  # noqa: N802
        self, request: sessions_pb2.ExtendSessionRequest, context: Any
    ) -> sessions_pb2.ExtendSessionResponse:
        """Give a session more episodes, or a finer target."""
        session = names.parse_session(request.name)
        target = request.target_sd if request.HasField("target_sd") else None
        work = partial(self._engines.extend, session, request.max_episodes, target)
        await self._requests.once(request, work)
        extended = await self._engines.session(session)
        return sessions_pb2.ExtendSessionResponse(session=encode(extended))

    async def InvalidateEpisode(  # noqa: N802
        self, request: sessions_pb2.InvalidateEpisodeRequest, context: Any
    ) -> sessions_pb2.InvalidateEpisodeResponse:
        """Declare the outcome of an episode invalid."""
        if not 1 <= len(request.reason.strip()) <= MAX_REASON:
            raise ServiceError(
                Code.INVALID_REQUEST, f"reason: say why, in 1 to {MAX_REASON} characters"
            )
        session, number, attempt = names.parse_episode(request.name)
        engine = await self._engines.get(session)
        work = partial(engine.invalidate, number, attempt, request.reason)
        await self._requests.once(request, work)
        # Read back, since a repeated request is not done again.
        episodes = await self._engines.episodes(session)
        invalid = [played for played in episodes if played.number == number and played.invalid]
        episode = next(
            candidate for candidate in reversed(invalid) if attempt in (None, candidate.attempt)
        )
        return sessions_pb2.InvalidateEpisodeResponse(episode=encode(episode))

    async def JudgeFailure(  # noqa: N802
        self, request: sessions_pb2.JudgeFailureRequest, context: Any
    ) -> sessions_pb2.JudgeFailureResponse:
        """Say what episodes count as at which the agent's code failed."""
        ruling = word(types_pb2.Ruling, request.ruling)
        if ruling not in (Ruling.REPEAT, Ruling.FAILURE, Ruling.FAULT):
            raise ServiceError(
                Code.INVALID_REQUEST, "ruling: say what it counts as: repeat, failure or fault"
            )
        engine = await self._engines.get(names.parse_session(request.name))
        work = partial(engine.judge, Ruling(ruling))
        await self._requests.once(request, work)
        return sessions_pb2.JudgeFailureResponse(session=encode(engine.session))

    async def DismissAgents(  # noqa: N802
        self, request: sessions_pb2.DismissAgentsRequest, context: Any
    ) -> sessions_pb2.DismissAgentsResponse:
        """Take the agents of a session off."""
        engine = await self._engines.get(names.parse_session(request.name))
        session = await engine.dismiss(harmless(request.failure)[:MAX_FAILURE])
        return sessions_pb2.DismissAgentsResponse(session=encode(session))

    async def NoteSession(  # noqa: N802
        self, request: sessions_pb2.NoteSessionRequest, context: Any
    ) -> sessions_pb2.NoteSessionResponse:
        """Take a note on a session; the audit log keeps it."""
        await self._engines.session(names.parse_session(request.name))
        text = " ".join(request.text.split())
        if not 1 <= len(text) <= MAX_NOTE:
            raise ServiceError(Code.INVALID_REQUEST, f"text: write 1 to {MAX_NOTE} characters")
        calls.current.get().words = text
        return sessions_pb2.NoteSessionResponse()

    async def ListNotes(  # noqa: N802
        self, request: sessions_pb2.ListNotesRequest, context: Any
    ) -> sessions_pb2.ListNotesResponse:
        """List the latest notes on a session, newest first."""
        name = names.session_name(names.parse_session(request.name))
        wanted = AuditFilter(action="NoteSession", object=name)
        log = self._engines.parts.store.audit
        assert self._audit is not None, "a server keeps one"
        lines = await self._audit.lines(lambda: log.lines(wanted, Page(MOST_NOTES)))
        notes = [encode(SessionNote(n.created, n.subject, n.words)) for n in lines if n.words]
        return sessions_pb2.ListNotesResponse(notes=notes)

    async def DeleteSession(  # noqa: N802
        self, request: sessions_pb2.DeleteSessionRequest, context: Any
    ) -> sessions_pb2.DeleteSessionResponse:
        """Delete a session with its episodes and their recordings."""
        session = names.parse_session(request.name)
        await self._requests.once(request, partial(self._engines.delete, session))
        return sessions_pb2.DeleteSessionResponse()

    async def checked(
        self,
        spec: SessionSpec,
        definition: str = "",
        *,
        secret: Callable[[SessionSpec], str] | None = None,
        agents: Sequence[str] = (),
    ) -> tuple[SessionSpec, Measurement]:
        """Complete a specification with digests, and return it with the measurement it stands for.

        The layout is kept in the store from then on.

        Args:
            spec: The specification that is asked for.
            definition: Text of a layout of the caller's own; empty if the spec names a shipped one.
            secret: Gives the completed specification its secret; None to keep the one it has.
            agents: The agents of a campaign, none of which may have taught the layout.

        Raises:
            ServiceError: The backend, battery, layout or policy is unknown or refused, or no
                instance is covered.
            PluginError: One of them is another package's, whose code this server may not run, or
                it is broken.
        """
        _check_policy(spec)
        await asyncio.to_thread(self._engines.parts.workers.check, spec.backend)
        record = await self._library.find(spec.battery)
        battery = await self._engines.battery(record.digest)
        taught = not (spec.layout_variant or definition)
        variant = "" if spec.layout_variant == AS_WRITTEN else spec.layout_variant
        own = await read_bounded(own_layout, definition, variant) if definition else None
        layout = await asyncio.to_thread(meant_layout, battery, spec.layout, variant, own)
        if taught:
            calibrated = await asyncio.to_thread(taught_layout, battery, layout)
            layout = layout if knows_agent(calibrated, *agents, spec.agent) else calibrated
        refuse_known_agent(layout, spec.agent)
        spec = replace(
            spec,
            battery_digest=record.digest,
            layout=layout.name,
            layout_variant=layout.variant,
            layout_digest=layout.identity,
            rules=RULES,
            twins_of="",
            plugins=(),
        )
        used = await asyncio.to_thread(plugins_of, spec, battery, own_layout=bool(definition))
        spec = replace(spec, plugins=used)
        if secret is not None:
            spec = replace(spec, secret=secret(spec))
        measurement = await asyncio.to_thread(Measurement, spec, battery, layout)
        kept = replace(record_of(layout, definition), owner=owner_of_new() if definition else "")
        await asyncio.to_thread(self._engines.parts.store.put_layout, kept)
        return spec, measurement


def _of_agent(caller: Caller) -> WhoseFilter:
    """Return of whose sessions an agent is told: of everybody's, if its token says nobody's."""
    return WhoseFilter(seen_by=caller.subject or None)


def _version(episode: Episode) -> tuple[int, int, str]:
    """Return what differs between finished attempts, and when one is declared invalid."""
    return episode.number, episode.attempt, episode.invalid


def _check_policy(spec: SessionSpec) -> None:
    name = spec.policy.plugin
    if name and plugins.find("policy", name) is None:
        known = [*POLICIES, *plugins.names("policy")]
        raise unknown(
            Code.INVALID_REQUEST, "policy", name, [policy for policy in known if policy != "plugin"]
        )
