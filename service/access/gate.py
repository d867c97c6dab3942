"""Holds every call against the table of rules, and agents to their own sessions."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import grpc
from google.protobuf.message import DecodeError, Message

from animalcat.service import calls
from animalcat.service.access import rates
from animalcat.service.access.audit import Audit
from animalcat.service.access.callers import MACHINE, Caller, Role, present
from animalcat.service.access.oidc import IdentityProvider
from animalcat.service.access.rates import Rates
from animalcat.service.access.rules import RULES, UNKNOWN, Audited, Own, Reach, Rule
from animalcat.service.access.tickets import Tickets
from animalcat.service.access.tokens import TokenError, Tokens, utc_now
from animalcat.service.errors import KINDS, Code, DeniedError, ServiceError, public
from animalcat.service.logs import tell
from animalcat.service.session.notes import Purse
from animalcat.service.storage.owners import COMMON
from animalcat.service.texts import check_texts
from animalcat.text import names
from animalcat.v1 import sessions_pb2
from animalcat.values import Session

log = logging.getLogger(__name__)

REVIEW_SECONDS: Final = 1.0
"""How often it is looked whether the token of an open stream is still good."""
TOKEN_ENDED: Final = "the token was revoked or has expired meanwhile"
"""Why a stream is ended whose caller's token is no longer good; also what its task is told."""
_BEARER: Final = "Bearer "
_NO_TOKEN: Final = (
    "this server asks for a token: give token= or --token, or set ANIMALCAT_TOKEN. The server's "
    "operator makes one with: animalcat token create"
)


class KnowsSessions(Protocol):
    """Has the sessions of the server."""

    async def session(self, session: str) -> Session:
        """Return a session; raise `ServiceError` if there is none."""
        ...


class Known(Protocol):
    """Is told whose connections are."""

    def admitted(self, peer: str, caller: str, most: int) -> AbstractContextManager[None]:
        """Know a connection for a caller's, who may have so many, for a call and after."""
        ...


class KnowsOwners(Protocol):
    """Knows to whom things belong."""

    async def whose(self, item: str) -> str:
        """Return the owner of what has this resource name; empty where nobody has it."""
        ...

    async def there(self, item: str) -> bool:
        """Return whether there is something of this resource name."""
        ...


