"""The units of nodes, which may be multiples such as "10 m", and conversion between units."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

NOT_KNOWN: Final = "not known yet"
"""What is said in place of an estimate of which next to nothing was learnt."""
_MULTIPLE: Final = re.compile(r"([0-9.]+) (\S.*)")
_PLAIN: Final = ("", "1", "-")
"""What is written where there is no unit."""
_KNOWN: Final[Mapping[str, Mapping[str, float]]] = {
    "m": {
        **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0),
        "dm": 0.1,
        "cm": 0.01,
        "mm": 0.001,
        "km": 1000.0,
    },
    "s": {
        **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
        **dict.fromkeys(("min", "minute", "minutes"), 60.0),
        "ms": 0.001,
        "h": 3600.0,
    },
    "deg": {
        **dict.fromkeys(("deg", "degree", "degrees", "\u00b0"), 1.0),
        **dict.fromkeys(("rad", "radian", "radians"), math.degrees(1.0)),
    },
    "1": {"1": 1.0, "%": 0.01, "percent": 0.01, "\u2030": 0.001},
}
"""Units that are one another's multiples, by the first of them."""


class UnitError(ValueError):
    """A unit is unknown, or measures something else; the message says what would do."""


def plain_unit(unit: str) -> tuple[float, str]:
    """Split a unit that is a multiple into the factor and the unit: "10 m" is 10 and "m"."""
    match = _MULTIPLE.fullmatch(unit)
    if match and not match[2].startswith(("lg", "ln", "log")):
        return float(match[1]), match[2]
    return 1.0, "" if unit == "1" else unit


def is_unit(text: str) -> bool:
    """Whether a text is a unit that can be converted to others; a bare number is none."""
    known = all(_base(part)[1] in _KNOWN for part in text.split("/"))
    return known and not text.replace(".", "").isdigit()


def conversion(given: str, wanted: str) -> float:
    """Return the factor by which to multiply a number in one unit to have it in another.

    Args:
        given: A unit, perhaps a multiple ("10 m") or a rate ("km/min"); "" and "1" for none.
        wanted: The unit that is wanted.

    Raises:
        UnitError: One is not a multiple of the other.
    """
    given, wanted = (" ".join(unit.split()) for unit in (given, wanted))
    if given == wanted or (given in _PLAIN and wanted in _PLAIN):
        return 1.0
    mine, theirs = _base(given), _base(wanted)
    if mine[1] == theirs[1]:
        return mine[0] / theirs[0]
    over, under = given.split("/"), wanted.split("/")
    if len(over) == len(under) == 2:
        return conversion(over[0], under[0]) / conversion(over[1], under[1])
    raise UnitError(
        f"the unit {given or '1'!r} is {'another' if is_unit(given) else 'unknown'} here; "
        f"{words_of_units(wanted)}"
    )


def words_of_units(wanted: str) -> str:
    """Say which units are understood where a unit is wanted, for the end of a message."""
    known = list(_KNOWN.get(_base(wanted)[1], ()))
    several = f", or a multiple as in '10 {known[0]}'" if known and known[0] != "1" else ""
    return f"understood is {', '.join(known) or repr(wanted)}{several}"


def _base(unit: str) -> tuple[float, str]:
    """A unit as a multiple of the first of its kind, or of itself."""
    unit = unit.strip()
    factor, plain = plain_unit("1" if unit in _PLAIN else unit)
    plain = plain or "1"
    for base, kind in _KNOWN.items():
        if plain in kind:
            return factor * kind[plain], base
    return factor, plain
