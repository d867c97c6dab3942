"""The grammar that layouts and families share."""

from __future__ import annotations

import pytest

from animalcat.arena_configs.families.scope import Formula, Place, Value
from animalcat.arena_configs.model import ArenaError
from animalcat.text.formulas import FormulaError, parse_formula

SCOPE = {"a": 3.0, "b": 0.5, "kind": "ramp", "ramp": "ramp", "wall": "wall"}


def value_of(formula: str) -> Value:
    expression = parse_formula(formula, deciding=True)
    return Formula(expression, formula, Place("some.yaml", 1, "")).value(SCOPE)


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("a + 2 * b - 1", 3.0),
        ("a / b ** 2", 12.0),
        ("7 // 2 + 7 % 4 + 49 % 7", 6.0),
        ("-7 % 4", 1.0),
        ("a if b < 1 else 9", 3.0),
        ("1 / 0 if a == 4 else 2", 2.0),
        ("0 < b <= 0.5 < a", 1.0),
        ("0.1 + 0.2 == 0.3", 1.0),
        ("0.1 + 0.2 < 0.3 or 0.1 + 0.2 > 0.3", 0.0),
        ("not (a > 2 and b > 2)", 1.0),
        ("kind == ramp", 1.0),
        ('kind != "ramp"', 0.0),
        ("kind in (wall, ramp)", 1.0),
        ("kind not in (wall, ramp)", 0.0),
        ("pick(a - 1, 5, 6, 7)", 7.0),
        ("floor(2.7) + ceil(2.1) + round(2.5) + floor(3 * (1 / 3))", 9.0),
        ("sin(30) + cos(60)", 1.0),
        ("heading(1, 0) + heading(0, 1)", 90.0),
        ("hypot(3, 4) + sqrt(16) + abs(-1)", 10.0),
        ("clip(a, 0, 1) + min(a, b) + max(a, b)", 4.5),
    ],
)
def test_values(formula: str, value: float) -> None:
    assert value_of(formula) == pytest.approx(value)


@pytest.mark.parametrize(
    "formula",
    [
        "a.b",
        "[a]",
        "lambda: 1",
        "f(a)",
        "a[0]",
        "sin(a, b)",
        "pick(1)",
        "(a := 3)",
        "a is b",
        "True",
    ],
)
def test_nothing_else_is_a_formula(formula: str) -> None:
    with pytest.raises(FormulaError):
        parse_formula(formula, deciding=True)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("kind + 1", "kind is the word 'ramp'"),
        ("pick(3, 1, 2)", "options 0 to 1, not 3"),
        ("1 / (a - a)", "zero"),
        ("sqrt(-a)", "is not a number"),
        ("log(0)", "is not a number"),
    ],
)
def test_formulas_without_a_value(formula: str, message: str) -> None:
    with pytest.raises(ArenaError, match=message):
        value_of(formula)


@pytest.mark.parametrize("again", ["(0 <= {} <= 1)", "abs({})", "({} in (1, 2))"])
def test_what_writes_its_parts_again_is_counted_before_it_is_used(again: str) -> None:
    """Looked through at every level, this one would take hours."""
    formula = "x"
    for _ in range(30):
        formula = again.format(formula)
    with pytest.raises(FormulaError, match="repeats too much of itself"):
        parse_formula(formula, deciding=True)
