"""Reads Animal-AI arena files as Unity does, and reports where it had to be lenient."""

from __future__ import annotations

import difflib
import math
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin

from pydantic import BaseModel

from animalcat.arena_configs import nodes
from animalcat.arena_configs.catalogue import KINDS, canonical_name
from animalcat.arena_configs.model import (
    PER_COPY,
    RGB,
    AnyOperation,
    Arena,
    ArenaConfig,
    ArenaError,
    Item,
    Operation,
    Problem,
    Vector3,
)
from animalcat.arena_configs.nodes import Node

TAGS: Final[Mapping[type[BaseModel], str]] = {
    ArenaConfig: "!ArenaConfig",
    Arena: "!Arena",
    Item: "!Item",
    Vector3: "!Vector3",
    RGB: "!RGB",
}
OPERATIONS: Final[Mapping[str, type[BaseModel]]] = {
    f"!{kind.model_fields['kind'].default}": kind for kind in get_args(AnyOperation)
}
_CORE: Final = "tag:yaml.org,2002:"
_SCALAR_TAGS: Final = frozenset(
    {"", "!", *(_CORE + name for name in ("str", "int", "float", "bool"))}
)

_OLD_FIELDS: Final = {"t": "timeLimit", "pass_mark": "passMark", "random_seed": "randomSeed"}
"""Names of the 3.x grammar. Build 4.3.1 takes the first two as well."""
OLD_NAMES: Final = {new: old for old, new in _OLD_FIELDS.items()}
"""Name in the 4.x grammar -> name in the 3.x grammar, of the fields of an arena that have both."""
_PLAYER_FIELDS: Final = (
    "showNotification",
    "canResetEpisode",
    "canChangePerspective",
    "defaultPerspective",
)
"""Fields of an arena in the 3.x grammar that only concern a human player."""

