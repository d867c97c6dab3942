"""The web pages: who gets in, what is refused, and what is told to whom."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from animalcat.service.access.callers import MACHINE, Caller, Role
from animalcat.service.access.tickets import Tickets
from animalcat.service.access.tokens import Tokens
from animalcat.service.host.settings import Settings
from animalcat.service.rpc.server import create_server
from animalcat.service.web.visits import TICKET_SECONDS, UsedHere, UsedOnDisk, Visits
from animalcat.v1 import gateway_pb2
from tests.service.conftest import Guarded, Service, action

pytestmark = pytest.mark.asyncio(loop_scope="session")

EVIL = "<script>alert(1)</script>"
PAGES = ("/", "/campaigns", "/batteries", "/compare", "/enter", "/static/site.css", "/nothing")
Start = Callable[..., Any]
Pages = tuple["Service", "Browser"]


class Browser(httpx.AsyncClient):
    """A browser: it keeps cookies, says where a form comes from, and takes what it must send."""

    def __init__(self, link: str) -> None:
        self.base, _, self.ticket = link.partition("/enter#")
        super().__init__(base_url=self.base, headers={"accept": "text/html"}, timeout=60)

    async def forgery(self) -> str:
        page = await self.get("/enter")
        found = re.search(r'name="forgery" value="([^"]+)"', page.text)
        assert found is not None
        return found[1]

    async def submit(self, path: str, **fields: str) -> httpx.Response:
        fields = {"forgery": await self.forgery(), **fields}
        return await self.post(path, data=fields, headers={"origin": self.base})

    async def enter(self, shown: str = "") -> httpx.Response:
        return await self.submit("/enter", ticket=shown or self.ticket)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pages(
    start: Start, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Service, Browser]]:
    """A server with pages, and a browser that was let in."""
    data = tmp_path_factory.mktemp("pages")
    async with serve_it(start, data) as (service, browser):
        assert (await browser.enter()).status_code == 303
        yield service, browser


@asynccontextmanager
async def serve_it(
    start: Start, data: Path, **settings: Any
) -> AsyncGenerator[tuple[Service, Browser]]:
    async with (
        start(data, web="0", **settings) as service,
        Browser(service.running.link) as browser,
    ):
        yield service, browser


async def test_a_ticket_lets_one_browser_in_once(start: Start, tmp_path: Path) -> None:
    async with serve_it(start, tmp_path) as (service, browser):
        refused = await browser.get("/")
        assert (refused.status_code, refused.headers["location"]) == (303, "/enter?then=%2F")
        entered = await browser.enter()
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=lax" in cookie.lower()
        assert (await browser.get("/")).status_code == 200
        async with Browser(service.running.link) as other:
            again = await other.enter()
            assert (again.status_code, "set-cookie" in again.headers) == (403, False)
            assert (await other.get("/")).status_code == 303
        cookies, link = browser.cookies, service.running.link
        await browser.submit("/leave")
        assert (await browser.get("/")).status_code == 303
    # Also after a restart the ticket is used up, while who was in stays in.
    async with serve_it(start, tmp_path) as (_, browser):
        assert (await browser.enter(link.partition("#")[2])).status_code == 403
        assert cookies is not browser.cookies
        assert (await browser.enter()).status_code == 303
    visits = Visits(Tickets(tmp_path).key_for("web pages"), UsedOnDisk(tmp_path), Tokens(tmp_path))
    assert visits.caller(visits.cookie(MACHINE)) is MACHINE


def test_tickets_and_cookies_end_and_cannot_be_made() -> None:
    now = [1000.0]
    visits = Visits(b"k" * 32, UsedHere(), clock=lambda: now[0])
    ticket, cookie = visits.ticket(), visits.cookie(MACHINE)
    assert visits.redeem(cookie) is None
    assert visits.caller(ticket) is None
    assert Visits(b"l" * 32, UsedHere(), clock=lambda: now[0]).redeem(ticket) is None
    assert visits.redeem(ticket[:-1]) is None
    assert visits.redeem("") is None
    assert visits.caller("é.é") is None
    now[0] += TICKET_SECONDS + 1
    assert visits.redeem(ticket) is None
    assert visits.caller(cookie) is MACHINE
    now[0] += 13 * 3600
    assert visits.caller(cookie) is None


async def test_every_answer_forbids_frames_and_foreign_content(pages: Pages) -> None:
    _, browser = pages
    for path in PAGES:
        answer = await browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert answer.status_code in (200, 404), path
        assert "frame-ancestors 'none'" in policy, path
        assert "default-src 'none'" in policy, path
        assert "unsafe" not in policy, path
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        if answer.headers["content-type"].startswith("text/html"):
            # All that is loaded is ours, and nothing runs that stands in a page.
            assert not re.search(r"""(src|href|action)=["'](https?:)?//""", answer.text), path
            assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", answer.text)
    assert (await browser.get("/nothing")).status_code == 404


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"host": "evil.example"}, "not known as"),
        ({"host": "evil.example:1"}, "not known as"),
        ({"origin": "http://evil.example"}, "only pages of this server"),
        ({"origin": "null"}, "only pages of this server"),
    ],
)
async def test_other_names_and_other_pages_are_refused(
    pages: Pages, headers: dict[str, str], words: str
) -> None:
    _, browser = pages
    for path in ("/", "/static/site.css", "/enter"):
        answer = await browser.get(path, headers=headers)
        assert (answer.status_code, words in answer.text) == (403, True)
    # A proxy's header changes nothing.
    spoofed = {**headers, "x-forwarded-host": browser.base.partition("//")[2]}
    assert (await browser.get("/", headers=spoofed)).status_code == 403


