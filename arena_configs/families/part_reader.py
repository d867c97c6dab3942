"""Reads parts of a family's file: keys and lists, formulas, and what parameters are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, cast

from animalcat.arena_configs.families.ranges import (
    Categorical,
    Constant,
    Interval,
    Range,
    TruncatedNormal,
)
from animalcat.arena_configs.families.scope import Formula, Place, Value
from animalcat.text.formulas import Call, Expression, FormulaError, names, parse_formula
from animalcat.text.guesses import hint
from animalcat.text.marked_yaml import Node

_LARGEST: Final = 5000
"""Most parts of a formula; abs has its argument twice, so each abs in another doubles them."""
_RANGES: Final = ("uniform", "log_uniform", "integers", "normal", "choice")


@dataclass(frozen=True, slots=True)
class Key:
    """A key's value and its place."""

    node: Node
    place: Place


@dataclass
class PartReader:
    """Reads parts of one file; whatever is wrong is an error that names line and key.

    Attributes:
        file: Name of the file.
        known: Names that formulas may use.
        words: Words that options and paradigms are.
        ids: By id, whether it is an item's; otherwise it belongs to groups alone.
        counted: By id of items, the names of repeats that formulas may use in all items of that id.
    """

    file: str
    known: set[str] = field(default_factory=set[str])
    words: set[str] = field(default_factory=set[str])
    ids: dict[str, bool] = field(default_factory=dict[str, bool])
    counted: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    # Plain parts of YAML

    def place(self, node: Node, path: str) -> Place:
        """The place of a node in the file, for errors."""
        return Place(self.file, node.line, path)

    def wrong(self, node: Node, path: str, message: str) -> NoReturn:
        """Raise an error about a node."""
        raise self.place(node, path).error(message)

    def mapping(self, node: Node, path: str, allowed: Sequence[str] = ()) -> dict[str, Key]:
        """Values by key; a key that is there twice, or not allowed, is an error."""
        pairs = node.value if isinstance(node.value, list) else []
        if not isinstance(node.value, list) or any(isinstance(pair, Node) for pair in pairs):
            self.wrong(node, path, "expected keys and values")
        keys: dict[str, Key] = {}
        for key, value in cast("list[tuple[Node, Node]]", pairs):
            written = key.value if isinstance(key.value, str) else "?"
            where = f"{path}.{written}" if path else written
            if allowed and written not in allowed:
                self.wrong(key, where, f"there is no such key.{hint(written, allowed)}")
            if written in keys:
                self.wrong(key, where, f"given already in line {keys[written].place.line}")
            keys[written] = Key(value, Place(self.file, key.line, where))
        return keys

    def sequence(self, node: Node, path: str) -> list[Node]:
        """The entries of a list."""
        entries = node.value if isinstance(node.value, list) else []
        if not isinstance(node.value, list) or any(isinstance(entry, tuple) for entry in entries):
            self.wrong(node, path, "expected a list")
        return cast("list[Node]", entries)

    def scalar(self, node: Node, path: str) -> str:
        """One value as it is written."""
        if not isinstance(node.value, str):
            self.wrong(node, path, "expected one value, got several")
        if node.tag not in ("", "!"):
            self.wrong(node, path, f"unexpected tag {node.tag[:60]}")
        return node.value

    def text(self, node: Node, path: str) -> str:
        """One text, with its lines joined."""
        return " ".join(self.scalar(node, path).split())

    def texts(self, node: Node, path: str) -> tuple[str, ...]:
        """A list of texts, or one text."""
        if isinstance(node.value, str):
            return (node.value,)
        return tuple(
            self.scalar(entry, f"{path}[{k}]") for k, entry in enumerate(self.sequence(node, path))
        )

    def truth(self, node: Node, path: str) -> bool:
        """True or false."""
        written = self.scalar(node, path).lower()
        if written not in ("true", "false"):
            self.wrong(node, path, f"expected true or false, got `{written}`")
        return written == "true"

    # Formulas

    def formula(self, node: Node, path: str, more: Sequence[str] = ()) -> Formula:
        """A formula whose names are all known.

        Args:
            node: Where it is written.
            path: The keys that lead there.
            more: Names that repeats give, which are known only here.
        """
        written = self.scalar(node, path)
        place = self.place(node, path)
        try:
            expression = parse_formula(written, deciding=True)
        except FormulaError as error:
            raise place.error(str(error), "bad-formula") from None
        if _count_parts(expression) > _LARGEST:
            message = (
                f"`{written[:80]}` is nested too deeply; make a derived value of what is inside of "
                "some abs(...) or comparison"
            )
            raise place.error(message, "bad-formula")
        given = {*self.known, *self.words}
        known = {*self.known, *more}
        for name in names(expression):
            if name in more and name in given:
                message = (
                    f"`{written}`: {name!r} is what a repeat counts here, and a parameter, an "
                    "option or a paradigm as well; give that another name"
                )
                raise place.error(message)
            if name not in known and name not in self.words:
                message = f"`{written}`: unknown name {name!r}.{hint(name, known | self.words)}"
                raise place.error(message, "unknown-name")
        return Formula(expression, written.strip(), place)

    def words_in(self, node: Node) -> set[str]:
        """The words among the options of a choice."""
        names = set[str]()
        for pair in node.value if isinstance(node.value, list) else ():
            if isinstance(pair, tuple) and pair[0].value == "choice":
                options = pair[1].value if isinstance(pair[1].value, list) else []
                names |= {
                    option.value
                    for option in options
                    if isinstance(option, Node)
                    and isinstance(option.value, str)
                    and number_of(option.value) is None
                }
        return names

    def range(self, node: Node, path: str) -> Range:
        """What a parameter is drawn from."""
        if isinstance(node.value, str):
            return Constant(self.formula(node, path))
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
        low, high = (self.formula(entry, f"{where}[{k}]") for k, entry in enumerate(entries))
        if kind == "normal":
            if "between" not in keys:
                self.wrong(node, path, "a normal distribution needs `between: [least, greatest]`")
            ends = self.sequence(keys["between"].node, f"{path}.between")
            if len(ends) != 2:
                self.wrong(keys["between"].node, f"{path}.between", "expected 2 numbers")
            least, most = (self.formula(end, f"{path}.between[{k}]") for k, end in enumerate(ends))
            self._check_order(least, most)
            return TruncatedNormal(low, high, least, most)
        self._check_order(low, high)
        if kind == "log_uniform" and isinstance(low.expression, float) and low.expression <= 0:
            raise low.place.error(f"{low.text} is not above 0, so it has no logarithm")
        return Interval(low, high, cast("Any", kind))

    def _check_order(self, low: Formula, high: Formula) -> None:
        ends = low.expression, high.expression
        if isinstance(ends[0], float) and isinstance(ends[1], float) and ends[0] > ends[1]:
            raise low.place.error(f"the low end {low.text} is above the high end {high.text}")

    def _choice(self, keys: Mapping[str, Key], entries: list[Node], path: str) -> Categorical:
        where = f"{path}.choice"
        if not entries:
            self.wrong(keys["choice"].node, where, "there is nothing to choose from")
        options: list[Value] = []
        for k, entry in enumerate(entries):
            written = self.scalar(entry, f"{where}[{k}]")
            number = number_of(written)
            options.append(written if number is None else number)
        weights = [1.0] * len(options)
        if "weights" in keys:
            given = self.sequence(keys["weights"].node, f"{path}.weights")
            numbers = [number_of(self.scalar(weight, f"{path}.weights")) for weight in given]
            weights = [number for number in numbers if number is not None and number >= 0.0]
            if len(weights) != len(options) or sum(weights) <= 0.0:
                message = f"expected {len(options)} weights of at least 0, some above 0"
                self.wrong(keys["weights"].node, f"{path}.weights", message)
        return Categorical(tuple(options), tuple(weights))


def _count_parts(expression: Expression, known: dict[int, int] | None = None) -> int:
    """The number of parts of a formula, counting what is in it twice each time.

    Args:
        expression: The formula.
        known: Numbers of parts that are worked out already, by the identity of the expression.
    """
    if not isinstance(expression, Call):
        return 1
    known = {} if known is None else known
    if id(expression) not in known:
        parts = sum(_count_parts(argument, known) for argument in expression.arguments)
        known[id(expression)] = 1 + parts
    return known[id(expression)]


def number_of(written: str) -> float | None:
    """The number that a formula without names is; None if it is none."""
    try:
        expression = parse_formula(written, deciding=True)
    except FormulaError:
        return None
    return expression if isinstance(expression, float) else None
