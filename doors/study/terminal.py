"""Shows the game in a terminal, with half blocks for pixels; time passes only on key presses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from animalcat.doors.study.game import Game, View

DECISIONS_PER_KEY: Final = 3
"""Decisions per key press: 0.18 s, because a terminal does not tell when a key is released."""

KEYS: Final = {
    "w": 3,
    "\x1b[A": 3,
    "s": 6,
    "\x1b[B": 6,
    "d": 1,
    "\x1b[C": 1,
    "a": 2,
    "\x1b[D": 2,
    "e": 4,
    "q": 5,
    " ": 0,
}
"""Action by key or escape sequence."""
QUIT: Final = ("\x03", "\x04", "x", "")
HELP: Final = "arrows or WASD move, Q/E ahead and turn, space waits, R restarts, X leaves"


def play_in_terminal(game: Game, keys: Iterable[str], write: Callable[[str], None]) -> None:
    """Play until a key says to leave, or there are no more keys.

    Args:
        game: The game.
        keys: Keys as `read_keys` yields them.
        write: Writes to the terminal.
    """
    write("\x1b[2J" + screen(game.view, game.title))
    for key in keys:
        if key.lower() in QUIT:
            return
        if key.lower() == "r":
            game.restart()
        elif (action := KEYS.get(key, KEYS.get(key.lower()))) is not None:
            for _ in range(DECISIONS_PER_KEY):
                game.act(action)
        write(screen(game.view, game.title))


def screen(view: View, title: str) -> str:
    """Return everything that the terminal shows, from its top left corner."""
    time = "" if view.seconds_left is None else f"   time left {view.seconds_left:5.1f} s"
    line = f"{title}   health {view.health:5.1f}   reward {view.episode_return:7.3f}{time}"
    if view.ended_by is not None:
        how = "passed" if view.passed else "not passed"
        line += f"   over: {view.ended_by.name.lower().replace('_', ' ')}, {how}; R goes on"
    rows = [*picture(view.camera), line, HELP]
    return "\x1b[H" + "\r\n".join(f"{row}\x1b[0m\x1b[K" for row in rows)


def picture(image: npt.NDArray[np.uint8]) -> list[str]:
    """Draw an image in upper half blocks, with two rows of pixels per line.

    Args:
        image: uint8 (even height, width, 3).

    Returns:
        The lines, with escape sequences for colours.
    """
    return [
        "".join(
            f"\x1b[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m▀"
            for a, b in zip(upper.tolist(), lower.tolist(), strict=True)
        )
        for upper, lower in zip(image[::2], image[1::2], strict=True)
    ]
