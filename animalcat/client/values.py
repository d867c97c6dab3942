"""What a server tells its clients: small frozen values, and the words for what can be chosen.

Where a number or a time is None it is not set. A word is None where nothing is said yet, and where
a newer server says something that this version has no word for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from animalcat import names
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.agents.base import Allowance
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.answers import Note
from animalcat.envs.types import Observation, ObservationSpec
from animalcat.plugins import Plugin

PolicyName: TypeAlias = Literal[
    "variance", "information", "threshold", "stratified", "random", "listed", "plugin"
]
"""Ways to choose the next instance."""
Combine: TypeAlias = Literal["any", "all"]
"""How the parts of a stopping rule go together."""
SessionState: TypeAlias = Literal[
    "waiting", "running", "finished", "cancelled", "failed", "unreadable"
]
"""Where a session stands."""
MeasuringStatus: TypeAlias = Literal[
    "measuring",
    "precise, if the layout holds",
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
MadeAs: TypeAlias = Literal["offer", "twin", "variation"]
"""How an arena was made in the session: for an offer, as a twin, or as a variation."""
AgentKind: TypeAlias = Literal["able", "single weakness", "fraudster", "context", "unclear"]
"""Kinds of agents, as verdicts name them."""
Reason: TypeAlias = Literal[
    "informative", "random", "listed", "generated", "probe", "person", "practice", "plugin"
]
"""Why an instance was chosen."""
Outcome: TypeAlias = Literal["success", "failure", "void", "fault"]
"""What became of an episode."""
EndedBy: TypeAlias = Literal["goal", "death", "time_limit", "fault"]
"""Why an episode's last step was its last."""
Cause: TypeAlias = Literal[
    "backend",
    "agent_left",
    "withdrew",
    "looked",
    "action_timeout",
    "bad_frames",
    "cancelled",
    "server_stopped",
    "session_stopped",
    "server_failed",
    "out_of_time",
    "out_of_tokens",
    "token_ended",
    "dismissed",
    "agent_failed",
]
"""Why an attempt did not come to its end, or is a failure without having done so."""
Ruling: TypeAlias = Literal["repeat", "failure", "fault", "awaited"]
"""What a person said of an attempt at which the agent's code failed; "awaited": nothing yet."""
MeasuredBy: TypeAlias = Literal["placement", "playing", "caller"]
"""How a meta-feature is measured."""
OperationKind: TypeAlias = Literal["import_battery", "build_battery", "end_campaign"]
"""What an operation does."""
OperationState: TypeAlias = Literal["running", "done", "failed", "cancelled", "aborted"]
"""Where an operation stands."""

