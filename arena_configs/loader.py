"""Reads Animal-AI arena files as Unity does, and reports where it had to be lenient."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin

from pydantic import BaseModel

from animalcat.arena_configs import nodes
from animalcat.arena_configs.bounds import LONGEST, TIMES, too_long
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
from animalcat.arena_configs.scalars import Scalar, number, truth, whole_number
from animalcat.text.guesses import apart, closest, owner
from animalcat.text.marked_yaml import Node, YamlError, read_text
from animalcat.text.names import BadNameError, check_unicode

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

_ITEM_IN_COMMENT: Final = re.compile(r"#.*-\s*!Item\b")
_OLD_COLOR: Final = re.compile(r".*\.colors\[[0-9]+\]")
_READERS: Final[Mapping[Any, Callable[[str], Scalar]]] = {
    int: whole_number,
    float: number,
    bool: truth,
}
_NAMES: Final = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
_MOST_PROBLEMS: Final = 1000
"""Problems after which the first error ends the reading."""
_MOST_GUESSES: Final = 200
"""Problems after which nothing is guessed, which takes most of the time of a file full of them."""


class _TooManyErrorsError(Exception):
    """A file has an error after so many problems that nobody reads on."""


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


def load_config(source: Path, *, strict: bool = False, by_build: bool = False) -> LoadedConfig:
    """Read an arena file.

    Args:
        source: Path of a YAML file, UTF-8.
        strict: As for `load_text`.
        by_build: As for `load_text`.

    Raises:
        ArenaError: As for `load_text`; or the file cannot be read.
    """
    name = str(source)
    try:
        check_unicode(source.name)
        text = read_text(source)
    except BadNameError as error:
        raise nodes.failure(source.parent.as_posix(), None, "file-name", str(error)) from None
    except YamlError as error:
        raise nodes.failure(name, None, error.code, error.problem) from None
    return load_text(text, name, strict=strict, by_build=by_build)


def load_text(
    text: str, name: str, *, strict: bool = False, by_build: bool = False
) -> LoadedConfig:
    """Read a configuration from text.

    Args:
        text: YAML in the 3.x or 4.x grammar.
        name: Name of the source, for the problems.
        strict: Whether to treat every leniency as an error.
        by_build: Whether a build is to read it, of which there are none before 3: what only clients
            of 2.x wrote is an error then.

    Raises:
        ArenaError: The text is not an arena configuration, or Unity would refuse it; `problems`
            holds everything that was found up to a thousand, not only the first.
    """
    reader = _Reader(name, text, by_build)
    config = ArenaConfig()
    with suppress(_TooManyErrorsError):
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

    def __init__(self, name: str, text: str, by_build: bool) -> None:
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}
        self.newer_names: list[str] = []
        self._name, self._by_build = name, by_build
        text = self._first_configuration(text)
        self._text, self._lines = text, text.splitlines()
        self._lost: set[int] = set()
        self._lifted: dict[str, Any] = {}

    def read(self) -> ArenaConfig:
        root, more = nodes.parse_yaml(self._text, self._name)
        if more is not None:
            self._warn(more, "", "second-document", "only the first YAML document is read")
        if root is None or not isinstance(root.value, list):
            raise nodes.failure(
                self._name, None, "not-an-arena", "expected `!ArenaConfig` with `arenas:` in it"
            )
        other = _other(root.value)
        values = {} if other else self._mapping(root, ArenaConfig, "")
        if not values.get("arenas"):
            self._error(root.line, "arenas", "no-arena", f"there is no arena in it{other}")
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
        if len(self.problems) > _MOST_PROBLEMS:
            raise _TooManyErrorsError

    def _mapping(self, node: Node, model: type[BaseModel], path: str) -> dict[str, Any]:
        """Read the fields of a mapping; the last of a duplicate key wins, as in Unity."""
        fields = fields_of(model)
        self.lines[path] = node.line
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        spelt: dict[str, str] = {}
        before: tuple[Node, Node] | None = None
        for key, value in self._pairs(node, model, path):
            written = key.value if isinstance(key.value, str) else "?"
            where = f"{path}.{written}" if path else written
            pair, before = before, (key, value)
            field = self._field(model, fields, written, key.line, where, value, pair)
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
                self._empty_field(value, field, where, values)
                continue
            values[field.attribute] = read = self._value(value, field, where)
            if model is Arena and field.attribute in TIMES:
                self._check_times(read if field.many else (read,), key.line, where)
        return values

    def _empty_field(self, node: Node, field: _Field, path: str, values: dict[str, Any]) -> None:
        """Read a field without a value: of what cannot be null, Unity makes its zero."""
        if field.many or field.kind not in _ZEROS:
            message = "empty; taken as if it were not there"
            values.pop(field.attribute, None)
        else:
            values[field.attribute] = zero = _ZEROS[field.kind]
            message = f"empty, which Unity's reader takes as {_format_zero(zero)}: write the value"
        self._warn(node.line, path, "empty-field", message)

    def _check_times(self, times: Iterable[int | None], line: int, path: str) -> None:
        for units in times:
            if units is not None and abs(units) > LONGEST:
                self._error(line, path, "too-large", too_long(units))

    def _field(
        self,
        model: type[BaseModel],
        fields: Mapping[str, _Field],
        written: str,
        line: int,
        where: str,
        value: Node,
        before: tuple[Node, Node] | None,
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
        names = [*fields, *(_OLD_FIELDS if model is Arena else ())]
        hint = self._guess(lambda: _suggest_key(names, written, value, before))
        message = f"no such field here, and Unity refuses the file{hint}"
        self._error(line, where[:_LONGEST_PATH], "unknown-field", message)
        return None

    def _guess(self, guess: Callable[[], str]) -> str:
        """What was probably meant, unless there are so many problems that it would take long."""
        return guess() if len(self.problems) < _MOST_GUESSES else ""

    def _look_for_lost_item(self, first: int, last: int, path: str, model: type[BaseModel]) -> None:
        if model is not Item:
            return
        for at, line in enumerate(self._lines[first - 1 : last], first):
            if at not in self._lost and _ITEM_IN_COMMENT.search(line):
                self._lost.add(at)
                message = "`- !Item` stands inside a comment, so two items are read as one"
                self._warn(at, path, "lost-item", message)

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
            shape, meant = "a list", ""
            if isinstance(node.value, str):
                text = node.value
                shape = f"`{text[:40]}`"
                meant = self._guess(lambda: apart(text, fields_of(model)))
            space = f": put a space after the colon, `{meant}`" if meant else ""
            some = "`, `".join(list(fields_of(model))[:3])
            message = f"expected fields (`{some}` ...), got {shape}{space}"
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
            hint = f": write `[{node.value[:40]}]`" if isinstance(node.value, str) else ""
            self._error(node.line, path, "wrong-type", f"expected a list{hint}")
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
        if _empty(node) and kind in _ZEROS:
            zero = _ZEROS[kind]
            message = f"empty, which Unity's reader takes as {_format_zero(zero)}: write the value"
            self._warn(node.line, path, "empty-field", message)
            return zero
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
        if kind is RGB and node.tag == TAGS[Vector3] and _OLD_COLOR.fullmatch(path):
            return self._old_color(node, path)
        values = self._mapping(node, kind, path)
        missing = [name for name in kind.model_fields if name not in values]
        if missing:
            names = ", ".join(missing)
            self._warn(node.line, path, "missing-component", f"no {names}; taken as 0")
        return values

    def _old_color(self, node: Node, path: str) -> dict[str, Any]:
        """Read a colour as clients of 2.x wrote it: as a vector."""
        components = self._components(node, Vector3, path)
        color = {name: components.get(axis, 0.0) for name, axis in zip("rgb", "xyz", strict=True)}
        parts = ", ".join(f"{k}: {v or 0.0:g}" for k, v in color.items())
        message = f"builds from 3 on refuse !Vector3 here: write `!RGB {{{parts}}}`"
        if self._by_build:
            self._error(node.line, path, "old-color", message)
        else:
            message = f"a colour as clients of 2.x wrote it, read as red, green and blue; {message}"
            self._warn(node.line, path, "old-color", message)
        return color

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
        last = -1
        for number, (key, value) in written.items():
            used = number
            if number < 0 or number in arenas:
                used = last + 1
                why = "a negative number" if number < 0 else "an earlier one has this number"
                message = f"{why}; it becomes arena {used}"
                self._warn(key.line, f"{path}[{number}]", "arena-number", message)
            if not _empty(value):
                arenas[used] = self._mapping(value, Arena, f"{path}[{used}]")
                last = max(last, used)
        return arenas

    def _item(self, node: Node, path: str) -> dict[str, Any] | None:
        values = self._mapping(node, Item, path)
        written = values.get("name") or ""
        name = canonical_name(written)
        if name is None:
            close = self._guess(lambda: closest(written, KINDS))
            hint = f" Did you mean {close}?" if close else ""
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
        value, remark, beyond = _READERS[kind](text)
        if value is None:
            self._error(node.line, path, "too-large" if beyond else "wrong-type", remark)
        elif remark:
            self._warn(node.line, path, "odd-number", remark)
        return value


_ZEROS: Final[Mapping[Any, Any]] = {
    int: 0,
    float: 0.0,
    bool: False,
    Vector3: {"x": 0.0, "y": 0.0, "z": 0.0},
    RGB: {"r": 0.0, "g": 0.0, "b": 0.0},
}
"""What Unity makes of a value that is left empty, by its kind."""
_LONGEST_PATH: Final = 200
_FEW: Final = 10


def _format_zero(zero: Any) -> str:
    return "zeros" if isinstance(zero, dict) else f"{zero:g}" if zero is not False else "false"


def _suggest_key(
    names: Sequence[str], written: str, value: Node, before: tuple[Node, Node] | None
) -> str:
    """What was probably meant by a key that is no field, as the rest of a sentence."""
    if written == "<<":
        return ": its reader knows no merge keys, so write the fields out"
    if meant := apart(written, names) if _empty(value) else "":
        return f": put a space after the colon, `{meant}`"
    if _empty(value) and before is not None and re.fullmatch("[0-9]+", written):
        key, first = before
        if isinstance(first.value, str) and re.fullmatch("[-+]?[0-9]+", first.value):
            return f": write a decimal point, `{key.value}: {first.value}.{written[:40]}`"
    wholes = (ArenaConfig, Arena, Item)
    if tag := owner(written, {TAGS[of]: fields_of(of) for of in wholes}):
        return f": it is a field of {tag}, so look at the indent"
    if close := closest(written, names):
        return f": write `{close}`"
    return f": its fields are `{'`, `'.join(names)}`" if len(names) <= _FEW else ""


def _empty(node: Node) -> bool:
    return node.plain and node.value in ("", "~", "null", "Null", "NULL")


def _short(tag: str) -> str:
    return tag.replace(_CORE, "!!")[:60]
