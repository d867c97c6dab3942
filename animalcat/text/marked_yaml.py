"""Reads all YAML: what a text will make is counted before it is made, and every key has its line.

`parse_yaml` gives nodes as they are written, `load_yaml` plain data with the lines of its keys, and
`validate` a model of it. No tag ever runs code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from animalcat.text.guesses import broken_line, hint

M = TypeVar("M")
KeyPath: TypeAlias = tuple[str | int, ...]
"""The keys, and places in lists, that lead to a value."""

MAX_BYTES: Final = 1 << 20
"""Longest text that is read; real files of 43 arenas have 370 kB."""
MAX_REPEATED: Final = 50_000
"""Most nodes that aliases may repeat, in merge keys as well; those that are written are bounded by
the length."""
MAX_VALUES: Final = 100_000
"""Most keys and values of plain data, counting again those that aliases repeat."""
_MAX_DEPTH: Final = 32
_MAX_NUMBER: Final = 400
"""Most characters of a number; of more, some of YAML's forms take for ever."""
_MAX_PROBLEMS: Final = 20
"""Most problems of one text that are explained."""
_MISSING: Final = ("missing", "missing_argument")
_UTF_16: Final = ("\udcff\udcfe", "\udcfe\udcff")
"""The marks at the beginning of UTF-16, as `text_of` gives them."""
_CORE: Final = "tag:yaml.org,2002:"
_SCALARS: Final[Any] = yaml.SafeLoader("")
"""Knows which plain scalars are numbers, truth values or nothing; it reads no text."""
_READ: Final = frozenset(_CORE + kind for kind in ("int", "float", "bool", "null"))
"""Tags of scalars that are no text; a day is text as it is written."""


class YamlError(ValueError):
    """A text cannot be used; the message says file, line and key, what is wrong, and what to do.

    Attributes:
        file: Name of the file.
        line: Line from 1; None if no line is to blame.
        code: Short stable name of the kind of problem.
        problem: What is wrong, without the place.
    """

    def __init__(self, file: str, line: int | None, code: str, problem: str, key: str = "") -> None:
        place = f"{file}:{line}" if line else file
        super().__init__(": ".join(part for part in (place, key, problem) if part))
        self.file, self.line, self.code, self.problem = file, line, code, problem


@dataclass(frozen=True, slots=True)
class Node:
    """One YAML node.

    Attributes:
        line: Line, from 1.
        tag: Explicit tag, or "".
        value: Text of a scalar, items of a sequence, or key-value pairs of a mapping in the order
            of the file, including duplicates.
        size: Number of nodes in its tree, including itself.
        depth: Number of levels below it.
        plain: Whether it is a scalar without quotes.
        mapping: Whether it is a mapping; one without keys has the value of an empty sequence.
    """

    line: int
    tag: str
    value: str | list[Node] | list[tuple[Node, Node]]
    size: int = 1
    depth: int = 0
    plain: bool = False
    mapping: bool = False


@dataclass(slots=True)
class _OpenNode:
    line: int
    tag: str
    anchor: str | None
    mapping: bool
    children: list[Node]


def text_of(content: bytes) -> str:
    """The text of a file's bytes, for `parse_yaml`.

    What is no UTF-8 stays in it as surrogates, which `parse_yaml` finds and names the line of.
    """
    return content.decode("utf-8-sig", "surrogateescape")


def read_text(path: Path) -> str:
    """The text of a file, as `text_of` gives it; no more of it than is read at all.

    Raises:
        YamlError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return text_of(file.read(MAX_BYTES + 1))
    except OSError as error:
        reason = error.strerror or "not readable"
        raise YamlError(str(path), None, "not-readable", reason) from None


def parse_yaml(text: str, name: str) -> tuple[Node | None, int | None]:
    """Read the first document of a text.

    Args:
        text: YAML.
        name: Name of the file, for errors.

    Returns:
        The root (None for an empty document), and the line at which a further document starts (None
        if there is none).

    Raises:
        YamlError: It is not YAML, is too large or too deep, or refers to itself.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise _not_utf8(text, error.start, name) from None
    if size > MAX_BYTES:
        message = f"at most {MAX_BYTES} bytes are read: split it into several files"
        raise YamlError(name, None, "too-large", message)
    try:
        return _compose(_events(text), name)
    except yaml.MarkedYAMLError as error:
        raise YamlError(name, *_no_yaml(error, text)) from None
    except yaml.reader.ReaderError as error:
        if "\0" in text[:4]:
            message = "the file is UTF-16: save it as UTF-8"
            raise YamlError(name, 1, "not-utf8", message) from None
        # The place is counted in bytes.
        line = text.encode()[: error.position].count(b"\n") + 1
        message = f"the character U+{error.character:04X} is none of YAML's: {error.reason}"
        raise YamlError(name, line, "not-yaml", message) from None
    except yaml.YAMLError as error:
        message = str(error).splitlines()[0]
        raise YamlError(name, None, "not-yaml", message) from None