class Gate:
    """What decides who may call; used on one event loop only.

    Attributes:
        tickets: Makes tickets, and knows them.
        tokens: The tokens.
        audit: The audit log; None where none is kept.
    """

    def __init__(
        self,
        data: Path,
        sessions: KnowsSessions,
        clock: Callable[[], datetime] = utc_now,
        *,
        owners: KnowsOwners | None = None,
        audit: Audit | None = None,
        provider: IdentityProvider | None = None,
    ) -> None:
        """Read the key of tickets.

        Args:
            data: The data directory.
            sessions: Has the sessions.
            clock: Returns the current time with time zone, by which tokens and tickets end.
            owners: Knows to whom things belong; None where nothing belongs to anybody.
            audit: The audit log; None for none.
            provider: Whose tokens are taken beside our own; None for nobody's.
        """
        self.audit = audit
        self._owners = owners
        self._provider = provider
        self.tickets = Tickets(data, clock)
        self.tokens = Tokens(data, clock)
        self._sessions = sessions
        self._rates = Rates()

    async def recognise(self, shown: str | None, *, open_to_machine: bool) -> Caller:
        """Return who calls, also by a token of an identity provider; see `identify`."""
        text = (shown or "").removeprefix(_BEARER).strip()
        if self._provider is not None and self._provider.made(text):
            return await self._provider.caller(text)
        return self.identify(shown, open_to_machine=open_to_machine)

    async def recognise_agent(self, shown: str | None) -> Caller:
        """Return who shows a ticket: nothing else counts where agents come that were started here.

        Raises:
            ServiceError: What is shown is no good ticket, whatever else it may be.
        """
        if not shown:
            raise ServiceError(Code.NO_TOKEN, _NO_TOKEN)
        caller = self.tickets.caller(shown.removeprefix(_BEARER).strip())
        if caller is None or caller.role is not Role.AGENT:
            raise ServiceError(
                Code.BAD_TOKEN,
                "this address is for agents, which show a valid ticket for a session; people call "
                "the server's own address",
            )
        return caller

    def identify(self, shown: str | None, *, open_to_machine: bool) -> Caller:
        """Return who calls.

        Args:
            shown: The header `authorization`; None if there is none.
            open_to_machine: Whether whoever shows nothing is admitted as of this machine.

        Raises:
            ServiceError: What is shown is no good token or ticket, or nothing is and must be.
        """
        if not shown:
            if open_to_machine:
                return MACHINE
            raise ServiceError(Code.NO_TOKEN, _NO_TOKEN)
        text = shown.removeprefix(_BEARER).strip()
        if (caller := self.tickets.caller(text)) is not None:
            return caller
        try:
            token = self.tokens.find(text)
            ended = "" if token is None else token.ended(self.tokens.now())
        except TokenError as error:
            log.error("%s", error)
            raise ServiceError(Code.ACCESS_CLOSED) from error
        if token is None or ended:
            why = f"was {ended}" if ended == "revoked" else "has expired" if ended else "is unknown"
            raise ServiceError(
                Code.BAD_TOKEN, f"the token {why}; ask the server's operator for another"
            )
        return token.caller

    def admit(self, method: str, caller: Caller) -> Rule:
        """Return the rule of a call, if the caller may make it at all.

        Raises:
            ServiceError: It may not, or it calls too often.
        """
        rule = RULES.get(method, Rule())
        if rule.public:
            return rule
        if caller.role not in rule.roles:
            raise DeniedError(
                Code.FORBIDDEN,
                f"a token for {caller.role.words} may not call {method.rpartition('/')[2]}",
            )
        if caller is not MACHINE:
            self._rates.call(caller.id)
        return rule

    async def check_session(self, caller: Caller, session: str) -> None:
        """Check that a caller may play a session, or an agent ask for it.

        An agent is told the same of a session of others as of one that does not exist.

        Raises:
            DeniedError: It may not.
        """
        if caller.role is not Role.AGENT:
            await self.check(caller, Reach.SEEN, names.session_name(session))
            return
        with suppress(ServiceError):
            if caller.plays(await self._sessions.session(session)):
                return
        raise DeniedError(
            Code.UNKNOWN_SESSION, f"no session named {session!r} is yours to play; check its name"
        )

    async def check(self, caller: Caller, reach: Reach, *items: str) -> None:
        """Check that a caller may deal with things.

        Whoever may not see something is told the same as of what does not exist.

        Args:
            caller: Who calls.
            reach: Of what it may make its call.
            items: Resource names of the things.

        Raises:
            DeniedError: It may not.
        """
        everything = caller.role in (Role.OPERATOR, Role.ADMINISTRATOR)
        if reach is Reach.ALL or (reach is Reach.SEEN and everything) or self._owners is None:
            return
        for item in items:
            owner = await self._owners.whose(item)
            kind, _, name = item.partition("/")
            common = kind in COMMON and not owner
            if (owner and owner == caller.subject) or (reach is Reach.SEEN and common):
                continue
            if everything or common:
                raise DeniedError(
                    Code.FORBIDDEN,
                    f"{item} belongs to {owner or 'nobody'}; only its owner or an administrator "
                    "may do that",
                )
            raise DeniedError(
                UNKNOWN[kind],
                f"nothing named {name!r} is yours; check its name",
            )

    async def check_new(self, caller: Caller, item: str, *, replaces: bool) -> None:
        """Check that a caller may let a name stand for something.

        Args:
            caller: Who calls.
            item: The resource name.
            replaces: Whether it would take the place of what has the name.

        Raises:
            DeniedError: The name stands for what the caller may not see, or not replace.
        """
        call = calls.current.get()
        call.about = (item,)
        if self._owners is None or RULES[call.method].reach[caller.role] is Reach.ALL:
            return
        if await self._owners.there(item):
            try:
                await self.check(caller, Reach.OWN if replaces else Reach.SEEN, item)
            except DeniedError as error:
                raise DeniedError(
                    Code.NAME_TAKEN, f"{item} exists already and is not yours: give another name"
                ) from error

    async def serve(
        self,
        rule: Rule,
        caller: Caller,
        work: Callable[[Any, Any], Awaitable[Any]],
        request: Any,
        context: Any,
        *,
        stream: bool,
    ) -> Any:
        """Do the work of a call for a caller that was admitted.

        Args:
            rule: The rule of the call.
            caller: Who calls.
            work: The servicer's method.
            request: Its first argument.
            context: Its second argument.
            stream: Whether it is a stream of frames in any direction.

        Raises:
            ServiceError: The caller may not deal with what the request is about, asks for too
                much, or shows a token that is no longer good.
        """
        present.set(caller)
        tell(caller=caller.words)
        call = calls.current.get()
        call.subject = caller.subject
        asked: object = request
        if isinstance(asked, Message):  # who reads a stream checks its frames
            check_texts(asked)
        if rule.about is not None:
            call.about = rule.about(request)
            if caller.role is not Role.AGENT:  # those are kept to what they play, below
                await self.check(caller, rule.reach[caller.role], *call.about)
        if rule.audited is not None and rule.own is not Own.FIRST_FRAME and self.audit is not None:
            work = partial(self._audit, self.audit, rule, caller, work)
        if caller is MACHINE:
            return await work(request, context)
        if rule.own is Own.NAMED:
            await self.check_session(caller, names.parse_session(request.name))
        try:
            if stream:
                with self._rates.stream(caller.id):
                    return await self._while_good(caller, work(request, context))
            answer = await work(request, context)
        except ServiceError as error:
            raise _without_others(error, rule.reach[caller.role]) from error
        return _shown_to_agent(answer) if caller.role is Role.AGENT else answer

    async def _audit(
        self,
        audit: Audit,
        rule: Rule,
        caller: Caller,
        work: Callable[[Any, Any], Awaitable[Any]],
        request: Any,
        context: Any,
    ) -> Any:
        """Do the work of a call, and write into the audit log that it was done.

        Raises:
            ServiceError: The log cannot be written, and the work was not begun; or the work failed.
        """
        call = calls.current.get()
        begun = await audit.begin(caller) if rule.audited is Audited.FIRST else 0
        try:
            answer = await work(request, context)
        except asyncio.CancelledError:
            audit.note(caller, "CANCELLED", "the caller did not wait for the end", begun=begun)
            raise
        except Exception as error:
            shown = public(error)
            audit.note(caller, shown.code.value, shown.message, begun=begun)
            call.written = True
            raise shown from error
        call.about = (*call.about, *rule.made(answer))
        audit.note(caller, "done", call.words, begun=begun)
        return answer

    async def _while_good(self, caller: Caller, call: Awaitable[Any]) -> Any:
        """Do the work of a stream until it ends, or the caller's token does."""
        work = asyncio.ensure_future(call)
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            while True:
                await asyncio.wait({work}, timeout=REVIEW_SECONDS)
                if work.done():
                    return work.result()
                if not self._still_good(caller):
                    work.cancel(TOKEN_ENDED)
                    raise ServiceError(Code.BAD_TOKEN, TOKEN_ENDED)
        finally:
            if not work.done():
                if not work.cancelling():
                    work.cancel()
                await asyncio.wait({work})

    def _still_good(self, caller: Caller) -> bool:
        if caller.until is not None:
            return True  # looked at when it was shown; the session's end ends it
        if caller.expires is not None:
            return caller.expires > self.tokens.now()
        with suppress(TokenError):
            return self.tokens.good(caller.id)
        return False

    def admits(self, caller: Caller) -> bool:
        """Return whether a caller could come again, because what it shows is still good."""
        if caller.until is not None:
            return caller.until > self.tickets.now()
        return caller is MACHINE or self._still_good(caller)

    def most_connections(self, caller: Caller) -> int:
        """Return how many connections a caller may have at once; 0 for no limit."""
        return 0 if caller is MACHINE else 2 * rates.STREAMS

    def purse(self, caller: Caller) -> Purse | None:
        """Return the budget of a caller's notes; None where it has none."""
        return None if caller is MACHINE else self._rates.purse(caller.id)


