"""What the service keeps: the spec of a session, its decisions, episodes and certificates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any

from animalcat.envs.types import EndedBy, ObservationSpec
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import Allocation, Policy, StoppingRule
from animalcat.service.batteries.instance import Instance


class SessionState(IntEnum):
    """Where a session stands. The numbers are those of the wire."""

    WAITING = 1
    RUNNING = 2
    FINISHED = 3
    CANCELLED = 4
    FAILED = 5
    UNREADABLE = 6
    """Its record cannot be read; it is never stored, and nothing can be done but to delete it."""

    @property
    def over(self) -> bool:
        """True where no episode will follow."""
        return self >= SessionState.FINISHED


class Outcome(IntEnum):
    """What became of an episode. The numbers are those of the wire."""

    SUCCESS = 1
    FAILURE = 2
    VOID = 3
    FAULT = 4

    @property
    def counts(self) -> bool:
        """True where the episode is evidence."""
        return self <= Outcome.FAILURE


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """All that defines a session; nothing of it changes afterwards.

    Attributes:
        agent: Name of the agent.
        battery: Id of the battery.
        battery_digest: SHA-256 of the battery's content.
        layout: Name of the layout.
        layout_variant: Variant of the layout; the default one where empty.
        policy: How to choose.
        stop: When to stop.
        seed: Seed of everything random in the session.
        backend: What plays the arenas.
        observation_spec: What the agent sees.
        action_timeout_seconds: How long the agent may take for one action.
        record_pixels: Camera images go into the recordings.
        certify: NUTS refits certify the live posterior at checkpoints.
        slots: How many episodes may be played at once, each by an agent process of its own.
        layout_digest: SHA-256 of the layout as the store keeps it; empty in a session that is older
            than that.
        rules: Version of the rules of decision that the session goes by.
    """

    agent: str
    battery: str
    battery_digest: str = ""
    layout: str = "aaio"
    layout_variant: str = ""
    policy: Policy = field(default_factory=Policy)
    stop: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 0
    backend: str = "sim"
    observation_spec: ObservationSpec = field(default_factory=ObservationSpec)
    action_timeout_seconds: float = 60.0
    record_pixels: bool = False
    certify: bool = True
    slots: int = 1
    layout_digest: str = ""
    rules: int = 1


@dataclass(frozen=True, slots=True)
class Note:
    """What an agent remarked at a step, and what the step cost it.

    Attributes:
        text: The remark; empty where the note tells of cost alone.
        tokens_in: Tokens that a language model was given; None: not told.
        tokens_out: Tokens that it gave; None: not told.
        cost: What that cost; None: not told.
        currency: Currency of the cost, three letters of ISO 4217; empty without a cost.
    """

    text: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class CapabilityStatus:
    """How well one capability is known.

    Attributes:
        name: As the layout has it.
        mean: Posterior mean, in the unit.
        sd: Posterior standard deviation, in the unit.
        unit: Its unit.
        status: Where measuring it stands.
        episodes_needed: How many more its target is expected to take; None: the battery cannot
            reach it, or measuring is over.
        best_sd: Standard deviation that the whole battery leaves at best, in the unit; None: not
            known, or not yet.
        limit: In words, where the target cannot be reached with this battery.
    """

    name: str
    mean: float
    sd: float
    unit: str
    status: str
    episodes_needed: int | None = None
    best_sd: float | None = None
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """An instance that was made on demand, whole, so that nobody needs to make it again.

    Attributes:
        offer: Name of the offer that it was made for.
        instance: It, with the features that its arena has.
        arena_yaml: Its arena, fixed.
    """

    offer: str
    instance: Instance
    arena_yaml: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Why an instance was chosen.

    Attributes:
        instance: Name of the instance.
        score: The selector's score; the larger, the more it was worth.
        propensity: Probability with which the policy chose it.
        predicted: Predicted probability of success.
        margins: Per capability, its posterior mean minus the demand, in the unit.
        reason: Why, in a word.
        alternatives: The best that could have been played instead: instances and their scores.
        because: Why this and no other, in words, where there is more to say.
        made: The instance, where it was made on demand and is not in the battery.
        pending: Of how many earlier episodes the outcome was not known; the choice allows for them.
        peers: What else of its paradigm could have been played for the first time; None for a
            repeat, for what was made on demand, and where nothing chose by the battery.
    """

    instance: str
    score: float
    propensity: float
    predicted: float
    margins: Mapping[str, float]
    reason: str
    alternatives: tuple[tuple[str, float], ...] = ()
    because: str = ""
    made: Made | None = None
    pending: int = 0
    peers: Peers | None = None


class Cause(StrEnum):
    """Why an attempt did not come to its end, as far as it was nobody's fault in the backend."""

    AGENT_LEFT = "the agent left"
    WITHDREW = "the agent left before it had to do with the episode"
    ACTION_TIMEOUT = "the agent did not act in time"
    BAD_FRAMES = "the agent sent too many bad frames"
    CANCELLED = "the session was cancelled"
    SERVER_STOPPED = "the server stopped"
    SESSION_STOPPED = "the session stopped, since another of its slots failed"

    @property
    def blameless(self) -> bool:
        """True where it counts neither against the agent nor against what plays arenas."""
        return self in (Cause.SERVER_STOPPED, Cause.SESSION_STOPPED)


