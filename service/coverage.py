"""Which layout is meant, and which instances of a battery it covers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from animalcat.layouts.codec import SpecificationError
from animalcat.layouts.library import LAYOUTS, load_layout
from animalcat.layouts.spec import Layout
from animalcat.service.battery import Battery
from animalcat.service.errors import Code, ServiceError, unknown


def find_layout(name: str, variant: str = "") -> Layout:
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


def covered_features(layout: Layout, battery: Battery) -> dict[str, Sequence[float]]:
    """Features of the instances that the layout covers, by name, in its order of columns.

    An instance that lacks a feature without a rule for it, or has one out of the layout's range,
    is not covered.
    """
    covered: dict[str, Sequence[float]] = {}
    for instance in battery.instances:
        if instance.name not in layout.covers:
            continue
        row = [instance.features.get(f.name, np.nan) for f in layout.features]
        with contextlib.suppress(ValueError):
            covered[instance.name] = layout.check_features([row])[0].tolist()
    return covered


def what_it_covers(layout: Layout) -> str:
    """The instances that a layout covers, in words."""
    families = [f"the family {family}" for family in layout.covers.families]
    return ", ".join([*layout.covers.instances, *families])