class AccessInterceptor(grpc.aio.ServerInterceptor):
    """Lets a call through to its servicer if the gate admits the caller.

    It stands behind `ErrorInterceptor`, which turns the errors that it raises into statuses.
    """

    def __init__(
        self, gate: Gate, known: Known, recognise: Callable[[str | None], Awaitable[Caller]]
    ) -> None:
        """Guard one address of the server.

        Args:
            gate: Decides.
            known: Is told whose a connection is.
            recognise: Returns who calls there, by what the caller shows.
        """
        self._gate = gate
        self._known = known
        self._recognise = recognise

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Guard the method, whichever of gRPC's four kinds it is."""
        handler = await continuation(handler_call_details)
        if handler is None:  # gRPC itself answers calls of unknown methods
            return None
        kind = next(kind for kind in KINDS if getattr(handler, kind) is not None)
        method, work = handler_call_details.method, getattr(handler, kind)
        shown = dict(handler_call_details.invocation_metadata or ()).get("authorization")
        gate, rule = self._gate, RULES.get(method, Rule())
        caller: Caller | None = None
        try:
            if rule.public and not shown:
                return handler
            text = shown.decode() if isinstance(shown, bytes) else shown
            caller = await self._recognise(text)
            rule = gate.admit(method, caller)
        except ServiceError as error:
            return _refusing(handler, kind, error, caller, rule)
        if rule.public or not inspect.iscoroutinefunction(work):
            return handler  # health, and reflection, which is a generator

        async def guard_call(request: Any, context: Any) -> Any:
            stream = kind != "unary_unary"
            most = gate.most_connections(caller)
            with self._known.admitted(context.peer(), caller.id, most):
                return await gate.serve(rule, caller, work, request, context, stream=stream)

        return KINDS[kind](guard_call, handler.request_deserializer, handler.response_serializer)


