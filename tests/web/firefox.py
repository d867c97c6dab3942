"""A Firefox without a window, driven by its own protocol (WebDriver BiDi)."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from websockets.sync.client import connect

from tests.web import chromium

PROGRAM: Final = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), "")
"""The program; empty where there is none."""
KEYS: Final[Mapping[str, str]] = {
    "Enter": "\ue007",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}
"""What WebDriver calls keys."""


class Page(chromium.Page):
    """A page of the browser."""

    def prepare(self) -> None:
        """Have a tab, and be told of what goes wrong in it."""
        self.do("session.new", capabilities={})
        self.do("session.subscribe", events=["log.entryAdded"])
        self._tab = self.do("browsingContext.create", type="tab")["context"]

    def note(self, said: dict[str, Any]) -> None:
        """Keep what the page complains of."""
        if said.get("method") == "log.entryAdded" and said["params"]["level"] == "error":
            self.problems.append(said["params"]["text"])

    def open(self, url: str) -> None:
        """Go to an address, and wait until the page is there."""
        self.do("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def js(self, expression: str) -> Any:
        """Return the value of an expression, awaited."""
        answer = self.do(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression})))()",
            target={"context": self._tab},
            awaitPromise=True,
            userActivation=True,
        )
        assert answer["type"] == "success", (expression, answer)
        return json.loads(answer["result"].get("value", "null"))

    def key(self, code: str, key: str = "", *, down: bool = True, up: bool = True) -> None:
        """Press a key, and let it go."""
        kinds = ["keyDown"] * down + ["keyUp"] * up
        self._act("key", [{"type": kind, "value": KEYS[code]} for kind in kinds])

    def touch(self, what: str) -> None:
        """Put a finger on the middle of what a selector finds, which must be in sight."""
        x, y = self.js(f"({chromium.MIDDLE})({what!r})")
        move = {"type": "pointerMove", "x": round(x), "y": round(y)}
        touch = {"pointerType": "touch"}
        self._act("pointer", [move, {"type": "pointerDown", "button": 0}], parameters=touch)

    def lift(self) -> None:
        """Take the finger away."""
        up, touch = {"type": "pointerUp", "button": 0}, {"pointerType": "touch"}
        self._act("pointer", [up], parameters=touch)

    def _act(self, kind: str, acts: list[dict[str, Any]], **more: Any) -> None:
        source = {"type": kind, "id": kind, "actions": acts, **more}
        self.do("input.performActions", context=self._tab, actions=[source])

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Give the page a size."""
        size = {"width": width, "height": height}
        self.do("browsingContext.setViewport", context=self._tab, viewport=size)

    def shot(self, path: Path, *, whole: bool = False) -> None:
        """Write a picture of the page."""
        origin = "document" if whole else "viewport"
        shot = self.do("browsingContext.captureScreenshot", context=self._tab, origin=origin)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser() -> Generator[Callable[[], Page]]:
    """Run the browser for the duration of the block; yields what opens its one page."""
    with tempfile.TemporaryDirectory(prefix="animalcat-firefox-", ignore_cleanup_errors=True) as d:
        command = [PROGRAM, "--headless", "--no-remote", "--remote-debugging-port", "0"]
        process = subprocess.Popen(
            [*command, "--profile", d], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            found = Path(d) / "WebDriverBiDiServer.json"
            end = time.monotonic() + chromium.SECONDS
            while not found.exists() or not found.read_text().endswith("}"):
                assert time.monotonic() < end, "Firefox does not start"
                time.sleep(0.05)
            port = json.loads(found.read_text())["ws_port"]
            at = f"ws://127.0.0.1:{port}/session"
            with connect(at, max_size=None, compression=None) as socket:
                yield lambda: Page(socket)
        finally:
            process.terminate()
            process.wait(chromium.SECONDS)