def _not_utf8(text: str, place: int, name: str) -> YamlError:
    """The error about bytes that are no UTF-8, or about surrogates in a text."""
    if text.startswith(_UTF_16):
        return YamlError(name, 1, "not-utf8", "the file is UTF-16: save it as UTF-8")
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    code = ord(text[place]) - 0xDC00
    if not 0x80 <= code <= 0xFF:
        return YamlError(name, line, "not-utf8", f"column {column}: the text is not Unicode")
    likely = bytes([code]).decode("cp1252", "replace")
    return YamlError(
        name,
        line,
        "not-utf8",
        f"column {column}: the byte {code:#04x} is no UTF-8 (in Latin-1 it is {likely!r}): "
        "save the file as UTF-8",
    )


def _no_yaml(error: yaml.MarkedYAMLError, text: str) -> tuple[int | None, str, str]:
    """Line, code and message of what the parser does not understand."""
    mark, since = error.problem_mark, error.context_mark
    problem = error.problem or "not YAML"
    if mark is None:
        return None, "not-yaml", problem
    # An error at the very end is reported one line behind it.
    line = min(mark.line, text.count("\n")) + 1
    begun = since.line + 1 if since else None
    guess = broken_line(text, line, begun, mark.column)
    if guess is not None:
        return guess[0], "not-yaml", f"{guess[1]} (YAML: {problem})"
    if begun is not None and begun < line and error.context:
        problem = f"{problem}, {error.context} that begins in line {begun}"
    return line, "not-yaml", problem


def _events(text: str) -> Iterator[yaml.Event]:
    return yaml.parse(text, Loader=yaml.CSafeLoader)


def _compose(events: Iterator[yaml.Event], name: str) -> tuple[Node | None, int | None]:
    root: Node | None = None
    anchors: dict[str, Node | None] = {}
    stack: list[_OpenNode] = []
    documents = repeated = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                return root, _line(event)
            continue
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            _check_depth(len(stack) + 1, event, name)
            mapping = isinstance(event, yaml.MappingStartEvent)
            if event.anchor:
                anchors[event.anchor] = None
            stack.append(_OpenNode(_line(event), event.tag or "", event.anchor, mapping, []))
            continue
        node = _finish_node(event, stack, anchors, name)
        if node is None:
            continue
        if isinstance(event, yaml.AliasEvent):
            repeated += node.size
            if repeated > MAX_REPEATED:
                message = f"its aliases (*{event.anchor}) repeat more than {MAX_REPEATED} values"
                raise YamlError(name, _line(event), "too-large", message)
            _check_depth(len(stack) + node.depth, event, name)
        if stack:
            stack[-1].children.append(node)
        else:
            root = node
    return root, None


def _check_depth(depth: int, event: yaml.Event, name: str) -> None:
    if depth > _MAX_DEPTH:
        message = f"nested deeper than {_MAX_DEPTH} levels"
        raise YamlError(name, _line(event), "too-deep", message)