async def test_forged_forms_are_refused(pages: Pages) -> None:
    service, browser = pages
    other = Browser(service.running.link)
    session = (await service.create(3)).partition("/")[2]
    path, good = f"/sessions/{session}/do", await browser.forgery()
    own = {"origin": browser.base}
    for fields, headers in (
        ({"what": "pause"}, own),
        ({"what": "pause", "forgery": await other.forgery()}, own),
        ({"what": "pause", "forgery": ""}, own),
        ({"what": "pause", "forgery": good}, {}),
        ({"what": "pause", "forgery": good}, {"origin": "http://evil.example"}),
    ):
        answer = await browser.post(path, data=fields, headers=headers)
        assert answer.status_code == 403, (fields, headers)
    assert not (await service.get(session_name(session))).paused
    answer = await browser.post(path, data={"what": "pause", "forgery": good}, headers=own)
    assert answer.status_code == 303
    assert (await service.get(session_name(session))).paused
    much = await browser.post(path, content=b"x" * 300_000, headers=own)
    assert much.status_code == 413
    await other.aclose()


def session_name(session: str) -> str:
    return f"sessions/{session}"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../parts.py",
        "/static/%2e%2e/parts.py",
        "/static/..%2fparts.py",
        "/static/%2fetc%2fpasswd",
        "/sessions/..%2f..%2fx",
        "/sessions/a/episodes/..%2f..%2f0",
        "/sessions/a/episodes/0%00",
        "/sessions/a%0d%0ab/report",
        "/batteries/..%2f..",
        "/batteries/%2e%2e/sheet",
        "/sessions/%2e%2e/report",
        "/campaigns/%2e%2e",
        "/batteries/%2e%2e/arenas/x/play",
        "/batteries/x/arenas/..%2f..%2fpasswd/play",
    ],
)
async def test_paths_lead_nowhere_else(pages: Pages, path: str) -> None:
    _, browser = pages
    url = httpx.URL(browser.base + "/").copy_with(raw_path=path.encode())
    answer = await browser.get(url)
    assert answer.status_code in (400, 404), (path, answer.status_code)
    assert "def " not in answer.text
    assert "root:" not in answer.text


async def test_one_is_led_to_no_other_host(pages: Pages) -> None:
    service, browser = pages
    for then in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:x"):
        page = await browser.get("/enter", params={"then": then})
        assert 'name="then" value="/"' in page.text
    key = Tickets(service.data).key_for("web pages")
    ticket = Visits(key, UsedHere()).ticket()
    answer = await browser.submit("/enter", ticket=ticket, then="//evil.example")
    assert answer.headers["location"] == "/"


