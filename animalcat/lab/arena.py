"""An arena as a value of Python: made of a few words, of YAML, or of a file; shown as its map."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, cast

import numpy as np

from animalcat.arena_configs.loader import load_config, load_text
from animalcat.arena_configs.model import Arena as Model
from animalcat.arena_configs.model import ArenaConfig, ArenaError, Item, Vector3
from animalcat.arena_configs.placement import Placement, place
from animalcat.arena_configs.sequence import episode_arenas, merge_arenas
from animalcat.arena_configs.writer import to_yaml
from animalcat.errors import AnimalcatError
from animalcat.maps.small import describe_map, draw_small
from animalcat.text.showing import figure_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import Series

ArenaSource: TypeAlias = "Arena | Model | ArenaConfig | Mapping[str, Any] | str | os.PathLike[str]"
"""What an arena may be given as."""

_EDGE: Final = 1.0
"""Metres that goal and agent stay off the fence."""
_SIDE: Final = 40.0
_TIME: Final = 250
"""Time limit in the arena's units, 25 s: enough for 38 m at the agent's 8 m/s or so with turns."""
_KINDS: Final = {
    "green": "GoodGoal",
    "yellow": "GoodGoalMulti",
    "red": "BadGoal",
}


class Arena:
    """An arena of Animal-AI.

        Arena.goal(distance=12, size=1)              # one goal on open floor
        Arena("yard.yaml")                           # a file
        Arena(text)                                  # YAML text, of several lines
        Arena(arena.config)                          # the typed model, or a dict of it

    At the end of a notebook's cell it shows itself as its map.

    Attributes:
        config: The configuration as the typed model, frozen. An arena that merges with others has
            them as its arenas 1, 2 and so on.
    """

    def __init__(self, source: ArenaSource, number: int | None = None) -> None:
        """Read an arena.

        Args:
            source: A path, YAML text (which has a line break), a dict as YAML has it or as the
                model has it, the model itself, or another `Arena`.
            number: Which arena, where the source has several; None for the first.

        Raises:
            AnimalcatError: It is no arena; the message says where and what is wrong.
        """
        self.config: Final = _one(_read(source), number)

    @classmethod
    def goal(
        cls,
        distance: float,
        size: float = 1.0,
        *,
        angle: float = 0.0,
        kind: Literal["green", "yellow", "red"] = "green",
        time_limit: int = _TIME,
        pass_mark: float = 0.0,
    ) -> Self:
        """One goal on open floor.

        Args:
            distance: Metres from the agent to the middle of the goal, up to 50, as the demand
                `rewardDistance` measures it.
            size: Diameter of the goal in metres, 0.5 to 5.
            angle: Degrees from where the agent looks to the goal, clockwise: 90 is to the right,
                180 behind.
            kind: "green" ends the episode with its reward; "yellow" does so as the last one of its
                kind; "red" ends it with a loss.
            time_limit: Most steps of 0.1 s; the green goal's reward is its diameter, and what time
                costs is taken off.
            pass_mark: Return that an episode must exceed to be a success.

        Raises:
            AnimalcatError: A number is out of its range, or the way does not fit into the arena.
        """
        if kind not in _KINDS:
            raise AnimalcatError(
                f"kind is {kind!r}; give one of {', '.join(map(repr, _KINDS))}", "INVALID_REQUEST"
            )
        if not isinstance(time_limit, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise AnimalcatError(
                f"time_limit is {time_limit!r}; give a whole number of steps of 0.1 s, as in "
                "time_limit=250",
                "INVALID_REQUEST",
            )
        size = _within("size", size, 0.5, 5.0, "m")
        distance = _within("distance", distance, size / 2 + 0.6, 50.0, "m")
        angle = _within("angle", angle, -360.0, 360.0, "degrees")
        rise = size / 2 - 0.5  # from the agent's middle to the goal's
        over = math.sqrt(distance**2 - rise**2)
        room = _SIDE / 2 - _EDGE - size / 2  # from the middle
        # Along an axis; and along the diagonal, the longest way that there is, what is longer.
        straight = over <= 2.0 * room
        side, ahead = (0.0, over / 2) if straight else (over / math.sqrt(8.0),) * 2
        if ahead > room:
            most = math.sqrt(8.0) * room
            raise AnimalcatError(
                f"distance is {distance:g} m, and a goal of {size:g} m has room for {most:.1f} m "
                "in an arena of 40 by 40 m; give less",
                "INVALID_REQUEST",
            )
        middle = _SIDE / 2
        agent = Item(
            name="Agent",
            positions=(Vector3(x=middle - side, z=middle - ahead),),
            rotations=(((0.0 if straight else 45.0) - angle) % 360.0,),
        )
        goal = Item(
            name=_KINDS[kind],
            positions=(Vector3(x=middle + side, z=middle + ahead),),
            sizes=(Vector3(x=size, y=size, z=size),),
        )
        return cls(Model(time_limit=time_limit, pass_mark=pass_mark, items=(agent, goal)))

    def to_yaml(self) -> str:
        """The arena in Animal-AI's own YAML, which `Arena` reads back as an equal one."""
        return to_yaml(self.config)

    def check(self) -> tuple[str, ...]:
        """What is wrong or doubtful about it, as `animalcat arena check` says it."""
        from animalcat.arena_configs.checks import check_config

        return tuple(map(str, check_config(self.config, np.random.default_rng(0))))

    def demands(self, seed: int = 0) -> Series[float]:
        """What it asks for: its meta-features, by name and unit, measured as batteries are.

        Args:
            seed: Seed of what the arena leaves to chance.
        """
        import pandas as pd

        from animalcat.arena_configs.features.registry import FEATURES
        from animalcat.envs.measure import measure_episode

        values = measure_episode(self._place_all(seed), seed).features.values
        units = {name: FEATURES[name].unit for name in values}
        heads = {name: f"{name} [{unit}]" if unit else name for name, unit in units.items()}
        return pd.Series({heads[name]: value for name, value in values.items()}, name="demand")

    def map(self, ax: Axes | None = None, *, seed: int = 0) -> Figure:
        """Draw it from above, with names, headings and rewards.

        Args:
            ax: Where; None for a new figure.
            seed: Seed of what it leaves to chance.

        Returns:
            The figure that was drawn on.
        """
        from animalcat.maps.figure import draw_arena
        from animalcat.plots.style import canvas

        drawn = canvas(ax, "map", (8.0, 8.4))
        draw_arena(drawn.axes[0], self._place_all(seed)[0])
        return drawn.figure

    def _place_all(self, seed: int = 0) -> list[Placement]:
        rng = np.random.default_rng(seed)
        return [place(arena, rng) for arena in episode_arenas(merge_arenas(self.config))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arena) and self.config == other.config

    def __hash__(self) -> int:
        return hash(self.to_yaml())

    def __repr__(self) -> str:
        words = "; then ".join(describe_map(placed, "Arena") for placed in self._place_all())
        return f"<{words}>"

    def _repr_html_(self) -> str:
        drawn = draw_small(self._place_all(), "Arena")
        wide = 16 * len(self.config.arenas)
        return figure_html(drawn.replace("<svg ", f'<svg style="max-width:{wide}rem" ', 1))


