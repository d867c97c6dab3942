"""`animalcat-unity` where the client asks for a person (`play=True`): the page of `arena play`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from animalcat.arena_configs.builds import Build, config_in
from animalcat.arena_configs.draws import UnityDraws
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.sequence import merge_arenas
from animalcat.cli.shared import page
from animalcat.doors.study.game import Game, GameShow
from animalcat.doors.study.play_page import person_session, playing_alone
from animalcat.envs.gym import NAVIGATION
from animalcat.envs.mlagents.source import SourceOver
from animalcat.service.host.settings import Settings
from animalcat.service.web.serving import show_pages

if TYPE_CHECKING:
    from typing import Never

    from animalcat.arena_configs.model import ArenaConfig
    from animalcat.envs.mlagents.peer import MakeSource
    from animalcat.envs.mlagents.source import ScheduledStep
    from animalcat.envs.types import ObservationSpec

logger = logging.getLogger(__name__)

OnGone = Callable[[Callable[[], None]], None]
"""Takes what to call when the client is gone."""


class PersonSource:
    """The first of the client's arenas, for a person; the client is given nothing.

    That is what a build does: a client that lets a person play expects no observation, and waits
    until it is interrupted.
    """

    def __init__(self, seed: int, build: Build, on_gone: OnGone) -> None:
        """Stand before the first arena; the build draws from the client's seed, on and on."""
        self._seed, self._on_gone = seed & 0xFFFFFFFF, on_gone
        self._build: Build = build
        self._config = load_text(NAVIGATION, "").config

    def use(self, config: ArenaConfig) -> None:
        """Take the client's arenas."""
        self._config = config

    def reset(self) -> Never:
        """Let the person play until the client is gone, which is raised."""
        arena = merge_arenas(config_in(self._config, self._build))
        session = person_session("animalcat-unity", datetime.now().astimezone())
        home, draws = Settings().home.absolute(), UnityDraws(self._seed, self._build)

        game = Game(
            arena,
            self._seed,
            session=session,
            instance="animalcat-unity",
            data=home,
            build=self._build,
            draws=draws,
        )
        with show_pages([playing_alone(lambda: GameShow(game))]) as pages:
            link = pages.link()
            logger.info("play at %s", link)
            page.open_page(link)
            self._on_gone(pages.stop)
            pages.serve()
        raise SourceOver("the client has gone, so the page is closed")

    def restart(self) -> ScheduledStep:
        """Nothing follows."""
        return self.reset()

    def step(self, action: int) -> ScheduledStep:
        """No client decides here."""
        return self.reset()

    def close(self) -> None:
        """Nothing is held."""


def person_maker(build: Build, on_gone: OnGone) -> MakeSource:
    """Return what makes a `PersonSource`."""

    def make(spec: ObservationSpec, seed: int) -> PersonSource:
        return PersonSource(seed, build, on_gone)

    return make
