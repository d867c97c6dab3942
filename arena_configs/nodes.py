"""YAML text as plain nodes with line numbers: bounded in size, and no tag ever runs code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from animalcat.arena_configs.guesses import broken_line
from animalcat.arena_configs.model import ArenaError, Problem

MAX_BYTES: Final = 1 << 20
"""Longest text that is read; real files of 43 arenas have 370 kB."""
MAX_REPEATED: Final = 50_000
"""Most nodes that aliases may repeat; those that are written are bounded by the length."""
_MAX_DEPTH: Final = 32
_UTF_16: Final = ("\udcff\udcfe", "\udcfe\udcff")
"""The marks at the beginning of UTF-16, as `text_of` gives them."""


@dataclass(frozen=True, slots=True)
class Node:
    """One YAML node.

    Attributes:
        line: Line, from 1.
        tag: Explicit tag, or "".
        value: Text of a scalar, items of a sequence, or key-value pairs of a mapping in the order
            of the file, including duplicates.
        size: Number of nodes in its tree, including itself.
        plain: Whether it is a scalar without quotes.
    """

    line: int
    tag: str
    value: str | list[Node] | list[tuple[Node, Node]]
    size: int = 1
    plain: bool = False


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


def parse_yaml(text: str, name: str) -> tuple[Node | None, int | None]:
    """Read the first document of a text.

    Args:
        text: YAML.
        name: Name of the file, for errors.

    Returns:
        The root (None for an empty document), and the line at which a further document starts (None
        if there is none).

    Raises:
        ArenaError: It is not YAML, is too large or too deep, or refers to itself.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise _not_utf8(text, error.start, name) from None
    if size > MAX_BYTES:
        message = f"at most {MAX_BYTES} bytes are read: split it into several files"
        raise failure(name, None, "too-large", message)
    try:
        return _compose(_events(text), name)
    except yaml.MarkedYAMLError as error:
        raise failure(name, *_no_yaml(error, text)) from None
    except yaml.reader.ReaderError as error:
        if "\0" in text[:4]:
            message = "the file is UTF-16: save it as UTF-8"
            raise failure(name, 1, "not-utf8", message) from None
        # The place is counted in bytes.
        line = text.encode()[: error.position].count(b"\n") + 1
        message = f"the character U+{error.character:04X} is none of YAML's: {error.reason}"
        raise failure(name, line, "not-yaml", message) from None
    except yaml.YAMLError as error:
        message = str(error).splitlines()[0]
        raise failure(name, None, "not-yaml", message) from None


def _not_utf8(text: str, place: int, name: str) -> ArenaError:
    """The error about bytes that are no UTF-8, or about surrogates in a text."""
    if text.startswith(_UTF_16):
        return failure(name, 1, "not-utf8", "the file is UTF-16: save it as UTF-8")
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    code = ord(text[place]) - 0xDC00
    if not 0x80 <= code <= 0xFF:
        return failure(name, line, "not-utf8", f"column {column}: the text is not Unicode")
    likely = bytes([code]).decode("cp1252", "replace")
    return failure(
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


def failure(name: str, line: int | None, code: str, message: str) -> ArenaError:
    """Make an error about a whole file."""
    problem = Problem(name, line, "", "error", code, message)
    return ArenaError(str(problem), (problem,))


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
            if len(stack) >= _MAX_DEPTH:
                message = f"nested deeper than {_MAX_DEPTH} levels"
                raise failure(name, _line(event), "too-deep", message)
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
                raise failure(name, _line(event), "too-large", message)
        if stack:
            stack[-1].children.append(node)
        else:
            root = node
    return root, None


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
            raise failure(name, _line(event), "bad-alias", message)
        return target
    if isinstance(event, yaml.CollectionEndEvent):
        begun = stack.pop()
        size = 1 + sum(child.size for child in begun.children)
        value = (
            list(zip(begun.children[::2], begun.children[1::2], strict=True))
            if begun.mapping
            else begun.children
        )
        node = Node(begun.line, begun.tag, value, size)
        if begun.anchor:
            anchors[begun.anchor] = node
        return node
    return None


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark else 1
