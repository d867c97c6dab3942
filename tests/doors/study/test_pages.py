"""The participant's pages ask nobody else's business, run nothing, and forget nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from animalcat.client.async_client import AsyncClient
from animalcat.doors.study.file import Study
from animalcat.doors.study.pages import ARRIVALS, ATTEMPTS, study_part
from animalcat.doors.study.participant import Answered, Stage
from animalcat.doors.study.playing import Seats
from animalcat.doors.study.store import Chance, StudyStore, read_events
from animalcat.service.access.callers import MACHINE
from animalcat.service.web.application import create_app
from animalcat.service.web.guard import Door
from animalcat.service.web.site import Site
from animalcat.service.web.visits import UsedHere, Visits
from tests.doors.study.conftest import ASKED
from tests.doors.study.test_participant import WHOLE
from tests.web.chromium import PROGRAM
from tests.web.chromium import browser as chromium

Write = Callable[..., Study]
HOST = "127.0.0.1:8080"
EVIL = '</h1><script>alert("x")</script>'


class Pages:
    """The pages of a study, for any number of browsers."""

    def __init__(self, study: Study, home: Path, chance: Chance) -> None:
        self.store = StudyStore(home, study, chance)
        self.visits = Visits(b"key" * 11, UsedHere())
        # Nothing is played here, so that no server is asked.
        seats = Seats(self.store, cast("AsyncClient", None))
        site = Site(self.visits, Door(frozenset({HOST})))
        self.app = create_app(site, [study_part(self.store, seats)])
        self.at = f"/study/{study.study}"

    def browser(self) -> TestClient:
        told = {"accept": "text/html", "origin": f"http://{HOST}"}
        return TestClient(self.app, base_url=f"http://{HOST}", headers=told)


@pytest.fixture
def pages(written: Write, tmp_path: Path, chance: Chance) -> Callable[..., Pages]:
    return lambda *changes: Pages(written(*changes), tmp_path / "data", chance)


def fields(html: str) -> dict[str, str]:
    """The hidden fields of a page's form."""
    found = re.findall(r'<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?', html)
    return dict(found)


def agree(browser: TestClient, at: str) -> Any:
    form = {**fields(browser.get(at).text), "ask-0": "on", "agree": "1"}
    return browser.post(f"{at}/consent", data=form)


def personal(html: str) -> str:
    """The personal link that a page shows."""
    found = re.search(r'<code id="personal">([^<]+)<', html)
    assert found is not None
    return found[1]


DEVICE = {"width": "900", "height": "800", "pixel_ratio": "1", "refresh_hz": "60", "input": "keys"}


def test_nobody_is_kept_before_they_agree(pages: Callable[..., Pages]) -> None:
    site = pages()
    browser = site.browser()
    form = fields(browser.get(site.at).text)
    assert "tick every box" in browser.post(f"{site.at}/consent", data={**form, "agree": "1"}).text
    answer = browser.post(f"{site.at}/consent", data={**form, "decline": "1"})
    assert "nothing was kept" in answer.text
    assert site.store.participants() == []
    assert "Checking your device" in agree(browser, site.at).text
    (one,) = site.store.participants()
    assert one.consent == ("1", site.store.study.consent.digest)
    assert one.stage is Stage.DEVICE


def test_a_form_stands_for_its_own_participant_alone(pages: Callable[..., Pages]) -> None:
    site = pages()
    first, second = site.browser(), site.browser()
    agree(first, site.at)
    agree(second, site.at)
    form = {**fields(first.get(site.at).text), **DEVICE}
    assert first.post(f"{site.at}/step", data=form).status_code == 200
    stages = [p.stage for p in site.store.participants()]
    assert stages == [Stage.INSTRUCTIONS, Stage.DEVICE]
    stolen = second.post(f"{site.at}/step", data=form)  # what one page was given, another sends
    assert stolen.status_code == 403
    assert [p.stage for p in site.store.participants()] == stages
    ids = [p.id for p in site.store.participants()]
    for browser in (first, second):
        text = browser.get(site.at).text
        assert not [one for one in ids if one.partition("-")[0] in text]


