"""Layouts of sessions: shipped or brought along as text, kept by digest, found again by spec."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, cast

import yaml

from animalcat.layouts.library import LAYOUTS, load_layout, parse_layout, text_of
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.spec import Layout
from animalcat.service.errors import Code, ServiceError, unknown
from animalcat.service.model import LayoutRecord, SessionSpec
from animalcat.service.storage.base import SessionStore

MAX_BYTES: Final = 1024 * 1024
"""Longest text of a layout."""
MAX_NODES: Final = 50_000
"""Most values of a layout's text, those counted again that its anchors repeat."""
MAX_NAME: Final = 100
"""Longest name of a layout."""


def shipped_layout(name: str, variant: str = "") -> Layout:
    """A layout that is shipped.

    Raises:
        ServiceError: There is none of that name or variant; it lists those that there are.
    """
    if name not in LAYOUTS:
        raise unknown(Code.UNKNOWN_LAYOUT, "layout", name, list(LAYOUTS))
    try:
        return load_layout(name, variant)
    except SpecificationError as error:
        raise ServiceError(Code.UNKNOWN_LAYOUT, f"layout {name!r}: {error}") from error


def own_layout(text: str, variant: str = "") -> Layout:
    """A layout that somebody brings along.

    Args:
        text: YAML, of the form of the shipped ones.
        variant: Which of its variants; the default one where empty.

    Raises:
        ServiceError: It is no layout, or takes the name of a shipped one for another layout.
    """
    if len(text.encode()) > MAX_BYTES:
        raise ServiceError(Code.TOO_LARGE, f"layout_definition has more than {MAX_BYTES} bytes")
    try:
        if sum(1 for _ in islice(_values(yaml.safe_load(text)), MAX_NODES + 1)) > MAX_NODES:
            raise ServiceError(Code.TOO_LARGE, f"the layout has more than {MAX_NODES} values")
        layout = parse_layout(text, variant)
    except (SpecificationError, yaml.YAMLError, ValueError) as error:
        raise ServiceError(Code.INVALID_REQUEST, f"your own layout: {error}") from error
    except RecursionError as error:
        raise ServiceError(Code.INVALID_REQUEST, "your own layout is nested too deeply") from error
    if not 1 <= len(layout.name) <= MAX_NAME or not layout.name.isprintable():
        raise ServiceError(
            Code.INVALID_REQUEST, f"a layout's name has 1 to {MAX_NAME} printable characters"
        )
    if layout.name in LAYOUTS and not _is_shipped(layout):
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"{layout.name!r} is the name of a shipped layout; give yours another name",
        )
    return layout


def record_of(layout: Layout, definition: str = "") -> LayoutRecord:
    """A layout as the store keeps it.

    Args:
        layout: The layout.
        definition: The text that it was read from; empty where it is shipped.
    """
    text = definition or text_of(layout.name)
    return LayoutRecord(layout.identity, layout.name, layout.variant, text)


def layout_of(spec: SessionSpec, store: SessionStore) -> Layout:
    """The layout of a session, as it was when the session was made.

    Raises:
        ServiceError: It is not kept, or a session from before layouts were kept names one that is
            not shipped.
    """
    if not spec.layout_digest:
        return shipped_layout(spec.layout, spec.layout_variant)
    record = store.layout(spec.layout_digest)
    if record is None:
        raise ServiceError(
            Code.UNKNOWN_LAYOUT,
            f"layout {spec.layout!r} with digest {spec.layout_digest} is not in the store",
        )
    return parse_layout(record.text, record.variant)


def _is_shipped(layout: Layout) -> bool:
    try:
        return load_layout(layout.name, layout.variant).identity == layout.identity
    except SpecificationError:
        return False


def _values(data: Any) -> Iterator[Any]:
    """Every value within, as often as it is there."""
    yield data
    if isinstance(data, dict):
        for key, value in cast("dict[Any, Any]", data).items():
            yield key
            yield from _values(value)
    elif isinstance(data, list):
        for value in cast("list[Any]", data):
            yield from _values(value)
