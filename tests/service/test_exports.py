"""The files that leave a session."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pytest

from animalcat.service.rpc.exports import OUTCOME_COLUMNS, outcomes_csv, profile_html

UNITS = {"rewardDistance": "m", "rewardBehind": "1"}
NODE: dict[str, Any] = {
    "kind": "capability",
    "unit": "10 m",
    "mean": 4.0,
    "sd": 0.25,
    "hdi": [3.5, 4.4],
    "range": [0.0, 5.3],
    "prior_sd": 1.5,
    "status": "measured",
}


def profile(**changes: Any) -> dict[str, Any]:
    return {
        "layout": {"name": "aaio", "variant": "scaled"},
        "hdi_share": 0.9,
        "nodes": {"navigationAbility": NODE, "bias": {**NODE, "range": [None, None], "sd": 0.0}},
        "diagnostics": {"converged": True, "rhat": 1.001},
        "provenance": {"agent": "<b>mine</b>", "battery": "navigation", "reason": "done"},
        **changes,
    }


def row(episode: int, outcome: str) -> dict[str, Any]:
    values = dict.fromkeys(OUTCOME_COLUMNS)
    return {
        **values,
        "episode": episode,
        "instance": "a,b",
        "outcome": outcome,
        "return": 0.5,
        "versions": {"numpy": "2"},
        "features": {"rewardDistance": 3.5, "rewardBehind": 0.0},
    }


def test_outcomes_have_their_units() -> None:
    table = pd.read_csv(io.StringIO(outcomes_csv([row(0, "success"), row(1, "failure")], UNITS)))
    assert list(table["outcome"]) == ["success", "failure"]
    assert list(table["rewardDistance [m]"]) == [3.5, 3.5]
    assert table["instance"][0] == "a,b"


def test_outcomes_of_no_episode_are_a_header() -> None:
    assert outcomes_csv([], UNITS).splitlines()[0].startswith("episode,attempt,instance")


def test_the_page_says_what_it_is_and_escapes() -> None:
    page = profile_html(profile(), [row(0, "success"), row(1, "failure")])
    assert "1 of 2 episodes passed" in page
    assert "4.00 ± 0.25" in page
    assert "<b>mine</b>" not in page
    assert "&lt;b&gt;mine" in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_page_counts_no_attempt_that_was_faulty_or_voided() -> None:
    counted = [row(k, "success") for k in range(16)]
    page = profile_html(profile(), [*counted[:9], row(9, "void"), *counted[9:], row(16, "fault")])
    assert "16 of 16 episodes passed" in page
    assert "1 attempts were voided" in page
    assert "1 attempts ended in a fault" in page
    assert page.count("class='fault'") == page.count("class='void'") == 2  # one is in the key
    assert "fault" not in profile_html(profile(), counted).split("</style>")[1]


@pytest.mark.parametrize("converged", [True, False])
def test_the_page_warns_of_what_is_not_certified(converged: bool) -> None:
    page = profile_html(profile(diagnostics={"converged": converged, "reasons": ["R-hat"]}), [])
    assert ("Not certified: R-hat" in page) is not converged


def test_the_page_shows_what_the_alarm_found_and_the_second_reading() -> None:
    assert "does not describe" not in profile_html(profile(), [])
    about = {"agent": "mine", "misfit": "since episode 20: less success where size is <5"}
    again = {"label": "refitted", "where": "size is <5", "nodes": {"contradictedShare": NODE}}
    page = profile_html(profile(provenance=about, second_reading=again), [])
    assert "does not describe this agent since episode 20: less success where size is &lt;5" in page
    assert "contradictedShare" in page
    failed = {"label": "refitted", "where": "", "failed": "no stratum stands out"}
    page = profile_html(profile(provenance=about, second_reading=failed), [])
    assert "Not refitted: no stratum stands out." in page
