"""An Animal-AI arena configuration as typed data, named as in the 4.x grammar."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Severity = Literal["error", "warning"]

STEPS_PER_UNIT: Final = 5
"""Physics steps in one unit of an arena's time limit and blackouts."""

ARENA_SIDE: Final = 40.0
"""Side of the square arena in metres; x and z run from 0 to it."""

PER_COPY: Final = (
    "positions",
    "rotations",
    "sizes",
    "colors",
    "symbol_names",
    "delays",
    "initial_values",
    "final_values",
    "change_rates",
    "spawn_counts",
    "spawn_colors",
    "times_between_spawns",
    "ripen_times",
    "door_delays",
    "times_between_door_opens",
    "move_durations",
    "reset_durations",
)
"""Lists of an item with one entry for every copy; the longest decides how many copies there are."""

_LISTS: Final = attrgetter(*PER_COPY)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong or doubtful in an arena file or an arena.

    Attributes:
        file: Name of the file; empty for an arena that has none.
        line: Line in the file, from 1; None if no line is to blame.
        field: Where in the configuration, such as `arenas[0].items[2].sizes[1].x`.
        severity: "error" (unusable or misleading) or "warning" (accepted nevertheless).
        code: Short stable name of the kind of problem.
        message: What was wrong, and what was made of it or should be done.
    """

    file: str
    line: int | None
    field: str
    severity: Severity
    code: str
    message: str

    def __str__(self) -> str:
        """`file:line: field: message [code]`."""
        place = ":".join(str(part) for part in (self.file, self.line) if part not in (None, ""))
        return ": ".join(part for part in (place, self.field, self.message) if part) + (
            f" [{self.code}]"
        )


class ArenaError(ValueError):
    """An arena or its file cannot be used; `problems` says why and includes at least one error."""

    def __init__(self, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class ArenaWarning(UserWarning):
    """Something in an arena is doubtful, or is not simulated; the text says where and what."""


class Point(NamedTuple):
    """A point or an extent in metres, in Unity's coordinate frame: x right, y up, z forward."""

    x: float
    y: float
    z: float


