"""Finds the layouts of sessions, whether shipped or given as text, and keeps them by digest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, cast

import yaml

from animalcat import plugins
from animalcat.layouts.explaining.wording import for_informed
from animalcat.layouts.library import (
    LAYOUTS,
    check_depth,
    is_plugin,
    load_layout,
    parse_layout,
    text_of,
)
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import USUAL_LAYOUT, Battery
from animalcat.service.errors import Code, ServiceError, unknown
from animalcat.service.library.plugins import usable
from animalcat.service.model import LayoutRecord
from animalcat.service.storage.sql import SqlStore
from animalcat.values import SessionSpec

MAX_BYTES: Final = 1024 * 1024
"""Most bytes of a layout's text."""
MAX_NODES: Final = 50_000
"""Most values in a layout's text, counting again those that its anchors repeat."""
MAX_NAME: Final = 100
"""Most characters of a layout's name."""


def shipped_layout(name: str, variant: str = "") -> Layout:
    """Return a shipped layout, or one of another package.

    Raises:
        ServiceError: There is no such layout or variant; the message lists those that exist.
        PluginError: It is another package's, whose code this server may not run, or it is broken.
    """
    if name not in LAYOUTS and usable("layout", name) is None:
        known = [*LAYOUTS, *plugins.names("layout")]
        raise unknown(Code.UNKNOWN_LAYOUT, "layout", name, known)
    try:
        return load_layout(name, variant)
    except SpecificationError as error:
        raise ServiceError(Code.UNKNOWN_LAYOUT, f"layout {name!r}: {error}") from error


def meant_layout(battery: Battery, name: str = "", variant: str = "") -> Layout:
    """Return the shipped layout that a battery is measured by.

    Args:
        battery: The battery.
        name: The layout that is asked for; empty for the one that the battery names, and where it
            names none for the usual one.
        variant: The variant that is asked for; empty for the battery's where its layout is meant,
            else for the usual one.

    Raises:
        ServiceError: There is no such layout or variant, or the battery names one that does not
            come with the project.
    """
    if name:
        return shipped_layout(name, variant)
    usual = battery.layout or USUAL_LAYOUT
    if usual.name not in LAYOUTS and not is_plugin(usual.name):
        raise ServiceError(
            Code.UNKNOWN_LAYOUT,
            f"the battery names the layout {usual.name!r}, which does not come with animalcat: "
            "say what measures (--layout FILE.yaml, layout=)",
        )
    return shipped_layout(usual.name, variant or usual.variant)


def own_layout(text: str, variant: str = "") -> Layout:
    """Parse a layout that a user gives as text.

    Args:
        text: The layout as YAML, in the form of the shipped ones.
        variant: Name of the variant; empty for the default one.

    Raises:
        ServiceError: The text is not a layout, or uses the name of a shipped layout that differs.
    """
    if len(text.encode()) > MAX_BYTES:
        raise ServiceError(Code.TOO_LARGE, f"layout_definition has more than {MAX_BYTES} bytes")
    try:
        check_depth(text)
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


def refuse_known_agent(layout: Layout, agent: str) -> None:
    """Refuse to measure an agent with a layout that its own outcomes calibrated.

    Args:
        layout: The layout.
        agent: Name of the agent.

    Raises:
        ServiceError: The agent is among those of the calibration.
    """
    calibration = layout.calibration
    if calibration is not None and agent in calibration.agents:
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"agent {agent!r} is one of those by which {calibration.name!r} was calibrated, so its "
            "own outcomes would count twice; calibrate without it: `animalcat battery calibrate "
            f"... --without {agent}`",
        )


def record_of(layout: Layout, definition: str = "") -> LayoutRecord:
    """Return the record of a layout that the store keeps.

    Args:
        layout: The layout.
        definition: The text that it was read from; empty if it is shipped.
    """
    text = definition or text_of(layout.name)
    return LayoutRecord(layout.identity, layout.name, layout.variant, text)


def layout_of(spec: SessionSpec, store: SqlStore) -> Layout:
    """Return the layout of a session, as it was when the session was created.

    Of an agent that is told the arena's true state, what it sees is read as what it finds.

    Raises:
        ServiceError: The store does not have it.
    """
    record = store.layout(spec.layout_digest)
    if record is None:
        raise ServiceError(
            Code.UNKNOWN_LAYOUT,
            f"layout {spec.layout!r} with digest {spec.layout_digest} is not in the store",
        )
    layout = parse_layout(record.text, record.variant)
    return for_informed(layout) if spec.observation_spec.privileged else layout


def _is_shipped(layout: Layout) -> bool:
    try:
        return load_layout(layout.name, layout.variant).identity == layout.identity
    except SpecificationError:
        return False


def _values(data: Any) -> Iterator[Any]:
    """Yield every value within `data`, as often as it occurs."""
    yield data
    if isinstance(data, dict):
        for key, value in cast("dict[Any, Any]", data).items():
            yield key
            yield from _values(value)
    elif isinstance(data, list):
        for value in cast("list[Any]", data):
            yield from _values(value)
