"""An operator's pages have nothing that keeps people out, as axe-core sees it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import arena
from tests.web.axe import findings
from tests.web.chromium import PROGRAM, Page, browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="needs Chromium: apt-get install chromium"),
    pytest.mark.timeout(900),
]
AGENT = """
import time

class Thinks:
    def reset(self, info):
        pass

    def act(self, observation):
        time.sleep(0.05)
        return 3
"""


def ran(*words: str) -> list[dict[str, Any]]:
    """Run a command, and return what it says last."""
    command = [sys.executable, "-m", "animalcat", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) if "--json" in words else []


@contextmanager
def serve_it(home: Path) -> Generator[dict[str, Any]]:
    """A server with pages, which has sessions that are over, a campaign, and one that goes on."""
    arenas = home / "arenas"
    arenas.mkdir(parents=True)
    for k in range(12):
        (arenas / f"open-{k:02}.yml").write_text(arena(k))
    slow = home / "slow"
    slow.mkdir()
    (slow / "long.yml").write_text(arena(1).replace("t: 24", "t: 20000"))
    (home / "thinks.py").write_text(AGENT)
    at = ("--data", str(home / "data"))
    ran("battery", "import", str(arenas), "--name", "small", *at)
    ran("battery", "import", str(slow), "--name", "slow", *at)
    two = ("--agent", "builtin:random", "--agent", "builtin:forward")
    on = ("--battery", "small", "--layout", "aaio")
    ran("campaign", "run", *two, *on, "--budget", "10", "--common", "4", *at)
    command = [sys.executable, "-m", "animalcat", "serve", *at, "--port", "0", "--web", "0"]
    server = subprocess.Popen(
        [*command, "--json"],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert server.stdout is not None
    playing = None
    try:
        told = json.loads(server.stdout.readline())
        agent = ("--agent", f"{home / 'thinks.py'}:Thinks", "--battery", "slow", "--camera", "64")
        words = ("session", "run", *agent, "--layout", "aaio", "--max-episodes", "1", *at)
        playing = subprocess.Popen(
            [sys.executable, "-m", "animalcat", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        yield told
    finally:
        if playing is not None:
            playing.terminate()
            playing.wait(60)
        server.send_signal(signal.SIGINT)
        server.wait(60)


def pages(page: Page, link: str) -> Iterator[str]:
    """Open one page after another; yields their names while they are open."""
    base = link.split("/enter")[0]

    def goes(path: str) -> str:
        page.open(base + path)
        return path

    yield goes("/enter")
    page.open("about:blank")  # the link differs from that address by its # alone
    page.open(link)
    page.wait("location.pathname === '/'")
    page.wait("document.querySelector('.tag.on')")
    page.key("KeyJ", "j")  # a chosen row has to be told too
    yield "/"
    every = "[...document.querySelectorAll('tbody tr')].map((row) => [row.querySelector('a')"
    rows = page.js(f"{every}.textContent, row.querySelector('.tag').textContent])")
    over = [name for name, state in rows if state != "running"]
    going = next(name for name, state in rows if state == "running")
    goes(f"/sessions/{going}")
    page.wait("document.getElementById('picture').naturalWidth > 0")
    page.wait("document.getElementById('path').getAttribute('points').length > 20")
    page.js("document.querySelectorAll('details').forEach((one) => one.open = true)")
    yield "a session that goes on"
    goes(f"/sessions/{over[0]}")
    page.wait("document.querySelectorAll('#recent a').length > 0")
    yield "a session that is over"
    episode = page.js("document.querySelector('#recent a').pathname")
    yield goes(f"/sessions/{over[0]}/episodes")
    goes(episode)
    page.wait("document.getElementById('why').textContent.includes('Why it went so')")
    page.wait("document.getElementById('outcome').textContent.startsWith('It ended')")
    page.key("End", "End")
    yield "an episode"
    goes(f"/sessions/{over[0]}/report")
    yield "a session's report"
    yield goes(f"/compare?session={over[0]}&session={over[1]}")
    yield goes("/campaigns")
    goes(page.js("document.querySelector('tbody a').getAttribute('href')"))
    yield "a campaign"
    yield goes("/batteries")
    goes("/batteries/small")
    page.js("document.querySelectorAll('details').forEach((one) => one.open = true)")
    yield "a battery"
    goes(page.js("document.querySelector('.card a').getAttribute('href')"))
    page.wait("document.getElementById('note').textContent.includes('Press an arrow')")
    yield "an arena, before it is played"
    page.key("ArrowUp", "ArrowUp")
    page.wait("!document.getElementById('note').textContent.includes('Press an arrow')")
    yield "an arena that is played"
    goes("/batteries/small/sheet")
    yield "a report that is being made"
    page.wait("!document.querySelector('[data-refresh=until]')", 240)
    yield "a battery's report"
    yield goes("/no/such/page")


def test_an_operators_pages_keep_nobody_out(tmp_path: Path) -> None:
    found = list[str]()
    with serve_it(tmp_path) as told, browser() as opened:
        page = opened()
        for name in pages(page, told["web"]):
            found += findings(page, name)
    assert not found, "\n".join(found)
