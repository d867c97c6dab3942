"""A session: what defines it, where it stands, and how well it knows what it measures."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum, auto
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from animalcat.envs.agents.base import UNLIMITED, Allowance
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.types import ObservationSpec
from animalcat.extending.plugins import Plugin
from animalcat.layouts.adaptive.plan import RULES, Policy, StoppingRule
from animalcat.text import names
from animalcat.text.counts import count_of
from animalcat.text.ranges import Range, check_ranges
from animalcat.text.showing import line_html, table_html
from animalcat.values.attempts import NOTHING, Episode, Spent

MAX_EPISODES: Final = 100_000
"""Most episodes of one session."""
MAX_SECRET: Final = 200
"""Most characters of a secret."""
MAX_SLOTS: Final = 64
"""Most episodes of one session played at once."""
AS_WRITTEN: Final = "as-written"
"""Names, in the place of a variant, the layout as it is written, not as agents taught it."""


class SessionState(StrEnum):
    """Where a session stands."""

    WAITING = auto()
    RUNNING = auto()
    FINISHED = auto()
    CANCELLED = auto()
    FAILED = auto()
    UNREADABLE = auto()
    """The record cannot be read. This state is never stored; the session can only be deleted."""

    @property
    def over(self) -> bool:
        """Whether no episode will follow."""
        return self in _OVER


_OVER: Final = frozenset(SessionState) - {SessionState.WAITING, SessionState.RUNNING}


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
class Earlier:
    """An earlier session of the same agent, from which a session goes on.

    What it knew stands here as it was then, so that nothing that becomes of it changes the session.

    Attributes:
        session: Its id.
        episodes: How many episodes that count it gave, and each session that it goes on from, by
            id.
        told: A row for each of them, the earliest first: the demands of its arena, in the order of
            the layout, its outcomes, and how many outcomes it counts as. None: not observed.
        arenas: What identifies the arenas that were played, by content and seed.
    """

    session: str = ""
    episodes: Mapping[str, int] = field(default_factory=dict[str, int])
    told: tuple[tuple[float | None, ...], ...] = field(default=(), repr=False)
    arenas: tuple[str, ...] = field(default=(), repr=False)

    @property
    def words(self) -> str:
        """What a session goes on from, in a phrase."""
        each = ", ".join(f"{count} of {session}" for session, count in self.episodes.items())
        more = f" ({each})" if len(self.episodes) > 1 else ""
        told = count_of(sum(self.episodes.values()), "episode")
        return f"goes on from session {self.session}: {told}{more}"


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """Everything that defines a session; only its stopping rule may be changed afterwards.

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
        replace_voids: Whether another arena is played after an attempt that did not count.
        played_before: How many arenas the agent has played before the session; a layout that counts
            them goes on from there.
        prior: What an earlier session of the same agent has found, which is known from the start;
            None where nothing is.
        secret: What all chance follows from beside the seed, so that no agent can work it out;
            empty for the seed alone.
        plugins: What of other packages runs in the server for it, set by the service: as it was
            installed when the session began. It goes on with the same alone.
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
    plugins: tuple[Plugin, ...] = ()
    replace_voids: bool = False
    played_before: Annotated[int, Range(0, MAX_EPISODES)] = 0
    prior: Earlier | None = None

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.stop.max_episodes > MAX_EPISODES:
            raise _bad("stop.max_episodes", f"1 to {MAX_EPISODES}")
        if len(self.secret) > MAX_SECRET:
            raise _bad("secret", f"at most {MAX_SECRET} characters")
        if self.observation_spec.camera is None and self.observation_spec.rays is None:
            raise _bad("observation_spec", "a camera, rays or both")
        if self.observation_spec.privileged and self.backend != "sim":
            raise ValueError(
                f"observation_spec.privileged: the backend {self.backend} does not tell the state "
                'of an arena; choose the backend "sim", or a session that is not privileged'
            )

    @property
    def resumable(self) -> bool:
        """Whether an open attempt may go on with another process of its agent, who remembers.

        What was spent on thinking is known to the process alone, and Unity cannot be played again
        to the bit.
        """
        again = self.allowance == UNLIMITED and not self.backend.startswith("unity:")
        return self.replace_voids and again

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


MeasuringStatus: TypeAlias = Literal[
    "measuring",
    "precise, if the layout holds",
    "bounded",
    "leans on its prior",
    "budget",
    "used up",
    "limited by the battery",
    "limited by noise",
    "ended",
    "cancelled",
    "layout contradicted",
    "not to be read",
]
"""Where measuring a capability stands."""


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
        limit: For which agents this battery cannot reach its target, in words; empty if it may, or
            if it was reached all the same.
        value: The estimate as people read it, in the unit of a demand where it can be: "21 m"; its
            bound where it is bounded from one side alone: "at least 57 m".
        interval: About 90 % interval in the same unit. A bound is one of its ends.
    """

    name: str
    mean: float
    sd: float
    unit: str
    status: MeasuringStatus
    episodes_needed: int | None = None
    best_sd: float | None = None
    limit: str = ""
    value: str = ""
    interval: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who plays a session, as its own processes say. It is in no id, seed or recording.

    Attributes:
        fingerprint: What the agent is; None until it has come.
        others: Fingerprints of later processes that a person said are the same agent.
        changes: In what they differed, and what else differed at a later start, in words.
        simulator: Environment variables that change what the simulator does.
        unconfined: Whether it was not confined: a process played it that sees the evaluator, as an
            operator's does. Of others nothing is known here.
    """

    fingerprint: AgentFingerprint | None = None
    others: tuple[AgentFingerprint, ...] = ()
    changes: tuple[str, ...] = ()
    simulator: Mapping[str, str] = field(default_factory=dict[str, str])
    unconfined: bool = False


