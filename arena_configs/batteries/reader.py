"""Reads the recipe of a battery; whatever is wrong in it is an error that names line and key."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from animalcat.arena_configs import nodes
from animalcat.arena_configs.batteries.language import DemandRange, Entry, Recipe, only
from animalcat.arena_configs.batteries.sizing import full_counts, total
from animalcat.arena_configs.families.language import PARTS, Family, Part, Variants
from animalcat.arena_configs.families.library import FAMILIES, is_family, load_family
from animalcat.arena_configs.families.part_reader import Key, PartReader, number_of
from animalcat.arena_configs.families.ranges import Categorical, Range
from animalcat.arena_configs.families.reader import read_family
from animalcat.arena_configs.families.search import SHORT
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.text.guesses import hint
from animalcat.text.marked_yaml import Node

MOST: Final = 1_000_000
"""Most instances of an entry."""
_TOP: Final = ("name", "about", "licence", "seed", "layout", "variant", "separable", "entries")
_ENTRY: Final = (
    *("name", "suite", "family", "count", "part", "paradigms"),
    *("with", "variants", "demands", "controls", "control"),
)
_ALL: Final = "all"
_NAME: Final = 60
"""Most characters of a name."""


def read_recipe(text: str, file: str, families: Mapping[str, str] = MappingProxyType({})) -> Recipe:
    """Read a recipe.

    Args:
        text: YAML.
        file: Name of its file, for errors.
        families: Texts of families of the user's own, by the name that the recipe gives the file.

    Raises:
        ArenaError: It is not YAML, or not a recipe; the message says line and key.
    """
    root, more = nodes.parse_yaml(text, file)
    if root is None or not isinstance(root.value, list):
        raise nodes.failure(file, None, "bad-recipe", "expected `name:`, `about:` and `entries:`")
    if more is not None:
        raise nodes.failure(file, more, "bad-recipe", "a second YAML document starts here")
    recipe = _RecipeReader(file, families).recipe(root)
    digest = hashlib.sha256(text.encode())
    for name in sorted(families):
        digest.update(f"\0{name}\0{families[name]}".encode())
    return replace(recipe, digest=digest.hexdigest(), text=text, families={**families})


def named_files(text: str, file: str) -> list[str]:
    """The files of families that a recipe names, in its order.

    Raises:
        ArenaError: It is not YAML.
    """
    root, _ = nodes.parse_yaml(text, file)
    if root is None or not isinstance(root.value, list):
        return []
    reader = PartReader(file)
    keys = reader.mapping(root, "")
    entries = reader.sequence(keys["entries"].node, "entries") if "entries" in keys else []
    files: list[str] = []
    for k, node in enumerate(entries):
        own = reader.mapping(node, f"entries[{k}]")
        written = own["family"].node.value if "family" in own else ""
        if isinstance(written, str) and is_file(written) and written not in files:
            files.append(written)
    return files


def _is_name(text: str) -> bool:
    plain = text.replace("-", "").replace("_", "")
    return plain.isalnum() and text.isascii() and len(text) <= _NAME


def is_file(family: str) -> bool:
    """Whether a recipe means a file by what it names as a family."""
    return family.lower().endswith((".yaml", ".yml"))


class _RecipeReader:
    """Reads one recipe."""

    def __init__(self, file: str, families: Mapping[str, str]) -> None:
        self._file = file
        self._texts = families
        self._parts = PartReader(file)

    def recipe(self, root: Node) -> Recipe:
        given = self._parts.mapping(root, "")
        if "arena" in given:
            message = (
                "this is a family; write a recipe whose entries name it, as `family: FILE.yaml`"
            )
            raise given["arena"].place.error(message, "bad-recipe")
        keys = self._parts.mapping(root, "", _TOP)
        for needed in ("name", "about", "entries"):
            if needed not in keys:
                self._parts.wrong(root, needed, "it is missing")
        listed = self._parts.sequence(keys["entries"].node, "entries")
        if not listed:
            raise keys["entries"].place.error("there is no entry", "bad-recipe")
        entries: list[Entry] = []
        for k, node in enumerate(listed):
            entry = self._entry(node, f"entries[{k}]")
            for other in entries:
                if other.name == entry.name:
                    raise entry.place.error(
                        f"an entry is named {entry.name!r} already, in line {other.place.line}; "
                        "give this one a `name`",
                        "bad-recipe",
                    )
            entries.append(entry)

        def text(name: str) -> str:
            return self._parts.text(keys[name].node, name) if name in keys else ""

        if "variant" in keys and "layout" not in keys:
            raise keys["variant"].place.error("a variant goes with a `layout`", "bad-recipe")
        recipe = Recipe(
            name=self._name(keys["name"], "name"),
            about=text("about"),
            licence=text("licence"),
            seed=self._whole(keys["seed"], 0, 2**63 - 1) if "seed" in keys else 0,
            layout=text("layout"),
            variant=text("variant"),
            entries=tuple(entries),
            separable=self._separable(keys["separable"], keys) if "separable" in keys else None,
            file=self._file,
        )
        drawn = total(full_counts(recipe))
        if recipe.separable is not None and recipe.separable > drawn:
            raise keys["separable"].place.error(
                f"{recipe.separable} of {drawn} instances cannot be kept; give more entries or "
                "larger counts",
                "bad-recipe",
            )
        return recipe

    def _separable(self, key: Key, keys: Mapping[str, Key]) -> int:
        """How many instances are kept, so that demands of the layout go together least."""
        if "layout" not in keys:
            raise key.place.error(
                "demands are separable for a `layout`; name the one that is meant", "bad-recipe"
            )
        return self._whole(key, 1, MOST)

    def _entry(self, node: Node, path: str) -> Entry:
        own = self._parts.mapping(node, path, _ENTRY)
        place = self._parts.place(node, path)
        for needed in ("family", "count"):
            if needed not in own:
                raise place.error(f"it has no `{needed}`", "bad-recipe")
        family = self._family(own["family"])
        name = self._name(own["name"], f"{path}.name") if "name" in own else family.name
        if "paradigms" in own:
            family = self._family_of_paradigms(family, own["paradigms"])
        if "with" in own:
            family = self._with_ranges(family, own["with"])
        if "variants" in own:
            family = self._with_variants(family, own["variants"])
        controls: Mapping[str, int | None] = {}
        control = ""
        count = self._whole(own["count"], 1, MOST)
        if "control" in own:
            if "controls" in own:
                raise own["control"].place.error(
                    "an entry has either `control` or `controls`", "bad-recipe"
                )
            control = self._parts.scalar(own["control"].node, own["control"].place.path)
            family = self._of_control(family, control, own["control"])
        elif "controls" in own:
            controls = self._controls(family, own["controls"], count)
        demands = self._demands(own["demands"]) if "demands" in own else {}
        if demands and (control or controls):
            raise own["demands"].place.error(
                "an entry with `demands` has no controls: set parameters by `with` instead",
                "bad-recipe",
            )
        suite = self._suite(own["suite"]) if "suite" in own else ""
        entry = Entry(
            name, family, count, self._part(own), controls, control, demands, place, suite
        )
        for controlled_by, number in controls.items():
            eligible = entry.eligible(controlled_by, count)
            if eligible < (number or 1):
                raise own["controls"].place.error(
                    f"{number or count} instances are to have the control {controlled_by!r}, "
                    f"but only {eligible} of {count} are of paradigms that have it",
                    "bad-recipe",
                )
        return entry

    def _name(self, key: Key, path: str) -> str:
        name = self._parts.scalar(key.node, path)
        if not _is_name(name):
            message = f"{name[:80]!r} is not a name of at most {_NAME} letters, digits and hyphens"
            raise key.place.error(message, "bad-recipe")
        return name

    def _suite(self, key: Key) -> str:
        """A suite, or a suite and a sub-suite with a slash between them."""
        written = self._parts.scalar(key.node, key.place.path)
        parts = written.split("/")
        if len(parts) > 2 or not all(map(_is_name, parts)):
            raise key.place.error(
                f"{written[:80]!r} is not a suite; expected SUITE or SUITE/SUB-SUITE, each of at "
                f"most {_NAME} letters, digits and hyphens",
                "bad-recipe",
            )
        return written

    def _whole(self, key: Key, low: int, high: int) -> int:
        written = self._parts.scalar(key.node, key.place.path)
        try:
            number = int(written)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise key.place.error(
                f"expected a whole number from {low} to {high}, got `{written[:40]}`", "bad-recipe"
            )
        return number

    def _family(self, key: Key) -> Family:
        written = self._parts.scalar(key.node, key.place.path)
        if is_file(written):
            if written not in self._texts:
                raise key.place.error(f"there is no file {written}", "unknown-name")
            return read_family(self._texts[written], written)
        if not is_family(written):
            message = f"there is no family {written!r}.{hint(written, FAMILIES)}"
            raise key.place.error(message, "unknown-name")
        return load_family(written)

    def _part(self, own: Mapping[str, Key]) -> Part | None:
        if "part" not in own:
            return None
        written = self._parts.scalar(own["part"].node, own["part"].place.path)
        if written not in PARTS:
            message = f"there is no part {written!r}; there are {' and '.join(PARTS)}"
            raise own["part"].place.error(message, "unknown-name")
        return written

    def _family_of_paradigms(self, family: Family, key: Key) -> Family:
        """The family with the paradigms alone that an entry asks for."""
        asked = self._parts.texts(key.node, key.place.path)
        known = [paradigm.name for paradigm in family.paradigms]
        for name in asked:
            if name not in known:
                message = f"family {family.name} has no paradigm {name!r}.{hint(name, known)}"
                raise key.place.error(message, "unknown-name")
        if not asked:
            raise key.place.error("there is no paradigm", "bad-recipe")
        return only(family, asked)

    def _with_ranges(self, family: Family, key: Key) -> Family:
        """The family with other ranges for some of its parameters."""
        reader = PartReader(self._file, words=set(family.words))
        ranges: dict[str, Range] = {}
        for name, entry in reader.mapping(key.node, key.place.path).items():
            if name not in family.ranges:
                message = f"family {family.name} has no parameter {name!r}."
                raise entry.place.error(message + hint(name, family.ranges), "unknown-name")
            ranges[name] = reader.range(entry.node, entry.place.path)
            self._is_option(family, name, ranges[name], entry)
        paradigms = tuple(
            replace(paradigm, parameters={**paradigm.parameters, **ranges})
            for paradigm in family.paradigms
        )
        return replace(family, paradigms=paradigms)

    def _is_option(self, family: Family, name: str, given: Range, key: Key) -> None:
        """Refuse words that a parameter cannot be, and words for numbers."""
        ranges = [
            family.ranges[name],
            *(paradigm.parameters.get(name) for paradigm in family.paradigms),
        ]
        options = {
            option
            for choice in ranges
            if isinstance(choice, Categorical)
            for option in choice.options
            if isinstance(option, str)
        }
        if isinstance(given, Categorical):
            asked = {option for option in given.options if isinstance(option, str)}
        else:
            asked = {
                formula.expression
                for formula in given.formulas
                if isinstance(formula.expression, str)
            }
        for word in sorted(asked - options):
            there = f"it is one of {', '.join(sorted(options))}" if options else "it is a number"
            message = f"parameter {name!r} of family {family.name} cannot be {word!r}; {there}"
            raise key.place.error(message, "bad-recipe")
        if options and not asked:
            message = (
                f"parameter {name!r} of family {family.name} is one of {', '.join(sorted(options))}"
            )
            raise key.place.error(message, "bad-recipe")

    def _with_variants(self, family: Family, key: Key) -> Family:
        own = self._parts.mapping(key.node, key.place.path, ("mirror", "turns", "each"))
        given = family.variants
        mirror, turns = (
            self._parts.truth(own[name].node, own[name].place.path) if name in own else usual
            for name, usual in (("mirror", given.mirror), ("turns", given.turns))
        )
        each = self._whole(own["each"], 1, 100) if "each" in own else given.each
        if (mirror and not given.mirror) or (turns and not given.turns):
            raise key.place.error(
                f"family {family.name} has no such variants: its claims need not hold of them",
                "bad-recipe",
            )
        return replace(family, variants=Variants(mirror, turns, each, given.parameters))

    def _known_control(self, family: Family, name: str, key: Key) -> None:
        known = list(family.controls)
        if name not in known:
            there = hint(name, known) if known else " It has none."
            message = f"family {family.name} has no control {name!r}.{there}"
            raise key.place.error(message, "unknown-name")

    def _of_control(self, family: Family, name: str, key: Key) -> Family:
        """The family with the paradigms alone that have a control."""
        self._known_control(family, name, key)
        control = family.controls[name]
        kept = [paradigm.name for paradigm in family.paradigms if control.is_of(paradigm)]
        if not kept:
            message = f"control {name!r} is of {', '.join(control.paradigms)} alone"
            raise key.place.error(message, "bad-recipe")
        return only(family, kept)

    def _controls(self, family: Family, key: Key, count: int) -> dict[str, int | None]:
        node, path = key.node, key.place.path
        if node.value == _ALL:
            return dict.fromkeys(
                name
                for name, control in family.controls.items()
                if any(map(control.is_of, family.paradigms))
            )
        pairs = isinstance(node.value, list) and node.value and isinstance(node.value[0], tuple)
        if pairs:
            counts: dict[str, int | None] = {}
            for name, entry in self._parts.mapping(node, path).items():
                self._known_control(family, name, entry)
                counts[name] = self._whole(entry, 1, count)
            return counts
        names = self._parts.texts(node, path)
        for name in names:
            self._known_control(family, name, key)
        return dict.fromkeys(names)

    def _demands(self, key: Key) -> dict[str, DemandRange]:
        demands: dict[str, DemandRange] = {}
        for written, entry in self._parts.mapping(key.node, key.place.path).items():
            name = SHORT.get(written, written)
            if name not in FEATURES:
                message = f"there is no demand {written!r}.{hint(written, {*FEATURES, *SHORT})}"
                raise entry.place.error(message, "unknown-demand")
            if name in demands:
                raise entry.place.error(f"{name} is given already", "bad-recipe")
            demands[name] = self._within(name, entry)
        return demands

    def _within(self, name: str, key: Key) -> DemandRange:
        path = key.place.path
        if isinstance(key.node.value, str):
            number = self._number(key.node, path)
            ends = DemandRange(number, number)
        else:
            own = self._parts.mapping(key.node, path, ("least", "most"))
            if len(own) < 2:
                raise key.place.error("expected a number, or `least` and `most`", "bad-recipe")
            ends = DemandRange(
                *(self._number(own[end].node, f"{path}.{end}") for end in ("least", "most"))
            )
        demand = FEATURES[name]
        if ends.least > ends.most:
            message = f"least, {ends.least:g}, is above most, {ends.most:g}"
            raise key.place.error(message, "bad-recipe")
        if ends.most < demand.low or ends.least > demand.high:
            raise key.place.error(
                f"{name} is from {demand.low:g} to {demand.high:g} {demand.unit}".rstrip(),
                "bad-recipe",
            )
        return ends

    def _number(self, node: Node, path: str) -> float:
        written = self._parts.scalar(node, path)
        number = number_of(written)
        if number is None or not math.isfinite(number):
            self._parts.wrong(node, path, f"expected a number, got `{written[:40]}`")
        return number