def _within(name: str, value: float, least: float, most: float, unit: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not least <= number <= most or isinstance(value, bool | str):
        raise AnimalcatError(
            f"{name} is {value!r}; give {least:g} to {most:g} {unit}", "INVALID_REQUEST"
        )
    return number


def _read(source: ArenaSource) -> ArenaConfig:
    """The configuration that is given in one of the ways."""
    try:
        match source:
            case Arena():
                return source.config
            case ArenaConfig():
                return source
            case Model():
                return ArenaConfig(arenas=dict(enumerate(episode_arenas(source))))
            case str() if "\n" in source:
                return load_text(source, "the text").config
            case str() | os.PathLike():
                path = Path(source).expanduser()
                if not path.is_file():
                    raise AnimalcatError(
                        f"arena {str(source)!r}: no such file, and no YAML text either, since it "
                        "has one line",
                        "INVALID_REQUEST",
                    )
                return load_config(path).config
            case Mapping():
                return _of_dict(cast("Mapping[Any, Any]", source))
            case _:
                raise AnimalcatError(
                    f"an arena is expected, and this is of {type(source).__name__}: give a path, "
                    "YAML text, a dict of either, or Arena.goal(distance=..., size=...)",
                    "INVALID_REQUEST",
                )
    except ArenaError as error:
        raise AnimalcatError(str(error), "INVALID_REQUEST") from None


def _of_dict(source: Mapping[Any, Any]) -> ArenaConfig:
    """A configuration from a dict, as YAML has it or as the model dumps it."""
    import yaml
    from pydantic import ValidationError

    given = dict(source)
    if "arenas" not in given:
        given = {"arenas": {0: given}}
    with suppress(ValidationError):
        return ArenaConfig.model_validate(given)
    # The reader of YAML knows older names too, and says what it does not know.
    return load_text("!ArenaConfig\n" + yaml.safe_dump(given, sort_keys=False), "the dict").config


def _one(config: ArenaConfig, number: int | None) -> ArenaConfig:
    """One arena of a configuration, with those that it merges with."""
    try:
        arenas = episode_arenas(merge_arenas(config, number))
    except ArenaError as error:
        raise AnimalcatError(str(error), "INVALID_REQUEST") from None
    return config.model_copy(update={"arenas": dict(enumerate(arenas))})
