"""The participant's pages, from the link to the completion, and the monitor of who is where.

Nothing is stored before somebody agrees. From then on a cookie says who they are, and no address
does: there is none by which one participant could ask for another. Each form is stored before it is
answered, so that whatever is lost after it is shown again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from animalcat.doors.study.arrivals import Arrivals
from animalcat.doors.study.file import PROLIFIC, Completion, Study, html_of
from animalcat.doors.study.participant import (
    EVENTS,
    Agreed,
    DeviceFits,
    Event,
    PageLeft,
    Participant,
    Stage,
)
from animalcat.doors.study.playing import Seats
from animalcat.doors.study.realtime import Screen, with_screen
from animalcat.doors.study.store import (
    BegunError,
    FullError,
    StudyStore,
    TooEarlyError,
    WithdrawnError,
    tombstones,
)
from animalcat.service.access.callers import Role
from animalcat.service.web.site import Part, Site, not_found_error

COOKIE_SECONDS: Final = 90 * 24 * 3600.0
"""For how long a browser is known."""
_ENTRY_SECONDS: Final = 24 * 3600.0
"""How long the page with the consent may stay open."""
_LONGEST_ID: Final = 200
ARRIVALS: Final = 30
"""Most persons who may begin in a minute at one address, as at that of a school."""
ATTEMPTS: Final = 10
"""Most wrong codes and links in a minute at one address."""
_PERSONAL: Final = "me"
"""What a personal link says of who comes: the key of the browser at which they agreed."""
_SENT: Final = frozenset({"device", "read", "answered", "rested", "debriefed"})
"""What pages may say has happened; all else is for the server to know."""


class StudyPages:
    """The pages of one study."""

    def __init__(self, site: Site, store: StudyStore, seats: Seats) -> None:
        """Describe them."""
        self._site, self._store, self._seats = site, store, seats
        self._study = store.study
        self._at = f"/study/{self._study.study}"
        self._arrivals, self._wrong = Arrivals(ARRIVALS), Arrivals(ATTEMPTS)

    def part(self) -> Part:
        """Return them as a part of the application."""
        at = self._at
        posts = {
            "code": self._code,
            "consent": self._consent,
            "step": self._step,
            "withdraw": self._withdraw,
            "technical": self._technical,
            "monitor/recruit": self._recruit,
            "monitor/withdraw": self._erase,
            "next-person": self._next_person,
        }
        routes = (
            Route(at, self._show),
            Route(f"{at}/withdraw", self._sure),
            Route(f"{at}/picture/{{name}}", self._picture),
            Route(f"{at}/monitor", self._monitor),
            WebSocketRoute(f"{at}/play", self._play),
            *(Route(f"{at}/{name}", do, methods=["POST"]) for name, do in posts.items()),
        )
        return Part(routes, {f"{at}/monitor": self._study.title}, Path(__file__).parent)

    async def _show(self, request: Request) -> Response:
        """Show the page where a participant is, or that at which one enters."""
        if _PERSONAL in request.query_params:
            key = request.query_params[_PERSONAL]
            known = self._guess(request, lambda: self._store.person_of(key))
            if known is None:
                words = self._study.texts["cannot_enter"]
                return self._say(request, words, status=HTTPStatus.FORBIDDEN)
            return self._remember_browser(request, key)
        participant = self._participant(request)
        ids, problem = self._ids(request)
        who = self._store.known(ids) if ids else None
        if ids and who is not None:
            shown = participant is not None and participant.person == who
            if not (shown and self._store.bound(who, ids)):
                return self._say(request, self._study.texts["begun"], status=HTTPStatus.FORBIDDEN)
        if ids and participant is not None and who is None:
            participant = None  # somebody else comes, at the same browser
        if participant is not None:
            opens = self._store.opens(participant)
            if opens is None or self._store.now() < opens:
                return self._page_of(request, participant, opens)
            ids = ids or {"again": participant.id}
        elif problem:
            words = self._study.texts["cannot_enter"]
            return self._say(request, words, status=HTTPStatus.BAD_REQUEST)
        if not ids and self._study.who.by == "codes":
            return self._ask(request, "code")
        return self._consent_page(request, ids)

    async def _code(self, request: Request) -> Response:
        """Let somebody in who has a code."""
        code = self._form(request).get("code", "").strip()
        right = self._study.who.by == "codes" and code in self._study.who.codes
        if self._guess(request, lambda: code if right else None) is None:
            return self._ask(request, "code", wrong=True)
        ids = {"code": code}
        if (who := self._store.known(ids)) is not None:
            participant, key = self._store.welcome(who)
            if self._store.opens(participant) is None:
                return self._remember_browser(request, key)
        return self._consent_page(request, ids)

    async def _consent(self, request: Request) -> Response:
        """Take the answer to the consent; who declines leaves nothing here."""
        form, study = self._form(request), self._study
        said = self._site.visits.read("study entry", form.get("entry", ""))
        if said is None or said["study"] != study.study:
            return self._site.go(request, self._at)
        if "agree" not in form:
            return self._end(request, "declined")
        if said["consent"] != study.consent.digest:  # the text has changed meanwhile
            return self._consent_page(request, said["ids"])
        if not all(f"ask-{k}" in form for k in range(len(study.consent.ask))):
            return self._consent_page(request, said["ids"], unticked=True)
        known = self._store.person_of(self._key(request))
        address = self._address(request)
        if known is None and not self._arrivals.room(address):
            return self._say(request, study.texts["busy"], status=HTTPStatus.TOO_MANY_REQUESTS)
        self._arrivals.count(address)
        try:
            ids: dict[str, str] = {k: v for k, v in said["ids"].items() if k != "again"}
            participant, key = self._store.enter(ids, known)
        except BegunError:
            return self._say(request, study.texts["begun"], status=HTTPStatus.FORBIDDEN)
        except FullError:
            return self._end(request, "full")
        except TooEarlyError as early:
            return self._later(request, early.opens)
        if participant.stage is Stage.CONSENT:
            now, consent = self._store.now(), study.consent
            self._store.append(participant.id, Agreed(now, consent.version, consent.digest))
        return self._remember_browser(request, key)

    async def _step(self, request: Request) -> Response:
        """Store what a page sends; what does not belong here, as a second click, is nothing."""
        participant = self._participant(request)
        if participant is None:
            return self._site.go(request, self._at)
        form = self._form(request)
        try:  # the page that is due says what is wanted
            self._store.append(participant.id, self._event(participant, form))
        except ValueError:
            if form.get("stage") == participant.stage:
                return self._page_of(request, participant, None, unanswered=True)
        except WithdrawnError:
            pass
        return self._site.go(request, self._at)

    def _event(self, participant: Participant, form: Mapping[str, str]) -> Event:
        """Return what a form says; a ValueError tells of one that says nothing of use."""
        if form.get("kind") not in _SENT:
            raise ValueError("this is no page's to say")
        study = self._store.study_of(participant)
        said = {
            **form,
            "at": self._store.now(),
            "answers": [
                question.read(" ".join(v for name, v in form.items() if f"{name}-".startswith(at)))
                for k, question in enumerate(study.asked(participant.stage))
                for at in [f"answer-{k}-"]
            ],
            "browser": form.get("browser", "")[:300],
        }
        event, device = EVENTS.validate_python(said), study.device
        if isinstance(event, DeviceFits) and (
            event.width < device.width
            or event.height < device.height
            or device.input.replace("board", "s") not in ("any", event.input)
        ):
            raise ValueError("the device does not fit")
        return event

    async def _sure(self, request: Request) -> Response:
        """Ask whether somebody really wants to withdraw."""
        if self._participant(request) is None:
            return self._site.go(request, self._at)
        return self._ask(request, "withdraw")

    async def _withdraw(self, request: Request) -> Response:
        """Erase whoever asks for it and has the link or code that was shown at the consent."""
        given = self._form(request).get("personal", "").strip()
        key = given.rpartition(f"?{_PERSONAL}=")[2]
        person = self._guess(
            request, lambda: self._store.person_of(key) or self._store.known({"code": given})
        )
        if person is None:
            return self._ask(request, "withdraw", wrong=True)
        await self._seats.withdraw(person)
        return self._remember_browser(request, "", self._end(request, "withdrawn"))

    async def _technical(self, request: Request) -> Response:
        """Take note that it does not work for somebody, and let them go."""
        participant = self._participant(request)
        if participant is None:
            return self._site.go(request, self._at)
        self._store.append(participant.id, PageLeft(self._store.now(), "technical"))
        return self._end(request, "technical", self._store.study_of(participant))

    async def _next_person(self, request: Request) -> Response:
        """Let a device go on to another person, in a study with codes."""
        return self._remember_browser(request, "")

    async def _picture(self, request: Request) -> Response:
        """Show a picture of the study's texts, and no other file."""
        name = request.path_params["name"]
        if name not in self._study.pictures:
            raise not_found_error("there is no such picture")
        return FileResponse(self._study.folder / name)

    async def _monitor(self, request: Request) -> Response:
        """Show operators who is where."""
        self._check_operator(request)
        people = [(p, self._seats.playing(p.id)) for p in self._store.participants()]
        ends = Counter(str(p.stage) for p, _ in people if p.stage.over)
        most = self._study.who.most
        counts = {
            "came": len(people),
            "play now": sum(plays for _, plays in people),
            "done": ends["done"],
            "screened out": ends["screened"],
            "withdrew": len({stone.person for stone in tombstones(self._store.folder)}),
            "places taken": f"{len(self._store.begun())}" + f" of {most}" * bool(most),
        }
        values: dict[str, Any] = {"study": self._study, "people": people, "counts": counts}
        values |= {"paused": self._store.paused, "base": self._at}
        return self._site.page(request, "study_monitor.html.j2", **values)

    def _check_operator(self, request: Request) -> None:
        if self._site.caller(request).role not in (Role.ADMINISTRATOR, Role.OPERATOR):
            raise not_found_error("there is no such page")

    async def _recruit(self, request: Request) -> Response:
        """Let operators pause and go on with who may come."""
        self._check_operator(request)
        self._store.recruit(pause="pause" in self._form(request))
        return self._site.go(request, f"{self._at}/monitor")

    async def _erase(self, request: Request) -> Response:
        """Let operators erase a person who asks them for it."""
        self._check_operator(request)
        with suppress(WithdrawnError):  # a second click
            await self._seats.withdraw(self._form(request).get("person", ""))
        return self._site.go(request, f"{self._at}/monitor")

    async def _play(self, socket: WebSocket) -> None:
        """Show a participant what they play, as long as their page is there."""
        participant = self._participant(socket)
        await socket.accept()
        if (
            participant is None
            or participant.part is None
            or not self._store.take_place(participant)
        ):
            await socket.send_text(json.dumps({"t": "page"}))
            await socket.close()
            return
        seat, screen = self._seats.of(participant.id), Screen(socket)
        failed = await with_screen(screen, lambda: seat.attend(screen))
        seat.leave(screen)
        if failed is not None:
            raise failed
        with suppress(RuntimeError, WebSocketDisconnect):  # the browser has closed it
            await socket.close()

    def _page_of(
        self,
        request: Request,
        now: Participant,
        opens: datetime | None,
        *,
        unanswered: bool = False,
    ) -> Response:
        """Return the page of the stage where a participant is."""
        study = self._store.study_of(now)
        shown, page = study.shows(now.condition), partial(self._page, request, study=study)
        match now.stage:
            case Stage.DEVICE:
                at = f"{self._site.asked(request).origin}{self._site.path(request, self._at)}"
                return page("device", personal=f"{at}?{_PERSONAL}={self._key(request)}")
            case Stage.INSTRUCTIONS:
                text = self._html(request, study.instructions[now.page])
                again = now.tries > 0 and now.page == 0
                return page("text", text=text, kind="read", page=now.page, score="", again=again)
            case Stage.BEFORE | Stage.QUESTIONS | Stage.AFTER:
                again = now.tries > 0 and not study.instructions  # else these have said so
                warning = "answer_wrong" if again and now.stage is Stage.QUESTIONS else ""
                warning = "answer_missing" if unanswered else warning
                values: dict[str, Any] = {"asked": study.asked(now.stage), "warning": warning}
                return page("questions", stage=str(now.stage), **values)
            case Stage.PRACTICE | Stage.PLAY:
                if not self._store.take_place(now):
                    return self._end(request, "full", study)
                most = study.measured(now.condition).options.get("max_episodes")
                if now.stage is Stage.PRACTICE and study.practice is not None:
                    most = study.practice.most
                return page("play", now=now, shown=shown, most=most)
            case Stage.BREAK:
                gone = (self._store.now() - now.changed).total_seconds()
                return page("break", left=max(0.0, study.blocks.break_seconds - gone))
            case Stage.DEBRIEF:
                text, score = self._html(request, study.debrief), ""
                if shown.score:
                    score = study.texts["score"].format(passed=now.passed, trials=now.trials)
                return page("text", text=text, kind="debriefed", page=0, score=score, again=False)
            case Stage.SCREENED:
                return self._end(request, "screened", study)
            case _ if opens is not None:
                return self._later(request, opens)
            case _:
                return self._end(request, "done", study)

    def _consent_page(
        self, request: Request, ids: Mapping[str, str], *, unticked: bool = False
    ) -> Response:
        study = self._study
        new = self._participant(request) is None and self._store.known(ids) is None
        if new and not self._store.room:  # before they read it all
            return self._end(request, "full")
        said = {"study": study.study, "consent": study.consent.digest, "ids": dict(ids)}
        entry = self._site.visits.sign("study entry", said, _ENTRY_SECONDS)
        text = self._html(request, study.consent.text)
        return self._page(request, "consent", text=text, entry=entry, unticked=unticked)

    def _ask(self, request: Request, what: str, *, wrong: bool = False) -> Response:
        """Ask for a code, or for what shows who withdraws."""
        status = HTTPStatus.FORBIDDEN if wrong else HTTPStatus.OK
        return self._page(request, "ask", status, what=what, wrong=wrong)

    def _end(self, request: Request, end: str, study: Study | None = None) -> Response:
        """Say that somebody is at an end, with what they get there."""
        study = study or self._study
        completion, again = getattr(study.completion, end), study.who.by == "codes"
        return self._say(request, study.texts[end], study, completion=completion, again=again)

    def _later(self, request: Request, opens: datetime) -> Response:
        words = self._study.texts["again_later"].format(time=f"{opens:%Y-%m-%d %H:%M} UTC")
        return self._say(request, words)

    def _say(
        self,
        request: Request,
        words: str,
        study: Study | None = None,
        status: int = HTTPStatus.OK,
        completion: Completion = Completion(),
        *,
        again: bool = False,
    ) -> Response:
        values: dict[str, Any] = {"words": words, "completion": completion, "again": again}
        return self._page(request, "end", status, study, **values)

    def _page(
        self,
        request: Request,
        name: str,
        status: int = HTTPStatus.OK,
        study: Study | None = None,
        **values: Any,
    ) -> Response:
        study = study or self._study
        values |= {"study": study, "word": study.texts, "base": self._site.path(request, self._at)}
        known = self._store.person_of(self._key(request)) is not None
        return self._site.page(request, f"study_{name}.html.j2", status, known=known, **values)

    def _html(self, request: Request, text: str) -> Markup:
        """Return a text of the study as HTML, with pictures where this server has them."""
        html = html_of(text)
        for name in self._study.pictures:
            place = self._site.path(request, f"{self._at}/picture/{name}")
            html = html.replace(f'src="{name}"', f'src="{place}"')
        return Markup(html)

    def _ids(self, request: Request) -> tuple[dict[str, str], bool]:
        """What a link says of who comes, and whether it lacks something."""
        query = request.query_params
        if self._study.who.by != "prolific":
            return {}, False
        ids = {name: query[name] for name in PROLIFIC if query.get(name)}
        whole = len(ids) == len(PROLIFIC) and all(len(v) <= _LONGEST_ID for v in ids.values())
        return (ids, False) if whole else ({}, True)

    def _guess(self, request: Request, look: Callable[[], str | None]) -> str | None:
        """Return what a code or link leads to, where the address has not guessed too often."""
        address = self._address(request)
        if not self._wrong.room(address):
            return None
        found = look()
        if found is None:
            self._wrong.count(address)
        return found

    def _address(self, request: Request) -> str:
        """Return whence somebody comes: behind a proxy, what that says last."""
        said = request.headers.get("x-forwarded-for", "") if self._site.door.url else ""
        return said.rpartition(",")[2].strip() or self._site.asked(request).peer

    def _participant(self, request: HTTPConnection) -> Participant | None:
        person = self._store.person_of(self._key(request))
        try:
            return None if person is None else self._store.latest(person)
        except WithdrawnError:
            return None

    def _form(self, request: Request) -> dict[str, str]:
        return self._site.asked(request).form

    def _key(self, request: HTTPConnection) -> str:
        return self._site.cookie(request, f"study-{self._study.study}")

    def _remember_browser(
        self, request: Request, key: str, answer: Response | None = None
    ) -> Response:
        """Know a browser by a key from now on, or by none; and lead it to where its person is."""
        answer = answer or self._site.go(request, self._at)
        what, seconds = f"study-{self._study.study}", COOKIE_SECONDS if key else 0.0
        return self._site.give_cookie(request, answer, what, key, seconds)


def study_part(store: StudyStore, seats: Seats) -> Callable[[Site], Part]:
    """Return what makes the part of the application for a study."""
    return lambda site: StudyPages(site, store, seats).part()
