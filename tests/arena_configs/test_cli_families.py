"""`animalcat arena make`: arenas, and what families there are."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from animalcat.arena_configs.families.library import FAMILIES
from animalcat.arena_configs.loader import load_config
from tests.command_line import call

SCREEN = Path(__file__).parents[2] / "docs" / "examples" / "screen.yaml"


def run(*arguments: object, code: int = 0) -> str:
    result = call("arena", *arguments)
    assert result.exit_code == code, result.output
    return result.stdout if "--json" in arguments else result.output


def check_it(schema: str, text: str) -> list[dict[str, Any]]:
    value = json.loads(text)
    published = files("animalcat").joinpath(f"schemas/{schema}.schema.json").read_text("utf-8")
    validator = jsonschema.Draft202012Validator(json.loads(published))
    validator.check_schema(validator.schema)
    validator.validate(value)
    return value


def test_families_are_listed() -> None:
    rows = check_it("arena_families", run("make", "--json"))
    assert [row["family"] for row in rows] == list(FAMILIES)
    (detour,) = (row for row in rows if row["family"] == "detour")
    assert detour["paradigms"] == ["wall", "bay", "tunnel"]
    assert "detour" in detour["claims"]
    table = run("make")
    assert all(name in table for name in FAMILIES)


def test_a_family_is_shown_with_its_parameters() -> None:
    (row,) = check_it("arena_families", run("make", "cups", "--about", "--json"))
    shown = run("make", "cups", "--about")
    assert all(name in shown for part in ("paradigms", "parameters") for name in row[part])
    assert "2 to 3, whole numbers" in shown
    assert row["controls"]["glass"] in shown
    assert "one of grey, brown" in shown
    assert "uniform in the logarithm" in run("make", "navigation", "--about")
    assert "screen" in run("make", SCREEN, "--about")
    assert "there are: a-not-b, aperture" in run("make", "cup", "--about", code=2)


def test_arenas_and_controls_are_written(tmp_path: Path) -> None:
    out = tmp_path / "made"
    rows = check_it(
        "arena_make",
        run("make", SCREEN, "-n", 3, "--control", "all", "--part", "test", "-o", out, "--json"),
    )
    assert [row["name"] for row in rows[:3]] == ["screen-1", "screen-1.open", "screen-1.glass"]
    assert [row["control_of"] for row in rows[:3]] == [None, "screen-1", "screen-1"]
    assert {row["part"] for row in rows} == {"test"}
    assert json.loads((out / "instances.json").read_text()) == rows
    for row in rows:
        arena = load_config(out / row["file"], strict=True).config.arenas[0]
        walls = [item for item in arena.items if item.name.startswith("Wall")]
        assert len(walls) == (row["control"] != "open")
        assert row["parameters"]["size"] in (1, 2)


def test_claims_are_checked_by_playing(tmp_path: Path) -> None:
    assert "holds on 3 instances" in run(
        "make", SCREEN, "--control", "all", "--check", "-o", tmp_path
    )
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(SCREEN.read_text().replace("wallsInWay: 1", "hiddenStanding: {least: 3}"))
    output = run("make", wrong, "--check", code=1)
    assert "hiddenStanding is claimed to be at least 3 s" in output
    assert "wrong.yaml:33" in output


def test_demands_are_met_or_the_nearest_is_told() -> None:
    rows = check_it("arena_make", run("make", SCREEN, "--demand", "distance=12", "--json"))
    (row,) = rows
    assert row["demands"]["rewardDistance"]["made"] == pytest.approx(12, abs=0.12)
    output = run("make", SCREEN, "--demand", "distance=50")
    assert "screen-made-1 is the nearest that was found" in output
    assert "(asked 50)" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["swimming"], "no family 'swimming'; there are"),
        (["none.yaml"], "there is no file none.yaml"),
        (["detour", "--part", "training"], "it is practice or test"),
        (["detour", "--control", "closed"], "no control 'closed'; it has open"),
        (["detour", "--set", "width"], "expected NAME=VALUE"),
        (["detour", "--set", "wide=3"], "no parameter 'wide'"),
        (["detour", "--paradigm", "fence"], "no paradigm 'fence'; it has wall, bay, tunnel"),
        (["detour", "--demand", "distance=far"], "far is not a number"),
        (["detour", "--demand", "swimming=1"], "no demand 'swimming'"),
        (["navigation", "--control", "open"], "it has none"),
    ],
)
def test_bad_input_says_what_there_is(arguments: list[str], message: str) -> None:
    assert message in run("make", *arguments, code=2)
