"""Arenas that merge are one episode: its pass mark, bounds, demands, checks and variations."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.checks import check_config
from animalcat.arena_configs.features.chains import chain_features
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena, ArenaConfig, ArenaError, Item, Vector3
from animalcat.arena_configs.placement import Placement, fix, place
from animalcat.arena_configs.returns import max_return
from animalcat.arena_configs.sequence import (
    ArenaSequence,
    episode_arenas,
    episodes,
    merge_arenas,
    of_parts,
    pass_mark,
)
from animalcat.arena_configs.writer import to_yaml
from animalcat.service.measuring.twins import variations


def item(name: str, x: float, z: float, size: float = 1.0) -> Item:
    sizes = () if name == "Agent" else (Vector3(x=size, y=size, z=size),)
    return Item(name=name, positions=(Vector3(x=x, z=z),), rotations=(0.0,), sizes=sizes)


def arena(
    *things: Item, mark: float = 0.0, limit: int = 100, merges: bool = False, x: float = 20.0
) -> Arena:
    return Arena(
        items=(item("Agent", x, 5), *things),
        pass_mark=mark,
        time_limit=limit,
        merge_next_arena=merges,
    )


def chain(*marks: float, goal: str = "GoodGoal") -> Arena:
    last = len(marks) - 1
    return of_parts(
        [arena(item(goal, 20, 12 + k), mark=m, merges=k < last) for k, m in enumerate(marks)]
    )


def place_all(*arenas: Arena) -> list[Placement]:
    return [place(one, np.random.default_rng(0)) for one in arenas]


@pytest.mark.parametrize(
    ("marks", "mark"),
    [
        ((0.5,), 0.5),
        ((0.0, 1.2), 1.2),
        ((0.9, 0.0), 0.9),
        ((0.0, -0.5), -0.5),
        ((-0.5, 0.0), 0.0),
        ((0.0, 1.7, 0.3), 1.7),
    ],
)
def test_an_episode_must_exceed_the_last_mark_and_what_was_in_its_way(
    marks: tuple[float, ...], mark: float
) -> None:
    assert pass_mark(chain(*marks)) == mark


def test_a_file_has_an_episode_for_each_chain_and_each_arena_between() -> None:
    merging = {0, 1, 4}
    config = ArenaConfig(
        arenas={n: arena(merges=n in merging) for n in (0, 1, 2, 3, 4, 5, 8)}, randomize_arenas=True
    )
    found = episodes(config)
    assert {start: len(episode_arenas(one)) for start, one in found.items()} == {
        0: 3,
        3: 1,
        4: 2,
        8: 1,
    }
    assert found[0] == merge_arenas(config, 0)
    assert not isinstance(found[3], ArenaSequence)
    for lost in ({0: True}, {0: True, 2: False}, {0: False, 1: True}):
        wrong = ArenaConfig(arenas={n: arena(merges=merges) for n, merges in lost.items()})
        with pytest.raises(ArenaError, match="there is no arena"):
            episodes(wrong)
        (problem,) = [p for p in check_config(wrong, np.random.default_rng(0)) if "erge" in p.code]
        assert problem.severity == "error"
        assert problem.field == f"arenas[{next(n for n, m in lost.items() if m)}].mergeNextArena"


def test_fixing_keeps_what_an_arena_merges_with_and_leaves_nothing_to_chance() -> None:
    loose = of_parts(
        [arena(item("GoodGoal", -1, -1), merges=True), arena(item("GoodGoal", -1, -1))]
    )
    made = fix(loose, np.random.default_rng(3))
    assert [one.merge_next_arena for one in episode_arenas(made)] == [True, False]
    spots = [one.items[1].positions[0] for one in episode_arenas(made)]
    assert spots[0] != spots[1]
    assert min(*spots[0], *spots[1])[1] >= 0.0
    assert fix(made, np.random.default_rng(9)) == made
    assert merge_arenas(load_text(to_yaml(made), "chain").config) == made


def test_demands_add_up_as_each_of_them_says() -> None:
    near, far = (dict.fromkeys(FEATURES, value) for value in (1.0, 3.0))
    parts = [MeasuredFeatures(values, {}) for values in (far, near)]
    boards = place_all(arena(item("GoodGoal", 20, 12)), arena(item("GoodGoal", 20, 12)))
    found = chain_features(parts, boards)
    wanted = {"first": 3.0, "sum": 4.0, "greatest": 3.0, "least": 1.0}
    for name, feature in FEATURES.items():
        if feature.chain == "":
            assert "2 arenas merge" in found.missing[name]
        elif feature.chain != "whole":
            assert found.values[name] == wanted[feature.chain]
    assert found.values["greatestReturn"] == pytest.approx(max_return(*boards), abs=1e-6)
    assert chain_features(parts[:1], boards[:1]) is parts[0]
    lacking = MeasuredFeatures(
        {"XPos": 1.0}, dict.fromkeys(FEATURES.keys() - {"XPos"}, "no reward")
    )
    found = chain_features([parts[0], lacking], boards)
    assert found.values["XPos"] == 3.0
    assert found.missing["rewardSize"] == "in arena 1 of the 2 that merge: no reward"
    dark = [
        boards[0],
        place(arena().model_copy(update={"blackouts": (5, 9)}), np.random.default_rng(0)),
    ]
    assert "blackouts" in chain_features(parts, dark).missing["timeUnderOcc"]


def test_a_chain_is_mirrored_as_a_whole_and_each_arena_is_turned() -> None:
    whole = of_parts([arena(item("GoodGoal", 14, 12), merges=True), arena(item("GoodGoal", 30, 9))])
    for seed in range(4):
        one = next(variations(whole, np.random.default_rng(seed), mirror=True))
        parts = episode_arenas(one.arena)
        assert [part.merge_next_arena for part in parts] == [True, False]
        for part, before in zip(parts, episode_arenas(whole), strict=True):
            (start, goal), (old, was) = (
                [thing.positions[0] for thing in some.items] for some in (part, before)
            )
            metres = np.hypot(goal.x - start.x, goal.z - start.z)
            assert metres == pytest.approx(np.hypot(was.x - old.x, was.z - old.z), abs=2e-3)
        # Which side each goal is on, by the heading: both change or none does.
        sides = [np.sign(FEATURES["goalBearing"].measure(Survey(one))) for one in place_all(*parts)]
        assert sides == ([1.0, -1.0] if one.flipped else [-1.0, 1.0])
