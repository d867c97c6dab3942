"""Builds of Animal-AI: their names, and what of an arena file each of them heeds.

Sources: reference/animal-ai.md sections 0.2, 1.3 and 2.1, and the build's own scripts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from animalcat.arena_configs.catalogue import canonical_name
from animalcat.arena_configs.model import ArenaConfig, Item

Build = Literal["4.x", "4.2", "4.1", "3.1.3"]
BUILDS: Final[tuple[Build, ...]] = ("4.x", "4.2", "4.1", "3.1.3")
"""The rules that there are, newest first. 4.x: 4.3 and later, which the catalogue describes. 4.2:
walls and ramps take no colours. 4.1: 4.0 and 4.1, whose ramps have a ray tag of their own. 3.1.3:
pushable blocks some 200 times lighter, spawners that heed their fields, blackouts that are not
looked at."""
NEWEST: Final[Build] = "4.x"

_RELEASES: Final[dict[str, Build]] = {
    "4.4": "4.x",
    "4.3": "4.x",
    "4.2": "4.2",
    "4.1": "4.1",
    "4.0": "4.1",
    "3.1": "3.1.3",
}
SPAWNERS: Final = frozenset({"SpawnerTree", "SpawnerDispenserTall", "SpawnerContainerShort"})
_OPERATED: Final = frozenset({"SpawnerButton", "DataZone"})


def build_named(name: str) -> Build:
    """The rules of a build.

    Args:
        name: One of `BUILDS`, or the version of a build, such as 4.3.1, 4.1.0 or 4.2.

    Raises:
        ValueError: There is no such build.
    """
    for build in BUILDS:
        if name == build:
            return build
    release = re.match(r"(\d+\.\d+)(\.\d+)?$", name)
    if release is not None and release[1] in _RELEASES:
        return _RELEASES[release[1]]
    raise ValueError(
        f"there is no build {name!r}; there are: {', '.join(BUILDS)}, and their versions, such as "
        "4.3.1"
    )


@dataclass(frozen=True, slots=True)
class BuildSpecificField:
    """A field of an item that only some builds heed.

    Attributes:
        field: Its name in `Item`.
        objects: The objects that it is about; None for all.
        builds: The builds that heed it.
    """

    field: str
    objects: frozenset[str] | None
    builds: tuple[Build, ...]


_SINCE_4: Final[tuple[Build, ...]] = ("4.x", "4.2", "4.1")

HEEDED: Final = (
    *(
        BuildSpecificField(field, SPAWNERS, ("3.1.3",))
        for field in (
            "initial_values",
            "final_values",
            "spawn_counts",
            "spawn_colors",
            "times_between_spawns",
            "ripen_times",
        )
    ),
    # Their setters come after the spawner has begun to wait, in every build.
    BuildSpecificField("delays", SPAWNERS, ()),
    BuildSpecificField("door_delays", SPAWNERS, ()),
    BuildSpecificField("colors", frozenset({"CylinderTunnel"}), ("4.1", "3.1.3")),
    BuildSpecificField("colors", frozenset({"Wall", "Ramp"}), ("4.x", "4.1", "3.1.3")),
    BuildSpecificField("spawned_reward_size", None, _SINCE_4),
    BuildSpecificField("trigger_zone_id", None, _SINCE_4),
    BuildSpecificField("zone_visibility", None, _SINCE_4),
    BuildSpecificField("operations", _OPERATED, ("4.x",)),
)
"""Fields that a build lacks or reads in vain. (One that it lacks makes it refuse the file.)"""

MERGING: Final = _SINCE_4
"""Builds that know `mergeNextArena`."""


def unheeded_fields(item: Item, build: Build) -> list[BuildSpecificField]:
    """The fields that an item gives and that a build does not heed."""
    name = canonical_name(item.name)
    return [
        heeded
        for heeded in HEEDED
        if build not in heeded.builds
        and (heeded.objects is None or name in heeded.objects)
        and getattr(item, heeded.field) not in ((), None)
    ]


def heeded_item(item: Item, build: Build) -> Item:
    """An item without the fields that a build does not heed."""
    fields = unheeded_fields(item, build)
    if not fields:
        return item
    return item.model_copy(
        update={heeded.field: Item.model_fields[heeded.field].get_default() for heeded in fields}
    )


def config_in(config: ArenaConfig, build: Build) -> ArenaConfig:
    """A configuration as a build takes it: one that cannot merge arenas plays each by itself."""
    if build in MERGING or not any(a.merge_next_arena for a in config.arenas.values()):
        return config
    arenas = {
        number: arena.model_copy(update={"merge_next_arena": False})
        for number, arena in config.arenas.items()
    }
    return config.model_copy(update={"arenas": arenas})
