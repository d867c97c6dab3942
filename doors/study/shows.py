"""A game that a person plays, as a page shows it."""

from __future__ import annotations

from animalcat.doors.study.game import Game, View
from animalcat.service.web.stage import Shown


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
        return self._frame_of(self._game.view)

    def restart(self) -> Shown:
        """Begin the next episode."""
        return self._frame_of(self._game.restart())

    def act(self, action: int) -> Shown:
        """Take a decision."""
        return self._frame_of(self._game.act(action))

    def _frame_of(self, view: View) -> Shown:
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