@pytest.mark.parametrize("cookie", ["", "key-0x", "../people", "key-1;x", "a" * 5000])
def test_who_makes_a_key_up_is_nobody(pages: Callable[..., Pages], cookie: str) -> None:
    site = pages()
    agree(site.browser(), site.at)
    stranger = site.browser()
    name = f"animalcat-study-finding-things-{site.visits.mark}"
    answer = stranger.get(site.at, headers={"cookie": f"{name}={cookie}"})
    assert 'name="agree"' in answer.text
    with stranger.websocket_connect(f"ws://{HOST}{site.at}/play") as socket:
        assert socket.receive_json() == {"t": "page"}


def test_a_second_click_counts_once(pages: Callable[..., Pages]) -> None:
    site = pages()
    browser = site.browser()
    agree(browser, site.at)
    browser.post(f"{site.at}/step", data={**fields(browser.get(site.at).text), **DEVICE})
    form = fields(browser.get(site.at).text)
    for _ in range(3):
        browser.post(f"{site.at}/step", data=form)
    (one,) = site.store.participants()
    assert (one.stage, one.page) == (Stage.INSTRUCTIONS, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {**DEVICE, "width": "100"},
        {**DEVICE, "width": "x"},
        {**DEVICE, "refresh_hz": "nan"},
        {**DEVICE, "input": "mind"},
        {"kind": "answered"},
        {"kind": "trial"},
        {"kind": "nonsense"},
        {},
    ],
)
def test_what_does_not_fit_leads_back(pages: Callable[..., Pages], wrong: dict[str, str]) -> None:
    site = pages()
    browser = site.browser()
    agree(browser, site.at)
    form = {**fields(browser.get(site.at).text), **wrong}
    answer = browser.post(f"{site.at}/step", data=form)
    assert "Checking your device" in answer.text
    assert site.store.participants()[0].stage is Stage.DEVICE


def test_questions_are_answered_whole(pages: Callable[..., Pages]) -> None:
    site = pages(ASKED)
    browser = site.browser()
    agree(browser, site.at)
    form = {**fields(browser.get(site.at).text), **DEVICE}
    shown = browser.post(f"{site.at}/step", data=form).text
    assert 'type="number"' in shown
    assert 'type="checkbox"' in shown
    form = {**fields(shown), "answer-0": "30"}
    assert "answer every question" in browser.post(f"{site.at}/step", data=form).text
    form |= {"answer-1-1": "1", "answer-1-3": "3"}
    assert "Find the green ball" in browser.post(f"{site.at}/step", data=form).text
    (one,) = site.store.participants()
    *_, last = read_events(site.store.folder / "participants" / f"{one.id}.jsonl")
    assert isinstance(last, Answered)
    assert (last.stage, last.answers) == ("before", ("30", "1 3"))


def test_scripts_in_any_text_are_shown_and_do_not_run(
    pages: Callable[..., Pages], tmp_path: Path
) -> None:
    site = pages(
        ("title: Finding things", f"title: '{EVIL}'"),
        ('"I am 18 or older."', f"'{EVIL}'"),
        ('"You *may* leave at any time."', f"'{EVIL} [x](javascript:alert(1))'"),
        ("debrief:", f"words: {{agree: '{EVIL}'}}\ndebrief:"),
    )
    answer = site.browser().get(site.at)
    assert "<script>alert" not in answer.text
    assert answer.text.count("&lt;script&gt;alert") >= 4
    assert 'href="javascript' not in answer.text
    if PROGRAM:
        (tmp_path / "page.html").write_text(answer.text)  # without its policy
        with chromium() as opened:
            page = opened()
            page.open((tmp_path / "page.html").as_uri())
            assert EVIL in page.text()
            assert not page.js("document.querySelectorAll('script:not([src])').length")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "set-cookie" in answer.headers
    assert "HttpOnly" in answer.headers["set-cookie"]


