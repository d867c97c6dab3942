from __future__ import annotations

import pytest

from animalcat.arena_configs.scalars import FLOAT_MAX, number, truth, whole_number


@pytest.mark.parametrize(
    ("text", "value", "surprise"),
    [
        ("250", 250, ""),
        ("-1", -1, ""),
        ("+7", 7, ""),
        ("0", 0, ""),
        ("-0", 0, ""),
        ("00", 0, ""),
        ("07", 7, ""),
        ("0250", 168, "write 168, or 250 if"),
        ("010", 8, "write 8, or 10 if"),
        ("-010", -8, "write -8, or -10 if"),
        ("0_17", 15, "write 15"),
        ("0x64", 100, ""),
        ("-0x1F", -31, ""),
        ("0b11", 3, ""),
        ("1_000", 1000, ""),
        ("2:30", 150, "count in sixties"),
        ("1:00:00", 3600, "count in sixties"),
        ("--5", 5, "write 5"),
        ("2147483647", 2**31 - 1, ""),
        ("-2147483648", -(2**31), ""),
    ],
)
def test_whole_numbers_are_read_as_in_yaml_1_1(text: str, value: int, surprise: str) -> None:
    found = whole_number(text)
    assert (found.value, type(found.value)) == (value, int)
    assert (surprise in found.remark) if surprise else not found.remark


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("0800", "octal to Unity's reader; write 800"),
        ("019", "write 19"),
        ("250.0", "write 250"),
        ("1e3", "write 1000"),
        ("2.5", "no fractions"),
        ("1,5", "no fractions"),
        ("1,000", "write 1000"),
        ("100,", "write 100"),
        ("0X64", ""),
        ("0o17", ""),
        ("0x", ""),
        ("0b2", ""),
        ("00:30", ""),
        ("1 0", ""),
        ("٣", ""),
        ("", ""),
        ("-", ""),
        ("soon", ""),
        ("2147483648", "32 bits"),
        ("0x80000000", "32 bits"),
        ("-2147483649", "32 bits"),
        ("9" * 5000, ""),
        ("0" * 5000, ""),
    ],
)
def test_what_is_no_whole_number_says_what_to_write(text: str, hint: str) -> None:
    found = whole_number(text)
    assert found.value is None
    assert hint in found.remark
    assert found.beyond == (hint == "32 bits")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0250", 250),
        (".5", 0.5),
        ("-.5", -0.5),
        ("5.", 5),
        ("1e-3", 0.001),
        ("1_000.5", 1000.5),
        (" 2 ", 2),
        (repr(FLOAT_MAX), FLOAT_MAX),
    ],
)
def test_other_numbers_are_decimal(text: str, value: float) -> None:
    assert number(text) == (value, "", False)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1,5", "write 1.5"),
        ("-,5", "write -.5"),
        ("1,500", "write 1.500, or 1500 if the comma parts thousands"),
        ("1.5,", "write 1.5"),
        ("0x10", "write 16"),
        ("2:30", "write 150"),
        (".inf", ""),
        (".nan", ""),
        ("nan", ""),
        ("_1", ""),
        ("½", ""),
        ("1e39", "single precision"),
        ("-1e999", "single precision"),
    ],
)
def test_what_is_no_number_says_what_to_write(text: str, hint: str) -> None:
    found = number(text)
    assert found.value is None
    assert hint in found.remark
    assert found.beyond == (hint == "single precision")


def test_truth_values() -> None:
    assert [truth(text).value for text in ("Yes", "y", "ON", "true")] == [True] * 4
    assert [truth(text).value for text in ("no", "N", "Off", "FALSE")] == [False] * 4
    assert truth("1") == (None, "expected true or false, got `1`: write true", False)