class _FrozenModel(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


class Vector3(_FrozenModel):
    """A position or size as written, in metres; a negative component asks for a random one."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


class RGB(_FrozenModel):
    """A colour as written, 0 to 255; a negative component asks for a random colour."""

    r: float = 0.0
    g: float = 0.0
    b: float = 0.0


class ToggleObject(_FrozenModel):
    """Spawns an item, and takes it away at the next call unless `spawn_and_forget`."""

    kind: Literal["toggleObject"] = "toggleObject"
    spawnable: Item | None = None
    object_initially_present: bool = False
    spawn_and_forget: bool = False


class GrantReward(_FrozenModel):
    """Gives a reward once."""

    kind: Literal["grantReward"] = "grantReward"
    reward: float = 1.0


class GrantContinuousReward(_FrozenModel):
    """Gives a reward at every physics step inside a DataZone."""

    kind: Literal["grantContinuousReward"] = "grantContinuousReward"
    reward_per_step: float = 0.0


class EndEpisode(_FrozenModel):
    """Gives a reward and ends the episode."""

    kind: Literal["endEpisode"] = "endEpisode"
    reward: float = 0.0


class FreezeAgent(_FrozenModel):
    """Freezes the agent's movement for a number of physics steps."""

    kind: Literal["freezeAgent"] = "freezeAgent"
    freeze_steps: int = 0


class LimitedInvocations(_FrozenModel):
    """Runs another operation at most a number of times; -1 for no limit."""

    kind: Literal["limitedInvocationsOperation"] = "limitedInvocationsOperation"
    max_invocations: int = -1
    operation: Operation | None = None


class OperationFromList(_FrozenModel):
    """Runs one of several operations, drawn by weight; without weights, all are equally likely."""

    kind: Literal["operationFromList"] = "operationFromList"
    operations: tuple[Operation, ...] = ()
    operation_weights: tuple[float, ...] = ()


class NoneOperation(_FrozenModel):
    """Does nothing."""

    kind: Literal["noneOperation"] = "noneOperation"


AnyOperation = (
    ToggleObject
    | GrantReward
    | GrantContinuousReward
    | EndEpisode
    | FreezeAgent
    | LimitedInvocations
    | OperationFromList
    | NoneOperation
)
Operation = Annotated[AnyOperation, Field(discriminator="kind")]
"""What a SpawnerButton or a DataZone does; kept as data (builds from 4.3.0)."""


class Item(_FrozenModel):
    """One kind of object and its copies; entry i of each list belongs to copy i.

    A copy without an entry in a list gets the object's fallback, which is often a random draw;
    `placement` knows the fallbacks.
    """

    name: str = ""
    positions: tuple[Vector3, ...] = ()
    rotations: tuple[float, ...] = ()
    """Yaw in degrees, clockwise from +z; negative is random."""
    sizes: tuple[Vector3, ...] = ()
    colors: tuple[RGB, ...] = ()
    skins: tuple[str, ...] = ()
    frozen_agent_delays: tuple[float, ...] = ()
    """Seconds for which the agent is frozen at the start; the first counts."""
    symbol_names: tuple[str, ...] = ()
    delays: tuple[float, ...] = ()
    """Physics steps before a Decay, Ripen, Grow or Shrink goal begins to change."""
    initial_values: tuple[float, ...] = ()
    final_values: tuple[float, ...] = ()
    change_rates: tuple[float, ...] = ()
    """Change of value per physics step."""
    spawn_counts: tuple[int, ...] = ()
    spawn_colors: tuple[RGB, ...] = ()
    times_between_spawns: tuple[float, ...] = ()
    ripen_times: tuple[float, ...] = ()
    door_delays: tuple[float, ...] = ()
    times_between_door_opens: tuple[float, ...] = ()
    move_durations: tuple[float, ...] = ()
    reset_durations: tuple[float, ...] = ()
    spawn_probability: float | None = None
    reward_names: tuple[str, ...] = ()
    reward_weights: tuple[float, ...] = ()
    reward_spawn_pos: Vector3 | None = None
    max_reward_counts: tuple[int, ...] = ()
    spawned_reward_size: Vector3 | None = None
    trigger_zone_id: tuple[str, ...] = Field(default=(), alias="triggerZoneID")
    zone_visibility: bool | None = None
    operations: tuple[Operation, ...] = ()

    @property
    def copies(self) -> int:
        """Number of objects that it asks for."""
        return max(1, *map(len, _LISTS(self)))


class Arena(_FrozenModel):
    """One arena."""

    time_limit: int = 0
    """In units of five physics steps (0.1 s); 0 is without limit."""
    pass_mark: float = 0.0
    """Return that an episode must exceed to count as a success."""
    items: tuple[Item, ...] = ()
    blackouts: tuple[int, ...] = ()
    """Times at which the light toggles, in the unit of `time_limit`; [-n] is every n, for ever."""
    random_seed: int = 0
    merge_next_arena: bool = False


class ArenaConfig(_FrozenModel):
    """A configuration file: arenas by number, and the order in which they are played."""

    arenas: dict[int, Arena] = {}
    randomize_arenas: bool = False
    show_notification: bool = False
    can_reset_episode: bool = True
    can_change_perspective: bool = True

    @property
    def first(self) -> Arena:
        """The arena that Unity starts with: the one with the lowest number.

        Raises:
            ArenaError: There are no arenas.
        """
        if not self.arenas:
            raise ArenaError("the configuration has no arena")
        return self.arenas[min(self.arenas)]


# These name classes that are defined after them.
for _model in (ToggleObject, LimitedInvocations, OperationFromList, Item):
    _model.model_rebuild()