def test_foreign_pages_and_names_are_refused(pages: Callable[..., Pages]) -> None:
    site = pages()
    browser = site.browser()
    agree(browser, site.at)
    assert browser.post(f"{site.at}/withdraw").status_code == 403
    elsewhere = {"origin": "https://evil.example.org"}
    form = fields(browser.get(f"{site.at}/withdraw").text)
    answer = browser.post(f"{site.at}/withdraw", data=form, headers=elsewhere)
    assert answer.status_code == 403
    with (
        pytest.raises(WebSocketDisconnect),
        browser.websocket_connect(f"ws://{HOST}{site.at}/play", headers=elsewhere),
    ):
        pass
    assert browser.get(site.at, headers={"host": "evil.example.org"}).status_code == 403
    assert len(site.store.participants()) == 1


def test_no_file_but_pictures_of_the_study_is_offered(
    pages: Callable[..., Pages], tmp_path: Path
) -> None:
    (tmp_path / "ball.png").write_bytes(b"picture")
    (tmp_path / "secret.png").write_bytes(b"secret")
    site = pages(('"It was about finding."', '"![ball](ball.png)"'))
    browser = site.browser()
    assert browser.get(f"{site.at}/picture/ball.png").content == b"picture"
    for name in ("secret.png", "study.yaml", "..%2Fstudy.yaml", "%2e%2e/study.yaml", "."):
        assert browser.get(f"{site.at}/picture/{name}").status_code == 404, name


def test_codes_let_in_whom_they_are_for(pages: Callable[..., Pages]) -> None:
    site = pages(("debrief:", "who: {by: codes, codes: [anna-7, ben-8]}\ndebrief:"))
    browser = site.browser()

    def enter(code: str) -> Any:
        form = fields(browser.get(site.at).text)
        return browser.post(f"{site.at}/code", data={**form, "code": code})

    assert enter("carl-9").status_code == 403
    for code in ("anna-7", "ben-8"):
        form = {**fields(enter(code).text), "ask-0": "on", "agree": "1"}
        browser.post(f"{site.at}/consent", data=form)
        browser.post(f"{site.at}/next-person", data=fields(browser.get(site.at).text))
        assert 'name="code"' in browser.get(site.at).text
    assert len(site.store.participants()) == 2
    assert "Checking your device" in enter("anna-7").text
    assert len(site.store.participants()) == 2


def test_who_knows_a_prolific_pid_is_not_that_person(pages: Callable[..., Pages]) -> None:
    site = pages(("debrief:", "who: {by: prolific}\ndebrief:"))
    query = "?PROLIFIC_PID=5f1c&STUDY_ID=s&SESSION_ID=t"
    first, early = site.browser(), site.browser()
    assert first.get(site.at).status_code == 400
    held = {**fields(early.get(site.at + query).text), "ask-0": "on", "agree": "1"}
    form = {**fields(first.get(site.at + query).text), "ask-0": "on", "agree": "1"}
    link = personal(first.post(f"{site.at}/consent", data=form).text)
    assert "Checking your device" in first.get(site.at + query).text
    # Neither with the whole link, nor with a form from before, nor with the cookie and other ids.
    stranger = site.browser()
    for answer in (
        stranger.get(site.at + query),
        early.post(f"{site.at}/consent", data=held),
        first.get(site.at + query.replace("STUDY_ID=s", "STUDY_ID=x")),
    ):
        assert answer.status_code == 403
        assert "You have begun already" in answer.text
    assert stranger.get(f"{site.at}?me=guess").status_code == 403
    assert "Checking your device" in stranger.get(link).text
    assert 'name="agree"' in site.browser().get(site.at + query.replace("5f1c", "77aa")).text
    assert len(site.store.participants()) == 1


def test_to_withdraw_takes_what_was_shown_at_the_consent(pages: Callable[..., Pages]) -> None:
    site = pages()
    browser = site.browser()
    link = personal(agree(browser, site.at).text)
    form = fields(browser.get(f"{site.at}/withdraw").text)
    for guess in ("", "x", f"{site.at}?me=x"):
        answer = browser.post(f"{site.at}/withdraw", data={**form, "personal": guess})
        assert answer.status_code == 403
    assert len(site.store.participants()) == 1
    answer = browser.post(f"{site.at}/withdraw", data={**form, "personal": link})
    assert "was deleted" in answer.text
    assert ">GONE<" in answer.text
    assert site.store.participants() == []


