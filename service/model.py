"""Defines the values that the service stores: specifications, decisions, episodes, certificates."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Final, NamedTuple

from animalcat.envs.agents.base import UNLIMITED, Allowance
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.types import EndedBy, ObservationSpec
from animalcat.layouts.adaptive.battery_rate import Wager
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import RULES, Allocation, Policy, StoppingRule
from animalcat.ranges import Range, check_ranges
from animalcat.service.batteries.instance import Instance

MAX_EPISODES: Final = 100_000
"""Most episodes of one session."""
MAX_THINKING: Final = 10_000_000
"""Most seconds of thinking that an allowance may name; about four months."""
MAX_TOKENS: Final = 10**15
"""Most tokens that an allowance may name."""
MAX_SECRET: Final = 200
"""Most characters of a secret."""
MAX_SLOTS: Final = 64
"""Most episodes of one session played at once."""


class SessionState(IntEnum):
    """Where a session stands. The numbers are those of the wire."""

    WAITING = 1
    RUNNING = 2
    FINISHED = 3
    CANCELLED = 4
    FAILED = 5
    UNREADABLE = 6
    """The record cannot be read. This state is never stored; the session can only be deleted."""

    @property
    def over(self) -> bool:
        """Whether no episode will follow."""
        return self >= SessionState.FINISHED


class Outcome(IntEnum):
    """What became of an episode. The numbers are those of the wire."""

    SUCCESS = 1
    FAILURE = 2
    VOID = 3
    FAULT = 4

    @property
    def counts(self) -> bool:
        """Whether the episode is evidence."""
        return self <= Outcome.FAILURE


@dataclass(frozen=True, slots=True)
class Opponent:
    """Another agent's outcomes, with which a session is compared.

    Attributes:
        session: Id of the other agent's session.
        agent: Name of the other agent.
        outcomes: 1 for success and 0 for failure, by instance, as they stood when the session was
            created.
    """

    session: str = ""
    agent: str = ""
    outcomes: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """Everything that defines a session; it never changes afterwards.

    Attributes:
        agent: Name of the agent.
        battery: Id of the battery.
        battery_digest: SHA-256 of the battery's content.
        layout: Name of the layout; empty for the one that the battery names.
        layout_variant: Variant of the layout; empty for the default one.
        policy: How to choose instances.
        stop: When to stop.
        seed: Seed of everything random in the session.
        backend: What plays the arenas.
        observation_spec: What the agent sees.
        action_timeout_seconds: How long the agent may take to answer an observation.
        record_pixels: Whether recordings contain the camera's images.
        certify: Whether refits by NUTS certify the live posterior at checkpoints.
        slots: Number of episodes that may be played at once, each by an agent process of its own.
        layout_digest: SHA-256 of the layout as the store keeps it; empty until the session is made.
        rules: Version of the decision rules that the session follows.
        fresh: Whether every instance is played as a twin, an arena of the session's own with the
            same demands.
        twins_of: What the twins are drawn for: the campaign, whose sessions share them; empty for
            the session alone.
        against: Another agent's outcomes, from which the session is to tell its agent apart; None
            for a session that only measures.
        lease_seconds: How long an agent whose connection broke may take to come back to the step
            that it left; 0 for not at all.
        allowance: What the agent may spend on an episode and on a decision.
        practice: How many unscored episodes come first, on arenas that are not used again.
        keep_unpassable: Whether arenas that no play can pass are played too.
        secret: What all chance follows from beside the seed, so that no agent can work it out;
            empty for the seed alone.
    """

    agent: str
    battery: str
    battery_digest: str = ""
    layout: str = ""
    layout_variant: str = ""
    policy: Policy = field(default_factory=Policy)
    stop: StoppingRule = field(default_factory=StoppingRule)
    seed: Annotated[int, Range(0, 2**64 - 1)] = 0
    backend: str = "sim"
    observation_spec: ObservationSpec = field(default_factory=ObservationSpec)
    action_timeout_seconds: Annotated[float, Range(0, 86_400, above=True)] = 60.0
    record_pixels: bool = False
    certify: bool = True
    slots: Annotated[int, Range(1, MAX_SLOTS)] = 1
    layout_digest: str = ""
    rules: int = RULES
    fresh: bool = False
    twins_of: str = ""
    against: Opponent | None = None
    lease_seconds: Annotated[float, Range(0, 3600)] = 30.0
    allowance: Allowance = UNLIMITED
    practice: Annotated[int, Range(0, MAX_EPISODES)] = 0
    keep_unpassable: bool = False
    secret: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.stop.max_episodes > MAX_EPISODES:
            raise _bad("stop.max_episodes", f"1 to {MAX_EPISODES}")
        if len(self.secret) > MAX_SECRET:
            raise _bad("secret", f"at most {MAX_SECRET} characters")
        if not 0.0 <= self.allowance.episode_seconds <= MAX_THINKING:
            raise _bad("allowance.episode_seconds", f"0 (any number) to {MAX_THINKING}")
        tokens = (self.allowance.decision_tokens, self.allowance.episode_tokens)
        if min(tokens) < 0 or max(tokens) > MAX_TOKENS:
            raise _bad("allowance", f"at most {MAX_TOKENS} tokens, or 0 for any number")
        if self.observation_spec.camera is None and self.observation_spec.rays is None:
            raise _bad("observation_spec", "a camera, rays or both")
        if self.observation_spec.privileged and self.backend != "sim":
            raise ValueError(
                f"observation_spec.privileged: the backend {self.backend} does not tell the state "
                'of an arena; choose the backend "sim", or a session that is not privileged'
            )

    @property
    def root(self) -> int:
        """Seed from which the service draws: arenas, fits, twins. No agent is given it."""
        return self.root_of("session")

    def root_of(self, purpose: str) -> int:
        """Return a seed for draws of one kind, of which those of another kind tell nothing.

        Args:
            purpose: The kind; what agents are given is of another than what they must not know.
        """
        if not self.secret:
            return self.seed
        said = hmac.digest(self.secret.encode(), f"{purpose}/{self.seed}".encode(), "sha256")
        return int.from_bytes(said[:8]) >> 1  # as a seed of the wire, which has 63 bits


def _bad(field: str, wanted: str) -> ValueError:
    return ValueError(f"{field} is out of range; give {wanted}")


@dataclass(frozen=True, slots=True)
class Spent:
    """What an agent spent on an attempt at an episode, or on several.

    Attributes:
        thinking_seconds: Seconds between what it was asked and its answers, as the server saw it.
        tokens_in: Sum of the tokens that its notes say a language model was given.
        tokens_out: Sum of the tokens that its notes say the model returned.
        costs: Sums of what its notes say that cost, by currency.
    """

    thinking_seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    costs: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def tokens(self) -> int:
        """Sum of all tokens."""
        return self.tokens_in + self.tokens_out


NOTHING: Final = Spent()
"""What is spent before there is anything to answer."""


@dataclass(frozen=True, slots=True)
class CapabilityStatus:
    """How well one capability is known.

    Attributes:
        name: Name of the capability in the layout.
        mean: Posterior mean, in the unit.
        sd: Posterior standard deviation, in the unit.
        unit: Unit of the capability.
        status: Where its measurement stands.
        episodes_needed: How many more episodes its target is expected to take; None if the battery
            cannot reach it, or measuring is over.
        best_sd: Lowest standard deviation that the whole battery could leave, in the unit; None if
            not known (yet).
        limit: Why its target cannot be reached with this battery, in words; empty if it can.
        value: The mean as people read it, in the unit of a demand where it can be: "21 m".
        interval: About 90 % interval in the same unit.
    """

    name: str
    mean: float
    sd: float
    unit: str
    status: str
    episodes_needed: int | None = None
    best_sd: float | None = None
    limit: str = ""
    value: str = ""
    interval: str = ""


class MadeAs(StrEnum):
    """What an instance that is not in the battery was made as."""

    OFFER = "offer"
    """For demands that the session wanted and the battery lacks."""
    TWIN = "twin"
    """A new arena of the same family, in the place of an instance of the battery."""
    VARIATION = "variation"
    """The same arena turned, shifted, mirrored or in other colours, in the place of an instance."""


@dataclass(frozen=True, slots=True)
class Made:
    """An instance that a session made, stored complete so that nobody needs to make it again.

    Attributes:
        offer: Name of the offer that it was made for, or of the battery's instance in whose place
            it is.
        instance: The instance, with the features that its arena has.
        arena_yaml: Its fixed arena, as YAML.
        made_as: What it was made as.
        distance: How far its demands are from those that were wanted: the root of the summed
            squares of the shares by which they differ.
        note: How it differs from what was wanted, in words; empty if it does not.
    """

    offer: str
    instance: Instance
    arena_yaml: str
    made_as: MadeAs = MadeAs.OFFER
    distance: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The choice of an instance, and the reasons for it.

    Attributes:
        instance: Name of the instance.
        score: The selector's score; a larger one means that playing it is worth more.
        propensity: Probability with which the policy chose it.
        predicted: Predicted probability of success.
        margins: By capability, the posterior mean minus the demand, in the capability's unit.
        reason: The kind of reason, in a word.
        alternatives: The best instances that could have been played instead, with their scores.
        because: Why this instance and no other, in words; empty if there is no more to say.
        made: The instance if the session made it, and so is not in the battery.
        pending: Number of earlier episodes whose outcome was not known; the choice allows for them.
        peers: The instances of its paradigm that could then have been played for the first time,
            itself among them. None for a repeat, for an instance made on demand, and if the choice
            did not depend on the battery.
        wager: What its outcome will say of the success rate on the whole battery. None for what
            peers are None for.
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
    wager: Wager | None = None

    @property
    def chosen(self) -> str:
        """The instance of the battery, or the offer, that was chosen, whatever is played for it."""
        return self.instance if self.made is None else self.made.offer


PRACTICE: Final = "practice"
"""Reason of the decision for an episode that does not count."""


class Cause(StrEnum):
    """Why an attempt did not come to its end, or is a failure without having done so."""

    BACKEND = "backend"
    AGENT_LEFT = "the agent left"
    WITHDREW = "the agent left before it had to do with the episode"
    LOOKED = "the agent withdrew from an arena that it had been shown"
    ACTION_TIMEOUT = "the agent did not act in time"
    BAD_FRAMES = "the agent sent too many bad frames"
    CANCELLED = "the session was cancelled"
    SERVER_STOPPED = "the server stopped"
    SESSION_STOPPED = "the session stopped, since another of its slots failed"
    SERVER_FAILED = "the server failed, without having stopped"
    OUT_OF_TIME = "out of time"
    OUT_OF_TOKENS = "out of tokens"
    TOKEN_ENDED = "the agent's token was revoked or has expired"
    DISMISSED = "whoever runs the agent took it off"
    AGENT_FAILED = "the agent's code failed"


class Whose(StrEnum):
    """Whose doing it is that an attempt ended early."""

    AGENT = "agent"
    OPERATOR = "operator"
    SERVER = "server"
    BACKEND = "backend"


class End(NamedTuple):
    """What a cause makes of an attempt.

    Attributes:
        whose: Whose doing it is.
        first: The outcome.
        again: The outcome where the agent has voided an attempt at the same episode before.
    """

    whose: Whose
    first: Outcome
    again: Outcome

    @property
    def warns(self) -> bool:
        """Whether such an attempt is the first of two of which the second is a failure."""
        return not self.first.counts and self.again.counts


ENDS: Final[Mapping[Cause, End]] = {
    Cause.BACKEND: End(Whose.BACKEND, Outcome.FAULT, Outcome.FAULT),
    Cause.AGENT_LEFT: End(Whose.AGENT, Outcome.VOID, Outcome.FAILURE),
    # The server was ahead: it had an episode ready for an agent that was leaving between two.
    Cause.WITHDREW: End(Whose.SERVER, Outcome.VOID, Outcome.VOID),
    # It was shown, and who comes back to it has had all the time in the world to think.
    Cause.LOOKED: End(Whose.AGENT, Outcome.VOID, Outcome.FAILURE),
    Cause.ACTION_TIMEOUT: End(Whose.AGENT, Outcome.VOID, Outcome.FAILURE),
    Cause.BAD_FRAMES: End(Whose.AGENT, Outcome.VOID, Outcome.FAILURE),
    Cause.CANCELLED: End(Whose.OPERATOR, Outcome.VOID, Outcome.VOID),
    Cause.SERVER_STOPPED: End(Whose.SERVER, Outcome.FAULT, Outcome.FAULT),
    Cause.SESSION_STOPPED: End(Whose.SERVER, Outcome.FAULT, Outcome.FAULT),
    Cause.SERVER_FAILED: End(Whose.SERVER, Outcome.FAULT, Outcome.FAULT),
    Cause.OUT_OF_TIME: End(Whose.AGENT, Outcome.FAILURE, Outcome.FAILURE),
    Cause.OUT_OF_TOKENS: End(Whose.AGENT, Outcome.FAILURE, Outcome.FAILURE),
    Cause.TOKEN_ENDED: End(Whose.OPERATOR, Outcome.VOID, Outcome.VOID),
    Cause.DISMISSED: End(Whose.OPERATOR, Outcome.VOID, Outcome.VOID),
    # It waits for a person, who says what it is (`Ruling`).
    Cause.AGENT_FAILED: End(Whose.AGENT, Outcome.VOID, Outcome.VOID),
}
"""What becomes of attempts that end early: every cause has its line, and nothing else decides.