def _refusing(
    handler: grpc.RpcMethodHandler[Any, Any],
    kind: str,
    error: ServiceError,
    caller: Caller | None,
    rule: Rule,
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return a handler that answers every call with an error, whatever is in the call.

    What a caller who is known asks for is read all the same, for the audit log.
    """
    reads: Any = handler.request_deserializer

    async def refuse(request: Any, context: Any) -> Any:
        if caller is not None:
            present.set(caller)
            if rule.about is not None and kind.startswith("unary"):
                with suppress(DecodeError, names.BadNameError):
                    calls.current.get().about = rule.about(reads(request))
        raise error

    return KINDS[kind](refuse, bytes, handler.response_serializer)


_LISTING: Final = frozenset(UNKNOWN.values())
"""Codes of errors that name what there is, of whomever."""


def _without_others(error: ServiceError, reach: Reach) -> ServiceError:
    """Return an error without the names of what there is, for those who may not see all of it."""
    if error.code not in _LISTING or reach is Reach.ALL or isinstance(error, DeniedError):
        return error
    said = error.message.partition("; there are: ")[0]
    return ServiceError(error.code, said, retry_seconds=None)


def _shown_to_agent(answer: Any) -> Any:
    """Return an answer without what an agent must not know."""
    if isinstance(answer, sessions_pb2.GetSessionResponse):
        return sessions_pb2.GetSessionResponse(session=known_to_agent(answer.session))
    if isinstance(answer, sessions_pb2.ListSessionsResponse):
        return sessions_pb2.ListSessionsResponse(
            sessions=map(known_to_agent, answer.sessions), next_page_token=answer.next_page_token
        )
    return sessions_pb2.ListSessionsResponse()


def known_to_agent(session: sessions_pb2.Session) -> sessions_pb2.Session:
    """Return a session as its agent may see it: what its welcome says, and where it stands."""
    spec = session.spec
    shown = sessions_pb2.SessionSpec(
        agent=spec.agent,
        observation_spec=spec.observation_spec if spec.HasField("observation_spec") else None,
        stop=sessions_pb2.StoppingRule(max_episodes=spec.stop.max_episodes),
        action_timeout_seconds=spec.action_timeout_seconds,
        slots=spec.slots,
        allowance=spec.allowance if spec.HasField("allowance") else None,
    )
    return sessions_pb2.Session(
        name=session.name,
        spec=shown,
        state=session.state,
        episodes=session.episodes,
        create_time=session.create_time,
        withheld=True,
    )
