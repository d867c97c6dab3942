"""What pages show picture by picture: a game that a person plays, or a recorded episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from animalcat.envs.types import ACTIONS
from animalcat.service.person.game import ACTIONS_PER_SECOND, Game, View


class Shown(NamedTuple):
    """What a call is answered.

    Attributes:
        state: What the page shows beside the pictures, as JSON has it; it says their sizes.
        pixels: The pictures' bytes, one after another, three bytes a pixel.
    """

    state: Mapping[str, Any]
    pixels: bytes


class Show(Protocol):
    """What a page shows; all of it runs on one thread."""

    def answer(self, name: str, body: Mapping[str, Any]) -> Shown:
        """Do what a page asks for.

        Args:
            name: Name of the call.
            body: Its arguments.

        Raises:
            ValueError: There is no such call, or an argument is wrong.
            ArenaError: The arena cannot be built.
            OSError: A recording cannot be written.
        """
        ...

    def close(self) -> None:
        """End it."""
        ...


class GameShow:
    """A game on a page: the calls are state, act and restart."""

    def __init__(self, game: Game) -> None:
        """Show a game."""
        self._game = game

    def close(self) -> None:
        """End the game; an episode that still runs is recorded as void."""
        self._game.close()

    def answer(self, name: str, body: Mapping[str, Any]) -> Shown:
        """See `Show.answer`."""
        game = self._game
        if name == "state":
            return self._seen(game.view)
        if name == "restart":
            return self._seen(game.restart())
        if name != "act":
            raise ValueError(f"there is no call {name!r}; the calls are state, act, restart")
        action = whole_number(body, "action")
        if not 0 <= action < ACTIONS:
            raise ValueError(f"action is {action}; give 0 to {ACTIONS - 1}")
        return self._seen(game.act(action))

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
            "actions_per_second": ACTIONS_PER_SECOND,
        }
        return Shown(state, view.camera.tobytes())


def whole_number(body: Mapping[str, Any], field: str) -> int:
    """An argument of a call.

    Raises:
        ValueError: It is no whole number.
    """
    value = body.get(field)
    if type(value) is not int:
        raise ValueError(f"{field} is {value!r}; give a whole number")
    return value