_TRUE: Final = frozenset({"true", "yes", "on", "y"})
_FALSE: Final = frozenset({"false", "no", "off", "n"})
_NUMBER: Final = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_ITEM_IN_COMMENT: Final = re.compile(r"#.*-\s*!Item\b")


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The content of an arena file.

    Attributes:
        config: The configuration, including objects that Animal-AI does not know.
        problems: What was odd in the file; none of it is an error.
        lines: Field, such as `arenas[0].items[2].sizes[1]` -> its line in the file.
        newer_names: Fields in `OLD_NAMES` that are written with their 4.x names.
    """

    config: ArenaConfig
    problems: tuple[Problem, ...]
    lines: Mapping[str, int]
    newer_names: tuple[str, ...] = ()


def load_config(source: Path, *, strict: bool = False) -> LoadedConfig:
    """Read an arena file.

    Args:
        source: Path of a YAML file, UTF-8.
        strict: Whether to treat every leniency as an error.

    Raises:
        ArenaError: As for `load_text`; or the file cannot be read.
    """
    name = str(source)
    try:
        with source.open("rb") as file:
            content = file.read(nodes.MAX_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or "not readable"
        raise nodes.failure(name, None, "not-readable", reason) from None
    except UnicodeDecodeError:
        raise nodes.failure(name, None, "not-utf8", "the file is not UTF-8 text") from None
    return load_text(text, name, strict=strict)


def load_text(text: str, name: str, *, strict: bool = False) -> LoadedConfig:
    """Read a configuration from text.

    Args:
        text: YAML in the 3.x or 4.x grammar.
        name: Name of the source, for the problems.
        strict: Whether to treat every leniency as an error.

    Raises:
        ArenaError: The text is not an arena configuration, or Unity would refuse it and it has no
            unambiguous reading; `problems` holds everything that was found, not only the first.
    """
    reader = _Reader(name, text)
    config = reader.read()
    problems = tuple(sorted(reader.problems, key=lambda p: p.line or 0))
    if strict:
        problems = tuple(replace(p, severity="error") for p in problems)
    errors = [p for p in problems if p.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more errors)" if len(errors) > 1 else ""
        raise ArenaError(f"{errors[0]}{more}", problems)
    return LoadedConfig(config, problems, reader.lines, tuple(reader.newer_names))


@dataclass(frozen=True, slots=True)
class _Field:
    """How a field is read: its attribute, the type of its values, and whether it is a list."""

    attribute: str
    kind: Any
    many: bool


@cache
def fields_of(model: type[BaseModel]) -> Mapping[str, _Field]:
    """Key in the file -> how to read it."""
    return {
        str(info.alias): _Field(attribute, *_value_kind(info.annotation))
        for attribute, info in model.model_fields.items()
        if attribute != "kind"
    }


def _value_kind(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) is tuple:
        return _value_kind(get_args(annotation)[0])[0], True
    if get_origin(annotation) in (Union, types.UnionType):
        options = [option for option in get_args(annotation) if option is not type(None)]
        return (options[0] if len(options) == 1 else Operation), False
    return annotation, False


def _other(root: Sequence[Node | tuple[Node, Node]]) -> str:
    """What else a file is, by its keys, and what to do with it."""
    keys = [pair[0].value for pair in root if isinstance(pair, tuple)]
    if "entries" in keys:
        return ": it is the recipe of a battery, which `animalcat battery build FILE` builds"
    if "arena" in keys:
        return (
            ": it is a family, of which `animalcat arena make FILE` makes arenas and a recipe "
            "whose entries name it makes a battery"
        )
    return ""


class _Reader:
    """Converts nodes to values and records problems; a value that cannot be read is None."""

    def __init__(self, name: str, text: str) -> None:
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}
        self.newer_names: list[str] = []
        self._name = name
        self._text = self._first_configuration(text)
        self._lifted: dict[str, Any] = {}

    def read(self) -> ArenaConfig:
        root, more = nodes.parse_yaml(self._text, self._name)
        if more is not None:
            self._warn(more, "", "second-document", "only the first YAML document is read")
        if root is None or not isinstance(root.value, list):
            raise nodes.failure(
                self._name, None, "not-an-arena", "expected `!ArenaConfig` with `arenas:` in it"
            )
        values = self._mapping(root, ArenaConfig, "")
        if not values.get("arenas"):
            message = f"there is no arena in it{_other(root.value)}"
            self._error(root.line, "arenas", "no-arena", message)
        return ArenaConfig.model_validate(self._lifted | values) if self._sound() else ArenaConfig()

    def _sound(self) -> bool:
        return all(problem.severity != "error" for problem in self.problems)

    def _first_configuration(self, text: str) -> str:
        """Cut off a second configuration that begins without a document mark."""
        starts = [m.start() for m in re.finditer(r"^!ArenaConfig[ \t]*\r?$", text, re.MULTILINE)]
        if len(starts) < 2 or re.search(r"^---", text[starts[0] : starts[1]], re.MULTILINE):
            return text
        line = text.count("\n", 0, starts[1]) + 1
        message = "a second configuration starts here; only the first is read"
        self._warn(line, "", "second-document", message)
        return text[: starts[1]]

    def _warn(self, line: int, field: str, code: str, message: str) -> None:
        self.problems.append(Problem(self._name, line, field, "warning", code, message))

    def _error(self, line: int, field: str, code: str, message: str) -> None:
        self.problems.append(Problem(self._name, line, field, "error", code, message))

    def _mapping(self, node: Node, model: type[BaseModel], path: str) -> dict[str, Any]:
        """Read the fields of a mapping; the last of a duplicate key wins, as in Unity."""
        fields = fields_of(model)
        self.lines[path] = node.line
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        spelt: dict[str, str] = {}
        for key, value in self._pairs(node, model, path):
            written = key.value if isinstance(key.value, str) else "?"
            where = f"{path}.{written}" if path else written
            field = self._field(model, fields, written, key.line, where, value)
            if field is None:
                continue
            name, field = field
            if name in lines:
                if spelt[name] != written:
                    self._warn(key.line, where, "both-spellings", f"`{name}` wins")
                    if written != name:
                        continue
                else:
                    message = f"given already in line {lines[name]}; the last one wins"
                    self._warn(key.line, where, "duplicate-key", message)
                    self._look_for_lost_item(lines[name], key.line, path, model)
            lines[name], spelt[name] = key.line, written
            if model is Arena and written in OLD_NAMES:
                self.newer_names.append(where)
            self.lines[f"{path}.{name}" if path else name] = key.line
            if _empty(value):
                message = "empty; taken as if it were not there"
                self._warn(value.line, where, "empty-field", message)
                values.pop(field.attribute, None)
                continue
            values[field.attribute] = self._value(value, field, where)
        return values

    def _field(
        self,
        model: type[BaseModel],
        fields: Mapping[str, _Field],
        written: str,
        line: int,
        where: str,
        value: Node,
    ) -> tuple[str, _Field] | None:
        """Look up the field that a key names; None if it is already handled or unknown."""
        name = _OLD_FIELDS.get(written, written) if model is Arena else written
        if written == "random_seed" and model is Arena:
            message = "a 3.x name; 4.x builds want `randomSeed`"
            self._warn(line, where, "old-field", message)
        if name in fields:
            return name, fields[name]
        if model is Arena and written in _PLAYER_FIELDS:
            message = "a 3.x field of the arena; 4.x builds want it beside `arenas`, or not at all"
            self._warn(line, where, "old-field", message)
            if written in fields_of(ArenaConfig):
                lifted = fields_of(ArenaConfig)[written]
                self._lifted[lifted.attribute] = self._value(value, lifted, where)
            return None
        close = difflib.get_close_matches(written, fields, 1)
        hint = f" Did you mean `{close[0]}`?" if close else ""
        message = f"no such field here; it is ignored, and Unity refuses the file.{hint}"
        self._warn(line, where, "unknown-field", message)
        return None

    def _look_for_lost_item(self, first: int, last: int, path: str, model: type[BaseModel]) -> None:
        if model is not Item:
            return
        for number, line in enumerate(self._text.splitlines()[first - 1 : last], first):
            known = any(p.line == number and p.code == "lost-item" for p in self.problems)
            if not known and _ITEM_IN_COMMENT.search(line):
                message = "`- !Item` stands inside a comment, so two items are read as one"
                self._warn(number, path, "lost-item", message)

    def _pairs(self, node: Node, model: type[BaseModel], path: str) -> list[tuple[Node, Node]]:
        wanted = TAGS.get(model)
        if wanted and node.tag != wanted:
            if node.tag in ("", f"{_CORE}map"):
                self._warn(node.line, path, "missing-tag", f"the tag {wanted} is missing")
            else:
                message = f"expected {wanted}, got {_short(node.tag)}"
                self._error(node.line, path, "wrong-tag", message)
                return []
        pairs: list[tuple[Node, Node]] = []
        if isinstance(node.value, list):
            pairs = [entry for entry in node.value if isinstance(entry, tuple)]
        if len(pairs) != len(node.value):
            shape = "a list" if isinstance(node.value, list) else f"`{node.value[:40]}`"
            message = (
                f"expected fields (`{'`, `'.join(list(fields_of(model))[:3])}` ...), got {shape}"
            )
            self._error(node.line, path, "wrong-type", message)
        return pairs

    def _value(self, node: Node, field: _Field, path: str) -> Any:
        if field.many:
            return self._sequence(node, field.kind, path)
        if get_origin(field.kind) is dict:
            return self._arenas(node, path)
        return self._one(node, field.kind, path)

    def _sequence(self, node: Node, kind: Any, path: str) -> tuple[Any, ...]:
        entries = node.value if isinstance(node.value, list) else None
        if entries is None or any(isinstance(entry, tuple) for entry in entries):
            self._error(node.line, path, "wrong-type", "expected a list")
            return ()
        if node.tag not in ("", f"{_CORE}seq"):
            self._error(node.line, path, "wrong-tag", f"unexpected tag {_short(node.tag)}")
            return ()
        values = [
            self._one(entry, kind, f"{path}[{index}]")
            for index, entry in enumerate(entries)
            if isinstance(entry, Node)
        ]
        return tuple(value for value in values if value is not None)

    def _one(self, node: Node, kind: Any, path: str) -> Any:
        if kind in (Vector3, RGB):
            return self._components(node, kind, path)
        if kind is Item:
            return self._item(node, path)
        if kind is Operation or kind == Operation:
            return self._operation(node, path)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self._mapping(node, kind, path)
        return self._scalar(node, kind, path)

    def _components(self, node: Node, kind: type[BaseModel], path: str) -> dict[str, Any]:
        values = self._mapping(node, kind, path)
        missing = [name for name in kind.model_fields if name not in values]
        if missing:
            names = ", ".join(missing)
            self._warn(node.line, path, "missing-component", f"no {names}; taken as 0")
        return values

    def _arenas(self, node: Node, path: str) -> dict[int, Any]:
        """Arenas by number: negative and taken ones become the next free one, as in Unity."""
        if not isinstance(node.value, list) or not all(isinstance(p, tuple) for p in node.value):
            self._error(node.line, path, "wrong-type", "expected arenas by number, `0: !Arena`")
            return {}
        written: dict[int, tuple[Node, Node]] = {}
        for pair in node.value:
            if not isinstance(pair, tuple):
                continue
            number = self._scalar(pair[0], int, path)
            if number is None:
                continue
            if number in written:
                first = written[number][0].line
                message = f"arena {number} is in line {first} already; the last one wins"
                self._warn(pair[0].line, f"{path}[{number}]", "duplicate-key", message)
            written[number] = pair
        arenas: dict[int, Any] = {}
        for number, (key, value) in written.items():
            used = number
            if number < 0 or number in arenas:
                used = max(arenas, default=-1) + 1
                why = "a negative number" if number < 0 else "an earlier one has this number"
                message = f"{why}; it becomes arena {used}"
                self._warn(key.line, f"{path}[{number}]", "arena-number", message)
            if not _empty(value):
                arenas[used] = self._mapping(value, Arena, f"{path}[{used}]")
        return arenas

    def _item(self, node: Node, path: str) -> dict[str, Any] | None:
        values = self._mapping(node, Item, path)
        written = values.get("name") or ""
        name = canonical_name(written)
        if name is None:
            close = difflib.get_close_matches(written, KINDS, 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            message = f"Animal-AI has no object `{written[:60]}`; it is skipped, as in Unity.{hint}"
            self._warn(node.line, f"{path}.name", "unknown-object", message)
            return values
        lengths = {key: len(values[key]) for key in PER_COPY if values.get(key)}
        if name != "Agent" and len(set(lengths.values())) > 1:
            counts = ", ".join(f"{count} {key}" for key, count in lengths.items())
            message = f"{counts}: {max(lengths.values())} are spawned, the rest left to fallbacks"
            self._warn(node.line, path, "unequal-lists", message)
        return values | {"name": name}

    def _operation(self, node: Node, path: str) -> dict[str, Any] | None:
        model = OPERATIONS.get(node.tag)
        if model is None:
            known = ", ".join(sorted(OPERATIONS))
            message = f"expected an operation's tag, one of {known}"
            self._error(node.line, path, "wrong-tag", message)
            return None
        if _empty(node):
            return {"kind": node.tag[1:]}
        return {"kind": node.tag[1:], **self._mapping(node, model, path)}

    def _scalar(self, node: Node, kind: Any, path: str) -> Any:
        text = node.value
        if not isinstance(text, str):
            self._error(node.line, path, "wrong-type", f"expected {_NAMES[kind]}, got a collection")
            return None
        if node.tag not in _SCALAR_TAGS:
            self._error(node.line, path, "wrong-tag", f"unexpected tag {_short(node.tag)}")
            return None
        if kind is str:
            return text
        value = _boolean(text) if kind is bool else _number(text)
        if value is None or (kind is int and not math.isfinite(value)):
            message = f"expected {_NAMES[kind]}, got `{text[:40]}`"
            self._error(node.line, path, "wrong-type", message)
            return None
        if kind is int and not re.fullmatch(r"[-+]?\d+", text):
            if value != int(value) or abs(value) > 2**31:
                message = f"expected a whole number, got {text[:40]}"
                self._error(node.line, path, "wrong-type", message)
                return None
            message = f"taken as {int(value)}; Unity wants a whole number"
            self._warn(node.line, path, "not-whole", message)
        return int(value) if kind is int else value


_NAMES: Final = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def _number(text: str) -> float | None:
    """Parse a finite number as YAML or .NET writes it (`.5` and `-.5` too), or give None."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _boolean(text: str) -> bool | None:
    lowered = text.lower()
    return True if lowered in _TRUE else False if lowered in _FALSE else None


def _empty(node: Node) -> bool:
    return node.plain and node.value in ("", "~", "null", "Null", "NULL")


def _short(tag: str) -> str:
    return tag.replace(_CORE, "!!")[:60]
