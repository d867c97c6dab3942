"""The file of `campaign run`: what is wrong with it is said before anything is played."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.cli.shared.campaign_file import read_campaign

FILE = """agents: [builtin:random, builtin:braitenberg]
batteries: [navigation]
budget: 6
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agents: [a", ":1: did not find expected"),
        (FILE.replace(", builtin:braitenberg", ""), "agents: Tuple should have at least 2 items"),
        (FILE + "slots: 2\n", ":1: the whole file: there is no option 'slots'; there are: camera"),
        (
            FILE + "agents_run: {where: slurm}\n",
            "agents_run.where: Input should be 'local' or 'ray'",
        ),
        (FILE + "common: 0\n", "common 0 is out of range; give 1 or more"),
        (FILE + "common: many\n", "common is 'many'; give a whole number"),
        ("- 1\n", ":1: the whole file: give keys and values"),
    ],
)
def test_what_is_wrong_is_named(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    with pytest.raises(typer.Exit):
        read_campaign(path)
    assert said in " ".join(capsys.readouterr().err.split())


def test_an_unknown_agent_is_named_before_a_server_starts(tmp_path: Path) -> None:
    path, data = tmp_path / "campaign.yaml", tmp_path / "data"
    path.write_text(FILE.replace("braitenberg", "braitenburg"))
    app = build(["campaign"])
    ended = CliRunner().invoke(app, ["campaign", "run", str(path), "--data", str(data)])
    assert ended.exit_code == 2
    assert "braitenburg" in ended.output
    assert not data.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--budget 3", "leave out --budget (say it there as `budget:`)"),
        ("--agent a --agent b", "--agent (say it there as `agents:`)"),
        ("--battery b --layout l", "`batteries:`), --layout (say it there as `layouts:`)"),
        ("--seed 1 --common 2", "--common (say it there as `common:`)"),
        ("--policy random", "--policy (say it there as `policy:`)"),
        ("--random-share 0.5 --no-certify", "--random-share (say it there as `random_share:`)"),
        ("--fresh", "--fresh (say it there as `fresh:`)"),
        ("--action-timeout 3", "--action-timeout (say it there as `action_timeout_seconds:`)"),
        ("--features f.csv --variant v", "--variant (no campaign of a file has it)"),
        ("--address 10.0.0.1:6379", "--address names a Ray cluster"),
        ("--address auto --engine local", "--address names a Ray cluster"),
    ],
)
def test_an_option_that_would_be_without_effect_is_refused(
    options: str, said: str, tmp_path: Path
) -> None:
    path, data = tmp_path / "campaign.yaml", tmp_path / "data"
    path.write_text(FILE)
    command = ["campaign", "run", str(path), *options.split(), "--data", str(data)]
    ended = CliRunner().invoke(build(["campaign"]), command)
    assert ended.exit_code == 2
    assert said in " ".join(ended.output.split())
    assert not data.exists()
