"""The table of what each role may call; what is not in it, nobody may call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from animalcat.service.access.callers import Role


class Own(Enum):
    """How a call of an agent is kept to the agent's own sessions."""

    NAMED = auto()
    """The request's `name` is that of a session, which must be the agent's."""
    LISTED = auto()
    """The servicer lists the agent's sessions alone."""
    FIRST_FRAME = auto()
    """The stream's first frame names a session; the servicer asks the gate."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may make a call.

    Attributes:
        roles: Those who may.
        public: Whether anyone may, without a token.
        own: How an agent is kept to its own sessions; None where agents may not call.
    """

    roles: frozenset[Role] = frozenset()
    public: bool = False
    own: Own | None = None


_READ: Final = Rule(frozenset({Role.OPERATOR, Role.VIEWER}))
_CHANGE: Final = Rule(frozenset({Role.OPERATOR}))
_EVERYONE: Final = Rule(public=True)
_PLAY: Final = Rule(frozenset({Role.AGENT, Role.OPERATOR}), own=Own.FIRST_FRAME)
_LIST_OWN: Final = Rule(frozenset(Role), own=Own.LISTED)
_READ_OWN: Final = Rule(frozenset(Role), own=Own.NAMED)

_TABLE: Final[Mapping[str, Mapping[str, Rule]]] = {
    "animalcat.v1.AgentGateway": {"Evaluate": _PLAY},
    "animalcat.v1.Access": {"GetTicket": _CHANGE},
    "animalcat.v1.Sessions": {
        "CreateSession": _CHANGE,
        "GetSession": _READ_OWN,
        "ListSessions": _LIST_OWN,
        "WatchSession": _READ,
        "VerifySession": _READ,
        "CancelSession": _CHANGE,
        "PauseSession": _CHANGE,
        "ResumeSession": _CHANGE,
        "ExtendSession": _CHANGE,
        "InvalidateEpisode": _CHANGE,
        "JudgeFailure": _CHANGE,
        "DismissAgents": _CHANGE,
        "DeleteSession": _CHANGE,
    },
    "animalcat.v1.Batteries": {
        "ImportBattery": _CHANGE,
        "BuildBattery": _CHANGE,
        "GetBattery": _READ,
        "ListBatteries": _READ,
        "ListInstances": _READ,
        "DeleteBattery": _CHANGE,
    },
    "animalcat.v1.Campaigns": {
        "CreateCampaign": _CHANGE,
        "GetCampaign": _READ,
        "ListCampaigns": _READ,
        "EndCampaign": _CHANGE,
        "DeleteCampaign": _CHANGE,
    },
    "animalcat.v1.Layouts": {"ListLayouts": _READ, "GetLayout": _READ},
    "animalcat.v1.Profiles": {"GetProfile": _READ, "GetDraws": _READ, "ExportProfile": _READ},
    "animalcat.v1.Episodes": {
        "ListEpisodes": _READ,
        "StreamEpisode": _READ,
        "ExplainEpisode": _READ,
    },
    "animalcat.v1.Operations": {
        "GetOperation": _READ,
        "ListOperations": _READ,
        "WatchOperation": _READ,
        "CancelOperation": _CHANGE,
        "GetPlacement": _READ,
    },
    # Whether the server is well is no secret: load balancers and containers ask without a token.
    "grpc.health.v1.Health": {"Check": _EVERYONE, "Watch": _EVERYONE, "List": _EVERYONE},
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo": _READ},
}

RULES: Final[Mapping[str, Rule]] = {
    f"/{service}/{method}": rule
    for service, rules in _TABLE.items()
    for method, rule in rules.items()
}
"""Rule by the full name of a call, as gRPC has it."""
