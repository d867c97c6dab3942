"""Says what comes next for a participant, by pure functions of what has happened."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum, auto
from functools import reduce, singledispatch
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass as checked

from animalcat.doors.study.file import Study

Part: TypeAlias = Literal["practice", "play"]
"""Which of a participant's sessions."""
LAG_MS: Final = 60.0
"""A frame that is painted later than this after its decision was due is late."""
FREE_SHARE: Final = 0.05
"""Share of late or dropped frames from which a trial is flagged."""


class Stage(StrEnum):
    """Where a participant is; of who declines nothing is kept, so that they are nowhere."""

    CONSENT = auto()
    DEVICE = auto()
    BEFORE = auto()
    INSTRUCTIONS = auto()
    QUESTIONS = auto()
    PRACTICE = auto()
    PLAY = auto()
    BREAK = auto()
    AFTER = auto()
    DEBRIEF = auto()
    DONE = auto()
    SCREENED = auto()

    @property
    def over(self) -> bool:
        """Whether nothing follows."""
        return self in (Stage.DONE, Stage.SCREENED)


@checked(frozen=True, slots=True)
class TrialTiming:
    """How a trial ran in the participant's browser, by its clock; times are in ms.

    The codebook (`export.COLUMNS`) says what each is. `first_key` is its `rt`: from the first frame
    to the first press of a key after it, None without one.
    """

    frames: int = 0
    dropped: int = 0
    late: int = 0
    interval_p95: float | None = None
    shown_p95: float | None = None
    wait_p95: float | None = None
    key_p95: float | None = None
    round_trip: float | None = None
    first_key: float | None = None
    keys: int = 0
    blurs: int = 0
    full_screen: bool = False


@checked(frozen=True, slots=True)
class Trial:
    """An attempt at an episode, as the participant's side saw it.

    Attributes:
        episode: Its number in the session.
        attempt: Which attempt at that number; None where it was not known in the end.
        seconds: From its first frame to its end, absences included.
        steps: Decisions that were taken.
        outcome: "played" to its end, "void" since the participant was away for too long, or
            "fault" of the service.
        passed: Whether it was passed; None unless it was played.
        gaps: Seconds of each absence after which it went on.
        timing: What the browser measured; None if no frame was shown.
        keys: What each key does that went down or up, whether it went down, and when, in ms from
            the first frame; less than 0 for one that was held when that was painted.
        unseen: Whether it came to its end while nobody looked.
    """

    episode: int
    attempt: int | None
    seconds: float
    steps: int
    outcome: Literal["played", "void", "fault"]
    passed: bool | None = None
    gaps: tuple[float, ...] = ()
    timing: TrialTiming | None = None
    keys: tuple[tuple[str, bool, float | None], ...] = ()
    unseen: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """What is to be known of it before its times are read, in a word each."""
        found = ["gap"] if self.gaps else []
        found += ["unseen"] if self.unseen else []
        found += ["early"] if any(at is not None and at < 0 for _, _, at in self.keys) else []
        timing = self.timing
        if timing is None:
            return (*found, "untimed")
        frames = max(timing.frames, 1)
        found += ["late"] if timing.late > FREE_SHARE * frames else []
        found += ["dropped"] if timing.dropped > FREE_SHARE * frames else []
        found += ["blur"] if timing.blurs else []
        return tuple(found)


@checked(frozen=True, slots=True)
class Arrived:
    """A participant came, and was given a condition."""

    at: datetime
    study: str
    condition: str
    visit: int = 1
    kind: Literal["arrived"] = "arrived"


@checked(frozen=True, slots=True)
class Agreed:
    """The consent was given, to this version of its text."""

    at: datetime
    version: str
    digest: str
    kind: Literal["agreed"] = "agreed"


@checked(frozen=True, slots=True)
class DeviceFits:
    """The device has what the study needs."""

    at: datetime
    width: Annotated[int, Field(ge=0, le=100_000)]
    height: Annotated[int, Field(ge=0, le=100_000)]
    pixel_ratio: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
    refresh_hz: Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)]
    input: Literal["keys", "touch"]
    browser: Annotated[str, Field(max_length=300)] = ""
    kind: Literal["device"] = "device"


@checked(frozen=True, slots=True)
class PageLeft:
    """A page was left: of the instructions, a break or the last; or they say that it fails."""

    at: datetime
    kind: Literal["read", "rested", "debriefed", "technical"]
    page: int = 0


@checked(frozen=True, slots=True)
class Answered:
    """Questions were answered, each as `Question.read` keeps it."""

    at: datetime
    answers: tuple[int | str, ...]
    stage: Literal[Stage.BEFORE, Stage.QUESTIONS, Stage.AFTER] = Stage.QUESTIONS
    kind: Literal["answered"] = "answered"


@checked(frozen=True, slots=True)
class SessionMade:
    """A session of the service belongs to the participant from now on."""

    at: datetime
    part: Part
    session: str
    kind: Literal["session"] = "session"


@checked(frozen=True, slots=True)
class TrialOver:
    """A trial ended."""

    at: datetime
    part: Part
    trial: Trial
    kind: Literal["trial"] = "trial"


