"""Reads a family's file; whatever is wrong in it is an error that names line and key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Final, cast

from animalcat.arena_configs import nodes
from animalcat.arena_configs.families.arena_reader import ARENA_NAMES, UNUSED, ArenaReader
from animalcat.arena_configs.families.language import (
    MIRROR,
    PARADIGM,
    Claim,
    Control,
    Family,
    Paradigm,
    Template,
    Variants,
)
from animalcat.arena_configs.families.part_reader import Key, number_of
from animalcat.arena_configs.families.ranges import Constant, Range
from animalcat.arena_configs.families.scope import Formula, Place
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.loader import fields_of
from animalcat.arena_configs.model import Arena, Item
from animalcat.text.formulas import names
from animalcat.text.guesses import hint
from animalcat.text.marked_yaml import Node

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
    return _FamilyReader(name).family(root)


class _FamilyReader(ArenaReader):
    """Reads a whole family."""

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
            key: self.range(entry.node, entry.place.path)
            for key, entry in self._part(keys, "parameters").items()
        }
        derived = {
            key: self.formula(entry.node, entry.place.path)
            for key, entry in self._part(keys, "derived").items()
        }
        variants, varied = self._variants(keys)
        both = {*parameters} & {*derived} | {*parameters, *derived} & {*varied}
        for twice in sorted(both):
            part = "derived" if twice in derived else "variants.parameters"
            self.wrong(root, f"{part}.{twice}", "there is a parameter of this name already")
        parameters |= varied
        constraints = tuple(
            self.formula(constraint, f"constraints[{k}]")
            for k, constraint in enumerate(self._list(keys, "constraints"))
        )
        ranges = {**parameters, **{key: Constant(formula) for key, formula in derived.items()}}
        paradigms = self._paradigms(keys, ranges)
        for paradigm in paradigms:
            self._refuse_varied(variants, {**ranges, **paradigm.parameters})
        arena = self._arena(keys["arena"])
        return Family(
            name=name,
            description=self.text(keys["description"].node, "description"),
            nodes={
                layout: self.texts(entry.node, entry.place.path)
                for layout, entry in self._part(keys, "nodes").items()
            },
            parameters=parameters,
            derived=derived,
            constraints=constraints,
            variants=variants,
            paradigms=paradigms,
            arena=arena,
            controls={
                key: self._control(key, entry, ranges, [paradigm.name for paradigm in paradigms])
                for key, entry in self._part(keys, "controls").items()
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

    def _part(self, keys: Mapping[str, Key], name: str) -> dict[str, Key]:
        return self.mapping(keys[name].node, name) if name in keys else {}

    def _list(self, keys: Mapping[str, Key], name: str) -> list[Node]:
        return self.sequence(keys[name].node, name) if name in keys else []

    def _names(self, keys: Mapping[str, Key]) -> None:
        """Collect what formulas may name, before any formula is read."""
        given: dict[str, Key] = {}
        variants = self._part(keys, "variants")
        varied = (
            self.mapping(variants["parameters"].node, "variants.parameters")
            if "parameters" in variants
            else {}
        )
        for part in (self._part(keys, "parameters"), self._part(keys, "derived"), varied):
            for name, parameter in part.items():
                if not name.isidentifier():
                    message = f"{name!r} is not a name: use letters, digits and underscores"
                    raise parameter.place.error(message)
                if name in (MIRROR, PARADIGM):
                    raise parameter.place.error(
                        f"{name!r} has a meaning of its own; take another name"
                    )
                given[name] = parameter
        ranges = list(given.values())
        for k, paradigm in enumerate(self._list(keys, "paradigms")):
            own = self.mapping(paradigm, f"paradigms[{k}]")
            if "name" in own:
                self.words.add(self.scalar(own["name"].node, own["name"].place.path))
            if "parameters" in own:
                ranges += self.mapping(
                    own["parameters"].node, f"paradigms[{k}].parameters"
                ).values()
        for parameter in ranges:
            self.words |= self.words_in(parameter.node)
        for name in sorted(self.words & given.keys()):
            raise given[name].place.error(f"{name!r} is an option or a paradigm as well")
        self.known = {*given, MIRROR, PARADIGM}

    def _variants(self, keys: Mapping[str, Key]) -> tuple[Variants, dict[str, Range]]:
        if "variants" not in keys:
            return Variants(), {}
        allowed = ("mirror", "turns", "each", "parameters")
        own = self.mapping(keys["variants"].node, "variants", allowed)
        ranges = {
            key: self.range(entry.node, entry.place.path)
            for key, entry in (
                self.mapping(own["parameters"].node, "variants.parameters")
                if "parameters" in own
                else {}
            ).items()
        }
        each = 1
        if "each" in own:
            number = number_of(self.scalar(own["each"].node, "variants.each"))
            if number is None or number < 1 or number != int(number):
                self.wrong(own["each"].node, "variants.each", "expected a whole number from 1")
            each = int(number)
        mirror, turns = (
            key in own and self.truth(own[key].node, f"variants.{key}")
            for key in ("mirror", "turns")
        )
        return Variants(mirror, turns, each, tuple(ranges)), ranges

    def _refuse_varied(self, variants: Variants, ranges: Mapping[str, Range]) -> None:
        """Refuse parameters that depend on what differs between variants of one draw."""
        for name, drawn_from in ranges.items():
            for formula in drawn_from.formulas:
                loose = {*names(formula.expression)} & {*variants.parameters}
                if loose and name not in variants.parameters:
                    message = f"{name} depends on {', '.join(loose)}, which is for variants only"
                    raise formula.place.error(message)

    def _paradigms(
        self, keys: Mapping[str, Key], ranges: Mapping[str, Range]
    ) -> tuple[Paradigm, ...]:
        listed = self._list(keys, "paradigms")
        if not listed:
            name = self.scalar(keys["name"].node, "name")
            return (Paradigm(name, 1.0, {}, {}, self._order(ranges), keys["name"].place),)
        paradigms: list[Paradigm] = []
        for k, node in enumerate(listed):
            path = f"paradigms[{k}]"
            own = self.mapping(node, path, ("name", "weight", "parameters", "claims"))
            if "name" not in own:
                self.wrong(node, path, "it has no name")
            name = self.scalar(own["name"].node, f"{path}.name")
            if name in (paradigm.name for paradigm in paradigms):
                self.wrong(own["name"].node, f"{path}.name", f"{name!r} is there already")
            weight = 1.0
            if "weight" in own:
                written = self.scalar(own["weight"].node, f"{path}.weight")
                number = number_of(written)
                if number is None or number <= 0.0:
                    message = f"expected a number above 0, got `{written}`"
                    self.wrong(own["weight"].node, f"{path}.weight", message)
                weight = number
            changed: dict[str, Range] = {}
            if "parameters" in own:
                for key, entry in self.mapping(
                    own["parameters"].node, f"{path}.parameters"
                ).items():
                    self._is_parameter(key, entry, ranges)
                    changed[key] = self.range(entry.node, entry.place.path)
            claims = self._claims(own["claims"]) if "claims" in own else {}
            order = self._order({**ranges, **changed})
            place = replace(own["name"].place, path=path)
            paradigms.append(Paradigm(name, weight, changed, claims, order, place))
        return tuple(paradigms)

    def _is_parameter(self, name: str, key: Key, ranges: Mapping[str, Range]) -> None:
        if name not in ranges:
            message = f"there is no parameter {name!r}.{hint(name, ranges)}"
            raise key.place.error(message, "unknown-name")

    def _order(self, ranges: Mapping[str, Range]) -> tuple[str, ...]:
        """Names in an order in which each comes after those that it depends on."""
        graph = {
            name: [
                other
                for formula in drawn_from.formulas
                for other in names(formula.expression)
                if other in ranges
            ]
            for name, drawn_from in ranges.items()
        }
        try:
            return tuple(TopologicalSorter(graph).static_order())
        except CycleError as error:
            around = cast("list[str]", error.args[1])
            formula = ranges[around[0]].formulas[0]
            cycle = " -> ".join(reversed(around))
            message = f"these depend on each other: {cycle}"
            raise formula.place.error(message, "cycle") from None

    # Controls and claims

    def _control(
        self, name: str, key: Key, ranges: Mapping[str, Range], known: Sequence[str]
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
            for parameter, value in self.mapping(
                own["parameters"].node, f"{path}.parameters"
            ).items():
                self._is_parameter(parameter, value, ranges)
                parameters[parameter] = self.formula(value.node, value.place.path)
        items: dict[str, dict[str, Template]] = {}
        if "items" in own:
            for called, value in self.mapping(own["items"].node, f"{path}.items").items():
                self._is_id(called, value.place)
                if not self.ids[called]:
                    raise value.place.error("this is a group; a control changes fields of items")
                items[called] = self._changes(value, self.counted[called])
        fields: dict[str, Template] = {}
        if "arena" in own:
            wanted = [field for field in fields_of(Arena) if field not in (*UNUSED, "items")]
            given = self.mapping(own["arena"].node, f"{path}.arena", (*wanted, *ARENA_NAMES))
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

    def _paradigms_of(self, key: Key, known: Iterable[str]) -> tuple[str, ...]:
        names = self.texts(key.node, key.place.path)
        for name in names:
            if name not in known:
                raise key.place.error(f"there is no paradigm {name!r}.{hint(name, known)}")
        return names

    def _changes(self, key: Key, scope: tuple[str, ...]) -> dict[str, Template]:
        known = fields_of(Item)
        own = self.mapping(key.node, key.place.path, tuple(known))
        fields = {
            name: self._value(
                entry.node, known[name].kind, known[name].many, entry.place.path, scope
            )
            for name, entry in own.items()
        }
        if "name" in own:
            fields["name"] = self._object(own["name"])
        return fields

    def _is_id(self, called: str, place: Place) -> None:
        if called not in self.ids:
            raise place.error(f"no item has the id {called!r}.{hint(called, self.ids)}")

    def _demands(self, key: Key) -> tuple[str, ...]:
        names = self.texts(key.node, key.place.path)
        for name in names:
            _is_demand(name, key.place)
        return names

    def _claims(self, key: Key) -> dict[str, Claim | None]:
        claims: dict[str, Claim | None] = {}
        for demand, entry in self.mapping(key.node, key.place.path).items():
            _is_demand(demand, entry.place)
            claims[demand] = self._claim(demand, entry)
        return claims

    def _claim(self, demand: str, key: Key) -> Claim | None:
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
            f"there is no demand {name!r}.{hint(name, FEATURES)} "
            "`animalcat arena features` lists them all"
        )
        raise place.error(message, "unknown-demand")