@dataclass(frozen=True, slots=True)
class Episode:
    """One try at an episode, open or finished. A finished one never changes.

    Attributes:
        session: Id of the session.
        number: Number within the session, from 0.
        attempt: Which try at this number, from 0.
        decision: Why its instance was chosen.
        agent_instance: Which process of the agent played it.
        outcome: None while it is open.
        episode_return: Sum of rewards.
        steps: Decisions taken.
        ended_by: Why it ended; None while it is open and where the agent left.
        cause: Why it was voided or a fault; empty otherwise.
        seconds: How long it took to play.
        outcomes: What was observed of a finished one, by source: "success", "return", "time_left",
            "rewards", "choice"; what does not apply is absent.
        versions: Versions of what played it, by package, and of a Unity build; empty while it is
            open, and in attempts that are older than that.
        unreadable: Why its record cannot be read; its decision then says nothing.
        invalid: Why a person declared its outcome invalid; it then does not count.
    """

    session: str
    number: int
    attempt: int
    decision: Decision
    agent_instance: str = ""
    outcome: Outcome | None = None
    episode_return: float = 0.0
    steps: int = 0
    ended_by: EndedBy | None = None
    cause: str = ""
    seconds: float = 0.0
    outcomes: Mapping[str, float] = field(default_factory=dict[str, float])
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    unreadable: str = ""
    invalid: str = ""

    @property
    def counts(self) -> bool:
        """True where it is evidence."""
        return self.outcome is not None and self.outcome.counts and not self.invalid

    @property
    def backend_fault(self) -> bool:
        """True where what plays arenas failed."""
        return self.outcome is Outcome.FAULT and self.cause not in (
            Cause.SERVER_STOPPED,
            Cause.SESSION_STOPPED,
        )

    @property
    def agents_void(self) -> bool:
        """True where the agent's doing ended the attempt and it was not counted."""
        return self.outcome is Outcome.VOID and self.cause not in (Cause.CANCELLED, Cause.WITHDREW)


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it is stored.

    Attributes:
        id: Id, the last component of its name.
        spec: What it was made with; of one that is unreadable agent and battery alone, if those.
        state: Where it stands.
        reason: Why it stopped, or cannot be read; empty while it goes on.
        created: When, with time zone.
        episodes: Episodes that counted.
        successes: Of those, successes.
        capabilities: As of the last decision, or of the profile.
        allowed: How many episodes may be begun for now, where a campaign hands them out; None: as
            many as the stopping rule lets be.
        misfit: Where predictions fail, once the alarm says that the layout does not describe the
            agent.
        paused: Whether a person has paused it.
    """

    id: str
    spec: SessionSpec
    state: SessionState
    reason: str
    created: datetime
    episodes: int = 0
    successes: int = 0
    capabilities: tuple[CapabilityStatus, ...] = ()
    misfit: str = ""
    allowed: int | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """All that defines a campaign: several agents on one battery, with one budget.

    Attributes:
        agents: Their names, each once, two at least.
        session: What their sessions are made with, but for the agent and for what the campaign
            sets itself: the list of instances that come first, and the stopping rule.
        allocation: How episodes are handed out.
    """

    agents: tuple[str, ...]
    session: SessionSpec
    allocation: Allocation


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign as it is stored; what was handed out stands in its sessions.

    Attributes:
        id: Id, the last component of its name.
        spec: What it was made with.
        sessions: Ids of its sessions, in the order of the agents.
        created: When, with time zone.
        reason: Why no more is handed out; empty while it goes on.
        unreadable: Why its record cannot be read; its spec then says nothing.
    """

    id: str
    spec: CampaignSpec
    sessions: tuple[str, ...]
    created: datetime
    reason: str = ""
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """The comparison of live posterior and NUTS at a checkpoint.

    Attributes:
        n: Episodes that the fit has seen.
        passed: The live posterior may stand.
        result: What was compared, as JSON values.
        draws: File of the fit's draws, relative to the data directory; empty where there are none.
    """

    n: int
    passed: bool
    result: Mapping[str, Any]
    draws: str = ""


@dataclass(frozen=True, slots=True)
class BatteryRecord:
    """A battery as lists show it.

    Attributes:
        id: Id, the last component of its name.
        digest: SHA-256 of its content.
        instances: How many instances it has.
        problems: Problems found in its files, one line each.
    """

    id: str
    digest: str
    instances: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LayoutRecord:
    """A layout that the store keeps, so that a session can be read without the file it came from.

    Attributes:
        digest: SHA-256 of it; the key.
        name: As the layout has it.
        variant: Variant of the layout; the default one where empty.
        text: The layout as YAML.
    """

    digest: str
    name: str
    variant: str
    text: str
