"""The table of what each role may call, of what, and what of it is audited.

What is not in it, nobody may call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, TypeAlias

from animalcat.service.access.callers import Role
from animalcat.service.errors import Code
from animalcat.text import names


class Reach(Enum):
    """Of what a role may make a call, by whose it is."""

    ALL = auto()
    """Of everything."""
    SEEN = auto()
    """Of what is the caller's own; and it may name batteries and layouts that belong to nobody."""
    OWN = auto()
    """Of what is the caller's own."""


class Own(Enum):
    """How a call of an agent is kept to the agent's own sessions."""

    NAMED = auto()
    """The request's `name` is that of a session, which must be the agent's."""
    LISTED = auto()
    """The servicer lists the agent's sessions alone."""
    FIRST_FRAME = auto()
    """The stream's first frame names a session; the servicer asks the gate."""


class Audited(Enum):
    """How a call is written into the audit log. Refusals are written in any case."""

    FIRST = auto()
    """Before it is done: what cannot be written is not done. What came of it is written after."""
    AFTER = auto()
    """When it is done, as soon as that can be written."""


Items: TypeAlias = tuple[str, ...]
"""Resource names of things that belong to somebody."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may make a call.

    Attributes:
        reach: Of what each role may make it; roles that are missing may not make it at all.
        about: The things that a request is about. None where the servicer shows the caller what it
            may see (lists), or asks the gate (streams of frames).
        made: What a call has made, of its answer.
        public: Whether anyone may, without a token.
        own: How an agent is kept to its own sessions; None where agents may not call.
        audited: How it is written into the audit log; None where it only reads.
    """

    reach: Mapping[Role, Reach] = field(default_factory=dict[Role, Reach])
    about: Callable[[Any], Items] | None = None
    made: Callable[[Any], Items] = lambda answer: ()
    public: bool = False
    own: Own | None = None
    audited: Audited | None = None

    @property
    def roles(self) -> frozenset[Role]:
        """The roles that may make it."""
        return frozenset(self.reach)


_READERS: Final = {
    Role.VIEWER: Reach.SEEN,
    Role.RESEARCHER: Reach.SEEN,
    Role.OPERATOR: Reach.ALL,
    Role.ADMINISTRATOR: Reach.ALL,
}
_RUNNERS: Final = {role: reach for role, reach in _READERS.items() if role is not Role.VIEWER}
_OWNERS: Final = {
    Role.RESEARCHER: Reach.OWN,
    Role.OPERATOR: Reach.OWN,
    Role.ADMINISTRATOR: Reach.ALL,
}
_ADMINISTRATORS: Final = {Role.ADMINISTRATOR: Reach.ALL}
_SERVER: Final = {Role.OPERATOR: Reach.ALL, Role.ADMINISTRATOR: Reach.ALL}


def _of(kind: str, parse: Callable[[str], Any], field: str = "name") -> Callable[[Any], Items]:
    """Return what reads the name of a thing in a request; parsed, so that nothing else gets on."""
    return lambda request: (f"{kind}/{parse(getattr(request, field))}",)


_PARSERS: Final[Mapping[str, Callable[[str], str]]] = {
    "sessions": names.parse_session,
    "campaigns": names.parse_campaign,
    "batteries": names.parse_battery,
    "layouts": names.parse_layout,
    "operations": names.parse_operation,
}
_SESSION, _CAMPAIGN, _BATTERY, _LAYOUT, _OPERATION = (_of(*kind) for kind in _PARSERS.items())
_EPISODE: Final = _of("sessions", lambda name: names.parse_episode(name).session)
_PROFILE: Final = _of("sessions", names.parse_profile)
_TICKET: Final = _of("sessions", names.parse_session, "session")
_INSTANCES: Final = _of("batteries", names.parse_battery, "parent")


def _episodes(request: Any) -> Items:
    """The session whose episodes are listed; of all sessions, the servicer lists what is seen."""
    every = request.parent == names.EVERY_SESSION
    return () if every else _of("sessions", names.parse_session, "parent")(request)


def _items_used(spec: Any) -> Items:
    """What sessions are made of: their battery, and the sessions that they face or go on from."""
    battery = _of("batteries", names.parse_battery, "battery")(spec) if spec.battery else ()
    others = (spec.against, spec.prior)
    return (*battery, *(item for other in others if other.session for item in _TICKET(other)))


def _anything(request: Any) -> Items:
    kind = request.name.partition("/")[0]
    if kind not in _PARSERS or kind == "operations":
        raise names.BadNameError(
            f"{request.name[:120]!r} names no session, campaign, battery or layout"
        )
    return _of(kind, _PARSERS[kind])(request)


