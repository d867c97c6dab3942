"""A participant who looks at the page's picture, and steers by real key events."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Final

from tests.doors.study.test_study import begin, command, go_on, where
from tests.web.chromium import Page

LOOK: Final = """
(() => {
  const canvas = document.getElementById("view"), w = canvas.width, h = canvas.height;
  const data = canvas.getContext("2d").getImageData(0, 0, w, h).data;
  let seen = 0, sum = 0;
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 1] > data[at] + 30 && data[at + 1] > data[at + 2] + 30) {
      seen += 1;
      sum += (at / 4) % w;
    }
  const over = document.getElementById("over");
  return [over && over.hidden, window.__frame, seen ? (2 * sum / seen + 1) / w - 1 : null];
})()
"""
"""Returns whether a round is on, the frame, and where green is, from -1 at the left to 1."""
COUNT = """
const Plain = WebSocket;
window.WebSocket = class extends Plain {
  constructor(...all) {
    super(...all);
    this.addEventListener("message", ({ data }) => {
      if (typeof data === "string") return;
      const length = new DataView(data).getUint32(0, true);
      window.__frame = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length))).number;
    });
  }
};
"""
"""Notes the number of each frame, which counts decisions."""
LOOKS_EACH: Final = 0.02
"""Seconds between looks."""
DISTANCES: Final = (4, 6, 8, 10, 12, 15, 18, 22, 26, 30)
"""Metres from the agent to the edge of the goal."""
SIZES: Final = (1, 2, 4)
TURNS: Final = (0, 70, 180)
"""Degrees by which the agent looks away from the goal."""
ARENA: Final = """!ArenaConfig
arenas:
  0: !Arena
    pass_mark: 0
    t: 80
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 3}}]
      rotations: [{turn}]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {{x: 20, y: 0, z: {z}}}]
      sizes: [!Vector3 {{x: {size}, y: {size}, z: {size}}}]
"""


def import_open(folder: Path) -> Path:
    """Return a new data directory with a battery on open floor: distances and sizes are crossed."""
    arenas, data = folder / "open", folder / "data"
    arenas.mkdir()
    for away, size, turn in product(DISTANCES, SIZES, TURNS):
        text = ARENA.format(z=3 + away + size / 2, size=size, turn=turn)
        (arenas / f"open-{away:02}-{size}-{turn:03}.yaml").write_text(text)
    words = ("battery", "import", str(arenas), "--name", "open", "--data", str(data))
    subprocess.run(command(*words), check=True, capture_output=True)
    return data


@dataclass
class Scripted:
    """One who turns until green is ahead, and walks there.

    Attributes:
        page: The page, on which a round may begin; opened after `Scripted` was made.
        stamina: For how many decisions it walks in a round; then it stays where it is.
        waits: For how many frames it looks what a turn has done before it turns again.
    """

    page: Page
    stamina: float = float("inf")
    waits: int = 3
    _held: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.page.do("Page.addScriptToEvaluateOnNewDocument", source=COUNT)

    def take_part(self, link: str) -> None:
        """Take part in a study from its link to its end."""
        self.page.open(link)
        while (now := where(self.page)) != "end":
            if now == "play":
                begin(self.page)
                self.play()
            else:
                go_on(self.page)

    def play(self) -> None:
        """Play a round that has begun, to its end."""
        walked, turned_at, before = 0, 0, None
        while True:
            on, frame, green = self._look()
            if not on:
                break
            if frame is None or frame == before:
                time.sleep(LOOKS_EACH)
                continue
            if "ArrowUp" in self._held and before is not None:
                walked += frame - before
            before = frame
            tired = walked >= self.stamina
            ahead = not tired and green is not None and abs(green) < 0.4
            self._hold("ArrowUp", ahead)
            self._hold("ArrowRight", not tired and green is None)
            if (
                not tired
                and green is not None
                and abs(green) > 0.12
                and frame >= turned_at + self.waits
            ):
                turned_at = frame
                self.page.key("ArrowRight" if green > 0.0 else "ArrowLeft")
        for code in [*self._held]:
            self._hold(code, False)

    def _look(self) -> tuple[bool, int | None, float | None]:
        try:
            on, frame, green = self.page.js(LOOK)
        except AssertionError:  # the page is changing just now, since the round was the last one
            return False, None, None
        return on, frame, green

    def _hold(self, code: str, down: bool) -> None:
        if down != (code in self._held):
            (self._held.add if down else self._held.discard)(code)
            self.page.key(code, down=down, up=not down)