def test_every_end_has_its_code(pages: Callable[..., Pages]) -> None:
    site = pages(("debrief:", "who: {most: 1}\ndebrief:"))
    browser, late = site.browser(), site.browser()
    form = fields(agree(browser, site.at).text)
    (one,) = site.store.participants()
    assert ">BROKEN<" in browser.post(f"{site.at}/technical", data=form).text
    assert site.store.participant(one.id).why == "says that it does not work"
    assert "Checking your device" in browser.get(site.at).text  # they may go on
    assert site.store.take_place(one)
    assert ">FULL<" in late.get(site.at).text


def test_one_address_takes_neither_all_places_nor_all_codes(pages: Callable[..., Pages]) -> None:
    site = pages(("debrief:", "who: {most: 20}\ndebrief:"))
    told = [agree(site.browser(), site.at).status_code for _ in range(ARRIVALS + 5)]
    assert told == [200] * ARRIVALS + [429] * 5
    first = site.store.participants()[0]
    assert site.store.take_place(first)  # the others, who do not play, have no place
    wrong = site.browser()
    tried = [wrong.get(f"{site.at}?me={k}").status_code for k in range(ATTEMPTS)]
    assert tried == [403] * ATTEMPTS
    assert wrong.get(f"{site.at}?me=key-0").status_code == 403  # a right one, after too many


def test_the_monitor_is_for_operators(pages: Callable[..., Pages]) -> None:
    site = pages()
    browser = site.browser()
    agree(browser, site.at)
    assert "Checking" not in browser.get(f"{site.at}/monitor").text
    (one,) = site.store.participants()
    assert one.id not in browser.get(f"{site.at}/monitor").text
    operator = site.browser()
    operator.cookies.set(f"animalcat-visit-{site.visits.mark}", site.visits.cookie(MACHINE))
    told = operator.get(f"{site.at}/monitor")
    assert one.id in told.text
    do = f"{site.at}/monitor"
    assert (
        "Let people come again"
        in operator.post(f"{do}/recruit", data={**fields(told.text), "pause": "1"}).text
    )
    assert ">FULL<" in site.browser().get(site.at).text
    assert "Checking" in browser.get(site.at).text  # who is there goes on
    assert browser.post(f"{do}/withdraw", data=fields(browser.get(site.at).text)).status_code > 400
    operator.post(f"{do}/recruit", data=fields(told.text))
    assert 'name="agree"' in site.browser().get(site.at).text
    erased = operator.post(f"{do}/withdraw", data={**fields(told.text), "person": one.id})
    assert one.id not in erased.text
    assert site.store.participants() == []


def test_return_visits_open_when_they_may(pages: Callable[..., Pages], chance: Chance) -> None:
    site = pages(("debrief:", "who: {by: codes, codes: [a], visits: 2}\ndebrief:"))
    browser = site.browser()
    form = fields(browser.get(site.at).text)
    asked = browser.post(f"{site.at}/code", data={**form, "code": "a"})
    form = {**fields(asked.text), "ask-0": "on", "agree": "1"}
    browser.post(f"{site.at}/consent", data=form)
    (one,) = site.store.participants()
    for event in WHOLE[1:]:
        site.store.append(one.id, event)
    again = browser.get(site.at)
    assert 'name="agree"' in again.text
    form = {**fields(again.text), "ask-0": "on", "agree": "1"}
    browser.post(f"{site.at}/consent", data=form)
    assert [p.visit for p in site.store.participants()] == [1, 2]
    assert chance.now() > one.arrived


def test_a_break_goes_on_where_it_was(pages: Callable[..., Pages], chance: Chance) -> None:
    site = pages(("break_seconds: 0", "break_seconds: 60"))
    browser = site.browser()
    agree(browser, site.at)
    (one,) = site.store.participants()
    for event in WHOLE[1:]:
        if site.store.append(one.id, replace(event, at=chance.now())).stage is Stage.BREAK:
            break
    shown = (re.search(r'data-seconds="([^"]+)"', browser.get(site.at).text) for _ in range(2))
    first, again = (float(found[1]) for found in shown if found)
    assert 60 > first > again > 0
