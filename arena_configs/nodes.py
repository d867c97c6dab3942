"""YAML text as plain nodes with line numbers: bounded in size, and no tag ever runs code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from animalcat.arena_configs.model import ArenaError, Problem

MAX_BYTES: Final = 1 << 20
"""Longest text that is read; the longest real file at hand has 32 kB."""
MAX_NODES: Final = 50_000
"""Most nodes, counting what an alias repeats."""
_MAX_DEPTH: Final = 32


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
class _Open:
    line: int
    tag: str
    anchor: str | None
    mapping: bool
    children: list[Node]


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
    except UnicodeEncodeError:
        raise failure(name, None, "not-utf8", "the text is not Unicode") from None
    if size > MAX_BYTES:
        raise failure(name, None, "too-large", f"{size} bytes; at most {MAX_BYTES} are read")
    try:
        return _compose(_events(text), name)
    except yaml.MarkedYAMLError as error:
        # An error at the very end is reported one line behind it.
        line = min(error.problem_mark.line, text.count("\n")) + 1 if error.problem_mark else None
        raise failure(name, line, "not-yaml", error.problem or "not YAML") from None
    except yaml.YAMLError as error:
        message = str(error).splitlines()[0]
        raise failure(name, None, "not-yaml", message) from None


def failure(name: str, line: int | None, code: str, message: str) -> ArenaError:
    """Make an error about a whole file."""
    problem = Problem(name, line, "", "error", code, message)
    return ArenaError(str(problem), (problem,))


def _events(text: str) -> Iterator[yaml.Event]:
    return yaml.parse(text, Loader=yaml.CSafeLoader)


def _compose(events: Iterator[yaml.Event], name: str) -> tuple[Node | None, int | None]:
    root: Node | None = None
    anchors: dict[str, Node | None] = {}
    stack: list[_Open] = []
    documents = 0
    for count, event in enumerate(events):
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
            stack.append(_Open(_line(event), event.tag or "", event.anchor, mapping, []))
            continue
        node = _finished(event, stack, anchors, name)
        if node is None:
            continue
        if max(node.size, count) > MAX_NODES:
            message = f"more than {MAX_NODES} values, with what its aliases repeat"
            raise failure(name, node.line, "too-large", message)
        if stack:
            stack[-1].children.append(node)
        else:
            root = node
    return root, None


def _finished(
    event: yaml.Event, stack: list[_Open], anchors: dict[str, Node | None], name: str
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
