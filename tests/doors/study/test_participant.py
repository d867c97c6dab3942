"""What comes next for a participant: from consent to the end, whatever is sent twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from animalcat.doors.study.file import Study
from animalcat.doors.study.participant import (
    Agreed,
    Answered,
    Arrived,
    DeviceFits,
    Event,
    OutOfPlaceError,
    PageLeft,
    Part,
    Participant,
    SessionMade,
    SessionOver,
    Stage,
    Trial,
    TrialOver,
    TrialTiming,
    after,
    arrive,
    assign,
    careless_flags,
    replay_participant,
)
from animalcat.doors.study.playing import keys_of, sum_timings
from animalcat.doors.study.realtime import Key, Timing
from animalcat.doors.study.rounds import Round
from tests.doors.study.conftest import ASKED

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
Write = Callable[..., Study]


def trial(part: Part, *, passed: bool = True, outcome: str = "played") -> TrialOver:
    told = passed if outcome == "played" else None
    return TrialOver(NOW, part, Trial(0, 0, 30.0, 100, outcome, told, (), TrialTiming()))  # pyright: ignore


PAGES: Sequence[Event] = (
    Agreed(NOW, "1", "digest"),
    DeviceFits(NOW, 1200, 800, 1.0, 60.0, "keys"),
    PageLeft(NOW, "read", 0),
    PageLeft(NOW, "read", 1),
    Answered(NOW, (1,)),
)
PRACTICE: Sequence[Event] = (
    SessionMade(NOW, "practice", "p"),
    trial("practice", passed=False),
    trial("practice"),
)
PLAY: Sequence[Event] = (
    SessionMade(NOW, "play", "s"),
    trial("play"),
    trial("play", passed=False),
    PageLeft(NOW, "rested"),
    trial("play", outcome="void"),
    trial("play"),
    trial("play"),
    SessionOver(NOW, "play"),
    PageLeft(NOW, "debriefed"),
)
WHOLE = (*PAGES, *PRACTICE, *PLAY)


def run(study: Study, *events: Event) -> Participant:
    return replay_participant(study, "abc-1", [Arrived(NOW, study.digest, "plain"), *events])


def test_a_whole_visit(written: Write) -> None:
    study = written()
    stages = list[Stage]()
    now = arrive("abc-1", Arrived(NOW, study.digest, "plain"))
    for event in WHOLE:
        stages.append(now.stage)
        now = after(study, now, event)
    assert now.stage is Stage.DONE
    assert (now.trials, now.passed, now.practised) == (4, 3, (False, True))
    assert now.sessions == {"practice": "p", "play": "s"}
    seen = [stage for k, stage in enumerate(stages) if k == 0 or stages[k - 1] != stage]
    assert seen == [
        *(Stage.CONSENT, Stage.DEVICE, Stage.INSTRUCTIONS, Stage.QUESTIONS, Stage.PRACTICE),
        *(Stage.PLAY, Stage.BREAK, Stage.PLAY, Stage.BREAK, Stage.DEBRIEF),
    ]


@pytest.mark.parametrize("at", range(len(WHOLE)))
def test_what_belongs_elsewhere_changes_nothing(written: Write, at: int) -> None:
    """Whatever a page sends twice, late or early is refused, unless it may come there."""
    study = written()
    now = run(study, *WHOLE[:at])
    may_come = {
        Stage.CONSENT: {"agreed"},
        Stage.DEVICE: {"device"},
        Stage.INSTRUCTIONS: {"read"},
        Stage.QUESTIONS: {"answered"},
        Stage.PRACTICE: {"session", "trial", "session over"},
        Stage.PLAY: {"session", "trial", "session over"},
        Stage.BREAK: {"rested", "session over"},
        Stage.DEBRIEF: {"debriefed"},
    }
    for event in (*WHOLE, Arrived(NOW, "x", "")):
        if event.kind in may_come[now.stage]:
            continue
        with pytest.raises(OutOfPlaceError):
            after(study, now, event)


def test_wrong_answers_lead_back_and_then_out(written: Write) -> None:
    study = written()
    once = run(study, *PAGES[:4], Answered(NOW, (2,)))
    assert (once.stage, once.page, once.tries) == (Stage.INSTRUCTIONS, 0, 1)
    twice = run(study, *PAGES[:4], Answered(NOW, (2,)), *PAGES[2:4], Answered(NOW, ()))
    assert (twice.stage, twice.why) == (Stage.SCREENED, "the questions were not answered rightly")


def test_questions_stand_before_and_after_and_the_careless_are_flagged(written: Write) -> None:
    study = written(ASKED)
    before, after_ = Answered(NOW, ("30", "2"), Stage.BEFORE), Answered(NOW, ("1", ""), Stage.AFTER)
    asked = run(study, *PAGES[:2])
    assert asked.stage is Stage.BEFORE
    with pytest.raises(OutOfPlaceError):
        after(study, asked, Answered(NOW, ("1", ""), Stage.AFTER))
    keys = (("ahead", True, 1.0), ("ahead", False, 2.0))

    def played(*keys: tuple[str, bool, float]) -> TrialOver:
        return TrialOver(NOW, "play", Trial(0, 0, 9.0, 9, "played", True, keys=keys))

    begun = (*PAGES[:2], before, *PAGES[2:], *PRACTICE, PLAY[0])
    ended = (SessionOver(NOW, "play"), after_)
    idle = run(study, *begun, played(), played(*keys), *ended)
    assert (idle.stage, idle.wrong) == (Stage.DEBRIEF, 1)
    assert careless_flags(study, idle) == ("inattentive", "idle", "one-key")
    lively = run(study, *begun, played(*keys, ("left", True, 3.0)), played(*keys))
    assert careless_flags(study, lively) == ()


def test_practice_ends_at_its_criterion_or_its_limit(written: Write) -> None:
    study = written()
    failing = [trial("practice", passed=False)] * 3
    assert run(study, *PAGES, *failing).stage is Stage.PLAY
    strict = written(("most: 3}", "most: 3, otherwise: screen out}"))
    assert run(strict, *PAGES, *failing).stage is Stage.SCREENED
    assert run(strict, *PAGES, *failing[:2]).stage is Stage.PRACTICE
    assert run(strict, *PAGES, SessionOver(NOW, "practice")).stage is Stage.SCREENED
    assert run(strict, *PAGES, trial("practice")).stage is Stage.PLAY


def test_conditions_are_filled_by_their_weights(written: Write) -> None:
    study = written()
    filled = Counter[str]()
    for number in range(60):
        filled[assign(study, filled, number)] += 1
        assert abs(filled["scored"] - 2 * filled["plain"]) <= 2
    assert filled == {"plain": 20, "scored": 40}
    other = written(("title:", "seed: 5\ntitle:"))
    first = [[assign(s, {}, n) for n in range(20)] for s in (study, other)]
    assert first[0] != first[1]
    assert {*first[0]} == {"plain", "scored"}


def test_times_of_a_frame_are_told_from_the_key_on() -> None:
    """The browser's clock is 5 s behind the server's."""
    first = Timing(0, 9.94, 9.945, None, 4950.0, 4960.0, 5000.0, 2.0)
    second = Timing(1, 10.0, 10.01, 4980.0, 5015.0, 5030.0, 5000.0, 1.0)
    run = Round(0, 9.9, 10.1, timings=[first, second, Timing(2, 10.06, 10.07, None)])
    # One is held from before; it is let go, and only then another one is pressed and let go.
    run.keys = [
        *(Key("left", True, 4950.0), Key("left", False, 4970.0)),
        *(Key("ahead", True, 4980.0), Key("ahead", False, 5030.0)),
    ]
    keys = keys_of(run)
    assert keys[0] == ("left", True, -10.0)
    assert Trial(0, 0, 9.0, 3, "played", True, keys=keys).flags == ("early", "untimed")
    told = sum_timings(run.timings, keys, 1, full_screen=False)
    assert told is not None
    assert (told.frames, told.dropped, told.late, told.keys, told.blurs) == (3, 1, 0, 2, 1)
    assert (told.wait_p95, told.key_p95, told.first_key) == (20.0, 50.0, 20.0)
    assert (told.interval_p95, told.round_trip) == (70.0, 1.0)
    alone = sum_timings([second], (), 0, full_screen=True)
    assert alone is not None
    assert (alone.shown_p95, alone.interval_p95) == (30.0, None)
    slow = sum_timings([replace(second, painted=5060.5)], (), 0, full_screen=True)
    assert slow is not None
    assert slow.late == 1, "more than 60 ms after its decision"


def test_flags_say_why_times_are_not_to_be_trusted() -> None:
    clean = TrialTiming(frames=100, dropped=2, late=3)
    assert Trial(0, 0, 9.0, 100, "played", True, (), clean).flags == ()
    bad = TrialTiming(frames=100, dropped=6, late=6, blurs=1)
    found = Trial(0, 0, 9.0, 100, "played", True, (2.0,), bad).flags
    assert found == ("gap", "late", "dropped", "blur")
    assert Trial(0, 0, 9.0, 100, "void").flags == ("untimed",)