What is not the agent's doing is no outcome of the agent's, however often it happens.
"""


def cause_of(words: str) -> Cause | None:
    """Return the cause that an attempt's words begin with; None if they begin with none."""
    for cause in Cause:
        if words == cause.value or words.startswith((f"{cause.value},", f"{cause.value}:")):
            return cause
    return None


BY_DEFAULT: Final[Mapping[str, float]] = {"success": 0.0}
"""What is observed of an attempt that is a failure without having come to its end."""


class Ruling(IntEnum):
    """What a person says of an attempt at which the agent's code failed; numbers of the wire."""

    REPEAT = 1
    """The arena is played again, and the profile says so."""
    FAILURE = 2
    """It counts as a failure."""
    FAULT = 3
    """It was no doing of the agent's: a fault, and the arena is played again."""
    AWAITED = 4
    """Nobody has said anything yet; until then nothing of the session begins."""

    @property
    def outcome(self) -> Outcome:
        """What becomes of the attempt."""
        return {Ruling.FAILURE: Outcome.FAILURE, Ruling.FAULT: Outcome.FAULT}.get(
            self, Outcome.VOID
        )


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at an episode, open or finished. A finished one never changes.

    Attributes:
        session: Id of the session.
        number: Number of the episode within the session, from 0.
        attempt: Which attempt at this number, from 0.
        decision: Why its instance was chosen.
        agent_instance: Id of the agent's process that played it.
        outcome: The outcome; None while the attempt is open.
        episode_return: Sum of the rewards.
        steps: Number of decisions taken.
        ended_by: Why the episode ended; None while the attempt is open, or if the agent left.
        cause: Why it was void or a fault, or failed without having come to its end: on the second
            chance, or beyond the agent's allowance; empty otherwise.
        seconds: How long it took to play.
        outcomes: Observed values of a finished attempt by source: "success", "return", "time_left",
            "rewards", "choice"; those that do not apply are absent.
        versions: Versions of what played it, by package, and of a Unity build; empty while it is
            open.
        unreadable: Why its record cannot be read, and then its decision has no content; empty if it
            can be read.
        invalid: Why a person declared its outcome invalid, and then it does not count; empty
            otherwise.
        spent: What the agent spent on it; nothing while it is open.
        ruling: What a person has said of it, where the agent's code failed; None elsewhere.
        seen: Whether the agent had seen its arena before, in an attempt at which its code failed or
            from which it withdrew.
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
    spent: Spent = NOTHING
    ruling: Ruling | None = None
    seen: bool = False

    @property
    def practice(self) -> bool:
        """Whether it is for practice, and so never counts."""
        return self.decision.reason == PRACTICE

    @property
    def settled(self) -> bool:
        """Whether it came to an end that stands, so that its number is not played again."""
        return self.outcome is not None and self.outcome.counts and not self.invalid

    @property
    def counts(self) -> bool:
        """Whether the attempt is evidence."""
        return self.settled and not self.practice

    @property
    def kind(self) -> Cause | None:
        """The cause of its end; None if it came to its end, is open, or nobody knows."""
        if (known := cause_of(self.cause)) is not None:
            return known
        return Cause.BACKEND if self.outcome is Outcome.FAULT else None

    @property
    def end(self) -> End:
        """What its cause makes of it; an early end of which nothing is known is the agent's."""
        return ENDS[self.kind or Cause.AGENT_LEFT]

    @property
    def backend_fault(self) -> bool:
        """Whether the backend failed."""
        return self.outcome is Outcome.FAULT and self.end.whose is Whose.BACKEND

    @property
    def agents_void(self) -> bool:
        """Whether the agent ended the attempt, so that it does not count."""
        return self.outcome is Outcome.VOID and self.end.whose is Whose.AGENT

    @property
    def warns(self) -> bool:
        """Whether it is a void after which another one of the agent's is a failure."""
        return self.outcome is Outcome.VOID and self.end.warns

    @property
    def overspent(self) -> bool:
        """Whether it is a failure since the agent spent more than its allowance."""
        return self.outcome is Outcome.FAILURE and bool(self.cause) and self.end.first.counts

    @property
    def by_default(self) -> bool:
        """Whether it is a failure since the agent ended an attempt for the second time."""
        return self.outcome is Outcome.FAILURE and bool(self.cause) and self.end.warns