@checked(frozen=True, slots=True)
class SessionOver:
    """A session has no further trial."""

    at: datetime
    part: Part
    kind: Literal["session over"] = "session over"


Event: TypeAlias = (
    Arrived | Agreed | DeviceFits | PageLeft | Answered | SessionMade | TrialOver | SessionOver
)
EVENTS: Final[TypeAdapter[Event]] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])
"""Reads and writes events as JSON."""


class OutOfPlaceError(ValueError):
    """An event does not belong to where the participant is, such as a form that was sent twice."""


@dataclass(frozen=True, slots=True)
class Participant:
    """A participant at one visit, as the events say.

    Attributes:
        id: Id: the person's, a hyphen and the number of the visit.
        study: Digest of the study file when the participant came.
        condition: The condition; empty in a study without.
        visit: Which visit, from 1.
        stage: Where the participant is.
        arrived: When the first event was.
        changed: When the latest was.
        consent: Version and digest of the text that was agreed to; empty until then.
        device: The device, once it was checked.
        page: Which page of the instructions comes, from 0.
        tries: How often the questions on the instructions were answered.
        wrong: How many other questions that have a right answer were answered wrongly.
        practised: Outcomes of the practice rounds.
        block: Which block, from 0.
        in_block: Rounds played in it; in blocks of listed arenas, void ones too.
        block_seconds: Seconds played in it.
        trials: Rounds played that count.
        passed: How many of them were passed.
        idle: In how many of them no key was pressed.
        presses: How often each key was pressed in them.
        sessions: Ids of the sessions, by part.
        why: Why the participant was screened out, or that it does not work; empty otherwise.
    """

    id: str
    study: str
    condition: str
    visit: int
    stage: Stage
    arrived: datetime
    changed: datetime
    consent: tuple[str, str] = ("", "")
    device: DeviceFits | None = None
    page: int = 0
    tries: int = 0
    wrong: int = 0
    practised: tuple[bool, ...] = ()
    block: int = 0
    in_block: int = 0
    block_seconds: float = 0.0
    trials: int = 0
    passed: int = 0
    idle: int = 0
    presses: Mapping[str, int] = field(default_factory=dict[str, int])
    sessions: Mapping[str, str] = field(default_factory=dict[str, str])
    why: str = ""

    @property
    def person(self) -> str:
        """Id of the person, the same at all visits."""
        return self.id.partition("-")[0]

    @property
    def part(self) -> Part | None:
        """The session that is played now; None at pages."""
        return {Stage.PRACTICE: "practice", Stage.PLAY: "play"}.get(self.stage)  # pyright: ignore


def careless_flags(study: Study, one: Participant) -> tuple[str, ...]:
    """Return what the study's rule for the careless says of a participant, in a word each."""
    rule, presses = study.careless, sum(one.presses.values())
    found = {
        "inattentive": one.wrong >= rule.wrong > 0,
        "idle": one.trials > 0 and one.idle >= rule.idle * one.trials,
        "one-key": presses > 0 and max(one.presses.values()) >= rule.one_key * presses,
    }
    return tuple(flag for flag, holds in found.items() if holds)


def arrive(participant: str, event: Arrived) -> Participant:
    """Return a participant who has just come."""
    return Participant(
        participant, event.study, event.condition, event.visit, Stage.CONSENT, event.at, event.at
    )


def after(study: Study, participant: Participant, event: Event) -> Participant:
    """Return the participant after an event.

    Raises:
        OutOfPlaceError: It does not belong to where the participant is; nothing has happened then.
    """
    return replace(_after(event, study, participant), changed=event.at)


def replay_participant(study: Study, participant: str, events: Iterable[Event]) -> Participant:
    """Return the participant after all events, of which the first is the arrival.

    Raises:
        OutOfPlaceError: The events do not follow one another.
    """
    rest = iter(events)
    first = next(rest, None)
    if not isinstance(first, Arrived):
        raise OutOfPlaceError(f"participant {participant} never arrived")
    return reduce(lambda now, event: after(study, now, event), rest, arrive(participant, first))


def assign(study: Study, filled: Mapping[str, int], number: int) -> str:
    """Return the condition of the next participant; empty in a study without conditions.

    It is the one that is filled least for its weight; a digest of the study's seed and the number
    of those before decides between equals, so that the order can be worked out again.
    """

    def draw(name: str) -> str:
        return hashlib.sha256(f"{study.seed}/{number}/{name}".encode()).hexdigest()

    ranked = sorted(
        study.conditions, key=lambda c: (filled.get(c.name, 0) / c.weight, draw(c.name))
    )
    return ranked[0].name if ranked else ""


@singledispatch
def _after(event: Event, study: Study, now: Participant) -> Participant:
    raise OutOfPlaceError(f"a participant arrives once, and {now.id} has")


def _at(now: Participant, *stages: Stage) -> None:
    if now.stage not in stages:
        raise OutOfPlaceError(f"{now.id} is at {now.stage}, and that belongs to {stages[0]}")


