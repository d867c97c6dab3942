"""Builds a family's arena for given values of its parameters."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast
from zlib import crc32

import numpy as np
from pydantic import ValidationError

from animalcat.arena_configs.catalogue import KINDS, canonical_name
from animalcat.arena_configs.families.language import (
    MIRROR,
    PARADIGM,
    TRIAL,
    Control,
    Entry,
    Family,
    Flag,
    Group,
    ItemTemplate,
    Number,
    Paint,
    Paradigm,
    RecordTemplate,
    Repeat,
    Template,
    Text,
)
from animalcat.arena_configs.families.palette import COLOURS, DEFAULTS
from animalcat.arena_configs.families.ranges import Constant, EmptyRangeError
from animalcat.arena_configs.families.scope import Place, Scope, Value
from animalcat.arena_configs.geometry import rotate
from animalcat.arena_configs.model import ARENA_SIDE, Arena, Item
from animalcat.arena_configs.placement import MAX_OBJECTS
from animalcat.arena_configs.sequence import of_parts

MOST_TRIALS: Final = 20
"""Most trials of an episode."""


class UnfitError(ValueError):
    """Values of parameters for which there is no arena; others are drawn in their place."""


class _Frame(NamedTuple):
    """Where a group's own point is, and by how many degrees it is turned."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    turn: float = 0.0

    def inside(self, x: float, y: float, z: float, turn: float) -> _Frame:
        """The frame of a group within this one."""
        dx, dz = rotate(x, z, self.turn)
        return _Frame(self.x + dx, self.y + y, self.z + dz, self.turn + turn)


_FLOOR: Final = _Frame()
"""The frame of what is in no group."""
_COUNTED: Final = ("i", "angle", "column", "row")
_HIDDEN: Final = "/"
"""Name, which no formula can use, of the numbers of copies that `_COUNTED` does not tell."""


def parameter_values(
    family: Family,
    paradigm: Paradigm,
    shares: Mapping[str, float],
    given: Mapping[str, Value] | None = None,
) -> dict[str, Value]:
    """Work out parameters and derived values.

    Args:
        family: The family.
        paradigm: The paradigm.
        shares: By parameter, the quantile of its value: the share of all draws below it.
        given: Values that are set, whatever their range.

    Raises:
        UnfitError: A range has no value.
        ArenaError: A formula has none.
    """
    ranges = family.ranges_of(paradigm)
    scope: dict[str, Value] = words(family, paradigm)
    values: dict[str, Value] = {}
    for name in paradigm.order:
        if given is not None and name in given:
            value = given[name]
        else:
            try:
                value = ranges[name].value(shares.get(name, 0.0), scope)
            except EmptyRangeError as error:
                raise UnfitError(f"{name}: {error}") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise UnfitError(f"{name} is not finite")
        if isinstance(value, float) and not isinstance(ranges[name], Constant):
            value = round(value, 6)
        scope[name] = values[name] = value
    return {name: values[name] for name in ranges}


def apply_control(
    family: Family,
    paradigm: Paradigm,
    control: Control,
    values: Mapping[str, Value],
    given: Collection[str] = (),
) -> dict[str, Value]:
    """Parameters and derived values with what a control sets; other parameters stay as they are.

    A derived value stays as well where it was set, or is drawn instead of worked out.

    Args:
        family: The family.
        paradigm: The paradigm.
        control: The control.
        values: Parameters and derived values without it, which its formulas may name.
        given: Names of those that were set.

    Raises:
        ArenaError: A formula has no value.
    """
    scope = {**words(family, paradigm), **values}
    changed = {name: formula.value(scope) for name, formula in control.parameters.items()}
    kept = {
        name: values[name]
        for name, drawn_from in family.ranges_of(paradigm).items()
        if name in family.parameters or name in given or not isinstance(drawn_from, Constant)
    }
    return parameter_values(family, paradigm, {}, {**kept, **changed})


def words(family: Family, paradigm: Paradigm) -> dict[str, Value]:
    """Names whose values are the same in all arenas of a paradigm."""
    own: dict[str, Value] = {word: word for word in family.words}
    return {**own, MIRROR: 1.0, PARADIGM: paradigm.name}


