"""What is kept of participants: over restarts and cuts, apart from who they are, until erased."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from animalcat.doors.study.file import Study
from animalcat.doors.study.participant import Agreed, OutOfPlaceError, PageLeft, Stage
from animalcat.doors.study.store import (
    BegunError,
    Chance,
    FullError,
    StudyError,
    StudyStore,
    TooEarlyError,
    WithdrawnError,
    kept_study,
    tombstones,
)
from tests.doors.study.test_participant import NOW, WHOLE

Write = Callable[..., Study]
PID = {"PROLIFIC_PID": "5f1c", "STUDY_ID": "s", "SESSION_ID": "one"}
AGREED = Agreed(NOW, "1", "digest")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "data"


def whole_text(home: Path) -> str:
    return "".join(p.read_text() for p in sorted(home.rglob("*")) if p.is_file())


def test_a_restart_finds_everybody_where_they_were(
    written: Write, home: Path, chance: Chance
) -> None:
    store = StudyStore(home, written(), chance)
    store.hold()
    first, key = store.enter({})
    second, _ = store.enter({})
    for k, event in enumerate(WHOLE):
        store.append(first.id, event)
        again = StudyStore(home, written(), chance)
        assert again.participants() == store.participants(), k
        assert again.participant(again.latest(again.person_of(key) or "").id).id == first.id
    assert store.participant(first.id).stage is Stage.DONE
    assert store.participant(second.id).stage is Stage.CONSENT
    assert {first.condition, second.condition} == {"plain", "scored"}
    with pytest.raises(StudyError, match="already running"):
        StudyStore(home, written(), chance).hold()
    store.close()
    StudyStore(home, written(), chance).hold()


def test_a_line_that_was_cut_off_never_happened(written: Write, home: Path, chance: Chance) -> None:
    store = StudyStore(home, written(), chance)
    one, _ = store.enter({})
    store.append(one.id, WHOLE[0])
    file = store.folder / "participants" / f"{one.id}.jsonl"
    whole = file.read_bytes()
    for cut in range(len(whole) + 1):
        file.write_bytes(whole[:cut])
        again = StudyStore(home, written(), chance)
        lines = whole[:cut].count(b"\n")
        if not lines:
            assert again.participants() == []
            continue
        assert again.participant(one.id).stage is (Stage.CONSENT, Stage.DEVICE)[lines - 1]
        if lines == 1:
            again.append(one.id, WHOLE[0])
        assert file.read_bytes() == whole
    file.write_bytes(b"{}\n" + whole)
    with pytest.raises(StudyError, match="line 1 is no event"):
        StudyStore(home, written(), chance)


def test_what_is_refused_is_not_stored(written: Write, home: Path, chance: Chance) -> None:
    store = StudyStore(home, written(), chance)
    one, _ = store.enter({})
    before = whole_text(home)
    with pytest.raises(OutOfPlaceError):
        store.append(one.id, PageLeft(NOW, "debriefed"))
    assert whole_text(home) == before


def test_ids_of_recruiters_are_in_no_file_of_trials(
    written: Write, home: Path, chance: Chance
) -> None:
    store = StudyStore(home, written(("debrief:", "who: {by: prolific}\ndebrief:")), chance)
    one, key = store.enter(PID)
    for event in WHOLE:
        store.append(one.id, event)
    events = (store.folder / "participants" / f"{one.id}.jsonl").read_text()
    assert "5f1c" not in events + one.id
    assert key not in whole_text(home)
    people = store.folder / "people"
    assert (people.stat().st_mode & 0o777, len(list(people.iterdir()))) == (0o700, 1)


def test_the_same_person_goes_on_and_another_does_not(
    written: Write, home: Path, chance: Chance
) -> None:
    store = StudyStore(home, written(("debrief:", "who: {by: prolific}\ndebrief:")), chance)
    one, key = store.enter(PID)
    store.append(one.id, AGREED)
    again, _ = store.enter(PID, store.person_of(key))
    assert again.id == one.id
    other, _ = store.enter({**PID, "PROLIFIC_PID": "77aa"}, store.person_of(key))
    assert other.id != one.id
    assert store.person_of("somebody") is None
    assert store.person_of(key) == one.id.split("-")[0]


def test_return_visits_are_linked(written: Write, home: Path) -> None:
    time = datetime(2026, 11, 27, tzinfo=UTC)
    picks = iter(range(1000))
    chance = Chance(lambda: time, lambda below: next(picks) % below)
    who = "who: {by: prolific, visits: 2, days_between: 1}\ndebrief:"
    store = StudyStore(home, written(("debrief:", who)), chance)
    one, key = store.enter(PID)
    person = store.person_of(key)
    for event in WHOLE:
        store.append(one.id, replace(event, at=time))
    with pytest.raises(TooEarlyError):
        store.enter({**PID, "SESSION_ID": "two"}, person)
    time += timedelta(days=1)
    back, _ = store.enter({**PID, "SESSION_ID": "two"}, person)
    assert (back.id, back.visit, back.condition) == (one.id[:-1] + "2", 2, one.condition)
    assert store.sessions_of(back) == ["p", "s"]
    assert back.stage is Stage.CONSENT
    for event in WHOLE:
        store.append(back.id, replace(event, at=time))
    with pytest.raises(BegunError):
        store.enter(PID, person)
    assert store.enter({**PID, "SESSION_ID": "two"}, person)[0].id == back.id
    assert store.participant(back.id).stage is Stage.DONE


def test_a_study_that_is_full_takes_nobody_else(written: Write, home: Path, chance: Chance) -> None:
    store = StudyStore(home, written(("debrief:", "who: {most: 1}\ndebrief:")), chance)
    one, key = store.enter({})
    late, _ = store.enter({})  # who does not play takes no place
    assert store.take_place(one)
    assert not store.take_place(late)
    with pytest.raises(FullError):
        store.enter({})
    assert store.enter({}, store.person_of(key))[0].id == one.id


def test_the_place_of_who_has_dropped_out_is_free(written: Write, home: Path) -> None:
    time = datetime(2026, 11, 27, tzinfo=UTC)
    picks = iter(range(1000))
    chance = Chance(lambda: time, lambda below: next(picks) % below)
    store = StudyStore(home, written(("debrief:", "who: {most: 2}\ndebrief:")), chance)
    done, dropped = store.enter({})[0], store.enter({})[0]
    for one, events in ((done, WHOLE), (dropped, WHOLE[:8])):
        for event in events:
            store.append(one.id, replace(event, at=time))
    with pytest.raises(FullError):
        store.enter({})
    time += timedelta(hours=24)
    new, _ = store.enter({})
    assert new.condition == dropped.condition
    assert store.take_place(new)
    assert not store.take_place(dropped)


def test_withdrawal_is_as_if_never_seen(written: Write, home: Path, chance: Chance) -> None:
    store = StudyStore(home, written(), chance)
    store.hold()
    kept, _ = store.enter({})
    left, key = store.enter({})
    for event in WHOLE:
        store.append(left.id, event)
    other_process = StudyStore(home, written(), chance)
    stone = other_process.begin_withdrawal(left.id)
    assert stone.sessions == ("p", "s")
    assert [s.person for s in other_process.unfinished()] == [stone.person]
    assert StudyStore(home, written(), chance).unfinished() == [stone]
    other_process.end_withdrawal(stone)
    assert other_process.unfinished() == []
    with pytest.raises(WithdrawnError):  # the process that runs the study still holds them
        store.append(left.id, AGREED)
    assert store.person_of(key) is None
    assert not [p for p in home.rglob("*") if stone.person in p.name]
    store.close()
    again = StudyStore(home, written(), chance)
    assert [p.id for p in again.participants()] == [kept.id]
    assert again.enter({})[0].condition == left.condition
    assert tombstones(store.folder)[0].at == datetime(2026, 11, 27, tzinfo=UTC)


def test_who_began_with_a_text_goes_on_with_it(written: Write, home: Path, chance: Chance) -> None:
    store = StudyStore(home, written(), chance)
    store.hold()
    one, _ = store.enter({})
    store.close()
    changed = StudyStore(home, written(("You *may* leave", "You can leave")), chance)
    assert changed.study_of(changed.participant(one.id)).consent.text.startswith("You *may*")
    assert kept_study(home, "finding-things").consent.text.startswith("You *may*")
    with pytest.raises(StudyError, match="there are: finding-things"):
        kept_study(home, "other")


def test_codes_of_people_are_not_kept_with_the_study(
    written: Write, home: Path, chance: Chance
) -> None:
    study = written(("debrief:", "who: {by: codes, codes: [anna-7, ben-8]}\ndebrief:"))
    store = StudyStore(home, study, chance)
    store.hold()
    assert "anna-7" not in whole_text(home)
    assert kept_study(home, study.study, study.digest).digest == study.digest
