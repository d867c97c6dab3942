"""Sessions that were unlike are not pooled or compared in silence, wherever that is done."""

from __future__ import annotations

import ast
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from animalcat.alike import (
    REFUSED,
    UnlikeError,
    conditions_of,
    differing,
    insist_poolable,
)
from animalcat.envs.types import CameraSpec, ObservationSpec
from animalcat.layouts.fitting.exports import of_export
from animalcat.layouts.model.tables import TableError
from animalcat.outcomes import outcomes_frame
from animalcat.values import SessionSpec

from .test_architecture import imports, known_modules

ROOT = Path(__file__).resolve().parents[1]
PRIMITIVES = {"compare_agents", "common_instances", "evidence_of", "fit_group"}
"""What puts agents beside each other, or outcomes together."""
PLACES = {
    "animalcat.cli.shared.earlier_outcomes": "calibrations, of sessions and of tables",
    "animalcat.lab.group": "persons who are fitted together",
    "animalcat.layouts.fitting.exports": "fits of a table of attempts, by command and in Python",
    "animalcat.plots.agents": "pictures of several agents",
    "animalcat.service.measuring.against": "a session against another one",
    "animalcat.service.reporting.comparison": "profile compare, campaigns, results in notebooks",
}
ALONE = {
    "animalcat.service.rpc.campaigns": "chooses arenas; its sessions have one specification",
    "benchmarks.groups": "simulates persons and agents of one layout",
    "benchmarks.comparing": "simulates agents on the same arenas",
}
SPEC = SessionSpec("one", "mine", "abc", layout="aaio", layout_digest="123")
ROW: dict[str, Any] = {
    "instance": "a",
    "arena": "1",
    "outcome": "success",
    "pass_mark": 0.0,
    "battery": "mine",
    "backend": "sim",
    "decision_period": 3,
    "features": {},
}


def test_every_place_that_pools_or_compares_asks() -> None:
    found: dict[str, bool] = {}
    for name, path in known_modules().items():
        tree = ast.walk(ast.parse(path.read_text()))
        calls = {
            n.func.id for n in tree if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        if calls & PRIMITIVES:
            asks = {"insist_poolable", "differing", "unlike"} & calls
            found[name] = "animalcat.alike" in imports(path) and bool(asks)
    assert {name for name, asks in found.items() if asks} == PLACES.keys()
    assert {name for name, asks in found.items() if not asks} == ALONE.keys()


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("backend", replace(SPEC, backend="unity:3.1.3")),
        ("battery", replace(SPEC, battery_digest="def")),
        ("decision period", replace(SPEC, observation_spec=ObservationSpec(decision_period=20))),
        ("privilege", replace(SPEC, observation_spec=ObservationSpec(privileged=True))),
        ("observation", replace(SPEC, observation_spec=ObservationSpec(CameraSpec(40)))),
    ],
)
def test_what_two_sessions_differ_in_is_found(what: str, other: SessionSpec) -> None:
    both = {"one": conditions_of(asdict(SPEC)), "other": conditions_of(asdict(other))}
    (difference,) = differing(both)
    assert difference.what == what
    assert difference.sentence.startswith(f"The {what} differs (one: ")
    assert not differing({"one": both["one"], "same": conditions_of(asdict(SPEC))})


def table(**other: Any) -> Any:
    rows = [{**ROW, "session": "s", "agent": "x"}, {**ROW, "session": "t", "agent": "x"} | other]
    return outcomes_frame(rows)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"decision_period": 20}, r"decision period differs \(s: 3; t: 20\)"),
        ({"labels": "unfinished: 3; privileged: shown", "session": "t"}, "privilege differs"),
        ({"backend": "unity:4"}, "backend differs"),
        ({"battery": "other"}, "battery differs"),
        ({"pass_mark": 0.5}, r"pass mark differs \(s: 0 in a; t: 0.5 in a\)"),
    ],
)
def test_outcomes_of_unlike_sessions_are_not_pooled(other: dict[str, Any], words: str) -> None:
    # I3 of docs/design/mistakes.md
    frame = table(**other)
    with pytest.raises(UnlikeError, match=words):
        insist_poolable(frame)
    with pytest.raises(TableError, match=words):
        of_export(frame, [])


def test_what_is_alike_is_pooled_and_other_sensors_are_said() -> None:
    assert insist_poolable(table()) == []
    assert insist_poolable(table(decision_period=None, backend=None)) == []  # nobody knows
    assert insist_poolable(table(pass_mark=0.5, instance="b", arena="2")) == []
    (note,) = insist_poolable(table(camera="40 x 40").assign(camera=["84 x 84", "40 x 40"]))
    assert note == "The observation differs (s: 84 x 84; t: 40 x 40)."


def test_agents_of_one_table_that_were_measured_otherwise_are_fitted_apart_and_said() -> None:
    _, notes = of_export(table(agent="y", decision_period=20), [])
    assert "The decision period differs (x: 3; y: 20)." in notes
    assert not of_export(table(agent="y", decision_period=20), ["y"])[1]
    assert {"compare", "pool"} == set().union(*REFUSED.values())
