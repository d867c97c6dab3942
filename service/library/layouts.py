"""Finds the layouts of sessions, whether shipped or given as text, and keeps them by digest."""

from __future__ import annotations

from typing import Final

from animalcat.extending import plugins
from animalcat.layouts.explaining.wording import informed_layout
from animalcat.layouts.library import (
    LAYOUTS,
    LayoutSource,
    is_plugin,
    load_layout,
    parse_layout,
    text_of,
)
from animalcat.layouts.library.choice import Look, choose, hint, words_of_choice
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import USUAL_LAYOUT, Battery
from animalcat.service.errors import Code, ServiceError, unknown
from animalcat.service.library.plugins import usable
from animalcat.service.model import LayoutRecord
from animalcat.service.storage.sql import SqlStore
from animalcat.values import SessionSpec

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


def meant_layout(
    battery: Battery, name: str = "", variant: str = "", own: Layout | None = None
) -> Layout:
    """Return the layout that a battery is measured by, in the variant that is meant.

    A variant that is not asked for is the battery's where the layout is the one that it names. Else
    it is the one for measuring that covers most of the battery (`layouts.library.choice`).

    Args:
        battery: The battery.
        name: The shipped layout that is asked for; empty for the one that the battery names, and
            where it names none for the usual one.
        variant: The variant that is asked for; empty for none.
        own: A layout of the caller's own, in the place of a name (`own_layout`); None for none.

    Raises:
        ServiceError: There is no such layout or variant, or the battery names one that does not
            come with the project.
    """
    usual = battery.layout or USUAL_LAYOUT
    if not (name or own) and usual.name not in LAYOUTS and not is_plugin(usual.name):
        raise ServiceError(
            Code.UNKNOWN_LAYOUT,
            f"the battery names the layout {usual.name!r}, which does not come with "
            "animalcat: name another (--layout FILE.yaml, layout=)",
        )
    layout = own
    if layout is None:
        name = name or usual.name
        variant = variant or _variant_named(battery, name)
        layout = shipped_layout(name, variant)
    return layout if variant else chosen_variant(battery, layout)


def layout_on(battery: Battery, source: LayoutSource, variant: str = "") -> Layout:
    """Return the layout that a command or a notebook measures a battery by, as sessions do.

    Args:
        battery: The battery.
        source: A layout, or its name, file or text; empty for the one that the battery names. A
            layout is returned as it is.
        variant: The variant that is asked for; empty for the one that is meant.

    Raises:
        ServiceError: As for `meant_layout`.
        SpecificationError: There is no such layout or variant.
    """
    if not source:
        return meant_layout(battery, "", variant)
    asked = variant or (_variant_named(battery, source) if isinstance(source, str) else "")
    layout = load_layout(source, asked)
    return layout if asked or source is layout else chosen_variant(battery, layout)


def chosen_variant(battery: Battery, layout: Layout) -> Layout:
    """Return the variant that is meant on a battery that names none, of a layout without one."""
    return choose(layout, _look(battery)).layout


def variant_said(battery: Battery, layout: Layout) -> tuple[str, str]:
    """Say which variant of a layout measures on a battery and why, and whether another is better.

    Returns:
        A sentence for each; the second is empty where no other variant covers many more arenas.
    """
    look = _look(battery)
    choice = choose(layout, look)
    return words_of_choice(layout, choice, _variant_named(battery, layout.name)), hint(
        layout, choice, look
    )


def _variant_named(battery: Battery, name: str) -> str:
    """Return the variant that a battery names for a layout; empty if it names none."""
    usual = battery.layout or USUAL_LAYOUT
    return usual.variant if usual.name == name else ""


def _look(battery: Battery) -> Look:
    """Return what looks at the arenas of a battery, whatever their pass marks are."""

    def look(layout: Layout) -> list[bool | None]:
        return [
            None
            if layout.excluded(instance.features)
            else not layout.why_not(instance.features, instance.missing)
            for instance in battery.instances
        ]

    return look


def own_layout(text: str, variant: str = "") -> Layout:
    """Parse a layout that a user gives as text.

    Args:
        text: The layout as YAML, in the form of the shipped ones.
        variant: Name of the variant; empty for the default one.

    Raises:
        ServiceError: The text is not a layout, or uses the name of a shipped layout that differs.
    """
    try:
        layout = parse_layout(text, variant)
    except SpecificationError as error:
        raise ServiceError(Code.INVALID_REQUEST, f"your own layout: {error}") from error
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


def knows_agent(layout: Layout, *agents: str) -> bool:
    """Whether outcomes of one of some agents calibrated a layout."""
    return layout.calibration is not None and bool({*agents} & {*layout.calibration.agents})


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
            f"agent {agent!r} is one of the agents with which {calibration.name!r} was calibrated, "
            "so its own outcomes would count twice; take the layout as written, or calibrate "
            f"without it: `animalcat battery calibrate ... --without {agent}`",
        )


def record_of(layout: Layout, definition: str = "") -> LayoutRecord:
    """Return the record of a layout that the store keeps.

    Args:
        layout: The layout.
        definition: The text that it was read from; empty if it is shipped.
    """
    text = definition or text_of(layout.name, layout.variant)
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
    return informed_layout(layout) if spec.observation_spec.privileged else layout


def _is_shipped(layout: Layout) -> bool:
    try:
        return load_layout(layout.name, layout.variant).identity == layout.identity
    except SpecificationError:
        return False
