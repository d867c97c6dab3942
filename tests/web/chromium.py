"""A Chromium without a window, driven by its own protocol (CDP)."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from websockets.sync.client import ClientConnection, connect

PROGRAM: Final = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
"""The program; empty where there is none."""
SECONDS: Final = 60.0
"""How long anything may take."""
MIDDLE: Final = """(what) => {
  const e = document.querySelector(what), r = e.getBoundingClientRect();
  const x = r.x + r.width / 2, y = r.y + r.height / 2;
  return e.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
}"""
"""Finds the middle of what a selector finds, where that is in sight."""


class Page:
    """A page of the browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self.problems: list[str] = []
        """What the page has complained of: errors of scripts, and what its policy has stopped."""
        self.prepare()

    def prepare(self) -> None:
        """Be told of what goes wrong."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **what: Any) -> dict[str, Any]:
        """Do something by the protocol, and return its answer."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": what}))
        while True:
            said = json.loads(self._socket.recv(SECONDS))
            if said.get("id") == self._number:
                assert "error" not in said, (method, said["error"])
                return said["result"]
            self.note(said)

    def note(self, said: dict[str, Any]) -> None:
        """Keep what the page complains of."""
        what = said.get("params", {})
        if said.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(what["exceptionDetails"])[:500])
        elif said.get("method") == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.problems.append(f"{what['entry']['text']} {what['entry'].get('url', '')}")

    def open(self, url: str) -> None:
        """Go to an address, and wait until the page is there."""
        self.js("window.__before = true")
        self.do("Page.navigate", url=url)
        self.wait("!window.__before && document.readyState === 'complete'")

    def js(self, expression: str) -> Any:
        """Return the value of an expression, awaited."""
        answer = self.do(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, (expression, answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = SECONDS) -> None:
        """Wait until an expression is true of a page that has run all of its scripts."""
        end = time.monotonic() + seconds
        while True:
            try:
                if self.js(f"document.readyState === 'complete' && !!({expression})"):
                    return
            except AssertionError:  # the page is changing just now
                pass
            assert time.monotonic() < end, (expression, self.text()[:2000], self.problems)
            time.sleep(0.05)

    def text(self) -> str:
        """Return what the page says."""
        return str(self.js("document.body ? document.body.innerText : ''"))

    def key(self, code: str, key: str = "", *, down: bool = True, up: bool = True) -> None:
        """Press a key, and let it go."""
        what = {"code": code, "key": key or code}
        if down:
            self.do("Input.dispatchKeyEvent", type="keyDown", **what)
        if up:
            self.do("Input.dispatchKeyEvent", type="keyUp", **what)

    def fingers(self) -> None:
        """Have a screen that is touched."""
        self.do("Emulation.setTouchEmulationEnabled", enabled=True)

    def touch(self, what: str) -> None:
        """Put a finger on the middle of what a selector finds, which must be in sight."""
        x, y = self.js(f"({MIDDLE})({what!r})")
        self.do("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])

    def lift(self) -> None:
        """Take the finger away."""
        self.do("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Give the page a size."""
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def dark(self, on: bool = True) -> None:
        """Show the page as at night."""
        value = "dark" if on else "light"
        self.do(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": value}],
        )

    def shot(self, path: Path, *, whole: bool = False) -> None:
        """Write a picture of the page."""
        data = self.do("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def printed(self, path: Path) -> None:
        """Write the page as it is printed, as PDF."""
        path.write_bytes(base64.b64decode(self.do("Page.printToPDF", printBackground=True)["data"]))


@contextmanager
def browser(*options: str, kept: Path | None = None) -> Generator[Callable[[], Page]]:
    """Run the browser for the duration of the block; yields what opens a page.

    `kept` is a folder in which it keeps what it remembers; None for a new one that is removed. With
    one, the browser is killed at the end.
    """
    with tempfile.TemporaryDirectory(prefix="animalcat-chromium-", ignore_cleanup_errors=True) as d:
        home = kept or Path(d)
        (home / "DevToolsActivePort").unlink(missing_ok=True)
        command = [
            PROGRAM,
            "--headless=new",
            "--no-sandbox",  # containers have no namespaces for it; it shows our own pages
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-port=0",
            f"--user-data-dir={home}",
            *options,
            "about:blank",
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sockets: list[ClientConnection] = []
        try:
            port = _port(home / "DevToolsActivePort")

            def page() -> Page:
                made = json.load(_ask(port, "/json/new?about:blank"))
                socket = connect(made["webSocketDebuggerUrl"], max_size=None, compression=None)
                sockets.append(socket)
                return Page(socket)

            yield page
        finally:
            for socket in sockets:
                socket.close()
            (process.kill if kept else process.terminate)()
            process.wait(SECONDS)


def _port(file: Path) -> int:
    end = time.monotonic() + SECONDS
    while not file.exists() or not file.read_text().strip():
        assert time.monotonic() < end, "Chromium does not start"
        time.sleep(0.05)
    return int(file.read_text().split()[0])


def _ask(port: int, path: str) -> Any:
    from urllib.request import Request

    return urlopen(Request(f"http://127.0.0.1:{port}{path}", method="PUT"), timeout=SECONDS)
