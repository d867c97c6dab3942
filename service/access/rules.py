"""The table of what each role may call, of what, and what of it is audited.

What is not in it, nobody may call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, TypeAlias

from animalcat import names
from animalcat.service.access.callers import Role
from animalcat.service.errors import Code


class Reach(Enum):
    """Of what a role may make a call, by whose it is."""

    ALL = auto()
    """Of everything."""
    SHARED = auto()
    """Of what is the caller's own or shared with one of its groups; and it may name batteries and
    layouts that belong to nobody."""
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
    Role.VIEWER: Reach.SHARED,
    Role.RESEARCHER: Reach.SHARED,
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


def _session(request: Any) -> Items:
    return (names.session_name(names.parse_session(request.name)),)


def _session_of_episode(request: Any) -> Items:
    return (names.session_name(names.parse_episode(request.name).session),)


def _session_of_episodes(request: Any) -> Items:
    parent = request.parent
    return () if parent == names.EVERY_SESSION else (_named(parent, names.parse_session),)


def _session_of_profile(request: Any) -> Items:
    return (names.session_name(names.parse_profile(request.name)),)


def _session_of_ticket(request: Any) -> Items:
    return (_named(request.session, names.parse_session),)


def _used(request: Any) -> Items:
    """What a session is to be made of: its battery, and the session that it is compared with."""
    used: list[str] = []
    if request.spec.battery:
        used.append(_named(request.spec.battery, names.parse_battery))
    if request.spec.against.session:
        used.append(_named(request.spec.against.session, names.parse_session))
    return tuple(used)


def _used_by_campaign(request: Any) -> Items:
    battery = request.spec.session.battery
    return (_named(battery, names.parse_battery),) if battery else ()


def _battery(request: Any) -> Items:
    return (_named(request.name, names.parse_battery),)


def _campaign(request: Any) -> Items:
    return (_named(request.name, names.parse_campaign),)


def _layout(request: Any) -> Items:
    return (_named(request.name, names.parse_layout),)


def _operation(request: Any) -> Items:
    return (_named(request.name, names.parse_operation),)


def _anything(request: Any) -> Items:
    kind = request.name.partition("/")[0]
    if kind not in _PARSERS:
        raise names.BadNameError(
            f"{request.name[:120]!r} names no session, campaign, battery or layout"
        )
    return (_named(request.name, _PARSERS[kind]),)


def _named(name: str, parse: Callable[[str], str]) -> str:
    """Return a name that was parsed, so that nothing else gets into the log."""
    return f"{name.partition('/')[0]}/{parse(name)}"


_PARSERS: Final[Mapping[str, Callable[[str], str]]] = {
    "sessions": names.parse_session,
    "campaigns": names.parse_campaign,
    "batteries": names.parse_battery,
    "layouts": names.parse_layout,
}
UNKNOWN: Final[Mapping[str, Code]] = {
    "sessions": Code.UNKNOWN_SESSION,
    "campaigns": Code.UNKNOWN_CAMPAIGN,
    "batteries": Code.UNKNOWN_BATTERY,
    "layouts": Code.UNKNOWN_LAYOUT,
    "operations": Code.UNKNOWN_OPERATION,
}
"""What is said of something that there is not, by the first part of its name."""
COMMON: Final = frozenset({"batteries", "layouts"})
"""Kinds of things that all may read where they belong to nobody."""


def _read(about: Callable[[Any], Items] | None = None, own: Own | None = None) -> Rule:
    agents = {} if own is None else {Role.AGENT: Reach.SHARED}
    return Rule(_READERS | agents, about, own=own)


def _run(about: Callable[[Any], Items], audited: Audited = Audited.FIRST) -> Rule:
    return Rule(_RUNNERS, about, audited=audited)


def _delete(about: Callable[[Any], Items]) -> Rule:
    return Rule(_OWNERS, about, audited=Audited.FIRST)


_EVERYONE: Final = Rule(public=True)
_AUDIT: Final = Rule(_ADMINISTRATORS)
_PLAY: Final = Rule(
    {Role.AGENT: Reach.SHARED, **_RUNNERS}, own=Own.FIRST_FRAME, audited=Audited.AFTER
)

_TABLE: Final[Mapping[str, Mapping[str, Rule]]] = {
    "animalcat.v1.AgentGateway": {"Evaluate": _PLAY},
    "animalcat.v1.Access": {
        "GetTicket": _run(_session_of_ticket, Audited.AFTER),
        "Share": _delete(_anything),
        "HandOver": Rule(_ADMINISTRATORS, _anything, audited=Audited.FIRST),
        "ListAudit": _AUDIT,
        "VerifyAudit": _AUDIT,
    },
    "animalcat.v1.Sessions": {
        "CreateSession": Rule(
            _RUNNERS,
            _used,
            lambda answer: (answer.session.name,),
            audited=Audited.FIRST,
        ),
        "GetSession": _read(_session, Own.NAMED),
        "ListSessions": _read(own=Own.LISTED),
        "WatchSession": _read(_session),
        "VerifySession": _read(_session),
        "CancelSession": _run(_session),
        "PauseSession": _run(_session),
        "ResumeSession": _run(_session),
        "ExtendSession": _run(_session),
        "InvalidateEpisode": _run(_session_of_episode),
        "JudgeFailure": _run(_session),
        "DismissAgents": _run(_session, Audited.AFTER),
        "DeleteSession": _delete(_session),
    },
    "animalcat.v1.Batteries": {
        "ImportBattery": Rule(_OWNERS, audited=Audited.FIRST),
        "BuildBattery": Rule(_OWNERS, audited=Audited.FIRST),
        "GetBattery": _read(_battery),
        "ListBatteries": _read(),
        "ListInstances": _read(lambda r: (_named(r.parent, names.parse_battery),)),
        "DeleteBattery": _delete(_battery),
    },
    "animalcat.v1.Campaigns": {
        "CreateCampaign": Rule(
            _RUNNERS,
            _used_by_campaign,
            lambda answer: (answer.campaign.name,),
            audited=Audited.FIRST,
        ),
        "GetCampaign": _read(_campaign),
        "ListCampaigns": _read(),
        "EndCampaign": _run(_campaign),
        "DeleteCampaign": _delete(_campaign),
    },
    "animalcat.v1.Layouts": {"ListLayouts": _read(), "GetLayout": _read(_layout)},
    "animalcat.v1.Profiles": {
        "GetProfile": _read(_session_of_profile),
        "ExportProfile": _read(_session_of_profile),
    },
    "animalcat.v1.Episodes": {
        "ListEpisodes": _read(_session_of_episodes),
        "StreamEpisode": _read(_session_of_episode),
        "ExplainEpisode": _read(_session_of_episode),
    },
    "animalcat.v1.Operations": {
        "GetOperation": _read(_operation),
        "ListOperations": _read(),
        "WatchOperation": _read(_operation),
        "CancelOperation": _run(_operation),
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
