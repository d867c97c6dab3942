"""Objects that act when the agent comes to them: buttons and data zones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from animalcat.arena_configs.geometry import rotate
from animalcat.envs.sim.operations import Effect, Host, button_operations, effect
from animalcat.envs.sim.rules import LONGEST_WAIT
from animalcat.envs.sim.zones import Zone
from animalcat.envs.types import PHYSICS_STEP

if TYPE_CHECKING:
    from animalcat.arena_configs.placement import PlacedObject
    from animalcat.envs.sim.vector import Vector

_FACE_CENTER: Final = (0.3, 0.59, 0.0)
_FACE_HALF: Final = (0.05, 0.25, 0.29)
"""Metres, in the pillar's frame: the trigger on the button's face (transforms of the prefab)."""
_DURATION: Final = 1.0
"""Seconds for which a button moves, and resets, when its item does not say."""


class Button:
    """A button: a press starts when the agent comes to its face; it moves, acts, then resets.

    Presses are ignored while it moves or resets; then the agent must leave it and come again
    (inferred: the face is a trigger, which only reports entering).
    """

    def __init__(self, thing: PlacedObject, host: Host) -> None:
        """Wait for the first press."""
        x, z = rotate(_FACE_CENTER[0], _FACE_CENTER[2], thing.yaw)
        px, py, pz = thing.position
        self._face = Zone((px + x, py + _FACE_CENTER[1], pz + z), _FACE_HALF, thing.yaw, False)
        self._effects = [
            effect(operation, host, thing) for operation in button_operations(thing.item)
        ]
        self._move = _steps(thing.item.move_durations)
        self._reset = _steps(thing.item.reset_durations)
        self._busy = 0
        self._touched = False

    def feel(self, position: Vector) -> None:
        """Act at the end of a physics step that the agent began at this position."""
        touched = self._face.holds(position)
        if self._busy:
            self._busy -= 1
            if self._busy == self._reset:
                self._act()
        elif touched and not self._touched:
            self._busy = self._move + self._reset
            if not self._move:
                self._act()
        self._touched = touched

    def _act(self) -> None:
        for active in self._effects:
            active.execute()


class DataZone:
    """Executes its operations when the agent enters, and completes them when it leaves."""

    def __init__(self, thing: PlacedObject, host: Host) -> None:
        """Wait for the agent."""
        half = (thing.size.x / 2, thing.size.y / 2, thing.size.z / 2)
        self._zone = Zone(thing.position, half, thing.yaw, False)
        self._thing, self._host = thing, host
        self._effects: list[Effect] = [
            effect(operation, host, thing) for operation in thing.item.operations
        ]
        self._inside = False

    def feel(self, position: Vector) -> None:
        """Act at the end of a physics step that the agent began at this position."""
        inside = self._zone.holds(position)
        if inside is not self._inside:
            self._host.journal.cross(self._thing, entered=inside)
        for active in self._effects:
            if inside and not self._inside:
                active.execute()
            if inside:
                active.step()
            elif self._inside:
                active.complete()
        self._inside = inside


def _steps(durations: tuple[float, ...]) -> int:
    seconds = durations[0] if durations else _DURATION
    return round(min(max(0.0, seconds), LONGEST_WAIT) / PHYSICS_STEP)