async def test_no_text_becomes_a_script(pages: Pages) -> None:
    service, browser = pages
    session = (await service.create(2, agent=EVIL)).partition("/")[2]
    await service.play(session_name(session), agent=EVIL)
    noted = await browser.submit(f"/sessions/{session}/do", what="note", text=f"{EVIL} & more")
    assert noted.status_code == 303
    paths = ("", "/episodes", "/episodes/0-0", "/report", "/episodes/0/why")
    elsewhere = ("/", f"/?agent={EVIL}", f"/compare?session={session}", f"/nothing{EVIL}")
    for path in (*elsewhere, *(f"/sessions/{session}{path}" for path in paths)):
        answer = await browser.get(path)
        assert EVIL not in answer.text, path
        assert answer.status_code < 500, path
    page = await browser.get(f"/sessions/{session}")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page.text
    wrong = await browser.submit(f"/sessions/{session}/do", what=EVIL)
    assert (wrong.status_code, EVIL in wrong.text) == (400, False)
    # The report runs its own script, and is kept apart from the pages.
    report = await browser.get(f"/sessions/{session}/report")
    assert report.headers["content-security-policy"].startswith("sandbox ")
    assert "allow-same-origin" not in report.headers["content-security-policy"]


async def test_pages_show_and_do_what_the_token_may(guarded: Guarded, tmp_path: Path) -> None:
    async with guarded(tmp_path, web="0") as connected:
        tokens = Tokens(tmp_path)
        made = {
            name: tokens.create(role, subject=name)
            for name, role in (
                ("ann", Role.RESEARCHER),
                ("bob", Role.RESEARCHER),
                ("vera", Role.VIEWER),
                ("otto", Role.OPERATOR),
            )
        }
        agent = tokens.create(Role.AGENT, agent="x")[1]
        service = connected(made["ann"][1])
        session = (await service.create(3)).partition("/")[2]
        path = f"/sessions/{session}"
        people: dict[str, Browser] = {}
        for name, (token, text) in made.items():
            browser = people[name] = Browser(service.running.link)
            if name == "ann":  # by a ticket for her token; the others by their tokens
                visits = Visits(Tickets(tmp_path).key_for("web pages"), UsedHere(), tokens)
                text = visits.ticket(token.id)
            assert (await browser.enter(text)).status_code == 303, name
        stranger = Browser(service.running.link)
        for text in (agent, Tickets(tmp_path).issue(session)[0], "acat_x_y", "x"):
            assert (await stranger.enter(text)).status_code == 403
        seen = {name: (await browser.get(path)).status_code for name, browser in people.items()}
        assert seen == {"ann": 200, "bob": 404, "vera": 404, "otto": 200}
        listed = {name: session in (await b.get("/")).text for name, b in people.items()}
        assert listed == {"ann": True, "bob": False, "vera": False, "otto": True}
        for name, status in (("bob", 404), ("vera", 403)):
            done = await people[name].submit(f"{path}/do", what="pause")
            assert done.status_code == status, name
            assert (await people[name].get(f"{path}/events")).status_code == 404
        assert (await people["otto"].submit(f"{path}/do", what="pause")).status_code == 303
        assert (await service.get(session_name(session))).paused
        noted = await people["ann"].submit(f"{path}/do", what="note", text="it looks at walls")
        assert noted.status_code == 303
        assert "it looks at walls" in (await people["otto"].get(path)).text
        tokens.revoke(made["ann"][0].id)
        assert (await people["ann"].get(path)).status_code == 303
        for browser in (*people.values(), stranger):
            await browser.aclose()


async def test_sockets_of_other_pages_are_refused(pages: Pages) -> None:
    service, browser = pages
    await service.import_files()
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)
    url = browser.base.replace("http", "ws") + "/batteries/small/arenas/arena-0/play/socket"
    for origin, cookie in (
        ("http://evil.example", cookies),
        (None, cookies),
        (browser.base, ""),
    ):
        with pytest.raises(InvalidStatus) as refused:
            await connect(url, origin=origin, additional_headers={"cookie": cookie})  # pyright: ignore[reportArgumentType]
        assert refused.value.response.status_code == 403
    url = url.replace("arena-0", "navigation-00")
    came = [
        connect(url, origin=browser.base, additional_headers={"cookie": cookies})  # pyright: ignore[reportArgumentType]
        for _ in range(12)
    ]
    playing = await asyncio.gather(*came, return_exceptions=True)
    games = [game for game in playing if not isinstance(game, BaseException)]
    assert len(games) == 4
    for game in games:
        await game.close()