UNKNOWN: Final[Mapping[str, Code]] = {
    "sessions": Code.UNKNOWN_SESSION,
    "campaigns": Code.UNKNOWN_CAMPAIGN,
    "batteries": Code.UNKNOWN_BATTERY,
    "layouts": Code.UNKNOWN_LAYOUT,
    "operations": Code.UNKNOWN_OPERATION,
}
"""What is said of something that there is not, by the first part of its name."""


def _read(about: Callable[[Any], Items] | None = None, own: Own | None = None) -> Rule:
    agents = {} if own is None else {Role.AGENT: Reach.SEEN}
    return Rule(_READERS | agents, about, own=own)


def _run(about: Callable[[Any], Items], audited: Audited = Audited.FIRST) -> Rule:
    return Rule(_RUNNERS, about, audited=audited)


def _create(about: Callable[[Any], Items], made: Callable[[Any], Items]) -> Rule:
    return Rule(_RUNNERS, about, made, audited=Audited.FIRST)


def _delete(about: Callable[[Any], Items]) -> Rule:
    return Rule(_OWNERS, about, audited=Audited.FIRST)


_EVERYONE: Final = Rule(public=True)
_AUDIT: Final = Rule(_ADMINISTRATORS)
_PLAY: Final = Rule(
    {Role.AGENT: Reach.SEEN, **_RUNNERS}, own=Own.FIRST_FRAME, audited=Audited.AFTER
)

_TABLE: Final[Mapping[str, Mapping[str, Rule]]] = {
    "animalcat.v1.AgentGateway": {"Evaluate": _PLAY},
    "animalcat.v1.Access": {
        "GetTicket": _run(_TICKET, Audited.AFTER),
        "HandOver": Rule(_ADMINISTRATORS, _anything, audited=Audited.FIRST),
        "ListAudit": _AUDIT,
    },
    "animalcat.v1.Sessions": {
        "CreateSession": _create(
            lambda request: _items_used(request.spec), lambda answer: (answer.session.name,)
        ),
        "GetSession": _read(_SESSION, Own.NAMED),
        "ListSessions": _read(own=Own.LISTED),
        "WatchSession": _read(_SESSION),
        "VerifySession": _read(_SESSION),
        "CancelSession": _run(_SESSION),
        "PauseSession": _run(_SESSION),
        "ResumeSession": _run(_SESSION),
        "ExtendSession": _run(_SESSION),
        "InvalidateEpisode": _run(_EPISODE),
        "JudgeFailure": _run(_SESSION),
        "DismissAgents": _run(_SESSION, Audited.AFTER),
        "NoteSession": _run(_SESSION),
        "ListNotes": _read(_SESSION),
        "DeleteSession": _delete(_SESSION),
    },
    "animalcat.v1.Batteries": {
        "ImportBattery": Rule(_OWNERS, audited=Audited.FIRST),
        "BuildBattery": Rule(_OWNERS, audited=Audited.FIRST),
        "GetBattery": _read(_BATTERY),
        "ListBatteries": _read(),
        "ListInstances": _read(_INSTANCES),
        "DeleteBattery": _delete(_BATTERY),
    },
    "animalcat.v1.Campaigns": {
        "CreateCampaign": _create(
            lambda request: _items_used(request.spec.session),
            lambda answer: (answer.campaign.name,),
        ),
        "GetCampaign": _read(_CAMPAIGN),
        "ListCampaigns": _read(),
        "DeleteCampaign": _delete(_CAMPAIGN),
    },
    "animalcat.v1.Layouts": {"ListLayouts": _read(), "GetLayout": _read(_LAYOUT)},
    "animalcat.v1.Profiles": {
        "GetProfile": _read(_PROFILE),
        "GetDraws": _read(_PROFILE),
        "ExportProfile": _read(_PROFILE),
    },
    "animalcat.v1.Episodes": {
        "ListEpisodes": _read(_episodes),
        "StreamEpisode": _read(_EPISODE),
        "ExplainEpisode": _read(_EPISODE),
    },
    "animalcat.v1.Operations": {
        "GetOperation": _read(_OPERATION),
        "ListOperations": _read(),
        "WatchOperation": _read(_OPERATION),
        "CancelOperation": _run(_OPERATION),
        # It names sessions of everybody.
        "GetPlacement": Rule(_SERVER),
    },
    # Whether the server is well is no secret: load balancers and containers ask without a token.
    "grpc.health.v1.Health": {"Check": _EVERYONE, "Watch": _EVERYONE, "List": _EVERYONE},
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo": _read()},
}

RULES: Final[Mapping[str, Rule]] = {
    f"/{service}/{method}": rule
    for service, rules in _TABLE.items()
    for method, rule in rules.items()
}
"""Rule by the full name of a call, as gRPC has it."""
