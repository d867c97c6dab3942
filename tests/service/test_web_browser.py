"""The web pages in a real browser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from animalcat import connect
from animalcat.client import Client
from animalcat.layouts.library import load_layout
from animalcat.values import Session
from tests.service.conftest import arena
from tests.web.chromium import PROGRAM, Page, browser

pytestmark = [
    pytest.mark.skipif(not PROGRAM, reason="needs Chromium: apt-get install chromium"),
    pytest.mark.timeout(280),
]

AGENT = """
import time

class Thinks:
    def reset(self, info):
        pass

    def act(self, observation):
        time.sleep(0.02)
        return 3
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A server, as it says of itself; with a battery of three arenas and a session on them."""
    home = tmp_path_factory.mktemp("browser")
    command = [sys.executable, "-m", "animalcat", "serve", "--data", str(home)]
    server = subprocess.Popen(
        [*command, "--port", "0", "--web", "0", "--json"],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert server.stdout is not None
    try:
        told = json.loads(server.stdout.readline())
        folder = home / "arenas"
        folder.mkdir()
        for k in range(3):
            (folder / f"open-{k}.yml").write_text(arena(k))
        (home / "thinks.py").write_text(AGENT)
        yield told | {"home": home, "folder": folder}
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


def link(home: Path, path: str) -> str:
    """A link to a page, which lets one browser in, once."""
    command = [sys.executable, "-m", "animalcat", "token", "link", "--data", str(home), "--json"]
    done = subprocess.run([*command, "--path", path], capture_output=True, text=True, check=True)
    return str(json.loads(done.stdout)["link"])


def make_one(client: Client, folder: Path) -> Session:
    """A session on a small battery."""
    battery = client.import_battery(folder, "small")
    return client.create_session(
        agent="thinks", battery=battery.id, layout="aaio", max_episodes=3, certify=False, seed=1
    )


def test_a_session_is_watched_to_its_end(facts: dict[str, Any]) -> None:
    with connect(facts["address"]) as client, browser() as opened:
        session = make_one(client, facts["folder"])
        page = opened()
        page.open(facts["web"])
        page.wait("location.pathname === '/'")
        assert "#" not in page.js("location.href")
        page.wait(f"document.querySelector('a[href$=\"{session.id}\"]')")
        page.key("KeyJ", "j")  # by keys alone
        page.key("Enter", "Enter")
        page.wait("document.querySelector('.session')")
        page.wait("document.querySelector('.warning')?.textContent === 'It waits for an agent.'")
        animalcat = [sys.executable, "-m", "animalcat", "agent", "run"]
        named = ["--agent", f"{facts['home']}/thinks.py:Thinks", "--name", "thinks"]
        agent = subprocess.Popen(
            [*animalcat, "--connect", facts["address"], "--session", session.id, *named],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ),
        )
        try:
            page.wait("document.getElementById('picture').naturalWidth > 0")
            page.wait("document.getElementById('path').getAttribute('points').length > 20")
            page.wait("document.querySelectorAll('#things *').length > 0")
            page.wait("document.querySelectorAll('#recent a').length > 0")
            page.js("document.getElementById('pause').click()")
            page.wait("document.getElementById('standing').textContent.includes('paused')")
            assert client.get_session(session).paused
            page.js("document.getElementById('resume').click()")
            page.wait("document.querySelector('#standing .tag').textContent === 'finished'")
        finally:
            agent.terminate()
            agent.wait(30)
        assert page.js("document.querySelectorAll('#strip li').length") == 3
        assert page.js("document.querySelectorAll('.capability .course path').length") > 0
        ends = page.js("[...document.querySelectorAll('.course')].map((one) => one.innerText)")
        for one in ends:  # both ends of both axes
            high, low, *when = one.split()
            assert float(high) > float(low)
            assert when == ["0", "3", "episodes"]
        assert "The session is over." in page.text()
        width = "document.querySelector('#recent {}').offsetWidth"
        page.size(390, 844)
        assert page.js(f"{width.format('td')} >= {width.format('a')}")
        plays_its_film(page)
        assert page.problems == []
        page.open(f"{page.js('location.origin')}/sessions/{session.id}")
        page.js("document.querySelector('#more button').click()")
        page.wait("document.getElementById('more').hidden")
        assert client.get_session(session).spec.stop.max_episodes == 3 + 20


def plays_its_film(page: Page) -> None:
    """The last episode is played from its recording, and its step is in the address."""
    page.js("document.querySelector('#recent a').click()")
    page.wait("document.querySelector('.film')")
    page.wait("document.getElementById('outcome').textContent.startsWith('It ended')", 120)
    page.wait("document.getElementById('why').textContent.includes('Why it went so')", 120)
    page.key("End", "End")
    page.wait("Number(document.getElementById('time').value) > 5")
    page.wait("location.hash.length > 1")
    seen = "new Set(document.getElementById('camera').getContext('2d')"
    assert page.js(f"{seen}.getImageData(0, 0, 256, 256).data).size") > 5


def test_an_arena_is_played_by_touch(facts: dict[str, Any]) -> None:
    folder = facts["home"] / "long"
    folder.mkdir()
    (folder / "open-1.yml").write_text(arena(1).replace("t: 24", "t: 1000"))
    with connect(facts["address"]) as client, browser() as opened:
        client.import_battery(folder, "touched")
        page = opened()
        page.size(390, 844, phone=True)
        page.fingers()
        page.open(link(facts["home"], "/batteries/touched/arenas/open-1/play"))
        page.wait("document.getElementById('note').textContent.includes('Press an arrow')")
        same = (
            "((old) => (window.__seen = document.getElementById('camera').toDataURL()) === old)"
            "(window.__seen)"
        )
        page.js(same)
        page.touch("[data-key=left]")
        for _ in range(3):
            page.wait(f"!{same}")
        page.lift()
        while not page.js(same):  # it turns for as long as the finger is there
            time.sleep(0.4)  # some decisions
        assert page.js("document.getElementById('note').hidden")
        page.touch("#pause")
        page.lift()
        page.wait("document.getElementById('note').textContent.includes('Paused')")
        page.touch("#restart")
        page.lift()
        page.wait("document.getElementById('note').textContent.includes('Press an arrow to start')")
        assert page.js("document.documentElement.scrollWidth") <= 390
        assert page.problems == []


def test_names_with_markup_stand_on_every_page_as_text(facts: dict[str, Any]) -> None:
    image, script = "<img src=x onerror=window.ran=1>", "'\"><script>window.ran=1</script>"
    folder = facts["home"] / "marked"
    folder.mkdir()
    for k in range(3):
        (folder / f"{image}{k}.yml").write_text(arena(k))
    layout = replace(load_layout("aaio"), about=script).to_yaml()
    with connect(facts["address"]) as client, browser() as opened:
        battery = client.import_battery(folder, "marked")
        session = client.create_session(
            agent=script, battery=battery.id, max_episodes=2, certify=False, layout=layout
        )
        client.note_session(session, script + image)
        words = ["agent", "run", "--agent", "builtin:random", "--name", script]
        where = ["--connect", facts["address"], "--session", session.id]
        command = [sys.executable, "-m", "animalcat", *words, *where]
        subprocess.run(command, check=True, capture_output=True)
        report = facts["home"] / "report.html"
        client.save_profile(session, report, "html")
        campaign = client.create_campaign(
            agents=[script, image], battery=battery.id, budget=2, common=1, certify=False
        )
        page = opened()
        page.open(link(facts["home"], "/"))
        page.wait("location.pathname === '/'")
        pages = ["/", f"/sessions/{session.id}", f"/sessions/{session.id}/report"]
        pages += [f"/batteries/marked{more}" for more in ("", "/sheet")]
        pages += [f"/campaigns/{campaign.id}", f"/sessions/{session.id}/episodes/0"]
        pages += [f"/compare?session={session.id}&session={campaign.sessions[0].id}"]
        base = page.js("location.origin")
        for address in [report.as_uri(), *(base + path for path in pages)]:
            page.open(address)
            page.wait("!document.body.innerText.includes('is being made')", 120)
            assert not page.js("window.ran"), address
            assert page.js("document.querySelectorAll('img[src=x], [onerror]').length") == 0, (
                address
            )
            told = page.text()
            named = image in told or script in told or "/episodes/" in address
            assert named, (address, told[:500])
