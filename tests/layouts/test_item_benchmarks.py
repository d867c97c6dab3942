"""The benchmarks of worth and of verbal aggression, on little data."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.library import load_layout
from benchmarks import verbagg, worth

DEMANDS = [name for name in load_layout("demand-levels").feature_names if name != "chance"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty items of two benchmarks, of which one annotator left a cell out."""
    g = np.random.default_rng(1)
    made = tmp_path_factory.mktemp("data")
    (made / "demand-levels").mkdir()
    for world in worth.WORLDS:
        levels = np.where(g.random((60, len(DEMANDS))) < 0.2, g.integers(0, 4, (60, 1)), 0)
        with (made / "demand-levels" / f"levels-{world}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["dataset name", "sample id", *DEMANDS])
            for k, row in enumerate(levels.tolist()):
                rows.writerow(
                    ["ab"[k % 2], k, *(row if k or world == "gemini" else ["?", *row[1:]])]
                )
    return made


def test_an_item_without_all_levels_of_both_annotators_is_left_out(folder: Path) -> None:
    items = worth.Items.read(folder / "demand-levels")
    assert len(items.names) == 59
    assert items.names[0] == "b 1"
    assert items.levels["gpt4o"].shape == (59, len(DEMANDS) + 1)


def test_the_fluid_order_goes_to_where_the_agent_is(folder: Path) -> None:
    world = worth.World(worth.Items.read(folder / "demand-levels"), "gemini", 40)
    model = world.model
    able, weak = (worth.fluid(model, np.full(59, y), 20) for y in (1.0, 0.0))
    assert len({*able.tolist()}) == 20
    assert model.difficulty[able].mean() > model.difficulty[weak].mean()


def test_runs_are_kept_and_are_not_repeated(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ANIMALCAT_DATA", str(folder))
    file = tmp_path / "worth.jsonl"
    arguments = ["run", str(file), "--agents", "1"]
    worth.main(arguments)
    first = file.read_text()
    worth.main([*arguments, "--world", "gemini"])
    assert file.read_text() == first
    runs = [json.loads(line) for line in first.splitlines()]
    assert [run["world"] for run in runs] == [*worth.WORLDS]
    for run in runs:
        for method in worth.METHODS:
            assert 0.0 <= run[method]["50"]["whole"] <= 0.2  # 50 of 59 are known
        assert run["alarm"]["words"]
    worth.main(["table", str(file)])
    assert "2PL, adaptive" in capsys.readouterr().out


def test_the_lltm_finds_the_weights_that_made_the_answers() -> None:
    g = np.random.default_rng(2)
    design = (np.arange(24)[:, np.newaxis] // np.array([1, 2, 4, 8]) % 2).astype(np.float64)
    weights = np.array([-1.0, -2.0, -1.0, -0.5])
    eta = 1.3 * g.standard_normal((400, 1)) + 1.7 + design @ weights
    answers = (g.random(eta.shape) < expit(eta)).astype(np.float64)
    model = verbagg.Lltm.fit(design, answers)
    off = np.array([model.intercept - 1.7, *(model.weights - weights), np.log(model.sd / 1.3)])
    assert np.all(np.abs(off) < 3.5 * model.errors)


def test_errors_fall_as_more_is_answered() -> None:
    g = np.random.default_rng(3)
    design = (np.arange(24)[:, np.newaxis] // np.array([1, 2, 4, 8]) % 2).astype(np.float64)
    answers = verbagg.Answers(
        tuple(f"i{k}" for k in range(24)), design, (g.random((40, 24)) < 0.5).astype(np.float64)
    )
    layout = load_layout(verbagg.LAYOUT)
    bank = Bank.of(layout, answers.instances())
    model = verbagg.Lltm.fit(design, answers.outcomes)
    errors: dict[str, list[list[float]]] = {}
    for person in range(4):
        own = answers.outcomes[person]
        found = verbagg.layout_errors(layout, bank, own, person)
        found |= verbagg.lltm_errors(model, design, own, person)
        for name, values in found.items():
            errors.setdefault(name, []).append(np.reshape(values, (-1, 4)).mean(axis=0).tolist())
    rows = verbagg.rows_of([{"errors": errors}])
    methods = {f"{model}, {how}" for model in ("layout", "LLTM") for how in
               ("adaptive", "random", "as printed")}  # fmt: skip
    assert {row["method"] for row in rows} == methods
    mean = {(row["method"], row["items"]): row["mean"] for row in rows}
    assert all(mean[name, 16] < mean[name, 4] for name in methods)
