"""`animalcat layout check` and `compare`, on the example of the documentation."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from animalcat.cli.layout.commands import app_for
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.reporting.profile import Profile

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
LAYOUT, TABLE = EXAMPLES / "reading.yaml", EXAMPLES / "reading.csv"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app_for(str(arguments[0])), [str(a) for a in arguments])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", LAYOUT, "--table", TABLE), "Say --agent COLUMN"),
        (("check", LAYOUT, "--table", TABLE, "--agent", "elm"), "reading.csv: no column 'elm'"),
        (("check", LAYOUT, "--table", "no.csv", "--agent", "oak"), "no.csv: no such file or"),
        (("check", "reading", "--table", TABLE, "--agent", "oak"), "valid: "),
        (("check", "aaio", "--table", TABLE, "--agent", "oak"), "no column 'rewardDistance'"),
        (
            ("check", LAYOUT, "--table", TABLE, "--agent", "oak", "--by", "color"),
            "--by color: no such column; columns: paradigm, words, facts, table, sprout",
        ),
        (("fit", LAYOUT), "Give --table, or --battery and --outcomes"),
        (("fit", LAYOUT, "--table", TABLE), "Say --agent COLUMN"),
        (("fit", LAYOUT, "--table", TABLE, "--battery", "."), "--table has all in it"),
        (("compare",), "nothing to compare"),
        (("compare", "--table", TABLE, "--agent", "oak"), "--table needs --layout"),
        (("compare", TABLE, "--table", TABLE), "not both"),
        (("compare", TABLE), "reading.csv: no profile"),
        (("compare", "no.json"), "no.json: No such file"),
    ],
)
def test_bad_input_is_named(arguments: tuple[object, ...], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.fixture
def profiles(tmp_path: Path) -> list[Path]:
    layout = load_layout(LAYOUT)
    paths: list[Path] = []
    for name, passed in (("early", 2), ("late", 28)):
        live = LivePosterior(layout, 1, particles=500)
        for i in range(30):
            live.update([8.0, 2.0], float(i < passed), i)
        path = tmp_path / f"{name}.json"
        path.write_text(Profile.of_live(live, provenance={"agent": name}).to_json())
        paths.append(path)
    return paths


def test_two_profiles_of_one_agent_keep_their_own_numbers(profiles: list[Path]) -> None:
    """And what was different when they were measured is said, as by `profile compare`."""
    for path, period in zip(profiles, (3, 6), strict=True):
        found = json.loads(path.read_text())
        about = {
            "agent": "same",
            "observation_spec": {"decision_period": period},
            "battery": period,
        }
        path.write_text(json.dumps({**found, "provenance": about, "labels": [f"played {period}"]}))
    refused = run("compare", *profiles)
    assert refused.exit_code == 2
    assert "The observation differs (same 1: " in refused.stderr
    report = json.loads(run("compare", *profiles, "--mixed", "--json").stdout)
    ranks = {row["name"]: row["words"]["estimate"] for row in report["ranking"]}
    assert set(ranks) == {"same 1", "same 2"}
    assert ranks["same 1"] != ranks["same 2"]
    assert report["notes"][:2] == ["same 1: played 3", "same 2: played 6"]
    assert any("The battery differs" in note for note in report["notes"])


def test_profiles_compare(profiles: list[Path], tmp_path: Path) -> None:
    picture = tmp_path / "rise.svg"
    result = run("compare", *profiles, "--steps", "1000,5000", "-o", picture, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["approximate"]
    spans = {row["name"]: row for row in report["ranking"] if row["node"] == "span"}
    assert spans["late"]["rank"] < spans["early"]["rank"]
    (span,) = [row for row in report["differences"] if row["node"] == "span"]
    assert (span["agent"], span["than"]) == ("late", "early")
    assert span["more"] > 0.8
    (path,) = [row for row in report["trajectory"] if row["node"] == "span"]
    assert path["steps"] == [1000, 5000]
    assert path["rise"] == [None, pytest.approx(span["more"])]
    assert picture.read_text().lstrip().startswith("<?xml")

    # A campaign's profiles are in one file, by agent.
    campaign = tmp_path / "campaign.json"
    by_agent = {path.stem: json.loads(path.read_text()) for path in profiles}
    campaign.write_text(json.dumps({"campaign": "c", "profiles": by_agent}))
    again = run("compare", campaign, "--steps", "1000,5000", "--json")
    assert json.loads(again.stdout)["trajectory"] == report["trajectory"]

    text = run("compare", *profiles, "--steps", "1000,5000").stdout
    for words in ("Ranks; 1 has the most", "Differences from early", "Checkpoints", "no draws"):
        assert words in text
    for wrong, words in (("1000", "as many rising steps"), ("a,b", "numbers with commas")):
        result = run("compare", *profiles, "--steps", wrong)
        assert result.exit_code == 2
        assert words in result.stderr
    assert "say --steps" in run("compare", *profiles, "-o", picture).stderr
    assert (
        "cannot be drawn"
        in run("compare", *profiles, "--steps", "1,2", "-o", tmp_path / "rise.doc").stderr
    )


@pytest.mark.slow
def test_the_example_of_the_documentation() -> None:
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

    mended = run("check", LAYOUT, *given, "--variant", "tables", "--repeats", 0)
    assert mended.exit_code == 0, mended.output
    assert "nothing contradicts the layout" in mended.stdout

    both = run("compare", *given, "--layout", LAYOUT, "--layout", f"{LAYOUT}:tables", "--json")
    assert both.exit_code == 0, both.output
    rows = json.loads(both.stdout)["layouts"]
    assert [row["name"] for row in rows] == ["reading (tables)", "reading (plain)"]
    assert rows[1]["behind"] > 2 * rows[1]["behind_se"]
    assert [row["doubtful"] for row in rows] == [0, 0]
