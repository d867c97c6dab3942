"""Plausible wrong calls in Python: each is told what was wrong, which argument, and what to do.

A row is a call as somebody would write it, and what its sentence has to contain.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest

from animalcat.layouts import (
    Bank,
    Learner,
    Policy,
    ScaledBeta,
    StoppingRule,
    fit,
    load_layout,
    predict,
)
from animalcat.plots import (
    comparison,
    densities,
    forest,
    graph,
    read_results,
    reliability,
    save,
)

PYARROW: Final[Any] = import_module("pyarrow")
EXAMPLES: Final = Path(__file__).resolve().parent.parent / "docs" / "examples"
READING: Final = load_layout(EXAMPLES / "reading.yaml")
SUMS: Final = load_layout(EXAMPLES / "sums.yaml")
DF: Final = pd.read_csv(EXAMPLES / "reading.csv", index_col="instance")
ITEMS: Final = pd.read_csv(EXAMPLES / "sums.csv")
LEARNER: Final = Learner(Bank.of(SUMS, ITEMS), rule=StoppingRule(5))
PAGES: Final = DF.rename(columns={"words": "word", "facts": "pages"})

# Wrong calls are wrong for the type checker too.
any_of: Callable[[Any], Any] = lambda value: value  # noqa: E731
BAD: Final[dict[str, tuple[Callable[[], Any], tuple[str, ...]]]] = {
    "a file for a table": (
        lambda: fit(READING, any_of("reading.csv"), "oak"),
        ("df is a str", "pandas.read_csv"),
    ),
    "a table of another library": (
        lambda: fit(READING, any_of(PYARROW.table({"words": [1.0]})), "oak"),
        ("df is a Table", "df.to_pandas()"),
    ),
    "a layout and a table the wrong way round": (
        lambda: fit(any_of(DF), any_of(READING), "oak"),
        ("source is a DataFrame", "NAME.yaml"),
    ),
    "no column of outcomes is named": (
        lambda: fit(READING, DF),
        ("no column 'success'", "sprout, oak", 'outcome="COLUMN"'),
    ),
    "a column of outcomes misspelt": (
        lambda: fit(READING, DF, "oaks"),
        ("'oaks'", "Did you mean 'oak'?"),
    ),
    "outcomes that are no successes": (
        lambda: fit(READING, DF.assign(oak=DF["oak"] * 100), "oak"),
        ("outcome", "100", "success is 1, failure 0"),
    ),
    "two agents at once": (
        lambda: fit(READING, DF, ["oak", "sprout"]),
        ("outcome names 2 columns", "one by one: fit(layout, df, outcome='oak')"),
    ),
    "no draws": (
        lambda: fit(READING, DF, "oak", draws=0),
        ("draws is 0", "a whole number from 4 on"),
    ),
    "a number for a file of results": (
        lambda: read_results(any_of(3)),
        ("source is an int", "profile export"),
    ),
    "the outcomes themselves": (
        lambda: fit(READING, DF, any_of(DF["oak"])),
        ("outcome is a Series", "name the column", 'outcome="success"'),
    ),
    "a table without the layout's columns": (
        lambda: fit(READING, PAGES, "oak"),
        ("'words' and 'facts'", "df.rename(columns={'word': 'words', 'COLUMN': 'facts'})"),
    ),
    "several agents in one table": (
        lambda: fit(READING, DF.assign(agent=["a", "b"] * (len(DF) // 2)), "oak"),
        ("2 agents", "a, b", "agent='a'"),
    ),
    "a cell that is no number": (
        lambda: fit(READING, DF.assign(words="long"), "oak"),
        ("row 'q001', column words", "'long' is not a finite number"),
    ),
    "a layout that is not there": (
        lambda: load_layout("navigatoin"),
        ("'navigatoin' is unknown", "aaio", "NAME.yaml"),
    ),
    "a variant that is not there": (
        lambda: load_layout(EXAMPLES / "reading.yaml", "table"),
        ("variant 'table'", "plain, tables"),
    ),
    "the prior of a node that is not there": (
        lambda: READING.with_prior("spam", ScaledBeta(0, 8)),
        ("no node 'spam'", "span, reasoning", "Did you mean 'span'?"),
    ),
    "a pair of numbers for a prior": (
        lambda: READING.with_prior("span", any_of((0, 8))),
        ("prior is (0, 8)", "ScaledBeta(0, 10)"),
    ),
    "a battery for a table of items": (
        lambda: Bank.of(SUMS, any_of(["3+4", "6+7"])),
        ("Bank.of(layout, df)", "df is a list", "DataFrame"),
    ),
    "items that the layout does not describe": (
        lambda: Bank.of(SUMS, ITEMS.assign(digits=9)),
        ("does not describe", "digits above 7 digit", "df.drop(index=[0, 1, 2, ...])"),
    ),
    "a table for a bank": (
        lambda: Learner(any_of(ITEMS)),
        ("bank is a DataFrame", "Learner(Bank.of(layout, df))"),
    ),
    "the rule in the policy's place": (
        lambda: Learner(LEARNER.bank, any_of(StoppingRule(5))),
        ("policy is a StoppingRule", 'policy=Policy("information")'),
    ),
    "a number for a rule": (
        lambda: Learner(LEARNER.bank, rule=any_of(40)),
        ("rule is an int, not a StoppingRule", "rule=StoppingRule(max_episodes=40)"),
    ),
    "nothing for a layout": (
        lambda: load_layout(any_of(None)),
        ("source is None", "the name of a layout"),
    ),
    "a policy that is not there": (
        lambda: Policy(any_of("infomation")),
        ("'infomation' is unknown", "information"),
    ),
    "a number for the name of an item": (
        lambda: LEARNER.tell(any_of(0), True),
        ("0 is not the name", "choice.instance"),
    ),
    "predictions of no fit": (
        lambda: predict(any_of(READING), DF),
        ("fitted is a Layout", "fit(layout, df)"),
    ),
    "predictions of names": (
        lambda: predict(LEARNER, any_of(["3+4"])),
        ("predict(fitted, df)", "df is a list", "pandas.DataFrame(rows)"),
    ),
    "the picture of a table": (
        lambda: forest(DF),
        ("forest", "DataFrame", "fit(layout, df)"),
    ),
    "the picture of a file": (
        lambda: densities("posterior.nc"),
        ("densities", "str", "read_results(path)"),
    ),
    "one node that is no list": (
        lambda: densities(LEARNER, any_of("span")),
        ("nodes=['span']",),
    ),
    "a node that is not there": (
        lambda: densities(LEARNER, ["spann"]),
        ("no node 'spann'", "Did you mean 'span'?"),
    ),
    "a figure for an axis": (
        lambda: graph(READING, ax=matplotlib.figure.Figure()),
        ("ax is a Figure", "plt.subplots()"),
    ),
    "too few axes": (
        lambda: forest(LEARNER, ax=[matplotlib.figure.Figure().add_subplot()]),
        ("ax has 1 axes, and 3 are drawn on", "plt.subplots(3, 1)"),
    ),
    "a fit for predictions made before": (
        lambda: reliability(DF),
        ("no column 'outcome'", "Client.outcomes(session)"),
    ),
    "several agents in a picture of one": (
        lambda: forest([LEARNER, LEARNER]),
        ("forest", "this is a list", "comparison([one, other])"),
    ),
    "several agents one after another": (
        lambda: comparison([LEARNER, LEARNER], LEARNER),
        ("ax is a Learner", "comparison([one, other])"),
    ),
    "one agent compared": (
        lambda: comparison({"mine": LEARNER}),
        ("several agents", "only one is given"),
    ),
    "a layout that is saved as a picture": (
        lambda: save(any_of(READING), "x.svg"),
        ("figure is a Layout", "save(forest(fit), path)"),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_call_is_told_what_to_do(case: str) -> None:
    call, told = BAD[case]
    with pytest.raises((TypeError, ValueError)) as error:
        call()
    said = str(error.value)
    assert all(words in said for words in told), said
    assert np.char.count(said, "\n") == 0