def scope_of(
    family: Family, paradigm: Paradigm, values: Mapping[str, Value], mirrored: bool = False
) -> Scope:
    """All that formulas may name.

    Args:
        family: The family.
        paradigm: The paradigm.
        values: Parameters and derived values.
        mirrored: Whether the arena is a mirror image.
    """
    return {**words(family, paradigm), **values, MIRROR: -1.0 if mirrored else 1.0}


def build_arena(
    family: Family, scope: Scope, control: Control | None = None, seed: int = 0
) -> Arena:
    """Build a family's arena.

    Args:
        family: The family.
        scope: A value for every name.
        control: A control, whose changes are made.
        seed: Seed of colours that are drawn at random.

    Raises:
        UnfitError: Something would stand outside the arena.
        ArenaError: A formula has no value, or a value has no place in an arena.
    """
    return _ArenaBuilder(family, scope, control, seed).arena()


@dataclass(frozen=True, slots=True)
class _ArenaBuilder:
    family: Family
    scope: Scope
    control: Control | None
    seed: int

    def arena(self) -> Arena:
        trials = self.family.arena.trials
        if trials is None:
            return self._arena(self.scope)
        number = trials.number(self.scope)
        if number != round(number) or not 1 <= number <= MOST_TRIALS:
            raise trials.place.error(
                f"`{trials.text}` is {number:g}; expected a whole number of trials from 1 to "
                f"{MOST_TRIALS}"
            )
        parts = [self._arena({**self.scope, TRIAL: float(k)}) for k in range(round(number))]
        merging = [part.model_copy(update={"merge_next_arena": True}) for part in parts[:-1]]
        return of_parts([*merging, parts[-1]])

    def _arena(self, scope: Scope) -> Arena:
        template = self.family.arena
        fields = {**template.fields, **(self.control.fields if self.control else {})}
        values = {name: self._plain(part, scope) for name, part in fields.items()}
        items: list[Item] = []
        for item in self._items(template.entries, scope, _FLOOR):
            items.append(item)
            if len(items) > MAX_OBJECTS:
                place = template.entries[0].place
                raise place.error(f"more than {MAX_OBJECTS} items; repeat fewer", "no-room")
        return Arena.model_validate(values | {"items": tuple(items)})

    def _items(self, entries: Sequence[Entry], scope: Scope, frame: _Frame) -> Iterator[Item]:
        for entry in entries:
            if entry.id and self.control and entry.id in self.control.remove:
                continue
            for own in _copies(entry.repeat, scope):
                if entry.when is not None and not entry.when.holds(own):
                    continue
                if isinstance(entry, Group):
                    at = self._plain(entry.at, own)
                    turn = entry.turn.number(own)
                    inner = frame.inside(at["x"], at["y"], at["z"], turn)
                    yield from self._items(entry.entries, own, inner)
                else:
                    yield self._item(entry, own, frame)

    def _item(self, entry: ItemTemplate, scope: Scope, frame: _Frame) -> Item:
        fields = entry.fields
        if self.control and entry.id in self.control.items:
            fields = {**fields, **self.control.items[entry.id]}
        return self._make_item(fields, entry.place, scope, frame)

    def _make_item(
        self, fields: Mapping[str, Template], place: Place, scope: Scope, frame: _Frame
    ) -> Item:
        values = {name: self._plain(template, scope, frame) for name, template in fields.items()}
        name = canonical_name(values["name"])
        if name is None:
            raise place.error(f"Animal-AI has no object `{values['name']}`", "unknown-object")
        values["name"] = name
        spots = [
            _move_parameters(position, frame, place) for position in values.get("positions", ())
        ]
        values["positions"] = spots
        if "rewardSpawnPos" in values:
            values["rewardSpawnPos"] = _spawn_place(values["rewardSpawnPos"], frame, place)
        # Without a rotation, most objects would be turned at random.
        lists = [cast("list[Any]", value) for value in values.values() if isinstance(value, list)]
        copies = max(1, *map(len, lists))
        given = [*values.get("rotations", ())]
        given += [0.0] * (copies - len(given))
        values["rotations"] = [_angle(angle + frame.turn) for angle in given]
        if name in DEFAULTS and not values.get("colors"):
            r, g, b = COLOURS[DEFAULTS[name]]
            values["colors"] = [{"r": r, "g": g, "b": b}] * copies
        elif values.get("colors") == [] and KINDS[name].color_rule == "random":
            raise place.error("colors is empty")
        try:
            return Item.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise place.error(f"{where}: {first['msg']}") from None

    def _plain(self, template: Template, scope: Scope, frame: _Frame = _FLOOR) -> Any:
        """A template's value as plain data; what an operation spawns is in the group's frame."""
        match template:
            case Number(formula, whole, digits):
                value = formula.number(scope)
                return math.floor(value + 0.5) if whole else round(value, digits) + 0.0
            case Text():
                return self._word(template)
            case Flag(value):
                return value
            case Paint():
                return self._paint(template, scope)
            case RecordTemplate(fields, place, "") if "name" in fields:
                # An item that an operation spawns.
                return self._make_item(fields, place, scope, frame)
            case RecordTemplate(fields, _, operation):
                values = {name: self._plain(part, scope, frame) for name, part in fields.items()}
                return {"kind": operation, **values} if operation else values
            case _:
                return [self._plain(part, scope, frame) for part in template]

    def _word(self, template: Text | Paint) -> str:
        if not template.text.startswith("$"):
            return template.text
        value = self.scope[template.text[1:]]
        return value if isinstance(value, str) else f"{value:g}"

    def _paint(self, template: Paint, scope: Scope) -> dict[str, float]:
        name = self._word(template)
        if name == "random":
            key = f"{template.place.path}/{[scope.get(counter) for counter in _COUNTED]}"
            key += str(scope.get(_HIDDEN, ""))
            rng = np.random.default_rng([self.seed, crc32(key.encode())])
            r, g, b = (int(channel) for channel in rng.integers(0, 256, 3))
        elif name in COLOURS:
            r, g, b = COLOURS[name]
        else:
            known = ", ".join(COLOURS)
            raise template.place.error(f"there is no colour {name!r}; there are {known}")
        return {"r": r, "g": g, "b": b}


