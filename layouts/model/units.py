"""Units of nodes, some of which are multiples."""

from __future__ import annotations

import re
from typing import Final

_MULTIPLE: Final = re.compile(r"([0-9.]+) (\S.*)")


def plain_unit(unit: str) -> tuple[float, str]:
    """Split a unit that is a multiple into the factor and the unit: "10 m" is 10 and "m"."""
    found = _MULTIPLE.fullmatch(unit)
    if found and not found[2].startswith(("lg", "ln", "log")):
        return float(found[1]), found[2]
    return 1.0, "" if unit == "1" else unit
