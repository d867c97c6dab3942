"""What client and service both speak of: the values of sessions, campaigns and what goes with them.

Each stands here once: frozen, checked when it is made, stored as it is (`service.storage.records`)
and put on the wire by one codec (`animalcat.wire.codec`). `sessions` has what defines a session and
where it stands, `campaigns` several agents on one battery, `attempts` its episodes, `decisions`
why instances were chosen, `recordings` what was recorded, `profiles` the verdict, `batteries`
the arenas and layouts that there are, `owners` to whom things belong, and
`operations` what takes long. `options` is the table of what may be chosen for a session or a
campaign, which the command line and Python read.

Where a number or a time is None it is not set. Where a newer server says a word that this version
does not have, clients find None.
"""

from animalcat.extending.plugins import Plugin
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.values.attempts import (
    BY_DEFAULT,
    ENDS,
    NOTHING,
    Cause,
    End,
    Episode,
    Outcome,
    Ruling,
    Spent,
    Whose,
    cause_of,
)
from animalcat.values.batteries import Battery, Feature, Instance, Layout, MeasuredBy, RecipeText
from animalcat.values.campaigns import MAX_TAKE, Campaign, CampaignSpec
from animalcat.values.decisions import PRACTICE, Alternative, Decision, MadeAs, MadeInstance
from animalcat.values.operations import (
    Operation,
    OperationKind,
    OperationState,
    PlacedFit,
    PlacedWorker,
    ProcessPlacement,
    Refusal,
    ServerStanding,
)
from animalcat.values.owners import AuditLine, OwnerFilter, Ownership
from animalcat.values.profiles import AgentKind, PosteriorDraws, Verdict, verdict_of
from animalcat.values.recordings import EpisodeFooter, EpisodeHeader, RecordedStep
from animalcat.values.sessions import (
    MAX_EPISODES,
    MAX_SECRET,
    MAX_SLOTS,
    NOBODY,
    CapabilityStatus,
    Earlier,
    Identity,
    MeasuringStatus,
    Opponent,
    Session,
    SessionEvent,
    SessionNote,
    SessionSpec,
    SessionState,
    SessionVerification,
    Ticket,
    episodes_words,
)

__all__ = [
    "BY_DEFAULT",
    "ENDS",
    "MAX_EPISODES",
    "MAX_SECRET",
    "MAX_SLOTS",
    "MAX_TAKE",
    "NOBODY",
    "NOTHING",
    "PRACTICE",
    "AgentKind",
    "Alternative",
    "AuditLine",
    "Battery",
    "Campaign",
    "CampaignSpec",
    "CapabilityStatus",
    "Cause",
    "Decision",
    "Earlier",
    "End",
    "Episode",
    "EpisodeFooter",
    "EpisodeHeader",
    "Feature",
    "Identity",
    "Instance",
    "Layout",
    "MadeAs",
    "MadeInstance",
    "MeasuredBy",
    "MeasuringStatus",
    "Operation",
    "OperationKind",
    "OperationState",
    "Opponent",
    "Outcome",
    "OwnerFilter",
    "Ownership",
    "PlacedFit",
    "PlacedWorker",
    "Plugin",
    "Policy",
    "PosteriorDraws",
    "ProcessPlacement",
    "RecipeText",
    "RecordedStep",
    "Refusal",
    "Ruling",
    "ServerStanding",
    "Session",
    "SessionEvent",
    "SessionNote",
    "SessionSpec",
    "SessionState",
    "SessionVerification",
    "Spent",
    "StoppingRule",
    "Ticket",
    "Verdict",
    "Whose",
    "cause_of",
    "episodes_words",
    "verdict_of",
]


def __dir__() -> list[str]:
    """What there is, for completion: the public names, and not where they live."""
    return list(__all__)
