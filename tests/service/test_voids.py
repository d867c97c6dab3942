"""Voids are counted by what the arenas demanded, since those that go with a demand would bias."""

from __future__ import annotations

from dataclasses import replace

from animalcat.layouts.library import load_layout
from animalcat.service.measuring.voids import Voids, voids_by_demand, voids_to_dict
from animalcat.values import Cause, Decision, Episode, Outcome

LAYOUT = load_layout("aaio", "scaled")
NAMES = LAYOUT.feature_names
FAR, DARK = NAMES.index("rewardDistance"), NAMES.index("rewardSize")


def row(**values: float) -> list[float]:
    return [values.get(name, 1.0) for name in NAMES]


COVERED = {
    "near": row(rewardDistance=2.0),
    "nearer": row(rewardDistance=1.0),
    "far": row(rewardDistance=20.0),
    "farther": row(rewardDistance=30.0, rewardSize=2.0),
}


def attempt(instance: str, outcome: Outcome, cause: str = "") -> Episode:
    decision = Decision(instance, 0.0, 1.0, 0.5, {}, "")
    return Episode("s", 0, 0, decision, outcome=outcome, cause=cause)


def test_what_the_agent_leaves_is_counted_where_it_leaves() -> None:
    attempts = [
        attempt("near", Outcome.SUCCESS),
        attempt("nearer", Outcome.FAILURE),
        attempt("far", Outcome.VOID, Cause.AGENT_LEFT),
        attempt("far", Outcome.FAILURE, f"{Cause.AGENT_LEFT}, for the second time"),
        attempt("farther", Outcome.SUCCESS),
        # What is no doing of the agent's is not counted.
        attempt("near", Outcome.VOID, Cause.CANCELLED),
        attempt("near", Outcome.VOID, Cause.WITHDREW),
        attempt("near", Outcome.FAULT, "backend: it fell"),
        replace(attempt("near", Outcome.SUCCESS), invalid="the camera was covered"),
        replace(attempt("near", Outcome.SUCCESS), outcome=None),
    ]
    first, second = voids_by_demand(LAYOUT, COVERED, attempts)
    unit = LAYOUT.features[FAR].unit
    assert first == Voids("rewardDistance", unit, 11.0, 0, 2, 2, 3)
    assert second == Voids("rewardSize", LAYOUT.features[DARK].unit, 2.0, 2, 4, 0, 1)
    told = voids_to_dict([first, second])
    assert told["words"].startswith(
        f"Attempts that the agent voided, by demand: 2 of 3 where rewardDistance is 11 {unit} or "
        "more, 0 of 2 where it is less; 0 of 1 where rewardSize is 2"
    )
    assert told["demands"][0]["voids_from"] == 2


def test_without_a_void_there_is_nothing_to_say() -> None:
    assert voids_by_demand(LAYOUT, COVERED, [attempt("near", Outcome.SUCCESS)]) == []
    assert voids_to_dict([]) == {"words": "", "demands": []}