def _finish_node(
    event: yaml.Event, stack: list[_OpenNode], anchors: dict[str, Node | None], name: str
) -> Node | None:
    """The node that an event completes, if any."""
    if isinstance(event, yaml.ScalarEvent):
        plain = event.style in (None, "")
        node = Node(_line(event), event.tag or "", event.value, plain=plain)
        if event.anchor:
            anchors[event.anchor] = node
        return node
    if isinstance(event, yaml.AliasEvent):
        target = anchors.get(event.anchor or "")
        if target is None:
            message = f"the alias *{event.anchor} refers to nothing before it, or to itself"
            raise YamlError(name, _line(event), "bad-alias", message)
        return target
    if isinstance(event, yaml.CollectionEndEvent):
        begun = stack.pop()
        size = 1 + sum(child.size for child in begun.children)
        value = (
            list(zip(begun.children[::2], begun.children[1::2], strict=True))
            if begun.mapping
            else begun.children
        )
        depth = 1 + max((child.depth for child in begun.children), default=0)
        node = Node(begun.line, begun.tag, value, size, depth, mapping=begun.mapping)
        if begun.anchor:
            anchors[begun.anchor] = node
        return node
    return None


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark else 1


@dataclass(frozen=True, slots=True)
class Marked:
    """What a text says, as plain data.

    Attributes:
        data: Dicts with text as keys, lists, text, numbers, truth values and None.
        file: Name of the file.
        lines: Path to a value -> its line.
    """

    data: Any
    file: str = ""
    lines: dict[KeyPath, int] = field(default_factory=dict[KeyPath, int])


def load_yaml(text: str, file: str) -> Marked:
    """Read a text as plain data; merge keys are unfolded.

    Args:
        text: YAML, one document.
        file: Name of the file, for errors.

    Raises:
        YamlError: As for `parse_yaml`; or a key is there twice, a tag is none of YAML's own, or
            there is a second document.
    """
    root, more = parse_yaml(text, file)
    if more is not None:
        raise YamlError(file, more, "second-document", "a second YAML document starts here")
    marked = Marked({}, file)
    if root is None:
        return Marked(None, file)
    if root.size > MAX_VALUES:
        message = f"at most {MAX_VALUES} keys and values are read, and it has {root.size}"
        raise YamlError(file, root.line, "too-large", message)
    return Marked(_plain(root, (), marked), file, marked.lines)


def _plain(node: Node, path: KeyPath, marked: Marked) -> Any:
    marked.lines.setdefault(path, node.line)
    if isinstance(node.value, str):
        return _scalar(node, node.value, path, marked)
    if node.tag not in ("", "!", _CORE + "map", _CORE + "seq"):
        raise _tag_error(node, path, marked)
    if node.mapping:
        pairs = _pairs(node, path, marked)
        marked.lines.update({(*path, key): line for key, (line, _) in pairs.items()})
        return {key: _plain(value, (*path, key), marked) for key, (_, value) in pairs.items()}
    return [
        _plain(entry, (*path, k), marked) for k, entry in enumerate(cast("list[Node]", node.value))
    ]


def _pairs(node: Node, path: KeyPath, marked: Marked) -> dict[str, tuple[int, Node]]:
    """Line and value by key: what is merged first, as YAML's own library has it."""
    own: dict[str, tuple[int, Node]] = {}
    merged: dict[str, tuple[int, Node]] = {}
    for key, value in cast("list[tuple[Node, Node]]", node.value):
        if not isinstance(key.value, str):
            raise YamlError(marked.file, key.line, "bad-key", "a key is one text", path_text(path))
        if key.value in own:
            message = f"given already in line {own[key.value][0]}; leave one of them out"
            where = path_text((*path, key.value))
            raise YamlError(marked.file, key.line, "duplicate-key", message, where)
        own[key.value] = key.line, value
    if (written := own.get("<<")) is not None:
        del own["<<"]
        line, value = written
        several = isinstance(value.value, list) and not value.mapping
        for one in reversed(cast("list[Node]", value.value) if several else [value]):
            if not one.mapping:
                message = "merge keys and values, or a list of such"
                raise YamlError(marked.file, line, "bad-merge", message, path_text((*path, "<<")))
            merged |= _pairs(one, path, marked)
    return merged | own


def _scalar(node: Node, text: str, path: KeyPath, marked: Marked) -> Any:
    tag = node.tag
    if not tag and node.plain:
        tag = str(_SCALARS.resolve(yaml.ScalarNode, text, (True, False)))
    elif tag not in ("", "!", _CORE + "str", *_READ):
        raise _tag_error(node, path, marked)
    if tag not in _READ:
        return text
    try:
        if len(text) > _MAX_NUMBER:
            raise ValueError
        return _SCALARS.yaml_constructors[tag](_SCALARS, yaml.ScalarNode(tag, text))
    except (ValueError, KeyError, IndexError):
        message = f"`{text[:40]}` is no {tag.removeprefix(_CORE)} that can be read"
        raise YamlError(marked.file, node.line, "bad-scalar", message, path_text(path)) from None


