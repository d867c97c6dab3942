"""Reads a family's file; whatever is wrong in it is an error that names line and key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Literal, NoReturn, cast

from pydantic import BaseModel

from animalcat.arena_configs import nodes
from animalcat.arena_configs.catalogue import KINDS, canonical_name
from animalcat.arena_configs.families.language import (
    MIRROR,
    PARADIGM,
    ArenaTemplate,
    Claim,
    Control,
    Entry,
    Family,
    Flag,
    Group,
    ItemTemplate,
    Number,
    Paint,
    Paradigm,
    Record,
    Repeat,
    Template,
    Text,
    Variants,
)
from animalcat.arena_configs.families.palette import COLOURS
from animalcat.arena_configs.families.ranges import Between, Choice, Fixed, Normal, Range
from animalcat.arena_configs.families.scope import Formula, Place, Value
from animalcat.arena_configs.features import FEATURES
from animalcat.arena_configs.loader import OPERATIONS, TAGS, fields_of
from animalcat.arena_configs.model import RGB, Arena, Item, Vector3
from animalcat.arena_configs.nodes import Node
from animalcat.formulas import FormulaError, names, parse_formula

_TOP: Final = (
    "name",
    "description",
    "nodes",
    "parameters",
    "derived",
    "constraints",
    "variants",
    "paradigms",
    "arena",
    "controls",
    "claims",
    "allow",
)
_RANGES: Final = ("uniform", "log_uniform", "integers", "normal", "choice")
_ARENA_NAMES: Final = {"t": "timeLimit", "pass_mark": "passMark"}
_OWN_KEYS: Final = ("id", "if", "repeat")
_AXES: Final = ("x", "y", "z")
_CHANNELS: Final = ("r", "g", "b")
_UNUSED: Final = ("randomSeed", "mergeNextArena")
"""Fields of an arena that have no place in a family, whose arenas leave nothing to chance."""


def read_family(text: str, name: str) -> Family:
    """Read a family.

    Args:
        text: YAML.
        name: Name of the file, for errors.

    Raises:
        ArenaError: It is not YAML, or not a family; the message says line and key.
    """
    root, more = nodes.parse_yaml(text, name)
    if root is None or not isinstance(root.value, list):
        raise nodes.failure(name, None, "bad-family", "expected `name:`, `arena:` and more")
    if more is not None:
        raise nodes.failure(name, more, "bad-family", "a second YAML document starts here")
    return _Reader(name).family(root)


@dataclass(frozen=True, slots=True)
class _Key:
    """A key's value and its place."""

    node: Node
    place: Place


