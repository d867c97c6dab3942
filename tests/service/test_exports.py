"""The report on a session as a page: what it says, that it escapes, and that it stands alone."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from animalcat.layouts.inference.fit import FitData, FitResult
from animalcat.layouts.inference.summary import summarise
from animalcat.layouts.library import load_layout
from animalcat.outcomes import outcomes_frame
from animalcat.plots import prediction, read_results
from animalcat.plots.results import Results
from animalcat.service.measuring.report import provenance
from animalcat.service.reporting.session_page import session_page
from animalcat.service.reporting.session_report import (
    citation,
    predictions,
)
from animalcat.service.reporting.telling import with_episode
from animalcat.values import Cause, Decision, Episode, Outcome, Session, SessionSpec, SessionState
from tests.service.test_battery_report import Page

pytestmark = pytest.mark.xdist_group("exports")  # one worker makes what they share

ROOT = Path(__file__).resolve().parents[2]
ARENA = """
!ArenaConfig
arenas:
  0: !Arena
    t: 250
    items:
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 30}]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 10}]
      rotations: [0]
"""
LOADS = r"(src|href)=[\"'](?!#|data:)|@import|url\((?!#)"
"""What loads something from elsewhere."""
VERDICT = {"sentences": ["It passed some."], "probabilities": {"able": 0.7, "limited": 0.3}}
RATE = {"text": "Success rate of the whole battery: 70 %."}
ODD = "<b>mine</b> & $\"'\u732b"


@pytest.fixture(scope="module")
def known() -> Results:
    return read_results(ROOT / "docs" / "data" / "gallery" / "braitenberg.nc")


def rows_of(known: Results) -> list[dict[str, Any]]:
    names = known.fitted.layout.feature_names
    return [
        dict(row) | {"episode": k, "session": "s-1", "features": {n: row[n] for n in names}}
        for k, row in enumerate(known.table.to_dict("records"))
    ]


def profile_of(known: Results, **about: Any) -> dict[str, Any]:
    whole = dict(known.profile)
    said = {"verdict": VERDICT, "battery_rate": RATE}
    return {**whole, **said, "provenance": {**whole["provenance"], **about}}


@pytest.fixture(scope="module")
def page(known: Results) -> str:
    rows = rows_of(known)
    rows[0]["instance"] = ODD
    rows.append({**rows[1], "episode": len(rows), "outcome": "void", "predicted": None})
    profile = profile_of(known, agent=ODD, misfit="since episode 9: less success where size is <5")
    profile["labels"] = ["unfinished: 3 episodes so far", "contradicted: it is"]
    nodes: Mapping[str, Any] = profile["nodes"]
    told = {"side": None, "known": True, "flat": [2.0, 5.3]}
    profile["nodes"] = {**nodes, "navigationAbility": {**nodes["navigationAbility"], **told}}
    rival = {"name": "its own average", "standing": "better", "brier": 0.1, "rival_brier": 0.2,
             "log_score": 0.4, "rival_log_score": 0.6, "e_better": 31.0,
             "e_worse": 0.1}  # fmt: skip
    profile["predicts"] = {"standing": "better", "draws": 12, "hindsight": -0.1,
                           "text": "It predicts <well>.", "rivals": [rival]}  # fmt: skip
    profile["judgement"] = {"standing": "not described", "text": "The layout does not fit.",
                            "evidence": ["Where size is <5 it fails.",
                                         "It predicts <well>."]}  # fmt: skip
    profile["what_now"] = [{"text": "More <is> needed:", "command": "animalcat session resume s-1",
                            "episodes": 7}]  # fmt: skip
    profile["misfits"] = [{"where": "size is <5", "more": False, "episodes": 9, "observed": 2.0,
                           "predicted": 6.5, "evidence": 44.0, "corrected": 3.1}]  # fmt: skip
    profile["provenance"]["comparison"] = {"words": "it finds more than <other>"}
    covers: dict[str, Any] = {"variant": "It is used in its variant metres-15.", "asked": {},
                              "warnings": ["It is hardly <asked> for."]}  # fmt: skip
    profile["provenance"]["coverage"] = profile["provenance"]["coverage"] | covers
    arenas = {row["instance"]: ARENA for row in rows[:3]}
    because = {(1, 0): "nothing else would do"}
    return session_page(profile, known.fitted, rows, arenas, because=because, created="2026-11-23")


def test_a_page_takes_an_episode_below_its_verdict(page: str) -> None:
    told = with_episode(page, "The most informative failure", "It asks for <more>.", b"picture")
    seen = Page(told)
    assert seen.open == []
    assert "The most informative failure" in seen.words
    assert "It asks for <more>." in seen.words
    verdict, shown, capabilities = (
        told.index(part) for part in ('id="verdict"', 'id="episode"', 'id="capabilities"')
    )
    assert verdict < shown < capabilities
    assert f"data:image/png;base64,{b64encode(b'picture').decode()}" in told


def test_the_page_says_what_was_found_and_how(page: str, known: Results) -> None:
    seen = Page(page)
    assert seen.open == []
    about = known.profile["provenance"]
    for words in (
        f"{about['successes']} of {about['episodes']} episodes passed; "
        "voided, not counted: 1 attempt",
        "sees goals down to",
        "m across in half of its attempts",
        "navigationAbility",
        "The Brier score of these",
        "nothing else would do",
        "animalcat episode replay s-1 1",
        "R-hat is at most",
        "sim: motion 3, looks 3, animalcat 0.1.0",
        "rays over ±60°",
        "the layout covers 303 of 450 arenas",
        "It is used in its variant metres-15.",
        "It is hardly <asked> for.",
        "@misc{",
        "begun 2026-11-23",
        "20 to over 37.6 m",
        "It predicts <well>.",
        "More <is> needed:",
        "animalcat session resume s-1",
        "its own average",
        "Where predictions fail",
        "less success than predicted",
        "It finds more than <other>.",
    ):
        assert words in seen.words, words


def test_the_page_labels_what_is_unfinished_and_crosses_out_what_is_contradicted(page: str) -> None:
    words = Page(page).words
    assert "Unfinished: 3 episodes so far." in words
    assert "The layout does not fit. Where size is <5 it fails. It predicts <well>." in words
    assert words.count("Not to be read.") == 3  # above each part that takes the layout for true
    assert "doubtful" in page.split("</style>")[1]


def test_the_page_escapes_names_and_stands_alone(page: str) -> None:
    seen = Page(page)
    assert f"Cognitive profile of {ODD}" in seen.words
    assert "<b>mine" not in page
    assert "lg(5 m" not in page.split("<details", 1)[0]  # readers have metres
    tags = {tag for tag, _ in seen.tags}
    assert not {"script", "link", "iframe"} & tags
    body = page.split("</style>", 1)[1]
    assert not re.search(LOADS, body)
    names = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert len(names) == len(set(names))
    used = set(re.findall(r"(?:href=\"#|url\(#)([^\")]+)", body))
    assert used <= set(names)


def unpack_part(page: str, name: str) -> list[list[Any]]:
    """What the script of a page reads from one of its parts."""
    (found,) = re.findall(rf'<script type="text/plain" id="{name}">([^<]*)</script>', page)
    return json.loads(zlib.decompress(b64decode(found)))


def test_a_long_session_has_its_episodes_in_parts_that_are_drawn_when_opened(
    known: Results,
) -> None:
    one, count = rows_of(known), 1234
    rows = [dict(one[k % len(one)]) | {"episode": k, "attempt": 0} for k in range(count)]
    rows[700]["instance"], rows[701]["outcome"] = ODD, "void"
    arenas = {row["instance"]: ARENA for row in one[:30]}
    because = {(1233, 0): "nothing else would do"}
    profile = profile_of(known, coverage=None)
    page = session_page(profile, known.fitted, rows, arenas, because=because)
    seen = Page(page)
    assert seen.open == []
    assert "<b>mine" not in page
    body = page.split("</style>", 1)[1]
    assert not re.search(LOADS, body)
    assert len(seen.tags) < 8000  # more than twice as many with all of them
    # What matters is there without the script: counts of every part, and the last episodes.
    passed = sum(row["outcome"] == "success" for row in rows[500:1000])
    assert f"Episodes 500 to 999: {passed} success" in seen.words
    assert ", 1 void" in seen.words
    assert "animalcat episode list" in seen.words
    assert "The last 50" in seen.words
    assert "nothing else would do" in seen.words
    assert "animalcat episode replay s-1 1233-0" in seen.words
    assert "animalcat episode replay s-1 1183-0" not in seen.words
    # The script finds all of it.
    told = [row for k in range(3) for row in unpack_part(page, f"rows-{k}")]
    places = [place for k in range(99) if f'"arenas-{k}"' in page
              for place in unpack_part(page, f"arenas-{k}")]  # fmt: skip
    assert [row[0] for row in told] == list(range(count))
    assert [places[row[2]][0] for row in told] == [row["instance"] for row in rows]
    assert [row[5] for row in told] == [row["outcome"] for row in rows]
    assert sum(bool(place[3]) for place in places) == len({row["instance"] for row in one[:30]})


def test_every_picture_of_the_page_says_what_it_shows(page: str, known: Results) -> None:
    tags = Page(page).tags
    maps = [attributes["aria-label"] or "" for tag, attributes in tags if tag == "svg"]
    told = [attributes["alt"] or "" for tag, attributes in tags if tag == "img"]
    assert all(maps)
    assert all(told)
    for node in known.fitted.layout.latent_names:
        assert any(f"Posterior density of {node}" in one for one in told)
    for demand in known.fitted.layout.feature_names:
        assert any(f"Success by {demand}" in one for one in told)
    assert sum(one.startswith("Map of") for one in maps) >= 3


def test_a_session_without_episodes_has_a_page(known: Results) -> None:
    profile = profile_of(known, played_with=[], coverage=None)
    profile["diagnostics"] = {"engine": "prior", "converged": False, "reasons": ["R-hat"],
                              "outcomes": 0, "prior_only": True}  # fmt: skip
    del profile["nodes"]["noiseLevel"]
    words = Page(session_page(profile, replace(known.fitted, data=None), [], {})).words
    assert "No episodes yet" in words
    assert "Nothing was played yet." in words
    assert "Not certified: R-hat." in words
    assert "there is no outcome yet" in words


def test_predictions_are_decomposed_as_murphy_has_it() -> None:
    rows = [{"outcome": "success", "predicted": 0.9}, {"outcome": "failure", "predicted": 0.3}] * 5
    said = " ".join(predictions(pd.DataFrame(rows)))
    # Brier (0.01 + 0.09) / 2; both groups are pure, so resolution is all of the uncertainty.
    for words in (
        "predictions is 0.050",
        "reliability 0.050",
        "resolution 0.250",
        "better by 80 %",
    ):
        assert words in said, said
    assert predictions(pd.DataFrame([{"outcome": "void", "predicted": 0.5}])) == []
    assert predictions(outcomes_frame([])) == []


def taking_three_of_four() -> tuple[FitResult, list[dict[str, Any]]]:
    """A session in which every arena is passed, and three of its four rewards are taken.

    That is what the layout predicts: its first outcome is the number of rewards taken.
    """
    layout = load_layout("navigation-speed", "rewards")
    asked = {"rewardDistance": 10.0, "timeLimit": 60.0, "rewards": 4.0}
    features = np.array([[asked[name] for name in layout.feature_names]] * 8)
    rng = np.random.default_rng(0)
    draws = layout.from_standard(rng.standard_normal((2, 60, len(layout.latents))))
    outcomes = np.array([[3.0, 0.5]] * 7 + [[np.nan, 0.5]])
    nodes = summarise(layout, draws.reshape(120, -1), np.full(120, 1 / 120), np.full(4, 120.0))
    fitted = FitResult(layout, draws, nodes, {}, FitData(features, outcomes, None, tuple(range(8))))
    row = {"instance": "i", "outcome": "success", "predicted": 0.75, "features": asked}
    rows = [{**row, "episode": k, "attempt": 1} for k in range(8)]
    rows.append({**row, "episode": 3, "attempt": 0, "outcome": "void"})
    return fitted, rows


def test_predictions_are_compared_with_the_outcome_that_they_are_of() -> None:
    fitted, rows = taking_three_of_four()
    table = prediction.add_observed(outcomes_frame(rows), fitted)
    found = prediction.judge_predictions(table)
    assert found.predicted.tolist() == found.observed.tolist() == [0.75] * 7
    said = " ".join(predictions(table, "rewards"))
    assert "7 episodes the share of its rewards that would be taken was predicted" in said
    assert "predictions is 0.000" in said
    assert "success" not in said
    assert "ROC" not in said
    (axes,) = prediction.reliability(table).axes
    (point,) = (line for line in axes.lines if line.get_marker() == "o")
    assert (point.get_xdata(), point.get_ydata()) == ([0.75], [0.75])
    assert "observed (mean share" in axes.get_xlabel() + axes.get_ylabel()


def test_names_mean_nothing_to_tex() -> None:
    about = {"agent": "a_b%{\\", "battery": "b", "session": "sessions/x y"}
    words, entry = citation({"provenance": about, "layout": {}}, "2026-11-23", "")
    assert "a_b%{\\" in words
    assert r"a\_b\%\{\textbackslash{}" in entry
    assert entry.startswith("@misc{x-y,")


def test_what_is_declared_invalid_counts_in_no_number_of_failures() -> None:
    decision = Decision("i", 0.0, 1.0, 0.5, {}, "random")
    left, late = f"{Cause.AGENT_LEFT}, for the second time", str(Cause.OUT_OF_TIME)
    attempts = [
        Episode("s", k, 0, decision, outcome=Outcome.FAILURE, cause=cause, invalid=invalid)
        for k, (cause, invalid) in enumerate(
            [(left, ""), (left, "the lamp was off"), (late, "the lamp was off"), (late, "")]
        )
    ]
    spec = SessionSpec(agent="a", battery="b")
    session = Session("s", spec, SessionState.RUNNING, "", datetime(2026, 1, 1, tzinfo=UTC))
    about = provenance(session, attempts, {})
    assert (about["episodes"], about["invalid"]) == (2, 2)
    assert (about["failures_by_default"], about["overspent"]) == (1, 1)
