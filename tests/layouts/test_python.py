"""Layouts as somebody uses them who has Python and a pandas table, and no server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

from animalcat.layouts import (
    Bank,
    Fit,
    Learner,
    ScaledBeta,
    StoppingRule,
    fit,
    load_layout,
    predict,
)
from animalcat.layouts.inference.fit import FitRequest
from animalcat.layouts.inference.fit import fit as fit_by_nuts
from animalcat.layouts.model.instances import read_csv
from animalcat.layouts.model.tables import TableError

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "docs" / "examples"
READING: Final = EXAMPLES / "reading.yaml"
SUMS: Final = EXAMPLES / "sums.yaml"
DF: Final = pd.read_csv(EXAMPLES / "reading.csv")


@pytest.fixture(scope="module")
def oak() -> Fit:
    """The answers of the better reader, fitted quickly."""
    return fit(READING, DF, outcome="oak", seed=1, chains=2, draws=300, tune=300)


def test_importing_layouts_is_light_and_names_load_when_used() -> None:
    code = (
        "import sys, animalcat.layouts as home; names = dir(home); home.load_layout('aaio');"
        "print(sorted(m for m in ('pymc', 'pandas', 'matplotlib', 'grpc') if m in sys.modules));"
        "print(all(getattr(home, name) for name in names), sorted(home.__all__) == sorted(names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.splitlines() == ["[]", "True True"]


def test_a_prior_is_changed() -> None:
    layout = load_layout(READING)
    own = layout.with_prior("span", ScaledBeta(0, 16))
    own = own.with_prior("reasoning", {"normal": {"mean": 3, "sd": 1}})
    assert [str(node.prior) for node in own.latents[:2]] == ["Uniform(0, 16)", "Normal(3, 1)"]
    assert (own.name, own.digest != layout.digest) == ("reading-own", True)
    assert load_layout(own.to_yaml()) == own
    assert layout.latents[0].prior == ScaledBeta(0, 32)
    assert repr(layout) == (
        "<Layout reading (plain): words, facts -> span, reasoning, carelessness -> success>"
    )


def test_a_fit_of_a_table_is_that_of_its_file(oak: Fit) -> None:
    """The order of rows, other columns and the unit of a column change nothing."""
    table = read_csv(EXAMPLES / "reading.csv", agents=["oak"])
    played, outcomes = table.of("oak")
    request = FitRequest(
        oak.layout, played.features(oak.layout), outcomes, 1, chains=2, draws=300, tune=300
    )
    assert np.array_equal(fit_by_nuts(request).draws, oak.draws)
    odd = DF.assign(words=DF["words"] / 10, note="a text", answered=DF["oak"].astype(bool))
    odd = odd.rename(columns={"words": "words [10 kiloword]"}).set_index("instance")
    again = fit(READING, odd, "answered", seed=1, chains=2, draws=300, tune=300)
    assert np.allclose(again.draws, oak.draws)
    assert again.diagnostics["evidence"] == oak.diagnostics["evidence"]
    assert (again.agent, again.instances[:2]) == ("answered", ("q001", "q002"))


def test_a_fit_shows_what_it_found_in_the_units_of_readers(oak: Fit) -> None:
    frame = oak.to_frame()
    assert list(frame.index) == list(oak.layout.latent_names)
    assert list(frame.columns) == ["kind", "estimate", "low", "high", "unit", "status", "note"]
    careless: Any = frame.loc["carelessness"]
    assert careless["unit"] == "%"
    assert careless["low"] < careless["estimate"] < careless["high"]
    assert careless["estimate"] == pytest.approx(100 * oak.nodes[2].mean)
    shown_as: Any = oak
    for shown in (repr(oak), shown_as._repr_html_()):
        assert "masters words up to" in shown
        assert "oak: reading (plain), 240 outcomes" in shown
    assert {"posterior", "prior", "log_likelihood"} <= set(oak.posterior.groups())
    read = {"reasoning [fact]", "carelessness [%]"}  # a span is read as it is
    assert set(oak.posterior.posterior.data_vars) == {*oak.layout.latent_names, *read}
    assert oak.posterior.constant_data["instance"].values[0] == "q001"


def test_a_table_of_outcomes_is_fitted_as_it_is() -> None:
    """What was played again counts as less, and what is void not at all."""
    rows = pd.DataFrame(
        {
            "episode": [0, 1, 2, 3],
            "instance": ["a", "b", "b", "c"],
            "outcome": ["success", "failure", "failure", "void"],
            "session": "s1",
            "agent": "mine",
            "weight": [1.0, 1.0, 0.25, 0.0],
            "difficulty [1]": [1.0, 2.0, 2.0, 3.0],
        }
    )
    layout = load_layout("one-capability", "success")
    fitted = fit(layout, rows, chains=1, draws=50, tune=50)
    assert fitted.data is not None
    assert fitted.data.weights is not None
    assert (fitted.agent, fitted.data.weights.tolist()) == ("mine", [1.0, 1.0, 0.25])
    assert any("1 void" in remark for remark in fitted.remarks)
    with pytest.raises(TableError, match="fit\\(layout, df, agent='mine'\\)"):
        fit(layout, pd.concat([rows, rows.assign(agent="yours")]))


@pytest.fixture(scope="module")
def items() -> pd.DataFrame:
    return pd.read_csv(EXAMPLES / "sums.csv")


def test_a_learner_says_what_it_knows(items: pd.DataFrame) -> None:
    learner = Learner(Bank.of(SUMS, items), rule=StoppingRule(6), seed=1)
    assert learner.to_frame()[["estimate", "low", "high"]].isna().all(axis=None)  # I13
    while not learner.verdict().stop and (choice := learner.ask()):
        learner.tell(choice.instance, len(choice.instance) < 6)
    span: Any = learner.to_frame().loc["span"]
    assert span["unit"] == "digit"
    assert span["low"] < span["estimate"] < span["high"]
    assert repr(learner) == f"<Learner for sums: {learner.n} outcomes of 168 items>"
    shown: Any = learner
    assert f"after {learner.n} outcomes" in shown._repr_html_()
    found: Any = predict(learner, items.set_index("instance"))
    assert found.loc["3+4", "predicted"] > found["predicted"].iloc[-1]


def test_a_bank_of_a_table_is_that_of_its_file(items: pd.DataFrame) -> None:
    table = read_csv(EXAMPLES / "sums.csv", agents=[]).instances
    one, other = Bank.of(SUMS, items), Bank.of(load_layout(SUMS), table)
    named = Bank.of(SUMS, items.set_index("instance"))
    for bank in (one, named):
        assert bank.names == other.names
        assert np.array_equal(bank.features, other.features)
        assert set(bank.outside) == {"trials"}
    assert (one.paradigms, repr(one)) == (
        other.paradigms,
        "<Bank of 168 items for sums: 3+4, 6+7, 8+3...>",
    )
    shown: Any = one
    assert "and 160 more" in shown._repr_html_()
