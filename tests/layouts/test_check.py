"""`animalcat layout check` and `fit`, on the example of the documentation."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from typer.testing import Result

from tests.command_line import call

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
LAYOUT, TABLE = EXAMPLES / "reading.yaml", EXAMPLES / "reading.csv"


def run(*arguments: object) -> Result:
    return call("layout", *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", LAYOUT, "--table", TABLE), "Say --agent COLUMN"),
        (("check", LAYOUT, "--table", TABLE, "--agent", "elm"), "reading.csv: no column 'elm'"),
        (("check", LAYOUT, "--table", "no.csv", "--agent", "oak"), "no.csv: No such file or"),
        (("check", "reading", "--table", TABLE, "--agent", "oak"), "valid: "),
        (("check", "aaio", "--table", TABLE, "--agent", "oak"), "no column 'rewardDistance'"),
        (
            ("check", LAYOUT, "--table", TABLE, "--agent", "oak", "--by", "color"),
            "--by color: no such column; columns: paradigm, words, facts, table, sprout",
        ),
        (("fit", LAYOUT), "Give --table, or --battery and --outcomes"),
        (("fit", LAYOUT, "--table", TABLE), "Say --agent COLUMN"),
        (("fit", LAYOUT, "--table", TABLE, "--battery", "."), "--table contains everything"),
    ],
)
def test_bad_input_is_named(arguments: tuple[object, ...], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.slow
def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    """The plain layout does not know tables, which `oak` cannot read; the other one does."""
    given = ("--table", TABLE, "--agent", "oak")
    plain = run("check", LAYOUT, *given, "--repeats", 1, "--json")
    assert plain.exit_code == 1, plain.output
    (entry,) = json.loads(plain.stdout)
    assert entry["contradicted"]
    assert entry["residuals"][0]["by"] in ("paradigm", "table")
    assert entry["held_out"]["brier"] < entry["held_out"]["aggregate"]

    fitted = run("fit", LAYOUT, *given, "--json")
    assert fitted.exit_code == 0, fitted.output
    (fit,) = json.loads(fitted.stdout)
    schema = resources.files("animalcat") / "schemas" / "layout_fit.schema.json"
    jsonschema.validate([fit], json.loads(schema.read_text("utf-8")))
    assert (fit["agent"], fit["instances"], fit["successes"]) == ("oak", 240, 107)

    chance = '  chance: {unit: "1", low: 0, high: 1, if_missing: 0.5, about: chance level}\n'
    text = LAYOUT.read_text().replace("features:\n", f"features:\n{chance}", 1)
    averaged = tmp_path / "averaged.yaml"
    averaged.write_text(text.replace("nu: 0.25", "nu: chance"))
    (entry,) = json.loads(run("check", averaged, *given, "--repeats", 0, "--json").stdout)
    assert "no chance: 1 less the average outcome, 0.55, is taken" in entry["notes"]

    mended = run("check", LAYOUT, *given, "--variant", "tables", "--repeats", 0)
    assert mended.exit_code == 0, mended.output
    assert "nothing contradicts the layout" in mended.stdout
