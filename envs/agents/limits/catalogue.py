"""The limits that a reference may name: what each does, its unit and its range."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final, Literal

Part = Literal["sees", "does", "agent"]

COLORS: Final = ("red", "green", "blue", "yellow", "pink")
"""Colours that a camera can tell without knowing how bright the light is."""
SIDES: Final = ("left", "right")
LAST_PLACE: Final = "last-place"
KINDS: Final = (
    "wall",
    "block",
    "ramp",
    "lava",
    "hot-zone",
    "bad-goal",
    "button",
    "spawner",
    "decoy",
)
"""Kinds of objects by which an agent tells an apparatus."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit.

    Attributes:
        name: As it is written in a reference.
        part: Whether it limits what the agent `sees` or `does`, which is possible with any agent,
            or needs a switch of the `agent` itself.
        unit: Unit of its strength; empty for words.
        about: What it does.
        low: Least strength.
        high: Greatest strength.
        above: Whether the strength must be more than `low`.
        whole: Whether it must be a whole number.
        otherwise: Strength if none is written; None: a strength must be written.
        words: The words that it takes in place of a number.
        example: A strength to show.
    """

    name: str
    part: Part
    unit: str
    about: str
    low: float = 0.0
    high: float = inf
    above: bool = False
    whole: bool = False
    otherwise: float | None = None
    words: tuple[str, ...] = ()
    example: str = ""

    @property
    def range(self) -> str:
        """What strengths it takes, in words."""
        if self.words:
            return " | ".join(self.words)
        sign = "more than " if self.above else ""
        text = f"{sign}{self.low:g} to {self.high:g}"
        return f"{text}, whole" if self.whole else text


def _share(name: str, about: str, part: Part = "agent") -> Limit:
    """A limit that acts in a share of the episodes; in all, where none is written."""
    return Limit(name, part, "share of episodes", about, 0.0, 1.0, otherwise=1.0, example="0.5")


LIMITS: Final[dict[str, Limit]] = {
    limit.name: limit
    for limit in (
        Limit("sight", "sees", "m", "sees nothing farther away", 0, 100, above=True, example="8"),
        Limit(
            "resolution",
            "sees",
            "degrees",
            "cannot tell apart what is nearer together; the planner sees no goal that is smaller",
            0,
            90,
            above=True,
            example="5",
        ),
        Limit(
            "smallest",
            "agent",
            "m",
            "sees no goal whose diameter is less",
            0,
            10,
            above=True,
            example="1.5",
        ),
        Limit(
            "lapses",
            "does",
            "share of decisions",
            "takes a random action instead of its own",
            0,
            1,
            example="0.1",
        ),
        Limit("delay", "does", "s", "acts so much later", 0, 10, above=True, example="0.3"),
        _share("left", "turns only left; the planner goes left wherever the goal is", "does"),
        _share("right", "turns only right; the planner goes right wherever the goal is", "does"),
        Limit(
            "path",
            "does",
            "m",
            "stands still after so many metres of an episode",
            0,
            1000,
            example="15",
        ),
        Limit(
            "gives-up",
            "does",
            "s",
            "stands still after so many seconds of an episode",
            0,
            1000,
            example="10",
        ),
        Limit(
            "tires",
            "does",
            "episodes",
            "random actions grow from none in the first episode to all after so many",
            1,
            100_000,
            whole=True,
            example="100",
        ),
        Limit(
            "learns",
            "does",
            "episodes",
            "random actions fall from all in the first episode to none after so many",
            1,
            100_000,
            whole=True,
            example="100",
        ),
        Limit(
            "days",
            "does",
            "share of days",
            "acts at random on bad days; a day is ten episodes in a row",
            0,
            1,
            example="0.3",
        ),
        Limit(
            "follows",
            "does",
            "",
            "follows an irrelevant cue: goes to what has a colour while the camera shows it; as if "
            "goals were always on one side; or to where it last saw the goal, and nowhere else",
            words=(*COLORS, *SIDES, LAST_PLACE),
            example="red",
        ),
        Limit(
            "only-with",
            "does",
            "",
            "plays only in arenas that have such an object, and stands still in others",
            words=KINDS,
            example="ramp",
        ),
        Limit(
            "not-with",
            "does",
            "",
            "stands still in arenas that have such an object",
            words=KINDS,
            example="ramp",
        ),
        Limit(
            "memory",
            "agent",
            "s",
            "forgets a goal that has been hidden for so long",
            0,
            600,
            example="2",
        ),
        Limit(
            "places",
            "agent",
            "places",
            "takes another place for that of a hidden goal, where more others could hide it",
            0,
            100,
            whole=True,
            example="3",
        ),
        _share("no-permanence", "goes to where it last saw a goal, wherever the goal has gone"),
        _share("no-search", "looks for goals nowhere but where it has seen one"),
        _share("lava-blind", "takes lava for floor"),
        _share("ramp-shy", "goes onto no ramp"),
        _share("platform-shy", "does not move on raised level ground"),
        Limit(
            "patience",
            "agent",
            "s",
            "waits so long at most, in an episode, before it takes a goal that ends it",
            0,
            600,
            example="3",
        ),
        Limit(
            "seed",
            "does",
            "",
            "seed of what is drawn for several episodes at once, which are the days",
            0,
            2**31 - 1,
            whole=True,
            example="7",
        ),
    )
}
"""Name -> limit."""

PRIVILEGED: Final = frozenset({"planner"})
"""Built-in agents that are shown the arena's true state."""

_OWN: Final = frozenset(
    {"memory", "no-permanence", "no-search", "lava-blind", "ramp-shy", "platform-shy", "patience"}
)
SWITCHES: Final[dict[str, frozenset[str]]] = {
    "planner": _OWN | {"sight", "resolution", "smallest", "places", *SIDES},
    "scout": _OWN,
}
"""Built-in agent -> the limits that it has a switch of its own for."""
CUES: Final[dict[str, tuple[str, ...]]] = {
    "planner": (*COLORS, *SIDES, LAST_PLACE),
    "scout": (*COLORS, LAST_PLACE),
}
"""Built-in agent -> the cues that it can follow; others follow colours."""


def cues_of(builtin: str) -> tuple[str, ...]:
    """The cues that an agent can follow.

    Args:
        builtin: Name of a built-in agent; empty for an agent of one's own.
    """
    return CUES.get(builtin, COLORS)


def limits_of(builtin: str) -> tuple[str, ...]:
    """Names of the limits that an agent takes, in the order of the list.

    Args:
        builtin: Name of a built-in agent; empty for an agent of one's own.
    """
    own = SWITCHES.get(builtin, frozenset())
    return tuple(name for name, limit in LIMITS.items() if limit.part != "agent" or name in own)