def _copies(repeat: Repeat | None, scope: Scope) -> Iterator[Scope]:
    """The scope of each copy of an item or group."""
    if repeat is None:
        yield scope
        return
    counts = [formula.number(scope) for formula in repeat.counts]
    for count, formula in zip(counts, repeat.counts, strict=True):
        if count < 0 or abs(count - round(count)) > 1e-6 or count > MAX_OBJECTS:
            raise formula.place.error(f"`{formula.text}` is {count:g}, not how often to repeat")
    whole = [round(count) for count in counts]
    for i in range(math.prod(whole)):
        more: dict[str, Value] = {repeat.name: float(i)}
        if repeat.name != "i" or "i" in scope:
            number = i if repeat.name != "i" else scope["i"]
            more[_HIDDEN] = f"{scope.get(_HIDDEN, '')}/{number}"
        if repeat.kind == "ring":
            more["angle"] = 360.0 * i / whole[0]
        elif repeat.kind == "grid":
            more |= {"column": float(i % whole[0]), "row": float(i // whole[0])}
        yield {**scope, **more}


def _move_parameters(
    position: Mapping[str, float], frame: _Frame, place: Place
) -> dict[str, float]:
    dx, dz = rotate(position["x"], position["z"], frame.turn)
    x, y, z = frame.x + dx, frame.y + position["y"], frame.z + dz
    moved = {"x": _round(x), "y": _round(y), "z": _round(z)}
    if not (0.0 <= moved["x"] <= ARENA_SIDE and 0.0 <= moved["z"] <= ARENA_SIDE):
        raise UnfitError(f"{place.path} stands outside the arena, at ({x:.4g}, {z:.4g})")
    if moved["y"] < 0.0:
        raise UnfitError(f"{place.path} stands {-y:.4g} m under the floor")
    return moved


def _spawn_place(spot: dict[str, float], frame: _Frame, place: Place) -> dict[str, float]:
    """Where a button's food is: anywhere if all is 0; outside of groups negative is random."""
    return (
        spot if frame == _FLOOR or not any(spot.values()) else _move_parameters(spot, frame, place)
    )


def _angle(degrees: float) -> float:
    return _round(_round(degrees) % 360.0) % 360.0


def _round(value: float) -> float:
    """Round to a millimetre or a thousandth of a degree, so that files are easy to read."""
    return round(value, 3) + 0.0
