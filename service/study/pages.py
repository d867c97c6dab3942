"""The participant's pages, from the link to the completion, and the monitor of who is where.

Nothing is stored before somebody agrees. From then on a cookie says who they are, and no address
does: there is none by which one participant could ask for another. Each form is stored before it is
answered, so that whatever is lost after it is shown again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from pydantic import ValidationError
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from animalcat.service.access.callers import Role
from animalcat.service.study.file import PROLIFIC, Completion, Study, html_of
from animalcat.service.study.participant import (
    Agreed,
    Answered,
    Debriefed,
    DeviceFits,
    Event,
    OutOfPlaceError,
    PageRead,
    Participant,
    Rested,
    Stage,
)
from animalcat.service.study.playing import Seats
from animalcat.service.study.store import (
    FullError,
    StudyStore,
    TooEarlyError,
    WithdrawnError,
)
from animalcat.service.web.guard import Guard, cookies_of
from animalcat.service.web.realtime import Screen, with_screen
from animalcat.service.web.site import Part, Site, not_found

HERE: Final = Path(__file__).parent
COOKIE_SECONDS: Final = 90 * 24 * 3600.0
"""For how long a browser is known."""
_ENTRY_SECONDS: Final = 24 * 3600.0
"""How long the page with the consent may stay open."""
_LONGEST_ID: Final = 200


class StudyPages:
    """The pages of one study."""

    def __init__(self, site: Site, store: StudyStore, seats: Seats) -> None:
        """Describe them.

        Args:
            site: What all pages share.
            store: The participants.
            seats: Where they play.
        """
        self._site, self._store, self._seats = site, store, seats
        self._study = store.study
        self._at = f"/study/{self._study.study}"

    def part(self) -> Part:
        """Return them as a part of the application."""
        at = self._at
        return Part(
            (
                Route(at, self._show),
                Route(f"{at}/code", self._code, methods=["POST"]),
                Route(f"{at}/consent", self._consent, methods=["POST"]),
                Route(f"{at}/step", self._step, methods=["POST"]),
                Route(f"{at}/withdraw", self._sure),
                Route(f"{at}/withdraw", self._withdraw, methods=["POST"]),
                Route(f"{at}/next-person", self._next_person, methods=["POST"]),
                Route(f"{at}/picture/{{name}}", self._picture),
                Route(f"{at}/monitor", self._monitor),
                WebSocketRoute(f"{at}/play", self._play),
            ),
            HERE / "templates",
            {f"{at}/monitor": self._study.title},
            ("study", HERE / "static"),
        )

    async def _show(self, request: Request) -> Response:
        """Show the page where a participant is, or that at which one enters."""
        participant = self._participant(request)
        ids, problem = self._ids(request)
        who = self._store.known(ids) if ids else None
        if ids and who is not None and (participant is None or not _is_of(participant, who)):
            participant, key = self._store.welcome(who)
            return self._known(request, key)
        if ids and participant is not None and who is None:
            participant = None  # somebody else comes, at the same browser
        if participant is not None:
            opens = self._store.opens(participant)
            if opens is None or self._store.now() < opens:
                return self._page_of(request, participant, opens)
            ids = ids or {"again": participant.id}
        elif problem:
            words = self._study.texts["cannot_enter"]
            return self._page(request, self._study, "words", HTTPStatus.BAD_REQUEST, words=words)
        if not ids and self._study.who.by == "codes":
            return self._page(request, self._study, "code", wrong=False)
        return self._consent_page(request, ids)

    async def _code(self, request: Request) -> Response:
        """Let somebody in who has a code."""
        code = self._form(request).get("code", "").strip()
        if self._study.who.by != "codes" or code not in self._study.who.codes:
            return self._page(request, self._study, "code", HTTPStatus.FORBIDDEN, wrong=True)
        ids = {"code": code}
        if (who := self._store.known(ids)) is not None:
            participant, key = self._store.welcome(who)
            if self._store.opens(participant) is None:
                return self._known(request, key)
        return self._consent_page(request, ids)

    async def _consent(self, request: Request) -> Response:
        """Take the answer to the consent; who declines leaves nothing here."""
        form, study = self._form(request), self._study
        said = self._site.visits.read("study entry", form.get("entry", ""))
        if said is None or said["study"] != study.study:
            return self._site.go(request, self._at)
        if "agree" not in form:
            return self._end_page(request, study, "declined", study.completion.declined)
        if said["consent"] != study.consent.digest:  # the text has changed meanwhile
            return self._consent_page(request, said["ids"])
        if not all(f"ask-{k}" in form for k in range(len(study.consent.ask))):
            return self._consent_page(request, said["ids"], unticked=True)
        known = self._store.person_of(self._key(request))
        try:
            ids: dict[str, str] = {k: v for k, v in said["ids"].items() if k != "again"}
            participant, key = self._store.enter(ids, known)
        except FullError:
            return self._page(request, study, "words", words=study.texts["closed"])
        except TooEarlyError as early:
            return self._later(request, early.opens)
        if participant.stage is Stage.CONSENT:
            now, consent = self._store.now(), study.consent
            self._store.append(participant.id, Agreed(now, consent.version, consent.digest))
        return self._known(request, key)

    async def _step(self, request: Request) -> Response:
        """Store what a page sends; what does not belong here, as a second click, is nothing."""
        participant = self._participant(request)
        if participant is None:
            return self._site.go(request, self._at)
        try:
            event = self._event(participant, self._form(request))
            if event is not None:
                self._store.append(participant.id, event)
        except (OutOfPlaceError, ValidationError, ValueError, KeyError, WithdrawnError):
            pass  # the page that is due says what is wanted
        return self._site.go(request, self._at)

    def _event(self, participant: Participant, form: Mapping[str, str]) -> Event | None:
        now, study = self._store.now(), self._store.study_of(participant)
        match form.get("kind", ""):
            case "device":
                device = study.device
                width, height = int(form["width"]), int(form["height"])
                steers = form["input"]
                if width < device.width or height < device.height:
                    return None
                if device.input != "any" and steers != device.input.replace("board", "s"):
                    return None
                return DeviceFits(
                    now,
                    width,
                    height,
                    float(form["ratio"]),
                    float(form["hz"]),
                    steers,  # pyright: ignore[reportArgumentType]  it is checked when it is made
                    form.get("browser", "")[:300],
                )
            case "read":
                return PageRead(now, int(form["page"]))
            case "answers":
                assert study.understanding is not None
                asked = range(len(study.understanding.questions))
                return Answered(now, tuple(int(form[f"answer-{k}"]) for k in asked))
            case "rested":
                return Rested(now)
            case "debriefed":
                return Debriefed(now)
            case _:
                return None

    async def _sure(self, request: Request) -> Response:
        """Ask whether somebody really wants to withdraw."""
        if self._participant(request) is None:
            return self._site.go(request, self._at)
        return self._page(request, self._study, "withdraw")

    async def _withdraw(self, request: Request) -> Response:
        """Erase whoever asks for it."""
        participant = self._participant(request)
        if participant is not None:
            await self._seats.withdraw(participant.id)
        words = self._study.texts["withdrawn"]
        return self._forgotten(request, self._page(request, self._study, "words", words=words))

    async def _next_person(self, request: Request) -> Response:
        """Let a device go on to another person, in a study with codes."""
        return self._forgotten(request, self._site.go(request, self._at))

    async def _picture(self, request: Request) -> Response:
        """Show a picture of the study's texts, and no other file."""
        name = request.path_params["name"]
        if name not in self._study.pictures:
            raise not_found("there is no such picture")
        return FileResponse(self._study.folder / name)

    async def _monitor(self, request: Request) -> Response:
        """Show operators who is where."""
        caller = self._site.caller(request)
        if caller.role not in (Role.ADMINISTRATOR, Role.OPERATOR):
            raise not_found("there is no such page")
        people = [(p, self._seats.playing(p.id)) for p in self._store.participants()]
        return self._site.page(request, "study_monitor.html.j2", study=self._study, people=people)

    async def _play(self, socket: WebSocket) -> None:
        """Show a participant what they play, as long as their page is there."""
        participant = self._participant(socket)
        await socket.accept()
        if participant is None or participant.part is None:
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

    def _page_of(self, request: Request, now: Participant, opens: Any) -> Response:
        """Return the page of the stage where a participant is."""
        study = self._store.study_of(now)
        shown = study.shows(now.condition)
        match now.stage:
            case Stage.DEVICE:
                return self._page(request, study, "device")
            case Stage.INSTRUCTIONS:
                text = self._html(request, study.instructions[now.page])
                return self._page(
                    request,
                    study,
                    "text",
                    text=text,
                    kind="read",
                    page=now.page,
                    score="",
                    again=now.tries > 0 and now.page == 0,
                )
            case Stage.QUESTIONS:
                again = now.tries > 0 and not study.instructions  # else these have said so
                return self._page(request, study, "questions", again=again)
            case Stage.PRACTICE | Stage.PLAY:
                return self._page(request, study, "play", now=now, shown=shown)
            case Stage.BREAK:
                return self._page(request, study, "break", now=now)
            case Stage.DEBRIEF:
                text = self._html(request, study.debrief)
                score = study.texts["score"].format(passed=now.passed, trials=now.trials)
                return self._page(
                    request,
                    study,
                    "text",
                    text=text,
                    kind="debriefed",
                    page=0,
                    score=score if shown.score else "",
                    again=False,
                )
            case Stage.SCREENED:
                return self._end_page(request, study, "screened", study.completion.screened)
            case _:
                if opens is not None:
                    return self._later(request, opens)
                return self._end_page(request, study, "done", study.completion.done)

    def _consent_page(
        self, request: Request, ids: Mapping[str, str], *, unticked: bool = False
    ) -> Response:
        study = self._study
        said = {"study": study.study, "consent": study.consent.digest, "ids": dict(ids)}
        entry = self._site.visits.sign("study entry", said, _ENTRY_SECONDS)
        text = self._html(request, study.consent.text)
        return self._page(request, study, "consent", text=text, entry=entry, unticked=unticked)

    def _end_page(
        self, request: Request, study: Study, words: str, completion: Completion
    ) -> Response:
        said = study.texts[words]
        again = study.who.by == "codes"
        return self._page(request, study, "end", words=said, completion=completion, again=again)

    def _later(self, request: Request, opens: Any) -> Response:
        words = self._study.texts["again_later"].format(time=f"{opens:%Y-%m-%d %H:%M} UTC")
        return self._page(request, self._study, "words", words=words)

    def _page(
        self,
        request: Request,
        study: Study,
        name: str,
        status: int = HTTPStatus.OK,
        **values: Any,
    ) -> Response:
        known = self._store.person_of(self._key(request)) is not None
        return self._site.page(
            request,
            f"study_{name}.html.j2",
            status,
            study=study,
            word=study.texts,
            base=self._site.path(request, self._at),
            known=known,
            **values,
        )

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

    def _participant(self, request: HTTPConnection) -> Participant | None:
        person = self._store.person_of(self._key(request))
        try:
            return None if person is None else self._store.latest(person)
        except WithdrawnError:
            return None

    def _form(self, request: Request) -> dict[str, str]:
        return self._site.asked(request).form

    @property
    def _cookie(self) -> str:
        return f"study-{self._study.study}"

    def _key(self, request: HTTPConnection) -> str:
        name = f"animalcat-{self._cookie}-{self._site.visits.mark}"
        return cookies_of(request.headers).get(name, "")

    def _known(self, request: Request, key: str) -> Response:
        """Lead a browser to where its person is, and know it from now on."""
        answer = self._site.go(request, self._at)
        return self._with_cookie(request, answer, key, COOKIE_SECONDS)

    def _forgotten(self, request: Request, answer: Response) -> Response:
        return self._with_cookie(request, answer, "", 0.0)

    def _with_cookie(
        self, request: Request, answer: Response, value: str, seconds: float
    ) -> Response:
        asked = self._site.asked(request)
        header = Guard(answer, self._site).set_cookie(asked, self._cookie, value, seconds)
        answer.headers.append("set-cookie", header)
        return answer


def study_part(store: StudyStore, seats: Seats) -> Callable[[Site], Part]:
    """Return what makes the part of the application for a study."""
    return lambda site: StudyPages(site, store, seats).part()


def _is_of(participant: Participant, person: str) -> bool:
    return participant.id.partition("-")[0] == person