@dataclass(frozen=True, slots=True)
class Identity:
    """Who plays a session, as its own processes say. It is in no id, seed or recording.

    Attributes:
        fingerprint: What the agent is; None until it has come.
        others: Fingerprints of later processes that a person said are the same agent.
        changes: In what they differed, and what else differed at a later start, in words.
        simulator: Environment variables that change what the simulator does.
    """

    fingerprint: AgentFingerprint | None = None
    others: tuple[AgentFingerprint, ...] = ()
    changes: tuple[str, ...] = ()
    simulator: Mapping[str, str] = field(default_factory=dict[str, str])


NOBODY: Final = Identity()
"""The identity of a session whose agent has not come yet."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it is stored.

    Attributes:
        id: Id, the last component of its name.
        spec: Its specification; if the record is unreadable, at most the agent and the battery.
        state: Where it stands.
        reason: Why it stopped, or why it cannot be read; empty while it goes on.
        created: Time of creation, with time zone.
        episodes: Number of episodes that count.
        successes: Number of those that are successes.
        capabilities: How well each capability is known, as of the last decision or of the profile.
        misfit: Where predictions fail, once the alarm says that the layout does not describe the
            agent.
        allowed: Number of episodes that may begin for now, if a campaign hands them out; None if
            the stopping rule alone decides.
        paused: Whether a person has paused it.
        practised: Number of practice episodes that are over, which are not among `episodes`.
        hindrance: What it waits for because the machines are full or a fit is late; empty if for
            nothing. Only the server that plays it knows.
        unjudged: Numbers of the episodes at which the agent's code failed and of which nobody has
            said yet what they are; with any, nothing begins.
        identity: Who plays it.
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
    practised: int = 0
    hindrance: str = ""
    unjudged: tuple[int, ...] = ()
    identity: Identity = NOBODY

    @property
    def held(self) -> bool:
        """Whether it goes on only once a person lets it."""
        return not self.state.over and (self.paused or bool(self.unjudged))

    @property
    def waits_for(self) -> str:
        """What it waits for before it can go on or end; empty if for nothing, or over."""
        if self.unjudged and not self.state.over:
            return f"a person who says what {episodes_words(self.unjudged)} counts as"
        if self.state.over or self.hindrance:
            return "" if self.state.over else self.hindrance
        if self.state is SessionState.WAITING:
            return "an agent"
        if self.paused:
            return "a person who lets it go on"
        if self.allowed is not None and self.episodes >= self.allowed:
            return "its turn in its campaign"
        return ""


def episodes_words(numbers: Sequence[int]) -> str:
    """Return the words for some episodes of a session, such as "episode 3"."""
    return f"episode{'s'[: len(numbers) > 1]} {' and '.join(map(str, numbers))}"


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """Everything that defines a campaign: several agents on one battery, with one budget.

    Attributes:
        agents: Names of the agents, at least two and all different.
        session: Specification of their sessions, except for the agent and for what the campaign
            sets itself: the list of instances that come first, and the stopping rule.
        allocation: How episodes are handed out.
        take: Which of all that are otherwise the same, from 1.
    """

    agents: tuple[str, ...]
    session: SessionSpec
    allocation: Allocation
    take: int = 1


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign as it is stored; its sessions say how many episodes were handed out.

    Attributes:
        id: Id, the last component of its name.
        spec: Its specification.
        sessions: Ids of its sessions, in the order of the agents.
        created: Time of creation, with time zone.
        reason: Why it hands out no more episodes; empty while it goes on.
        unreadable: Why its record cannot be read, and then its spec has no content; empty if it
            can.
        max_workers: Most simulators that play it at once on one server; 0 for no limit of its own.
            It changes no result, so it is no part of the specification.
    """

    id: str
    spec: CampaignSpec
    sessions: tuple[str, ...]
    created: datetime
    reason: str = ""
    unreadable: str = ""
    max_workers: int = 0


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """A comparison of the live posterior with NUTS at a checkpoint.

    Attributes:
        n: Number of episodes that the fit has seen.
        passed: Whether the live posterior may stay.
        result: What was compared, as JSON values.
        draws: File of the fit's draws, relative to the data directory; empty if there is none.
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
        instances: Number of its instances.
        problems: Problems found in its files, one line each.
    """

    id: str
    digest: str
    instances: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LayoutRecord:
    """A layout kept in the store, so that a session can be read without the layout's file.

    Attributes:
        digest: SHA-256 of the layout, its key in the store.
        name: Name of the layout.
        variant: Variant of the layout; empty for the default one.
        text: The layout as YAML.
    """

    digest: str
    name: str
    variant: str
    text: str