async def test_behind_a_proxy_all_links_have_its_path(start: Start, tmp_path: Path) -> None:
    public = "https://lab.example.org/animalcat"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with start(tmp_path, web=str(port), web_url=public) as service:
        assert service.running.link.startswith(f"{public}/enter#")
        browser = Browser(f"http://127.0.0.1:{port}/enter#")
        page = await browser.get("/enter")
        assert 'action="/animalcat/enter"' in page.text
        cookie = page.headers["set-cookie"]
        assert "Secure" in cookie
        assert "Path=/animalcat/" in cookie
        # A proxy may take its path off or leave it.
        assert (await browser.get("/animalcat/static/site.css")).status_code == 200


async def events(browser: Browser, session: str, most: int = 200) -> list[tuple[str, Any]]:
    """What a page is told until the session is over."""
    told: list[tuple[str, Any]] = []
    async with browser.stream("GET", f"/sessions/{session}/events", timeout=60) as answer:
        assert answer.status_code == 200
        kind = ""
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                told.append((kind, json.loads(line.removeprefix("data: "))))
                if kind == "state" and told[-1][1]["over"]:
                    return told
                assert len(told) < most
    return told


async def test_a_session_is_told_as_it_goes(pages: Pages) -> None:
    service, browser = pages
    session = (await service.create(4)).partition("/")[2]
    watching = asyncio.gather(*(events(browser, session) for _ in range(3)))
    await asyncio.sleep(0.5)

    async with service.agent(session_name(session)) as stream:
        await stream.receive("welcome")
        while not isinstance(frame := await stream.receive(), gateway_pb2.SessionEnd):
            if not isinstance(frame, gateway_pb2.EpisodeEnd):
                await asyncio.sleep(0.03)
                begins = isinstance(frame, gateway_pb2.EpisodeStart)
                await stream.send(action(0 if begins else frame.step, 3))
    told = await watching
    states = [said for kind, said in told[0] if kind == "state"]
    views = [said for kind, said in told[0] if kind == "view"]
    assert "It waits for an agent." in states[0]["html"]
    assert states[0]["course"] == [] or states[0]["course"][0][0] == 0
    assert ">finished<" in states[-1]["html"]
    assert [letter for _, _, letter in states[-1]["outcomes"]].count(".") == 0
    assert len(states[-1]["outcomes"]) == 4
    assert 'class="capability"' in states[-1]["html"]
    reasons = re.findall(r'<td class="small">([^<]*)', states[-1]["html"])
    assert len(reasons) == 4
    assert all(reasons)
    assert any(view["path"] for view in views)
    assert any("things" in view for view in views)
    pictures = [view for view in views if "picture" in view]
    assert pictures
    assert pictures[0]["picture"].startswith("data:image/png;base64,")
    # Nobody watches any more, so nothing is asked for and nothing is kept.
    for _ in range(100):
        if not list((service.data / "watched").iterdir()):
            break
        await asyncio.sleep(0.05)
    assert not list((service.data / "watched").iterdir())


def test_a_caller_of_an_identity_provider_keeps_its_role() -> None:
    now = 1000.0
    visits = Visits(b"k" * 32, UsedHere(), clock=lambda: now)
    ends = datetime.fromtimestamp(now + 60, UTC)
    caller = Caller("jwt 1", Role.VIEWER, subject="eve", expires=ends)
    again = visits.caller(visits.cookie(caller))
    assert again is not None
    assert (again.role, again.subject) == (Role.VIEWER, "eve")
    now += 61
    assert visits.caller(visits.cookie(caller)) is None


async def test_a_web_port_that_is_taken_is_said(tmp_path: Path, start: Start) -> None:
    async with start(tmp_path / "a", web="0") as service:
        port = service.running.link.partition("/enter")[0].rpartition(":")[2]
        with pytest.raises(OSError, match="in use"):
            async with create_server(Settings(home=tmp_path / "b", port=0, web=port)):
                pass
