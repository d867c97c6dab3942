"""Numbers and truth values of arena files, as the YAML reader of Unity's builds reads them.

It is YamlDotNet, which keeps to YAML 1.1 for whole numbers: `010` is octal, `2:30` counts in
sixties, `0x64`, `0b11` and `1_000` are numbers. Other numbers are decimal, in single precision.
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1
"""Ends of the whole numbers that Unity's reader takes."""
FLOAT_MAX: Final = (2 - 2**-23) * 2.0**127
"""Greatest number in single precision."""

_WHITE: Final = " \t\n\v\f\r"
_TRUE: Final = frozenset({"true", "yes", "on", "y"})
_FALSE: Final = frozenset({"false", "no", "off", "n"})
_DIGITS: Final = "0123456789abcdef"
_BASES: Final = {"b": 2, "x": 16}
_CHUNK: Final = re.compile(r"[-+]?[0-9]{1,4000}")
_DECIMAL: Final = re.compile(r"[-+]?([0-9][0-9_]*(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_PLAIN: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_CLEAR: Final = re.compile(r"[-+]?(0x.*|0b.*|[1-9][0-9_]*)")
"""Other whole numbers that nobody takes for another one."""
_COMMA: Final = re.compile(r"([-+]?[0-9]*),([0-9]+)")


class Scalar(NamedTuple):
    """What a text is read as.

    Attributes:
        value: The value; None if Unity's reader refuses the text.
        remark: Why it is refused and what to write; or, of a value, why it may surprise.
        beyond: Whether it is a number, and refused for its size.
    """

    value: float | None
    remark: str = ""
    beyond: bool = False


def whole_number(text: str) -> Scalar:
    """Read a whole number of 32 bits."""
    value = _whole(text)
    if value is None:
        return Scalar(None, f"expected a whole number, got `{text[:40]}`{_meant_whole(text)}")
    if not INT_MIN <= value <= INT_MAX:
        message = f"{text[:40]} is beyond the whole numbers of 32 bits: give {INT_MIN} to {INT_MAX}"
        return Scalar(None, message, beyond=True)
    if _PLAIN.fullmatch(text) or _CLEAR.fullmatch(text):
        return Scalar(value)
    if not re.fullmatch(r"[-+]?[0-9]+", text):
        why = " (colons count in sixties)" if ":" in text else ""
        return Scalar(value, f"`{text[:40]}` is {value} to Unity's reader{why}: write {value}")
    decimal = int(text)
    if decimal == value:
        return Scalar(value)
    message = (
        f"`{text[:40]}` is {value}: to Unity's reader a leading 0 means octal; write {value}, or "
        f"{decimal} if you mean that"
    )
    return Scalar(value, message)


def number(text: str) -> Scalar:
    """Read a finite number of single precision."""
    if not _DECIMAL.fullmatch(text.strip(_WHITE)):
        return Scalar(None, f"expected a number, got `{text[:40]}`{_suggest_number(text)}")
    value = float(text.replace("_", ""))
    if not abs(value) <= FLOAT_MAX:
        message = f"expected a number of single precision, and {text[:40]} is beyond all of them"
        return Scalar(None, message, beyond=True)
    return Scalar(value)


def truth(text: str) -> Scalar:
    """Read a truth value."""
    lowered = text.lower()
    if lowered in _TRUE or lowered in _FALSE:
        return Scalar(lowered in _TRUE)
    hint = {"1": ": write true", "0": ": write false"}.get(text, "")
    return Scalar(None, f"expected true or false, got `{text[:40]}`{hint}")


def _whole(text: str) -> int | None:
    """The value of a whole number; None if it is none."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if digits == "0":
        return 0
    if digits.startswith("0"):
        base = _BASES.get(digits[1], 8)
        digits = digits[1 if base == 8 else 2 :].replace("_", "").lower()
        if not 0 < len(digits) <= 64 or set(digits) - set(_DIGITS[:base]):
            return None
        return sign * int(digits, base)
    value = 0
    for chunk in digits.split(":"):
        part = chunk.replace("_", "").strip(_WHITE)
        if not _CHUNK.fullmatch(part) or abs(value) > INT_MAX:
            return None
        value = 60 * value + int(part)
    return sign * value


def _meant_whole(text: str) -> str:
    """What was probably meant by a text that is no whole number."""
    if re.fullmatch(r"[-+]?0[0-9]{1,18}", text):
        return f": a leading 0 means octal to Unity's reader; write {int(text)}"
    if comma := _COMMA.fullmatch(text):
        text = comma[1] + ("" if len(comma[2]) == 3 else ".") + comma[2]
    text = text.rstrip(",;")
    if not _DECIMAL.fullmatch(text):
        return ""
    value = float(text.replace("_", ""))
    if not math.isfinite(value) or value != int(value):
        return ": Unity takes no fractions here"
    return f": write {int(value)}" if abs(value) <= INT_MAX else ""


def _suggest_number(text: str) -> str:
    """What was probably meant by a text that is no number."""
    if comma := _COMMA.fullmatch(text):
        thousands = f", or {comma[1]}{comma[2]} if the comma parts thousands"
        return f": write {comma[1]}.{comma[2]}{thousands if len(comma[2]) == 3 else ''}"
    bare = text.rstrip(",;")
    if _DECIMAL.fullmatch(bare):
        return f": write {bare}"
    value = _whole(bare)
    return "" if value is None else f": write {value}"
