"""What pages show picture by picture: a game that a person plays, or a recorded episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from animalcat.service.person.game import Game, View


class Shown(NamedTuple):
    """What a call is answered.

    Attributes:
        state: What the page shows beside the pictures, as JSON has it; it says their sizes.
        pixels: The pictures' bytes, one after another, three bytes a pixel.
    """

    state: Mapping[str, Any]
    pixels: bytes


class Show(Protocol):
    """What a page shows; all of it runs on one thread, by the names of its methods."""

    def state(self) -> Shown:
        """Return what is to be seen at first."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class GameShow:
    """A game on a page."""

    def __init__(self, game: Game) -> None:
        """Show a game."""
        self._game = game

    def close(self) -> None:
        """End the game; an episode that still runs is recorded as void."""
        self._game.close()

    def state(self) -> Shown:
        """Return what is to be seen now."""
        return self._seen(self._game.view)

    def restart(self) -> Shown:
        """Begin the next episode."""
        return self._seen(self._game.restart())

    def act(self, action: int) -> Shown:
        """Take a decision."""
        return self._seen(self._game.act(action))

    def _seen(self, view: View) -> Shown:
        state = {
            "title": self._game.title,
            "episode": view.episode,
            "step": view.step,
            "health": view.health,
            "reward": view.reward,
            "return": view.episode_return,
            "seconds_left": view.seconds_left,
            "speed": view.speed,
            "ended_by": view.ended_by.name.lower() if view.ended_by else None,
            "passed": view.passed,
            "resolution": view.camera.shape[0],
        }
        return Shown(state, view.camera.tobytes())