def _forward(study: Study, now: Participant, stage: Stage) -> Participant:
    """Go to the first stage from one on that the study has."""
    lacks = {one for one in (Stage.BEFORE, Stage.QUESTIONS, Stage.AFTER) if not study.asked(one)}
    lacks |= set() if study.instructions else {Stage.INSTRUCTIONS}
    lacks |= {Stage.PRACTICE} if study.practice is None else set()
    order = list(Stage)
    return replace(now, stage=next(at for at in order[order.index(stage) :] if at not in lacks))


@_after.register
def _(event: Agreed, study: Study, now: Participant) -> Participant:
    _at(now, Stage.CONSENT)
    return _forward(study, replace(now, consent=(event.version, event.digest)), Stage.DEVICE)


@_after.register
def _(event: DeviceFits, study: Study, now: Participant) -> Participant:
    _at(now, Stage.DEVICE)
    return _forward(study, replace(now, device=event), Stage.BEFORE)


@_after.register
def _(event: PageLeft, study: Study, now: Participant) -> Participant:
    match event.kind:
        case "read":
            _at(now, Stage.INSTRUCTIONS)
            if event.page != now.page:
                raise OutOfPlaceError(f"{now.id} is at page {now.page}, not at {event.page}")
            read = replace(now, page=now.page + 1)
            more = read.page < len(study.instructions)
            return read if more else _forward(study, read, Stage.QUESTIONS)
        case "rested":
            _at(now, Stage.BREAK)
            return replace(now, stage=Stage.PLAY)
        case "debriefed":
            _at(now, Stage.DEBRIEF)
            return replace(now, stage=Stage.DONE)
        case "technical":
            return replace(now, why=now.why or "says that it does not work")


@_after.register
def _(event: Answered, study: Study, now: Participant) -> Participant:
    stage = event.stage
    _at(now, stage)
    asked = study.asked(stage)
    wrong = sum(
        not question.is_right(said) for question, said in zip(asked, event.answers, strict=False)
    )
    if stage is not Stage.QUESTIONS:
        then = Stage.INSTRUCTIONS if stage is Stage.BEFORE else Stage.DEBRIEF
        return _forward(study, replace(now, wrong=now.wrong + wrong), then)
    tried = replace(now, tries=now.tries + 1)
    if len(event.answers) == len(asked) and not wrong:
        return _forward(study, tried, Stage.PRACTICE)
    if study.understanding is None or tried.tries >= study.understanding.tries:
        return replace(tried, stage=Stage.SCREENED, why="the questions were not answered rightly")
    back = Stage.INSTRUCTIONS if study.instructions else Stage.QUESTIONS
    return replace(tried, stage=back, page=0)


@_after.register
def _(event: SessionMade, study: Study, now: Participant) -> Participant:
    if event.part != now.part or event.part in now.sessions:
        raise OutOfPlaceError(f"{now.id} needs no session for {event.part} at {now.stage}")
    return replace(now, sessions={**now.sessions, event.part: event.session})


@_after.register
def _(event: TrialOver, study: Study, now: Participant) -> Participant:
    trial = event.trial
    if event.part != now.part:
        raise OutOfPlaceError(f"{now.id} is at {now.stage}, and a trial of {event.part} ended")
    played = trial.outcome == "played"
    if not played and (event.part == "practice" or not study.blocks.latin):
        return now  # another arena takes its place; a listed block has none but its own
    if event.part == "practice":
        return _count_practice(study, replace(now, practised=(*now.practised, bool(trial.passed))))
    pressed = Counter(key for key, down, _ in trial.keys if down and played)
    then = replace(
        now,
        in_block=now.in_block + 1,
        block_seconds=now.block_seconds + trial.seconds,
        trials=now.trials + played,
        passed=now.passed + bool(trial.passed),
        idle=now.idle + (played and not pressed),
        presses=Counter(now.presses) + pressed,
    )
    trials, seconds = study.blocks.most
    if 0 < trials <= then.in_block or 0 < seconds <= then.block_seconds:
        new = {"block": then.block + 1, "in_block": 0, "block_seconds": 0.0}
        return replace(then, stage=Stage.BREAK, **new)
    return then


def _count_practice(study: Study, now: Participant) -> Participant:
    practice = study.practice
    assert practice is not None  # the stage is not reached without
    if practice.met(now.practised):
        return _forward(study, now, Stage.PLAY)
    return now if len(now.practised) < practice.most else _go_on_unpractised(study, now)


def _go_on_unpractised(study: Study, now: Participant) -> Participant:
    """Go on without the criterion, or not."""
    if study.practice is None or study.practice.otherwise == "go on":
        return _forward(study, now, Stage.PLAY)
    return replace(now, stage=Stage.SCREENED, why="the criterion of practice was not reached")


@_after.register
def _(event: SessionOver, study: Study, now: Participant) -> Participant:
    if event.part == "practice":
        _at(now, Stage.PRACTICE)
        return _go_on_unpractised(study, now)  # no arena is left to practise on
    _at(now, Stage.PLAY, Stage.BREAK)
    return _forward(study, now, Stage.AFTER)
