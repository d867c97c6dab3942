"""The clinic for items, on logs of inspect_ai."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval
from inspect_ai.model import get_model
from typer.testing import CliRunner

from animalcat.cli.main import build
from tests.doors.inspect.sums import model_output, sums

COMMAND = ["battery", "clinic"]
MODELS = 12


def adds_up_to(most: int) -> Any:
    """A model that adds up so many numbers, but for a slip now and then, and no more."""

    def answer(input: list[Any], *_: Any) -> Any:
        numbers = [int(one) for one in re.findall(r"\d+", input[-1].text)]
        slips = (most + len(numbers)) % 5 == 0
        return model_output(str(sum(numbers) + int((len(numbers) > most) != slips)))

    return answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("logs")
    models = [get_model(f"mockllm/m{k}", custom_outputs=adds_up_to(k + 1)) for k in range(MODELS)]
    eval(sums(12), model=models, log_dir=str(place), display="none")
    return place


def test_logs_are_examined_with_their_demands(folder: Path) -> None:
    run = CliRunner().invoke(build(COMMAND), [*COMMAND, str(folder), "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    assert found["agents"] == MODELS
    assert [item["item"] for item in found["items"]] == [f"sum-{k:02d}" for k in range(12)]
    assert found["demands"].keys() == {"length"}
    assert found["demands"]["length"]["low"] > 0.0  # longer sums are harder


def test_a_score_that_is_not_there_is_said(folder: Path) -> None:
    run = CliRunner().invoke(build(COMMAND), [*COMMAND, str(folder), "--score", "matches"])
    assert run.exit_code == 2
    assert "there is no score 'matches'" in run.output


def test_a_folder_without_logs_is_said(tmp_path: Path) -> None:
    run = CliRunner().invoke(build(COMMAND), [*COMMAND, str(tmp_path)])
    assert run.exit_code == 2
    assert "has no logs" in run.output
