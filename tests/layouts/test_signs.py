"""I6: success that goes with demands the wrong way round is said by every route, else nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from animalcat.cli.layout.commands import app_for
from animalcat.layouts import fit, load_layout
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.signs import wrong_signs, wrong_way_round
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.instances import read_csv
from animalcat.layouts.model.spec import Layout

LAYOUT = load_layout("one-capability", "success")
ITEMS = pd.DataFrame({"difficulty": np.linspace(0.0, 10.0, 40)})
SOUND = ITEMS.assign(success=(ITEMS["difficulty"] < 6.0).astype(float))
INVERTED = SOUND.assign(success=1.0 - SOUND["success"])
REVERSED = SOUND.assign(difficulty=10.0 - SOUND["difficulty"])


def capable(layout: Layout, chance: np.random.Generator) -> list[list[float]]:
    """A latent vector anywhere within the ranges, without noise."""
    drawn = [
        node.prior.mean
        if node.kind != "capability"
        else chance.uniform(node.prior.low, node.prior.high)
        for node in layout.latents
    ]
    return [drawn]


@pytest.mark.parametrize("name", ["aaio", "one-capability"])
def test_of_a_hundred_sound_tables_one_at_most_is_doubted(name: str) -> None:
    layout, chance = load_layout(name), np.random.default_rng(3)
    evaluator = Evaluator(layout)
    doubted = found = 0
    for _ in range(100):
        rows = spread(layout, 60, chance)
        y = evaluator.simulate(capable(layout, chance), evaluator.columns(rows), chance)[:, 0]
        doubted += bool(wrong_way_round(layout, rows, y))
        found += bool(wrong_way_round(layout, rows, 1.0 - y))
    assert doubted <= 1
    assert found >= 25  # the others pass nearly all or nearly nothing


@pytest.mark.parametrize(("table", "wrong"), [(SOUND, False), (INVERTED, True), (REVERSED, True)])
def test_every_route_says_what_is_the_wrong_way_round(
    table: pd.DataFrame, tmp_path: Path, *, wrong: bool
) -> None:
    fitted = fit(LAYOUT, table, chains=2, draws=100, tune=100)
    assert ("the wrong way round" in repr(fitted)) == wrong
    assert (fitted.profile.to_dict()["nodes"]["ability"]["status"] == "not to be read") == (
        wrong and fitted.converged
    )
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    read = read_csv(path.read_text(), ["success"])  # as `battery calibrate` looks at it
    assert (
        ["the wrong way round" in said for said in wrong_signs(LAYOUT, read)] == [True]
    ) == wrong
    told = CliRunner().invoke(
        app_for("fit"), ["fit", "one-capability", "--table", str(path), "--agent", "success"]
    )
    assert ("the wrong way round" in told.stderr) == wrong, told.stderr
    learner = Learner(Bank.of(LAYOUT, table[["difficulty"]]))
    for row, outcome in table["success"].items():
        learner.tell(str(row), float(outcome), int(str(row)))
    profile, verdict = verdict_of(learner, learner.profile())
    text = json.dumps([profile.judgement, verdict.to_dict()])
    assert ("the wrong way round" in text) == wrong
    assert (profile.status["ability"] == "not to be read") == wrong