@dataclass
class _Reader:
    file: str
    known: set[str] = field(default_factory=set[str])
    """Names that formulas may use."""
    words: set[str] = field(default_factory=set[str])
    """Words that options and paradigms are."""
    ids: dict[str, bool] = field(default_factory=dict[str, bool])
    """Ids, and whether they are of items; of groups alone otherwise."""

    # Plain parts of YAML

    def place(self, node: Node, path: str) -> Place:
        return Place(self.file, node.line, path)

    def wrong(self, node: Node, path: str, message: str) -> NoReturn:
        raise self.place(node, path).error(message)

    def mapping(self, node: Node, path: str, allowed: Sequence[str] = ()) -> dict[str, _Key]:
        """Values by key; a key that is there twice, or not allowed, is an error."""
        pairs = node.value if isinstance(node.value, list) else []
        if not isinstance(node.value, list) or any(isinstance(one, Node) for one in pairs):
            self.wrong(node, path, "expected keys and values")
        found: dict[str, _Key] = {}
        for key, value in cast("list[tuple[Node, Node]]", pairs):
            written = key.value if isinstance(key.value, str) else "?"
            where = f"{path}.{written}" if path else written
            if allowed and written not in allowed:
                self.wrong(key, where, f"there is no such key.{_hint(written, allowed)}")
            if written in found:
                self.wrong(key, where, f"given already in line {found[written].place.line}")
            found[written] = _Key(value, Place(self.file, key.line, where))
        return found

    def sequence(self, node: Node, path: str) -> list[Node]:
        entries = node.value if isinstance(node.value, list) else []
        if not isinstance(node.value, list) or any(isinstance(one, tuple) for one in entries):
            self.wrong(node, path, "expected a list")
        return cast("list[Node]", entries)

    def scalar(self, node: Node, path: str) -> str:
        if not isinstance(node.value, str):
            self.wrong(node, path, "expected one value, got several")
        if node.tag not in ("", "!"):
            self.wrong(node, path, f"unexpected tag {node.tag[:60]}")
        return node.value

    def text(self, node: Node, path: str) -> str:
        return " ".join(self.scalar(node, path).split())

    def texts(self, node: Node, path: str) -> tuple[str, ...]:
        """A list of texts, or one text."""
        if isinstance(node.value, str):
            return (node.value,)
        return tuple(
            self.scalar(one, f"{path}[{k}]") for k, one in enumerate(self.sequence(node, path))
        )

    def truth(self, node: Node, path: str) -> bool:
        written = self.scalar(node, path).lower()
        if written not in ("true", "false"):
            self.wrong(node, path, f"expected true or false, got `{written}`")
        return written == "true"

    # Formulas

    def formula(self, node: Node, path: str, more: Iterable[str] = ()) -> Formula:
        """A formula whose names are all known.

        Args:
            node: Where it is written.
            path: The keys that lead there.
            more: Names that are known only here.
        """
        written = self.scalar(node, path)
        place = self.place(node, path)
        try:
            expression = parse_formula(written, deciding=True)
        except FormulaError as error:
            raise place.error(str(error), "bad-formula") from None
        known = {*self.known, *more}
        for name in names(expression):
            if name not in known and name not in self.words:
                message = f"`{written}`: unknown name {name!r}.{_hint(name, known | self.words)}"
                raise place.error(message, "unknown-name")
        return Formula(expression, written.strip(), place)

    def words_in(self, node: Node) -> set[str]:
        """The words among the options of a choice."""
        found = set[str]()
        for pair in node.value if isinstance(node.value, list) else ():
            if isinstance(pair, tuple) and pair[0].value == "choice":
                options = pair[1].value if isinstance(pair[1].value, list) else []
                found |= {
                    option.value
                    for option in options
                    if isinstance(option, Node)
                    and isinstance(option.value, str)
                    and _number(option.value) is None
                }
        return found

    def range(self, node: Node, path: str) -> Range:
        """What a parameter is drawn from."""
        if isinstance(node.value, str):
            return Fixed(self.formula(node, path))
        keys = self.mapping(node, path)
        kinds = [key for key in keys if key in _RANGES]
        if len(kinds) != 1:
            message = f"expected a number, a formula or one of {', '.join(_RANGES)}"
            self.wrong(node, path, message)
        kind, where = kinds[0], f"{path}.{kinds[0]}"
        more = {"choice": ("weights",), "normal": ("between",)}.get(kind, ())
        self.mapping(node, path, (kind, *more))
        entries = self.sequence(keys[kind].node, where)
        if kind == "choice":
            return self._choice(keys, entries, path)
        if len(entries) != 2:
            self.wrong(keys[kind].node, where, f"expected 2 numbers, got {len(entries)}")
        low, high = (self.formula(one, f"{where}[{k}]") for k, one in enumerate(entries))
        if kind == "normal":
            if "between" not in keys:
                self.wrong(node, path, "a normal distribution needs `between: [least, greatest]`")
            ends = self.sequence(keys["between"].node, f"{path}.between")
            if len(ends) != 2:
                self.wrong(keys["between"].node, f"{path}.between", "expected 2 numbers")
            least, most = (self.formula(one, f"{path}.between[{k}]") for k, one in enumerate(ends))
            self._ordered(least, most)
            return Normal(low, high, least, most)
        self._ordered(low, high)
        if kind == "log_uniform" and isinstance(low.expression, float) and low.expression <= 0:
            raise low.place.error(f"{low.text} is not above 0, so it has no logarithm")
        return Between(low, high, cast("Any", kind))

    def _ordered(self, low: Formula, high: Formula) -> None:
        ends = low.expression, high.expression
        if isinstance(ends[0], float) and isinstance(ends[1], float) and ends[0] > ends[1]:
            raise low.place.error(f"the low end {low.text} is above the high end {high.text}")

    def _choice(self, keys: Mapping[str, _Key], entries: list[Node], path: str) -> Choice:
        where = f"{path}.choice"
        if not entries:
            self.wrong(keys["choice"].node, where, "there is nothing to choose from")
        options: list[Value] = []
        for k, one in enumerate(entries):
            written = self.scalar(one, f"{where}[{k}]")
            number = _number(written)
            options.append(written if number is None else number)
        weights = [1.0] * len(options)
        if "weights" in keys:
            given = self.sequence(keys["weights"].node, f"{path}.weights")
            numbers = [_number(self.scalar(one, f"{path}.weights")) for one in given]
            weights = [number for number in numbers if number is not None and number >= 0.0]
            if len(weights) != len(options) or sum(weights) <= 0.0:
                message = f"expected {len(options)} weights of at least 0, some above 0"
                self.wrong(keys["weights"].node, f"{path}.weights", message)
        return Choice(tuple(options), tuple(weights))

    # The family

    def family(self, root: Node) -> Family:
        keys = self.mapping(root, "", _TOP)
        for needed in ("name", "description", "arena"):
            if needed not in keys:
                self.wrong(root, needed, "it is missing")
        name = self.scalar(keys["name"].node, "name")
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            self.wrong(keys["name"].node, "name", f"{name!r} is not letters, digits and hyphens")
        self._names(keys)
        parameters = {
            key: self.range(one.node, one.place.path)
            for key, one in self._part(keys, "parameters").items()
        }
        derived = {
            key: self.formula(one.node, one.place.path)
            for key, one in self._part(keys, "derived").items()
        }
        variants, varied = self._variants(keys)
        both = {*parameters} & {*derived} | {*parameters, *derived} & {*varied}
        for twice in sorted(both):
            part = "derived" if twice in derived else "variants.parameters"
            self.wrong(root, f"{part}.{twice}", "there is a parameter of this name already")
        parameters |= varied
        constraints = tuple(
            self.formula(one, f"constraints[{k}]")
            for k, one in enumerate(self._list(keys, "constraints"))
        )
        ranges = {**parameters, **{key: Fixed(one) for key, one in derived.items()}}
        paradigms = self._paradigms(keys, ranges)
        for paradigm in paradigms:
            self._unvaried(variants, {**ranges, **paradigm.parameters})
        arena = self._arena(keys["arena"])
        return Family(
            name=name,
            description=self.text(keys["description"].node, "description"),
            nodes={
                layout: self.texts(one.node, one.place.path)
                for layout, one in self._part(keys, "nodes").items()
            },
            parameters=parameters,
            derived=derived,
            constraints=constraints,
            variants=variants,
            paradigms=paradigms,
            arena=arena,
            controls={
                key: self._control(key, one, ranges, [paradigm.name for paradigm in paradigms])
                for key, one in self._part(keys, "controls").items()
            },
            claims={
                demand: claim
                for demand, claim in (
                    self._claims(keys["claims"]) if "claims" in keys else {}
                ).items()
                if claim is not None
            },
            words=frozenset(self.words),
            allow=self.texts(keys["allow"].node, "allow") if "allow" in keys else (),
        )

    def _part(self, keys: Mapping[str, _Key], name: str) -> dict[str, _Key]:
        return self.mapping(keys[name].node, name) if name in keys else {}

    def _list(self, keys: Mapping[str, _Key], name: str) -> list[Node]:
        return self.sequence(keys[name].node, name) if name in keys else []

    def _names(self, keys: Mapping[str, _Key]) -> None:
        """Collect what formulas may name, before any formula is read."""
        given: dict[str, _Key] = {}
        variants = self._part(keys, "variants")
        varied = (
            self.mapping(variants["parameters"].node, "variants.parameters")
            if "parameters" in variants
            else {}
        )
        for part in (self._part(keys, "parameters"), self._part(keys, "derived"), varied):
            for name, one in part.items():
                if not name.isidentifier():
                    message = f"{name!r} is not a name: use letters, digits and underscores"
                    raise one.place.error(message)
                if name in (MIRROR, PARADIGM):
                    raise one.place.error(f"{name!r} has a meaning of its own; take another name")
                given[name] = one
        ranges = list(given.values())
        for k, paradigm in enumerate(self._list(keys, "paradigms")):
            own = self.mapping(paradigm, f"paradigms[{k}]")
            if "name" in own:
                self.words.add(self.scalar(own["name"].node, own["name"].place.path))
            if "parameters" in own:
                ranges += self.mapping(
                    own["parameters"].node, f"paradigms[{k}].parameters"
                ).values()
        for one in ranges:
            self.words |= self.words_in(one.node)
        for name in sorted(self.words & given.keys()):
            raise given[name].place.error(f"{name!r} is an option or a paradigm as well")
        self.known = {*given, MIRROR, PARADIGM}

    def _variants(self, keys: Mapping[str, _Key]) -> tuple[Variants, dict[str, Range]]:
        if "variants" not in keys:
            return Variants(), {}
        allowed = ("mirror", "turns", "each", "parameters")
        own = self.mapping(keys["variants"].node, "variants", allowed)
        ranges = {
            key: self.range(one.node, one.place.path)
            for key, one in (
                self.mapping(own["parameters"].node, "variants.parameters")
                if "parameters" in own
                else {}
            ).items()
        }
        each = 1
        if "each" in own:
            number = _number(self.scalar(own["each"].node, "variants.each"))
            if number is None or number < 1 or number != int(number):
                self.wrong(own["each"].node, "variants.each", "expected a whole number from 1")
            each = int(number)
        mirror, turns = (
            key in own and self.truth(own[key].node, f"variants.{key}")
            for key in ("mirror", "turns")
        )
        return Variants(mirror, turns, each, tuple(ranges)), ranges

    def _unvaried(self, variants: Variants, ranges: Mapping[str, Range]) -> None:
        """Refuse parameters that depend on what differs between variants of one draw."""
        for name, one in ranges.items():
            for formula in one.formulas:
                loose = {*names(formula.expression)} & {*variants.parameters}
                if loose and name not in variants.parameters:
                    message = f"{name} depends on {', '.join(loose)}, which is for variants only"
                    raise formula.place.error(message)

    def _paradigms(
        self, keys: Mapping[str, _Key], ranges: Mapping[str, Range]
    ) -> tuple[Paradigm, ...]:
        listed = self._list(keys, "paradigms")
        if not listed:
            name = self.scalar(keys["name"].node, "name")
            return (Paradigm(name, 1.0, {}, {}, self._order(ranges)),)
        found: list[Paradigm] = []
        for k, node in enumerate(listed):
            path = f"paradigms[{k}]"
            own = self.mapping(node, path, ("name", "weight", "parameters", "claims"))
            if "name" not in own:
                self.wrong(node, path, "it has no name")
            name = self.scalar(own["name"].node, f"{path}.name")
            if name in (one.name for one in found):
                self.wrong(own["name"].node, f"{path}.name", f"{name!r} is there already")
            weight = 1.0
            if "weight" in own:
                written = self.scalar(own["weight"].node, f"{path}.weight")
                number = _number(written)
                if number is None or number <= 0.0:
                    message = f"expected a number above 0, got `{written}`"
                    self.wrong(own["weight"].node, f"{path}.weight", message)
                weight = number
            changed: dict[str, Range] = {}
            if "parameters" in own:
                for key, one in self.mapping(own["parameters"].node, f"{path}.parameters").items():
                    self._is_parameter(key, one, ranges)
                    changed[key] = self.range(one.node, one.place.path)
            claims = self._claims(own["claims"]) if "claims" in own else {}
            order = self._order({**ranges, **changed})
            found.append(Paradigm(name, weight, changed, claims, order))
        return tuple(found)

    def _is_parameter(self, name: str, one: _Key, ranges: Mapping[str, Range]) -> None:
        if name not in ranges:
            message = f"there is no parameter {name!r}.{_hint(name, ranges)}"
            raise one.place.error(message, "unknown-name")

    def _order(self, ranges: Mapping[str, Range]) -> tuple[str, ...]:
        """Names in an order in which each comes after those that it depends on."""
        graph = {
            name: [
                other
                for formula in one.formulas
                for other in names(formula.expression)
                if other in ranges
            ]
            for name, one in ranges.items()
        }
        try:
            return tuple(TopologicalSorter(graph).static_order())
        except CycleError as error:
            around = cast("list[str]", error.args[1])
            formula = ranges[around[0]].formulas[0]
            cycle = " -> ".join(reversed(around))
            message = f"these depend on each other: {cycle}"
            raise formula.place.error(message, "cycle") from None

    # The arena

    def _arena(self, key: _Key) -> ArenaTemplate:
        allowed = (*fields_of(Arena), *_ARENA_NAMES)
        self._tag(key.node, Arena, "arena")
        own = self.mapping(key.node, "arena", [one for one in allowed if one not in _UNUSED])
        entries: tuple[Entry, ...] = ()
        if "items" in own:
            entries = self._entries(own.pop("items").node, "arena.items", ())
        return ArenaTemplate(self._arena_fields(own, ()), entries)

    def _arena_fields(self, own: Mapping[str, _Key], scope: tuple[str, ...]) -> dict[str, Template]:
        known = fields_of(Arena)
        found: dict[str, Template] = {}
        for written, one in own.items():
            name = _ARENA_NAMES.get(written, written)
            if name in found:
                raise one.place.error(f"{name} is there under another name")
            kind = known[name]
            found[name] = self._value(one.node, kind.kind, kind.many, one.place.path, scope)
        return found

    def _entries(self, node: Node, path: str, scope: tuple[str, ...]) -> tuple[Entry, ...]:
        return tuple(
            self._entry(one, f"{path}[{k}]", scope)
            for k, one in enumerate(self.sequence(node, path))
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
        when = self.formula(own["if"].node, f"{path}.if", inside) if "if" in own else None
        place = self.place(node, path)
        fields = {key: one for key, one in own.items() if key not in _OWN_KEYS}
        if grouped:
            return self._group(called, when, repeat, fields, place, inside)
        return ItemTemplate(called, when, repeat, self._item_fields(fields, place, inside), place)

    def _group(
        self,
        called: str,
        when: Formula | None,
        repeat: Repeat | None,
        own: Mapping[str, _Key],
        place: Place,
        scope: tuple[str, ...],
    ) -> Group:
        zero = Number(Formula(0.0, "0", place))
        at = Record(dict.fromkeys(_AXES, zero), place)
        if "at" in own:
            at = cast("Record", self._vector(own["at"].node, f"{place.path}.at", scope))
        turn = Formula(0.0, "0", place)
        if "turn" in own:
            turn = self.formula(own["turn"].node, f"{place.path}.turn", scope)
        entries = self._entries(own["items"].node, f"{place.path}.items", scope)
        return Group(called, when, repeat, at, turn, entries, place)

    def _item_fields(
        self, own: Mapping[str, _Key], place: Place, scope: tuple[str, ...]
    ) -> dict[str, Template]:
        known = fields_of(Item)
        if "name" not in own:
            raise place.error("this item has no name; a group of items has `items`")
        return {
            key: self._value(one.node, known[key].kind, known[key].many, one.place.path, scope)
            for key, one in own.items()
        } | {"name": self._object(own["name"])}

    def _object(self, key: _Key) -> Template:
        written = self.scalar(key.node, key.place.path)
        if not written.startswith("$") and canonical_name(written) is None:
            message = f"Animal-AI has no object `{written}`.{_hint(written, KINDS)}"
            raise key.place.error(message, "unknown-object")
        return self._text(key.node, key.place.path)

    def _repeat(self, key: _Key) -> Repeat:
        path = key.place.path
        if isinstance(key.node.value, str):
            return Repeat("times", (self.formula(key.node, path),))
        own = self.mapping(key.node, path, ("times", "ring", "grid", "as"))
        name = self.scalar(own.pop("as").node, f"{path}.as") if "as" in own else "i"
        if name in self.known or not name.isidentifier():
            raise key.place.error(f"{name!r} cannot be the name of the number of a copy")
        if len(own) != 1:
            raise key.place.error("expected a number, or one of times, ring and grid")
        kind, one = next(iter(own.items()))
        where = f"{path}.{kind}"
        if kind == "grid":
            sides = self.sequence(one.node, where)
            if len(sides) != 2:
                raise one.place.error("expected [columns, rows]")
            counts = tuple(self.formula(side, f"{where}[{k}]") for k, side in enumerate(sides))
        else:
            counts = (self.formula(one.node, where),)
        return Repeat(cast("Literal['times', 'ring', 'grid']", kind), counts, name)

    # Values of the Animal-AI grammar

    def _tag(self, node: Node, model: type[BaseModel], path: str) -> None:
        wanted = TAGS[model]
        if node.tag not in ("", wanted):
            self.wrong(node, path, f"expected {wanted} or no tag, got {node.tag[:60]}")

    def _value(
        self, node: Node, kind: Any, many: bool, path: str, scope: tuple[str, ...]
    ) -> Template:
        if many:
            entries = self._several(node, path)
            return tuple(
                self._value(one, kind, False, f"{path}[{k}]", scope)
                for k, one in enumerate(entries)
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
            return Record(self._item_fields(own, place, scope), place)
        return self._operation(node, path, scope)

    def _several(self, node: Node, path: str) -> list[Node]:
        return self.sequence(node, path)

    def _vector(self, node: Node, path: str, scope: tuple[str, ...]) -> Template:
        """A position or size: x, y and z; [x, z] on the floor; one number for a cube."""
        self._tag(node, Vector3, path)
        place = self.place(node, path)
        zero = Number(Formula(0.0, "0", place))
        if isinstance(node.value, str):
            side = Number(self.formula(node, path, scope), digits=3)
            return Record(dict.fromkeys(_AXES, side), place)
        if any(isinstance(one, Node) for one in node.value):
            entries = self.sequence(node, path)
            axes = {2: "xz", 3: "xyz"}.get(len(entries))
            if axes is None:
                self.wrong(node, path, f"expected [x, z] or [x, y, z], got {len(entries)} numbers")
            given = dict(zip(axes, entries, strict=True))
        else:
            given = {key: one.node for key, one in self.mapping(node, path, _AXES).items()}
        return Record(
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
                message = f"there is no colour {written!r}.{_hint(written, COLOURS)}"
                self.wrong(node, path, message)
            return Paint(written, self.place(node, path))
        if any(isinstance(one, Node) for one in node.value):
            entries = self.sequence(node, path)
            if len(entries) != 3:
                self.wrong(node, path, f"expected [r, g, b], got {len(entries)} numbers")
            given = dict(zip(_CHANNELS, entries, strict=True))
        else:
            given = {key: one.node for key, one in self.mapping(node, path, _CHANNELS).items()}
        return Record(
            {
                channel: Number(self.formula(one, f"{path}.{channel}", scope), digits=3)
                for channel, one in given.items()
            },
            self.place(node, path),
        )

    def _text(self, node: Node, path: str) -> Text:
        written = self.scalar(node, path)
        if written.startswith("$") and written[1:] not in self.known:
            message = f"there is no parameter {written[1:]!r}.{_hint(written[1:], self.known)}"
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
            key: self._value(one.node, known[key].kind, known[key].many, one.place.path, scope)
            for key, one in own.items()
        }
        return Record(fields, self.place(node, path), node.tag[1:])

    # Controls and claims

    def _control(
        self, name: str, key: _Key, ranges: Mapping[str, Range], known: Sequence[str]
    ) -> Control:
        path = key.place.path
        allowed = (
            *("description", "remove", "parameters", "items", "arena"),
            *("takes", "keeps", "claims", "paradigms"),
        )
        own = self.mapping(key.node, path, allowed)
        if not name.replace("-", "").replace("_", "").isalnum():
            raise key.place.error(f"{name!r} is not letters, digits and hyphens")
        remove = self.texts(own["remove"].node, f"{path}.remove") if "remove" in own else ()
        for called in remove:
            self._is_id(called, own["remove"].place)
        parameters: dict[str, Formula] = {}
        if "parameters" in own:
            for one, value in self.mapping(own["parameters"].node, f"{path}.parameters").items():
                self._is_parameter(one, value, ranges)
                parameters[one] = self.formula(value.node, value.place.path)
        items: dict[str, dict[str, Template]] = {}
        if "items" in own:
            for called, value in self.mapping(own["items"].node, f"{path}.items").items():
                self._is_id(called, value.place)
                if not self.ids[called]:
                    raise value.place.error("this is a group; a control changes fields of items")
                items[called] = self._changes(value)
        fields: dict[str, Template] = {}
        if "arena" in own:
            wanted = [one for one in fields_of(Arena) if one not in (*_UNUSED, "items")]
            given = self.mapping(own["arena"].node, f"{path}.arena", (*wanted, *_ARENA_NAMES))
            fields = self._arena_fields(given, ())
        return Control(
            name,
            self.text(own["description"].node, f"{path}.description")
            if "description" in own
            else "",
            remove,
            parameters,
            items,
            fields,
            self._demands(own["takes"]) if "takes" in own else (),
            self._demands(own["keeps"]) if "keeps" in own else (),
            self._claims(own["claims"]) if "claims" in own else {},
            self._paradigms_of(own["paradigms"], known) if "paradigms" in own else (),
        )

    def _paradigms_of(self, key: _Key, known: Iterable[str]) -> tuple[str, ...]:
        found = self.texts(key.node, key.place.path)
        for name in found:
            if name not in known:
                raise key.place.error(f"there is no paradigm {name!r}.{_hint(name, known)}")
        return found

    def _changes(self, key: _Key) -> dict[str, Template]:
        known = fields_of(Item)
        own = self.mapping(key.node, key.place.path, tuple(known))
        # What repeats may name is known where the item is built.
        scope = ("i", "angle", "column", "row")
        found = {
            name: self._value(one.node, known[name].kind, known[name].many, one.place.path, scope)
            for name, one in own.items()
        }
        if "name" in own:
            found["name"] = self._object(own["name"])
        return found

    def _is_id(self, called: str, place: Place) -> None:
        if called not in self.ids:
            raise place.error(f"no item has the id {called!r}.{_hint(called, self.ids)}")

    def _demands(self, key: _Key) -> tuple[str, ...]:
        found = self.texts(key.node, key.place.path)
        for name in found:
            _is_demand(name, key.place)
        return found

    def _claims(self, key: _Key) -> dict[str, Claim | None]:
        found: dict[str, Claim | None] = {}
        for demand, one in self.mapping(key.node, key.place.path).items():
            _is_demand(demand, one.place)
            found[demand] = self._claim(demand, one)
        return found

    def _claim(self, demand: str, key: _Key) -> Claim | None:
        node, path, place = key.node, key.place.path, key.place
        exact = within = least = most = when = None
        if isinstance(node.value, str):
            if node.value == "none":
                return Claim(demand, None, None, None, None, True, None, place)
            if node.value == "any":
                return None
            exact = self.formula(node, path)
            return Claim(demand, exact, None, None, None, False, None, place)
        own = self.mapping(node, path, ("is", "within", "least", "most", "if"))
        absent = "is" in own and own["is"].node.value == "none"

        def part(name: str) -> Formula | None:
            return self.formula(own[name].node, f"{path}.{name}") if name in own else None

        exact = None if absent else part("is")
        within, least, most, when = map(part, ("within", "least", "most", "if"))
        if exact is None and least is None and most is None and not absent:
            raise place.error("expected `is`, `least` or `most`")
        return Claim(demand, exact, within, least, most, absent, when, place)


def _is_demand(name: str, place: Place) -> None:
    if name not in FEATURES:
        message = (
            f"there is no demand {name!r}.{_hint(name, FEATURES)} "
            "`animalcat arena features` lists them all"
        )
        raise place.error(message, "unknown-demand")


def _number(written: str) -> float | None:
    """The number that a formula without names is; None if it is none."""
    try:
        expression = parse_formula(written, deciding=True)
    except FormulaError:
        return None
    return expression if isinstance(expression, float) else None


def _hint(name: str, known: Iterable[str]) -> str:
    listed = sorted(known)
    close = difflib.get_close_matches(name, listed, 1)
    if close:
        return f" Did you mean {close[0]!r}?"
    return f" There are: {', '.join(listed)}." if 0 < len(listed) <= 20 else ""