_OVER: Final = frozenset[SessionState]({"finished", "cancelled", "failed", "unreadable"})


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When measuring is enough. In a request None leaves a field to the server's default.

        rule = animalcat.StoppingRule(max_episodes=60, targets={"visualAbility": 0.05})
        client.create_session(agent="mine", battery="navigation", stop=rule)

    Attributes:
        max_episodes: Most episodes.
        target_sd: Target standard deviation of every capability, as a share of its range; 0: none.
        futility: Least expected drop of the standard deviation over the next 25 episodes, as a
            share of what it is; 0: never futile.
        targets: Targets of single capabilities by name, instead of `target_sd`.
        target_width: Greatest width of the 90 % intervals as a share of the range; 0: none.
        max_seconds: Most seconds of play; 0: no limit.
        stop_at_alarm: Whether a layout that the alarm says is contradicted ends the session.
        combine: With "any" what comes first ends the session; with "all" everything that is set
            must have come.
    """

    max_episodes: int | None = None
    target_sd: float | None = None
    futility: float | None = None
    targets: Mapping[str, float] = field(default_factory=dict[str, float])
    target_width: float | None = None
    max_seconds: float | None = None
    stop_at_alarm: bool | None = None
    combine: Combine | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """How the next instance is chosen. In a request None leaves a field to the server's default.

        policy = animalcat.Policy("information", about=("visualAbility",))
        client.create_session(agent="mine", battery="navigation", policy=policy)

    Attributes:
        name: Which way.
        random_share: Share of stratified random draws, 0 to 1.
        exposures: How often an instance may be played; 0: any number of times.
        cool_down: Episodes during which variants of what was played wait.
        per_second: Whether what an instance tells counts per expected second of its episode.
        about: Capabilities that "information" is about; empty: all.
        order: Names of instances that come first, in this order; under "listed" the only ones.
        generate: Whether an instance may be made on demand where none of the battery tells enough.
        enough: An instance of the battery tells enough when it tells this share of what the best
            that could be made would.
        probes: Where instances may be played again: share of draws that repeat one, to tell how
            random the agent is.
        sharpness: How strongly what tells more is preferred; 0: always what tells most.
        plugin: Under "plugin", the name of the policy of another package.
    """

    name: PolicyName | None = None
    random_share: float | None = None
    exposures: int | None = None
    cool_down: int | None = None
    per_second: bool | None = None
    about: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    generate: bool | None = None
    enough: float | None = None
    probes: float | None = None
    sharpness: float | None = None
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class Opponent:
    """Another agent's outcomes, with which a session is compared.

    Attributes:
        session: Id of the other agent's session.
        agent: Name of the other agent; set by the service.
        outcomes: 1 for success and 0 for failure, by instance, as they stood when the session was
            created; set by the service.
    """

    session: str
    agent: str = ""
    outcomes: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """All that defines a session. Nothing of it changes afterwards.

    Attributes:
        agent: Name of the agent.
        battery: Id of the battery; empty where the session cannot be read.
        battery_digest: SHA-256 of the battery's content, in hexadecimal.
        layout: Name of the layout.
        layout_variant: Variant of the layout; empty where it has none.
        layout_digest: SHA-256 of the layout, in hexadecimal.
        layout_definition: Text of a layout of the caller's own, YAML; empty in answers.
        policy: How the next instance is chosen.
        stop: When measuring is enough.
        seed: Of the whole session.
        backend: What plays the arenas, such as "sim".
        observation_spec: What the agent sees.
        action_timeout_seconds: How long the agent may take for one action.
        record_pixels: Whether camera images go into the recordings.
        certify: Whether NUTS refits certify the live posterior at checkpoints.
        slots: How many episodes may be played at once.
        rules: Version of the rules of decision that the session goes by.
        fresh: Whether every instance is played as a twin, an arena of the session's own with the
            same demands.
        twins_of: What the twins are drawn for, set by the service: the campaign, whose sessions
            share them; empty for the session alone.
        against: The other agent from whom the session tells its agent apart; None for a session
            that only measures.
        lease_seconds: How long an agent whose connection broke may take to come back to the step
            that it left; 0 for not at all.
        allowance: What the agent may spend; None for the server's default, which is any amount.
        practice: How many unscored episodes come first, on arenas that are not used again.
        keep_unpassable: Whether arenas that no play can pass are played too.
        secret: What all chance follows from beside the seed; empty for the seed alone.
        plugins: What of other packages runs in the server for it, set by the service: as it was
            installed when the session began. It goes on with the same alone.
    """

    agent: str = ""
    battery: str = ""
    battery_digest: str = ""
    layout: str = ""
    layout_variant: str = ""
    layout_digest: str = ""
    layout_definition: str = ""
    policy: Policy = field(default_factory=Policy)
    stop: StoppingRule = field(default_factory=StoppingRule)
    seed: int | None = None
    backend: str = ""
    observation_spec: ObservationSpec | None = None
    action_timeout_seconds: float | None = None
    record_pixels: bool | None = None
    certify: bool | None = None
    slots: int | None = None
    rules: int | None = None
    fresh: bool | None = None
    twins_of: str = ""
    against: Opponent | None = None
    lease_seconds: float | None = None
    allowance: Allowance | None = None
    practice: int | None = None
    keep_unpassable: bool | None = None
    secret: str | None = None
    plugins: tuple[Plugin, ...] = ()


@dataclass(frozen=True, slots=True)
class Capability:
    """How well one capability is known.

    Attributes:
        name: As the layout has it.
        mean: Posterior mean, in the unit.
        sd: Posterior standard deviation, in the unit.
        unit: Unit; empty where there is none.
        status: Where measuring it stands.
        episodes_needed: Episodes that its target is still expected to take; None where the battery
            cannot reach it.
        best_sd: Standard deviation that the whole battery leaves at best, in the unit; None where
            it is not known.
        limit: Why the target cannot be reached with this battery, in words; else empty.
        value: The mean as people read it, such as "21 m". Where it can be, it is the value of a
            demand at which the agent succeeds half of the time. Else empty.
        interval: About 90 % interval in the same unit; empty where `value` is.
    """

    name: str
    mean: float
    sd: float
    unit: str
    status: MeasuringStatus | None
    episodes_needed: int | None
    best_sd: float | None
    limit: str
    value: str
    interval: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a profile says about its agent, in words.

        print(client.verdict(session).text)

    Attributes:
        sentences: Two to five sentences.
        kind: The kind of agent, "unclear" where none is likely enough.
        probability: Probability of the kind.
        probabilities: Of all kinds; they sum to 1.
        why_unclear: Why the kind is unclear; else empty.
        weakness: The node that is most likely the single weakness; else empty.
        fails: Expected share of the battery that the agent fails.
        fails_by: The node whose limit costs most; empty if none matters.
        fails_without: Expected share that it would fail without that limit.
    """

    sentences: tuple[str, ...]
    kind: AgentKind
    probability: float
    probabilities: Mapping[str, float]
    why_unclear: str
    weakness: str
    fails: float
    fails_by: str
    fails_without: float

    @property
    def text(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class Session:
    """One agent, one battery, one layout, and the episodes that were played.

    Attributes:
        id: Names it in commands and calls.
        spec: What it was made with.
        state: Where it stands.
        episodes: Episodes that counted.
        successes: Successes among them.
        capabilities: From the live posterior, or from the exported profile once it is finished.
        reason: Why it stopped; empty while it goes on.
        created: When, in UTC.
        misfit: Where predictions fail, if the alarm says that the layout does not describe the
            agent; else empty.
        allowed: How many episodes may be begun for now, where a campaign hands them out; None: as
            many as the stopping rule allows.
        creator: Who created it, where callers prove who they are; else empty.
        paused: Whether no further episode begins until it is resumed.
        waits_for: What it waits for before it can go on or end, in words; empty if for nothing,
            or over.
        practised: Practice episodes that are over, which are not among `episodes`.
        unjudged: Numbers of the episodes at which the agent's code failed and which nobody has
            judged yet (`judge_failure`). While there are any, it is paused.
        agent_fingerprint: What its agent is; None until it has come.
        agent_changes: How later processes of the agent differed from the first and were let in all
            the same, in words.
        simulator_environment: Environment variables that change what the simulator does, as they
            were when the agent came.
        other_fingerprints: The fingerprints of those later processes.
        withheld: Whether most is kept from the caller, whose token is an agent's: only `id`,
            `state`, `episodes`, `created` and what the agent is told of `spec` are then true.
    """

    id: str
    spec: SessionSpec
    state: SessionState | None
    episodes: int
    successes: int
    capabilities: tuple[Capability, ...]
    reason: str
    created: datetime
    misfit: str
    allowed: int | None
    creator: str
    paused: bool
    waits_for: str
    practised: int
    agent_fingerprint: AgentFingerprint | None
    agent_changes: tuple[str, ...]
    simulator_environment: Mapping[str, str]
    other_fingerprints: tuple[AgentFingerprint, ...]
    unjudged: tuple[int, ...] = ()
    withheld: bool = False

    @property
    def name(self) -> str:
        """Resource name, "sessions/{id}"."""
        return names.session_name(self.id)

    @property
    def over(self) -> bool:
        """Whether no further episode will follow."""
        return self.state in _OVER


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


@dataclass(frozen=True, slots=True)
class Alternative:
    """An instance that was not chosen, and the selector's score for it."""

    instance: str
    score: float


@dataclass(frozen=True, slots=True)
class MadeInstance:
    """An instance that a session made.

    Attributes:
        offer: What it was made for: name of the offer, or of the battery's instance in whose place
            it is.
        paradigm: What kind of task it is.
        features: Meta-features, in the units of the battery's.
        missing: Why any other feature does not apply, by feature.
        pass_mark: Return that an episode must exceed to be a success.
        time_limit_steps: Physics steps until the time limit; 0: none.
        seed: Of its episodes.
        arena_yaml: Its arena, YAML with every value fixed.
        places: Places that are choices.
        made_as: "offer": for demands that the battery lacks; "twin": a new arena in the place of an
            instance; "variation": the same arena turned, shifted, mirrored or in other colours.
        distance: How far its demands are from those that were wanted: the root of the sum of
            squares of their relative differences.
        note: How it differs from what was wanted, in words; empty if it does not.
    """

    offer: str
    paradigm: str
    features: Mapping[str, float]
    missing: Mapping[str, str]
    pass_mark: float
    time_limit_steps: int
    seed: int
    arena_yaml: str
    places: tuple[MarkedPlace, ...]
    made_as: MadeAs
    distance: float
    note: str


@dataclass(frozen=True, slots=True)
class Peers:
    """The instances of one paradigm that had not been played when one of them was chosen.

    Attributes:
        left: How many there were, the chosen one among them.
        propensity: Probability that one of them was chosen.
        predicted: Their mean predicted probability of success.
        open: Whether every one of them had a probability above 0.
    """

    left: int
    propensity: float
    predicted: float
    open: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """Why an instance was chosen.

    Attributes:
        instance: Name of the instance.
        score: The selector's score; the larger, the more it was worth.
        propensity: Probability with which the policy chose this instance.
        predicted: Predicted probability of success.
        margins: For each capability, its posterior mean minus the demand, in the unit.
        reason: Why, in a word.
        because: Why this and no other, in words, where there is more to say.
        alternatives: The best that could have been played instead, best first.
        made: The instance, where it was made on demand and is not in the battery.
        pending: Of how many earlier episodes the outcome was not known.
        peers: What else of its paradigm could have been played for the first time; None for a
            repeat, and for what was made on demand.
    """

    instance: str
    score: float
    propensity: float
    predicted: float
    margins: Mapping[str, float]
    reason: Reason | None
    because: str
    alternatives: tuple[Alternative, ...]
    made: MadeInstance | None
    pending: int
    peers: Peers | None


@dataclass(frozen=True, slots=True)
class Spent:
    """What an agent spent on an attempt at an episode, or on several.

    Attributes:
        thinking_seconds: Seconds between what it was asked and its answers, as the server saw it.
        tokens_in: Sum of the tokens that its notes say a language model was given.
        tokens_out: Sum of the tokens that its notes say the model gave.
        costs: Sums of what its notes say that cost, by currency.
    """

    thinking_seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    costs: Mapping[str, float] = field(default_factory=dict[str, float])

    def __add__(self, other: Spent) -> Spent:
        """Add what else was spent."""
        currencies = sorted({*self.costs, *other.costs})
        return Spent(
            self.thinking_seconds + other.thinking_seconds,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            {c: self.costs.get(c, 0.0) + other.costs.get(c, 0.0) for c in currencies},
        )


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at an episode, finished or open.

    Attributes:
        session: Id of the session.
        number: Number within the session, from 0.
        attempt: Which try at this number, from 0; a void or fault is followed by the next.
        instance: Name of the instance that was played.
        outcome: What became of it; None while it is open.
        episode_return: Sum of rewards.
        steps: Decisions taken.
        ended_by: Why it ended; None while it is open.
        decision: Why its instance was chosen.
        cause: Why it is a void or a fault, or a failure by default, in words; else empty.
        cause_kind: The kind of that cause; None where it came to its end.
        seconds: How long it took to play.
        outcomes: What was observed, by source: "success" (0 or 1), "return", "time_left" (share of
            the time limit), "rewards" (how many were taken), "choice" (0 or 1). What does not apply
            is absent.
        versions: Versions of what played it, by package, and of a Unity build.
        invalid: Why its outcome was declared invalid, so that it does not count; else empty.
        spent: What the agent spent on it.
        ruling: What a person said of it, where the agent's code failed; None elsewhere.
        seen: Whether the agent had seen its arena before, in an attempt at which its code failed or
            from which it withdrew.
    """

    session: str
    number: int
    attempt: int
    instance: str
    outcome: Outcome | None
    episode_return: float
    steps: int
    ended_by: EndedBy | None
    decision: Decision
    cause: str
    cause_kind: Cause | None
    seconds: float
    outcomes: Mapping[str, float]
    versions: Mapping[str, str]
    invalid: str
    spent: Spent
    ruling: Ruling | None
    seen: bool

    @property
    def name(self) -> str:
        """Resource name, "sessions/{session}/episodes/{number}-{attempt}"."""
        return names.episode_name(self.session, self.number, self.attempt)

    @property
    def practice(self) -> bool:
        """Whether it is for practice, so that it never counts."""
        return self.decision.reason == "practice"


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
class Feature:
    """What a meta-feature is.

    Attributes:
        name: As layouts ask for it.
        unit: Unit; empty for codes and counts.
        description: What it says; empty for a feature that the server does not know.
        version: Version of the definition by which the battery was measured; 0: not kept.
        measured_by: How it was measured; None where that is not known.
    """

    name: str
    unit: str
    description: str
    version: int
    measured_by: MeasuredBy | None


@dataclass(frozen=True, slots=True)
class Battery:
    """A named set of instances.

    Attributes:
        id: Names it in commands and calls.
        digest: SHA-256 of the content, in hexadecimal.
        instances: How many instances it has.
        problems: Problems that were found in its files, one sentence each.
        features: Meta-features that its instances may have, by name; empty in lists.
        manifest: What is in it, where it comes from and what was not solved, as the schema
            `battery_manifest` has it; empty in lists.
    """

    id: str
    digest: str
    instances: int
    problems: tuple[str, ...]
    features: tuple[Feature, ...] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    @property
    def name(self) -> str:
        """Resource name, "batteries/{id}"."""
        return names.battery_name(self.id)

    @property
    def set_aside(self) -> Mapping[str, str]:
        """Why no play can pass an arena, by its name; sessions set such arenas aside."""
        return self.manifest.get("set_aside", {})

    @property
    def layout(self) -> str:
        """The layout that it names, which measures where none is asked for; empty for none."""
        measured_by: Mapping[str, Any] = self.manifest.get("layout") or {}
        return measured_by["name"] if measured_by.get("named") else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever plays its arenas has to know, one sentence each; empty in lists."""
        return tuple(self.manifest.get("notes", ()))


@dataclass(frozen=True, slots=True)
class RecipeText:
    """The texts that a recipe of one's own consists of.

    Attributes:
        file: Name of its file, for messages.
        text: The recipe, YAML.
        families: Texts of families of one's own, by the name that the recipe gives their files.
    """

    file: str
    text: str
    families: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an instance of a battery comes from.

    Attributes:
        entry: Entry of the recipe; "" in a battery of one family.
        family: Family that it was drawn from.
        paradigm: Paradigm of that family.
        part: practice or test.
        task: Name of the first instance of the same draw; its variants share it.
        variant: Which variant of the draw it is, such as `mirror-turn90`; "" for the plain one.
        control: The control that made it of another instance; "" for none.
        control_of: Name of that instance; "" where it is not in the battery.
    """

    entry: str
    family: str
    paradigm: str
    part: str
    task: str = ""
    variant: str = ""
    control: str = ""
    control_of: str = ""


@dataclass(frozen=True, slots=True)
class Instance:
    """One arena of a battery, with every value fixed.

    Attributes:
        name: Within the battery.
        paradigm: What kind of task it is.
        features: Meta-features, in their units.
        missing: Why any other feature of the battery does not apply, by feature.
        pass_mark: Return that an episode must exceed to be a success.
        time_limit_steps: Physics steps until the time limit; 0: none.
        places: Places that are choices.
        arena_yaml: Its arena, YAML with every value fixed; empty unless it was asked for.
        origin: Where it comes from; None for an arena file.
        suite: The suite of tasks that it belongs to; empty where nothing says it.
        task: The task of which it is a variant; empty where nothing says it.
        variant: Which variant of its task it is; empty where nothing says it.
        group: Its group of variants, called after the first of them: of the same suite, paradigm
            and task, and with equal demands.
    """

    name: str
    paradigm: str
    features: Mapping[str, float]
    missing: Mapping[str, str]
    pass_mark: float
    time_limit_steps: int
    places: tuple[MarkedPlace, ...]
    arena_yaml: str = ""
    origin: Origin | None = None
    suite: str = ""
    task: str = ""
    variant: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """All that defines a campaign.

    Attributes:
        agents: Names of the agents.
        session: What their sessions are made with, apart from agent and stopping rule.
        budget: Episodes of all agents together.
        common: How many random instances all agents play, the same ones and first.
        block: Episodes that an agent is given at once.
        at_once: How many agents are given some at once.
        alike: Agents that differ by less than this share of a capability's range need not be told
            apart.
        confidence: Probability with which an order must be known, or that two are alike.
        take: Which campaign of all that are otherwise the same.
    """

    agents: tuple[str, ...]
    session: SessionSpec
    budget: int
    common: int | None = None
    block: int | None = None
    at_once: int | None = None
    alike: float | None = None
    confidence: float | None = None
    take: int | None = None


@dataclass(frozen=True, slots=True)
class Campaign:
    """Several agents on one battery, with one budget.

    Attributes:
        id: Names it in commands and calls.
        spec: What it was made with.
        sessions: Its sessions, in the order of the agents.
        reason: Why no more is handed out; empty while it goes on.
        created: When, in UTC.
        max_workers: Most simulators that play it at once on one server; 0: no limit of its own.
        waits_for: Why no agent can play on until a person does something; empty where some can.
    """

    id: str
    spec: CampaignSpec
    sessions: tuple[Session, ...]
    reason: str
    created: datetime
    max_workers: int = 0
    waits_for: str = ""

    @property
    def name(self) -> str:
        """Resource name, "campaigns/{id}"."""
        return names.campaign_name(self.id)

    @property
    def episodes(self) -> int:
        """Episodes of all agents that counted."""
        return sum(session.episodes for session in self.sessions)

    @property
    def over(self) -> bool:
        """Whether no further episode will follow in any of its sessions."""
        return all(session.over for session in self.sessions)


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that takes the server long.

    Attributes:
        id: Names it in calls.
        kind: What it does.
        subject: Resource name of what it is about, which need not be there yet.
        state: Where it stands.
        done: Parts that are done.
        total: Parts in all; 0: not known.
        message: What is being done, in words.
        error: Why it failed, was cancelled or aborted; else empty.
        error_code: Stable name of that kind of error; else empty.
        resource: Resource name of what was made or changed; empty while it is under way.
        created: When it was begun, in UTC.
        ended: When it was over, in UTC; None while it is under way.
    """

    id: str
    kind: OperationKind | None
    subject: str
    state: OperationState | None
    done: int
    total: int
    message: str
    error: str
    error_code: str
    resource: str
    created: datetime
    ended: datetime | None

    @property
    def name(self) -> str:
        """Resource name, "operations/{id}"."""
        return names.operation_name(self.id)


@dataclass(frozen=True, slots=True)
class PlacedWorker:
    """A simulator that runs.

    Attributes:
        session: Id of the session that it plays; empty if none for now.
        node: Name or address of its machine.
    """

    session: str
    node: str


@dataclass(frozen=True, slots=True)
class PlacedFit:
    """A process that makes fits.

    Attributes:
        node: Name or address of its machine; empty: it has no place yet.
        busy: Whether it works.
    """

    node: str
    busy: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that a server refused to somebody, or ended.

    Attributes:
        what: What was refused or ended: the code of an error, or words.
        who: To whom, in words.
        number: How often since the server started.
        last: When it last happened, with time zone.
        words: What was said then.
    """

    what: str
    who: str
    number: int
    last: datetime
    words: str


@dataclass(frozen=True, slots=True)
class ProcessPlacement:
    """Where simulators and fits are, and which sessions wait.

    Attributes:
        engine: Who starts simulators and fits: "local" or "ray".
        workers: All simulators that run.
        max_workers: Most simulators at once; 0: no limit, or in a cluster as many as have room.
        campaign_workers: Most simulators of one campaign at once; 0: no limit.
        backlog: For sessions that wait, by id, what they wait for; at most 1,000, newest first.
        fits: All processes that make fits.
        fits_waiting: Fits and compilations of layouts that wait for one of these.
        lacks: What the server lacks, so that nothing new begins, in words.
        refusals: What was refused or ended since the server started, the most frequent first.
    """

    engine: str
    workers: tuple[PlacedWorker, ...]
    max_workers: int
    campaign_workers: int
    backlog: Mapping[str, str]
    fits: tuple[PlacedFit, ...]
    fits_waiting: int
    lacks: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """A measurement layout.

    Attributes:
        title: What it calls itself, for example "aaio".
        variant: Its variant; empty where it has none.
        digest: SHA-256 of the model that it defines, in hexadecimal; names it in calls.
        shipped: Whether it came with the server; else a session brought it.
        text: YAML; empty in lists.
    """

    title: str
    variant: str
    digest: str
    shipped: bool
    text: str

    @property
    def name(self) -> str:
        """Resource name, "layouts/{digest}"."""
        return names.layout_name(self.digest)


@dataclass(frozen=True, slots=True)
class EpisodeHeader:
    """How a recorded episode began: all that is needed to play it again.

    Attributes:
        session: Id of the session.
        number: Number within the session, from 0.
        attempt: Which try at this number, from 0.
        instance: Name of the instance.
        arena_yaml: The arena with every value fixed.
        seed: Of the episode.
        observation_spec: What the agent saw.
        backend: What played it.
        versions: Versions of what could change the numbers, by package.
        decision: Why the instance was chosen.
        agent: Name of the agent.
        pixels: Whether steps hold camera images.
        protocol: Number of the protocol that the recording was written by; 0: before numbers.
        places: Places of which the first that the agent is in is its choice.
    """

    session: str
    number: int
    attempt: int
    instance: str
    arena_yaml: str
    seed: int
    observation_spec: ObservationSpec
    backend: str
    versions: Mapping[str, str]
    decision: Decision
    agent: str
    pixels: bool
    protocol: int
    places: tuple[MarkedPlace, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RecordedStep:
    """One decision of a recorded episode, and what it led to.

    Attributes:
        step: Number of decisions taken so far; step 0 holds the first observation.
        action: 3 x move + turn; None in step 0.
        reward: Since the step before.
        observation: What the agent perceived; without an image unless the header says `pixels`.
        ended_by: Why the episode ended; None unless this is the last step.
        camera_digest: Digest of the camera image (BLAKE2b, 16 bytes); empty without a camera.
        notes: What the agent remarked since the step before.
    """

    step: int
    action: int | None
    reward: float
    observation: Observation
    ended_by: EndedBy | None
    camera_digest: bytes
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class EpisodeFooter:
    """How a recorded episode ended.

    Attributes:
        outcome: What became of it.
        episode_return: Sum of rewards.
        steps: Decisions taken.
        ended_by: Why it ended.
        outcomes: What was observed, by source, as in `Episode`.
    """

    outcome: Outcome | None
    episode_return: float
    steps: int
    ended_by: EndedBy | None
    outcomes: Mapping[str, float]


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