def _tag_error(node: Node, path: KeyPath, marked: Marked) -> YamlError:
    message = f"unexpected tag {node.tag[:60]}; leave it out"
    return YamlError(marked.file, node.line, "wrong-tag", message, path_text(path))


def path_text(path: Sequence[str | int]) -> str:
    """A path as text, such as `entries[2].count`."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


def validate(
    model: type[M], marked: Marked, *, context: Mapping[str, Any] | None = None, help: str = ""
) -> M:
    """Make a model of what a text says.

    Args:
        model: The model, or a dataclass.
        marked: What the text says.
        context: What validators of the model get.
        help: A sentence on where to read more, for errors.

    Raises:
        YamlError: The model refuses it; all that is wrong is named.
    """
    try:
        text = json.dumps(marked.data, default=str)
        return TypeAdapter(model).validate_json(text, context=context)
    except ValidationError as error:
        line, said = sentences(error, model, marked)
        raise YamlError(marked.file, line, "wrong-value", f"{said}. {help}".strip()) from None


def sentences(
    error: ValidationError, model: Any, marked: Marked | None = None
) -> tuple[int | None, str]:
    """The line of the first thing that a model refuses, and what is wrong in all of them."""
    lines = marked.lines if marked else {}
    found: list[tuple[int | None, KeyPath, ErrorDetails]] = []
    for wrong in error.errors():
        path = _path(wrong, lines) if lines else wrong["loc"]
        line = next((lines[path[:k]] for k in range(len(path), -1, -1) if path[:k] in lines), None)
        found.append((line, path, wrong))
    found.sort(key=lambda one: one[0] or 0)
    first = found[0][0]
    said = [
        f"{f'line {line}: ' if line and line != first else ''}"
        f"{path_text(path) or 'the whole file'}: {_problem(wrong, model)}"
        for line, path, wrong in found[:_MAX_PROBLEMS]
    ]
    if more := len(found) - len(said):
        said.append(f"and {more} more")
    return first, "; ".join(said)


def _path(wrong: ErrorDetails, lines: Mapping[KeyPath, int]) -> KeyPath:
    """The path of a problem, without names of types, to a key of the text or one that it lacks."""
    path: KeyPath = ()
    for key in wrong["loc"]:
        path = (*path, key) if (*path, key) in lines else path
    return (*path, wrong["loc"][-1]) if wrong["type"] in _MISSING else path


def _problem(wrong: ErrorDetails, model: Any) -> str:
    shown = repr(str(wrong["input"])[:80])
    match wrong["type"]:
        case kind if kind in _MISSING:
            return "it is missing; say it"
        case "extra_forbidden" | "unexpected_keyword_argument":
            schema = TypeAdapter(model).json_schema()
            known = _keys_at(schema, wrong["loc"][:-1], schema.get("$defs", {}))
            return f"there is no such key.{hint(str(wrong['loc'][-1]), known)}"
        case "model_type" | "dict_type" | "dataclass_type":
            return f"give keys and values, not {shown}"
        case "string_type":  # YAML reads NO as false, and 0123 as 83
            return f"it is read as {shown}; give a text, in quotes"
        case "value_error" | "assertion_error":
            return wrong["msg"].partition(", ")[2]
        case _:
            return f"{wrong['msg']}, not {shown}"


def _keys_at(part: dict[str, Any], place: KeyPath, parts: dict[str, Any]) -> list[str]:
    """The keys that a part of a JSON Schema knows at a place, which may name types as well."""
    part = parts.get(part.get("$ref", "").rpartition("/")[2], part)
    fields = part.get("properties", {})
    if fields and not place:
        return list(fields)
    inner = [(option, place) for option in part.get("anyOf", [])]
    if place:
        below = (fields.get(place[0]), part.get("items"), part.get("additionalProperties"))
        inner += [(one, place[1:]) for one in (*below, part) if isinstance(one, dict)]
    return next(filter(None, (_keys_at(*one, parts) for one in inner)), list[str]())
