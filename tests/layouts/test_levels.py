"""Layouts for demands that are levels of scales, and what writes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from animalcat.layouts import Bank, Learner, StoppingRule, demand_layout, load_layout
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import text_of
from animalcat.layouts.library.levels import FEW, SLOPE, DemandLayout
from animalcat.layouts.model.tables import TableError

ADELE = (
    *("AS", "AT", "CEc", "CEe", "CL", "KNa", "KNc", "KNf", "KNn", "KNs"),
    *("MCr", "MCt", "MCu", "MS", "QLl", "QLq", "SNs", "VO"),
)
"""The 18 scales of ADeLe 1.0 (Zhou et al. 2025), as its tables call them."""


def adele(items: int = 240) -> dict[str, list[float]]:
    """Levels of 18 scales: independent ones, and some that the items cannot tell."""
    generator = np.random.default_rng(1)
    table = {name: generator.integers(0, 5, items).astype(float) for name in ADELE}
    table["KNa"] = np.zeros(items)  # nobody asks for it
    table["VO"] = np.full(items, 2.0)  # everybody asks the same
    table["MCt"] = table["MCr"].copy()  # one and the same
    table["SNs"] = np.where(np.arange(items) < FEW - 1, 3.0, 0.0)  # thin
    other = generator.integers(0, 5, items)
    table["QLq"] = np.where(generator.random(items) < 0.9, table["QLl"], other)  # much alike
    table["MS"] = np.where(np.arange(items) < 3, 5.0, np.minimum(table["MS"], 3.0))
    return {name: values.tolist() for name, values in table.items()}


def as_csv(columns: Mapping[str, list[Any]], **more: list[Any]) -> str:
    whole = {**more, **columns}
    rows = zip(*whole.values(), strict=True)
    lines = [",".join(whole), *(",".join(map(_cell, row)) for row in rows)]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@pytest.fixture(scope="module")
def written_layout() -> DemandLayout:
    table: dict[str, list[Any]] = {**adele()}
    count = len(table["AS"])
    for row in (50, 117, 140):
        table["CL"][row] = ""
    more: dict[str, list[Any]] = {
        "benchmark": ["a"] * count,
        "id": list(range(count)),
        "prompt": ["what?"] * count,
        "chance": [0.25] * count,
    }
    return demand_layout(as_csv(table, **more), "adele", slope={"AS": 1.5})


def test_scales_that_items_do_not_tell_apart_are_named_or_merged(
    written_layout: DemandLayout,
) -> None:
    assert (written_layout.items, written_layout.left_out, written_layout.incomplete) == (
        240,
        3,
        {"CL": 3},
    )
    assert written_layout.dropped == {
        "KNa": "no item asks for it",
        "SNs": f"{FEW - 1} items ask for it, which are too few",
        "VO": "all items ask for the same level, 2",
    }
    assert written_layout.ignored == ("prompt",)
    merged = [one for one in written_layout.scales if len(one.columns) > 1]
    assert [one.columns for one in merged] == [("MCr", "MCt")]
    assert len(written_layout.scales) == 18 - 3 - 1
    told = " ".join(written_layout.notes)
    assert "MCr and MCt are measured as one: their levels correlate by 1.00" in told
    assert "QLl and QLq are much alike" in told
    assert "MS: 3 items ask for more than 3" in told
    comments = " ".join(
        line.lstrip("# ") for line in written_layout.text.split("\n") if line[:1] == "#"
    )
    for note in written_layout.told:
        assert note in " ".join(comments.split())


def test_the_text_is_a_layout_of_these_columns(written_layout: DemandLayout) -> None:
    layout = written_layout.layout
    assert load_layout(written_layout.text).digest == layout.digest
    assert set(layout.feature_names) == {*ADELE, "chance"} - {"KNa", "SNs", "VO"}
    tops = {node.name: node.prior.high for node in layout.latents}
    assert (tops["MSAbility"], tops["QLlAbility"], tops["lapseRate"]) == (4.0, 5.0, 0.5)
    slopes = {str(node.link): node.name for node in layout.derived}
    assert any(text.startswith("logistic(1.5 x (ASAbility - AS))") for text in slopes)
    assert sum(text.startswith(f"logistic({SLOPE:.4g} x") for text in slopes) == 13


def test_what_is_absent_costs_nothing(written_layout: DemandLayout) -> None:
    layout = written_layout.layout
    evaluator = Evaluator(layout)
    names = [*layout.feature_names]
    nothing = np.zeros((1, len(names)))
    asks = nothing.copy()
    asks[0, names.index("MCt")] = 3.0
    weak = layout.from_standard(np.full((1, len(layout.latents)), -4.0))
    lapses = weak[0, layout.latent_names.index("lapseRate")]
    assert evaluator.probability(weak, nothing)[0, 0] == pytest.approx(1.0 - lapses, abs=1e-12)
    assert evaluator.probability(weak, asks)[0, 0] < 0.01
    columns = evaluator.columns(np.vstack([nothing, asks]))
    demands = evaluator.demands(columns)
    ability = layout.latent_names.index("MCrAbility")
    assert np.isnan(demands[0]).all()
    assert np.isnan(demands[1]).sum() == len(layout.capabilities) - 1
    assert demands[1, layout.capabilities.index(ability)] == 3.0
    touched = evaluator.touched(columns)
    assert np.flatnonzero(touched[0]).tolist() == [layout.latent_names.index("lapseRate")]
    assert touched[1].sum() == 2
    assert touched[1, ability]


def test_where_no_limit_is_found_the_status_says_so_and_the_test_ends() -> None:
    table = {name: adele()[name] for name in ("AS", "QLl")}
    bank = Bank.of(demand_layout(as_csv(table)).layout, _frame(table))
    learner = Learner(bank, rule=StoppingRule(120, target_sd=0.1), seed=3)
    strong = {"AS": 9.0, "QLl": 2.5}
    generator = np.random.default_rng(2)
    while not learner.verdict().stop and (choice := learner.ask()):
        row = int(choice.instance)
        margins = [strong[name] - table[name][row] for name in strong if table[name][row]]
        p = np.prod([1.0 / (1.0 + np.exp(-SLOPE * m)) for m in margins])
        learner.tell(choice.instance, float(generator.random() < p))
    verdict = learner.verdict()
    assert learner.n < 120
    assert verdict.status["ASAbility"] in ("bounded", "precise, if the layout holds")
    nodes = {node.name: node for node in learner.posterior.summary()}
    assert nodes["ASAbility"].hdi[0] > 4.0
    assert nodes["QLlAbility"].hdi[0] < 2.5 < nodes["QLlAbility"].hdi[1]


def _frame(table: Mapping[str, list[float]]) -> Any:
    import pandas as pd

    return pd.DataFrame(table)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("id,A\nq,1\nq,2\n", {}, "1 items are there more than once, of which the first is 'q'"),
        ("id,A\np,-1\nq,2\n", {}, "line 2, column A: the level is -1; levels are 0 and up"),
        ("id,A\np,high\nq,2\nr,1\n", {}, "line 2, column A: 'high' is no finite number"),
        ("id,A\np,87\nq,2\n", {}, "line 2, column A: the level is 87; levels are at most 20"),
        ("id,A\np,1\nq,\n", {"scales": ["B"]}, "no column 'B'; columns: id, A."),
        ("id,text\np,a\nq,b\n", {}, "no column has demands"),
        ("id,A,B\np,1,\nq,,2\n", {}, "every item has an empty cell in some scale"),
        ("id,A\np,1\nq,2\n", {}, "no scale is left that the items tell anything of: A: 2 items"),
        ("id,A,c\np,1,1.5\nq,2,0\n", {"chance": "c"}, "the chance to pass by guessing is 1.5"),
        (
            "id,A,UG\np,1,1\nq,2,1\n",
            {"chance": 0.5},
            "a chance of 0.5 is stated, and the",
        ),
        ("id,A\np,1\nq,2\n", {"chance": 1.0}, "chance is 1; give a number from 0 and below 1"),
        ("id,A\np,1\nq,2\n", {"name": "aaio"}, "layout 'aaio' is shipped"),
        ("id,A\np,1\nq,2\n", {"scales": ["A", "A"]}, "column 'A' is named twice"),
    ],
)
def test_what_cannot_be_used_is_refused(text: str, options: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        demand_layout(text, **options)
    assert message in str(error.value)


def test_the_shipped_layout_is_what_is_written_for_its_items(data_dir: Path) -> None:
    table = data_dir / "demand-levels" / "levels-gemini.csv"
    made = demand_layout(table, "x")
    assert made.text.replace("name: x\n", "name: demand-levels\n") == text_of("demand-levels")
    assert (made.items, made.left_out, made.distinct, len(made.scales)) == (9822, 21, 7061, 18)
    with pytest.raises(TableError, match=r"column Planning: 'To further enhance.*\.\.\.' is no"):
        demand_layout(data_dir / "demand-levels" / "levels-gpt4o.csv")
