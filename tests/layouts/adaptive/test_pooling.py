"""The law "played again is no new evidence", for outcomes of several sessions and tables."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.layouts.adaptive.pooling import ContradictionError, Play, weigh_outcomes


def session(
    name: str, outcomes: list[float], weight: float | None = 1.0, **more: str
) -> list[Play]:
    return [
        Play("a", ("arena", str(k)), outcome, (k, 0), name, weight, **more)
        for k, outcome in enumerate(outcomes)
    ]


HALF = [float(k % 2) for k in range(30)]
OTHER = [float(k % 3 == 0) for k in range(30)]


def test_a_session_that_is_pasted_twice_is_there_once() -> None:
    found = weigh_outcomes([*session("s", HALF), *session("s", HALF)])
    assert (found.weights.sum(), found.repeated, found.lowered) == (30.0, 30, 0)
    assert "the same attempt of the same session" in found.notes[0]
    with pytest.raises(ContradictionError, match="the attempt"):
        weigh_outcomes([*session("s", HALF), *session("s", OTHER)])


def test_sessions_of_a_deterministic_agent_tell_as_much_as_one() -> None:
    """Of one that plays at random, each tells as much."""
    same = weigh_outcomes([*session("s", HALF), *session("t", HALF), *session("u", HALF)])
    assert same.weights.sum() == pytest.approx(30.0, rel=0.01)
    luck = np.random.default_rng(1).random((2, 200)) < 0.5
    random = weigh_outcomes(
        [
            *session("s", luck[0].astype(float).tolist()),
            *session("t", luck[1].astype(float).tolist()),
        ]
    )
    assert random.weights.sum() > 380.0


def test_what_is_no_arena_is_known_by_its_id_and_other_arenas_of_one_name_are_others() -> None:
    bare = [Play("a", f"item {k % 10}", HALF[k % 10]) for k in range(20)]
    assert weigh_outcomes(bare).weights.sum() == pytest.approx(10.0, rel=0.2)
    seeds = [Play("a", ("arena", str(k)), 1.0, (k, 0), f"s{k}") for k in range(20)]
    assert weigh_outcomes(seeds).weights.tolist() == [1.0] * 20
    names = [Play("a", ("arena", "0"), 1.0, (k, 0), f"s{k}") for k in range(30)]
    assert weigh_outcomes(names).weights.sum() < 10.0


def test_versions_of_an_agent_are_told_apart_and_named() -> None:
    plays = [
        *session("s", HALF, fingerprint="1"),
        *session("t", HALF, fingerprint="2"),
    ]
    found = weigh_outcomes(plays)
    assert found.weights.sum() == 60.0
    assert "several versions" in found.notes[0]
    assert weigh_outcomes(session("s", HALF, fingerprint="1")).notes == []
