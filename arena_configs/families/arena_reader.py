"""Reads the arena of a family's file: the grammar of Animal-AI, in which numbers are formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from pydantic import BaseModel

from animalcat.arena_configs.catalogue import KINDS, canonical_name
from animalcat.arena_configs.families.language import (
    TRIAL,
    ArenaTemplate,
    Entry,
    Flag,
    Group,
    ItemTemplate,
    Number,
    Paint,
    RecordTemplate,
    Repeat,
    Template,
    Text,
)
from animalcat.arena_configs.families.palette import COLOURS
from animalcat.arena_configs.families.part_reader import Key, PartReader
from animalcat.arena_configs.families.scope import Formula, Place
from animalcat.arena_configs.loader import OPERATIONS, TAGS, fields_of
from animalcat.arena_configs.model import RGB, Arena, Item, Vector3
from animalcat.text.guesses import hint
from animalcat.text.marked_yaml import Node

ARENA_NAMES: Final = {"t": "timeLimit", "pass_mark": "passMark"}
_OWN_KEYS: Final = ("id", "if", "repeat")
_AXES: Final = ("x", "y", "z")
_CHANNELS: Final = ("r", "g", "b")
_TRIALS: Final = "trials"
UNUSED: Final = ("randomSeed", "mergeNextArena")
"""Fields of an arena that have no place in a family, whose arenas leave nothing to chance."""


class ArenaReader(PartReader):
    """Reads the arena, and the fields of items that a control changes."""

    def _arena(self, key: Key) -> ArenaTemplate:
        allowed = (*fields_of(Arena), *ARENA_NAMES, _TRIALS)
        self._tag(key.node, Arena, "arena")
        own = self.mapping(key.node, "arena", [name for name in allowed if name not in UNUSED])
        trials: Formula | None = None
        if _TRIALS in own:
            trials = self.formula(own.pop(_TRIALS).node, f"arena.{_TRIALS}")
        scope = () if trials is None else (TRIAL,)
        entries: tuple[Entry, ...] = ()
        if "items" in own:
            entries = self._entries(own.pop("items").node, "arena.items", scope)
        return ArenaTemplate(self._arena_fields(own, scope), entries, trials)

    def _arena_fields(self, own: Mapping[str, Key], scope: tuple[str, ...]) -> dict[str, Template]:
        known = fields_of(Arena)
        fields: dict[str, Template] = {}
        for written, entry in own.items():
            name = ARENA_NAMES.get(written, written)
            if name in fields:
                raise entry.place.error(f"{name} is there under another name")
            kind = known[name]
            fields[name] = self._value(entry.node, kind.kind, kind.many, entry.place.path, scope)
        return fields

    def _entries(self, node: Node, path: str, scope: tuple[str, ...]) -> tuple[Entry, ...]:
        return tuple(
            self._entry(entry, f"{path}[{k}]", scope)
            for k, entry in enumerate(self.sequence(node, path))
        )

    def _entry(self, node: Node, path: str, scope: tuple[str, ...]) -> Entry:
        self._tag(node, Item, path)
        grouped = "items" in self.mapping(node, path)
        allowed = ("at", "turn", "items") if grouped else tuple(fields_of(Item))
        own = self.mapping(node, path, (*_OWN_KEYS, *allowed))
        called = ""
        if "id" in own:
            called = self.scalar(own["id"].node, f"{path}.id")
            self.ids[called] = self.ids.get(called, False) or not grouped
        repeat = self._repeat(own["repeat"]) if "repeat" in own else None
        inside = (*scope, *repeat.names) if repeat else scope
        if called and not grouped:
            both = self.counted.get(called, inside)
            self.counted[called] = tuple(name for name in both if name in inside)
        when = self.formula(own["if"].node, f"{path}.if", inside) if "if" in own else None
        place = self.place(node, path)
        fields = {key: entry for key, entry in own.items() if key not in _OWN_KEYS}
        if grouped:
            return self._group(called, when, repeat, fields, place, inside)
        return ItemTemplate(called, when, repeat, self._item_fields(fields, place, inside), place)

    def _group(
        self,
        called: str,
        when: Formula | None,
        repeat: Repeat | None,
        own: Mapping[str, Key],
        place: Place,
        scope: tuple[str, ...],
    ) -> Group:
        zero = Number(Formula(0.0, "0", place))
        at = RecordTemplate(dict.fromkeys(_AXES, zero), place)
        if "at" in own:
            at = cast("RecordTemplate", self._vector(own["at"].node, f"{place.path}.at", scope))
        turn = Formula(0.0, "0", place)
        if "turn" in own:
            turn = self.formula(own["turn"].node, f"{place.path}.turn", scope)
        entries = self._entries(own["items"].node, f"{place.path}.items", scope)
        return Group(called, when, repeat, at, turn, entries, place)

    def _item_fields(
        self, own: Mapping[str, Key], place: Place, scope: tuple[str, ...]
    ) -> dict[str, Template]:
        known = fields_of(Item)
        if "name" not in own:
            raise place.error("this item has no name; a group of items has `items`")
        return {
            key: self._value(entry.node, known[key].kind, known[key].many, entry.place.path, scope)
            for key, entry in own.items()
        } | {"name": self._object(own["name"])}

    def _object(self, key: Key) -> Template:
        written = self.scalar(key.node, key.place.path)
        if not written.startswith("$") and canonical_name(written) is None:
            message = f"Animal-AI has no object `{written}`.{hint(written, KINDS)}"
            raise key.place.error(message, "unknown-object")
        return self._text(key.node, key.place.path)

    def _repeat(self, key: Key) -> Repeat:
        path = key.place.path
        if isinstance(key.node.value, str):
            return Repeat("times", (self.formula(key.node, path),))
        own = self.mapping(key.node, path, ("times", "ring", "grid", "as"))
        name = self.scalar(own.pop("as").node, f"{path}.as") if "as" in own else "i"
        if name in self.known or not name.isidentifier():
            raise key.place.error(f"{name!r} cannot be the name of the number of a copy")
        if len(own) != 1:
            raise key.place.error("expected a number, or one of times, ring and grid")
        kind, entry = next(iter(own.items()))
        where = f"{path}.{kind}"
        if kind == "grid":
            sides = self.sequence(entry.node, where)
            if len(sides) != 2:
                raise entry.place.error("expected [columns, rows]")
            counts = tuple(self.formula(side, f"{where}[{k}]") for k, side in enumerate(sides))
        else:
            counts = (self.formula(entry.node, where),)
        repeat = Repeat(cast("Literal['times', 'ring', 'grid']", kind), counts, name)
        if repeat.names.count(name) > 1:
            raise key.place.error(f"{name!r} has a meaning of its own in a {kind}; take another")
        return repeat

    # Values of the Animal-AI grammar

    def _tag(self, node: Node, model: type[BaseModel], path: str) -> None:
        wanted = TAGS[model]
        if node.tag not in ("", wanted):
            self.wrong(node, path, f"expected {wanted} or no tag, got {node.tag[:60]}")

    def _value(
        self, node: Node, kind: Any, many: bool, path: str, scope: tuple[str, ...]
    ) -> Template:
        if many:
            entries = self.sequence(node, path)
            return tuple(
                self._value(entry, kind, False, f"{path}[{k}]", scope)
                for k, entry in enumerate(entries)
            )
        if kind is Vector3:
            return self._vector(node, path, scope)
        if kind is RGB:
            return self._colour(node, path, scope)
        if kind is str:
            return self._text(node, path)
        if kind is bool:
            return Flag(self.truth(node, path))
        if kind in (int, float):
            return Number(self.formula(node, path, scope), kind is int)
        if kind is Item:
            self._tag(node, Item, path)
            own = self.mapping(node, path, tuple(fields_of(Item)))
            place = self.place(node, path)
            return RecordTemplate(self._item_fields(own, place, scope), place)
        return self._operation(node, path, scope)

    def _vector(self, node: Node, path: str, scope: tuple[str, ...]) -> Template:
        """A position or size: x, y and z; [x, z] on the floor; one number for a cube."""
        self._tag(node, Vector3, path)
        place = self.place(node, path)
        zero = Number(Formula(0.0, "0", place))
        if isinstance(node.value, str):
            side = Number(self.formula(node, path, scope), digits=3)
            return RecordTemplate(dict.fromkeys(_AXES, side), place)
        if any(isinstance(entry, Node) for entry in node.value):
            entries = self.sequence(node, path)
            axes = {2: "xz", 3: "xyz"}.get(len(entries))
            if axes is None:
                self.wrong(node, path, f"expected [x, z] or [x, y, z], got {len(entries)} numbers")
            given = dict(zip(axes, entries, strict=True))
        else:
            given = {key: entry.node for key, entry in self.mapping(node, path, _AXES).items()}
        return RecordTemplate(
            {
                axis: Number(self.formula(given[axis], f"{path}.{axis}", scope), digits=3)
                if axis in given
                else zero
                for axis in _AXES
            },
            place,
        )

    def _colour(self, node: Node, path: str, scope: tuple[str, ...]) -> Template:
        self._tag(node, RGB, path)
        if isinstance(node.value, str):
            written = node.value
            if written.startswith("$"):
                self._text(node, path)
            elif written not in COLOURS and written != "random":
                message = f"there is no colour {written!r}.{hint(written, COLOURS)}"
                self.wrong(node, path, message)
            return Paint(written, self.place(node, path))
        if any(isinstance(entry, Node) for entry in node.value):
            entries = self.sequence(node, path)
            if len(entries) != 3:
                self.wrong(node, path, f"expected [r, g, b], got {len(entries)} numbers")
            given = dict(zip(_CHANNELS, entries, strict=True))
        else:
            given = {key: entry.node for key, entry in self.mapping(node, path, _CHANNELS).items()}
        return RecordTemplate(
            {
                channel: Number(self.formula(entry, f"{path}.{channel}", scope), digits=3)
                for channel, entry in given.items()
            },
            self.place(node, path),
        )

    def _text(self, node: Node, path: str) -> Text:
        written = self.scalar(node, path)
        if written.startswith("$") and written[1:] not in self.known:
            message = f"there is no parameter {written[1:]!r}.{hint(written[1:], self.known)}"
            raise self.place(node, path).error(message, "unknown-name")
        return Text(written, self.place(node, path))

    def _operation(self, node: Node, path: str, scope: tuple[str, ...]) -> Template:
        model = OPERATIONS.get(node.tag)
        if model is None:
            known = ", ".join(sorted(OPERATIONS))
            self.wrong(node, path, f"expected an operation's tag, one of {known}")
        known = fields_of(model)
        own = self.mapping(node, path, tuple(known)) if known and node.value else {}
        fields = {
            key: self._value(entry.node, known[key].kind, known[key].many, entry.place.path, scope)
            for key, entry in own.items()
        }
        return RecordTemplate(fields, self.place(node, path), node.tag[1:])