NOBODY: Final = Identity()
"""The identity of a session whose agent has not come yet."""


@dataclass(frozen=True, slots=True, repr=False)
class Session:
    """A session as it is stored.

    Attributes:
        id: Id, the last component of its name.
        spec: Its specification; if the record is unreadable, at most the agent and the battery.
        state: Where it stands.
        reason: Why it stopped, for good or until an agent comes, or why it cannot be read; empty
            while it goes on.
        created: Time of creation, with time zone.
        episodes: Number of episodes that count.
        successes: Number of those that are successes.
        capabilities: How well each capability is known, as of the last decision or of the profile.
        misfit: Where predictions fail, once the alarm says that the layout does not describe the
            agent.
        paused: Whether a person has paused it.
        practised: Number of practice episodes that are over, which are not among `episodes`.
        hindrance: What it waits for because the machines are full or a fit is late; empty if for
            nothing. Only the server that plays it knows; clients are told all that it waits for.
        unjudged: Numbers of the episodes at which the agent's code failed and of which nobody has
            said yet what they are; with any, nothing begins.
        identity: Who plays it.
        owner: Subject to whom it belongs; empty where callers need not prove who they are.
        spent: What the agent spent on all attempts that are over.
        withheld: Whether most is kept from the caller, whose token is an agent's: only `id`,
            `state`, `episodes`, `created` and what the agent is told of `spec` are then true.
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
    paused: bool = False
    practised: int = 0
    hindrance: str = ""
    unjudged: tuple[int, ...] = ()
    identity: Identity = NOBODY
    owner: str = ""
    spent: Spent = NOTHING
    withheld: bool = False

    @property
    def name(self) -> str:
        """Resource name, "sessions/{id}"."""
        return names.session_name(self.id)

    @property
    def over(self) -> bool:
        """Whether no further episode will follow."""
        return self.state in _OVER

    @property
    def about(self) -> str:
        """Whose it is and how far it is, in a line."""
        ended = f": {self.reason}" if self.reason else ""
        return (
            f"{self.id}: {self.spec.agent} on {self.spec.battery}, {self.state}{ended}; "
            f"{self.episodes} episodes, {self.successes} passed"
        )

    def __repr__(self) -> str:
        return f"<Session {self.about}>"

    def _repr_html_(self) -> str:
        rows = [(c.name, c.value, c.interval, c.status) for c in self.capabilities]
        heads = ("capability", "estimate", "90 % interval", "status")
        return table_html(heads, rows, self.about) if rows else line_html(self.about)

    @property
    def held(self) -> bool:
        """Whether it goes on only once a person lets it."""
        return not self.state.over and (self.paused or bool(self.unjudged))

    @property
    def waits_for(self) -> str:
        """What it waits for before it can go on or end; empty if for nothing, or over."""
        return WaitState(self.state, self.paused, self.unjudged, self.hindrance).waits_for


class WaitState(NamedTuple):
    """What says whether a session waits; see `Session` for the fields."""

    state: SessionState
    paused: bool
    unjudged: tuple[int, ...]
    hindrance: str = ""

    @property
    def waits_for(self) -> str:
        """As `Session.waits_for`."""
        if self.unjudged and not self.state.over:
            return f"a person who says what {episodes_words(self.unjudged)} counts as"
        if self.state.over or self.hindrance:
            return "" if self.state.over else self.hindrance
        if self.state is SessionState.WAITING:
            return "an agent"
        if self.paused:
            return "a person who lets it go on"
        return ""


def episodes_words(numbers: Sequence[int]) -> str:
    """Return the words for some episodes of a session, such as "episode 3"."""
    return f"episode{'s'[: len(numbers) > 1]} {' and '.join(map(str, numbers))}"


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """What happened in a session that is watched.

    Attributes:
        session: The session after it.
        episode: The episode that ended; None where only the state changed.
    """

    session: Session
    episode: Episode | None


@dataclass(frozen=True, slots=True)
class SessionNote:
    """A person's note on a session.

    Attributes:
        created: When it was taken, with time zone.
        subject: Who took it, as an owner; empty for this machine's own user.
        text: The note.
    """

    created: datetime
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class SessionVerification:
    """Whether a session is as it was stored.

    Attributes:
        problems: What was changed, one sentence each; empty where nothing was.
        links: Number of links in its chain of digests.
        head: The last link. Note it elsewhere: whoever may write the whole store can forge a chain.
        notes: What else is to be known and is no change, one sentence each: that the name of the
            battery stands for other arenas by now.
    """

    problems: tuple[str, ...]
    links: int
    head: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ticket:
    """What the process of an agent shows to play one session and do nothing else.

    Attributes:
        text: The ticket, to be given as a token.
        expires: When it ends.
        local_address: Where an agent can play without a network, if this is the server's machine;
            else empty.
        folder: The server's data directory, if this is the server's machine; else empty.
    """

    text: str
    expires: datetime
    local_address: str
    folder: str
