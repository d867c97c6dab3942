from __future__ import annotations

import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animalcat.arena_configs.bounds import LONGEST
from animalcat.arena_configs.catalogue import KINDS
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import (
    RGB,
    AnyOperation,
    Arena,
    ArenaConfig,
    ArenaError,
    EndEpisode,
    FreezeAgent,
    GrantContinuousReward,
    GrantReward,
    Item,
    LimitedInvocations,
    NoneOperation,
    OperationFromList,
    ToggleObject,
    Vector3,
)
from animalcat.arena_configs.placement import fix
from animalcat.arena_configs.scalars import FLOAT_MAX
from animalcat.arena_configs.writer import to_yaml

NUMBERS = st.floats(-FLOAT_MAX, FLOAT_MAX)
TIMES = st.integers(-LONGEST, LONGEST)
WHOLE = st.integers(-(2**31), 2**31 - 1)
VECTORS = st.builds(Vector3, x=NUMBERS, y=NUMBERS, z=NUMBERS)
COLORS = st.builds(RGB, r=NUMBERS, g=NUMBERS, b=NUMBERS)
TEXTS = st.one_of(
    st.sampled_from(["", "null", "~", "yes", "1", "#", "a: b", "'\"\\", "\n", "\x07\x85\u2028"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)


def tuples(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(strategy, max_size=3).map(tuple)


def items(operations: st.SearchStrategy[AnyOperation], *, old: bool = False) -> st.SearchStrategy:
    numbers, whole = tuples(NUMBERS), tuples(WHOLE)
    fields = {
        "name": st.sampled_from(sorted(KINDS)),
        "positions": tuples(VECTORS),
        "rotations": numbers,
        "sizes": tuples(VECTORS),
        "colors": tuples(COLORS),
        "skins": tuples(TEXTS),
        "frozen_agent_delays": numbers,
        "symbol_names": tuples(TEXTS),
        "delays": numbers,
        "initial_values": numbers,
        "final_values": numbers,
        "change_rates": numbers,
        "spawn_counts": whole,
        "spawn_colors": tuples(COLORS),
        "times_between_spawns": numbers,
        "ripen_times": numbers,
        "door_delays": numbers,
        "times_between_door_opens": numbers,
    }
    new = {
        "move_durations": numbers,
        "reset_durations": numbers,
        "spawn_probability": st.none() | NUMBERS,
        "reward_names": tuples(TEXTS),
        "reward_weights": numbers,
        "reward_spawn_pos": st.none() | VECTORS,
        "max_reward_counts": whole,
        "spawned_reward_size": st.none() | VECTORS,
        "trigger_zone_id": tuples(TEXTS),
        "zone_visibility": st.none() | st.booleans(),
        "operations": tuples(operations),
    }
    return st.builds(Item, **(fields if old else fields | new))


SIMPLE = st.one_of(
    st.builds(GrantReward, reward=NUMBERS),
    st.builds(GrantContinuousReward, reward_per_step=NUMBERS),
    st.builds(EndEpisode, reward=NUMBERS),
    st.builds(FreezeAgent, freeze_steps=WHOLE),
    st.just(NoneOperation()),
)
NESTED = st.one_of(
    SIMPLE,
    st.builds(LimitedInvocations, max_invocations=WHOLE, operation=st.none() | SIMPLE),
    st.builds(OperationFromList, operations=tuples(SIMPLE), operation_weights=tuples(NUMBERS)),
    st.builds(
        ToggleObject,
        spawnable=st.none()
        | st.builds(Item, name=st.sampled_from(sorted(KINDS)), sizes=tuples(VECTORS)),
        object_initially_present=st.booleans(),
        spawn_and_forget=st.booleans(),
    ),
)


def arenas(*, old: bool = False) -> st.SearchStrategy[Arena]:
    return st.builds(
        Arena,
        time_limit=TIMES,
        pass_mark=NUMBERS,
        items=tuples(items(NESTED, old=old)),
        blackouts=tuples(TIMES),
        random_seed=WHOLE,
        merge_next_arena=st.just(False) if old else st.booleans(),
    )


CONFIGS = st.builds(
    ArenaConfig,
    arenas=st.dictionaries(st.integers(0, 99), arenas(), min_size=1, max_size=2),
    randomize_arenas=st.booleans(),
    show_notification=st.booleans(),
    can_reset_episode=st.booleans(),
    can_change_perspective=st.booleans(),
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(CONFIGS)
def test_round_trip(config: ArenaConfig) -> None:
    loaded = load_text(to_yaml(config), "written.yml")
    assert loaded.config == config
    assert {p.code for p in loaded.problems} <= {"unequal-lists"}


@settings(max_examples=30, deadline=None, derandomize=True)
@given(arenas(old=True))
def test_round_trip_in_the_old_grammar(arena: Arena) -> None:
    text = to_yaml(arena, "3.x")
    assert load_text(text, "written.yml").config == ArenaConfig(arenas={0: arena})
    assert not {"timeLimit", "passMark", "mergeNextArena"} & set(text.replace(":", " ").split())


def test_what_the_old_grammar_cannot_say() -> None:
    with pytest.raises(ArenaError, match="zoneVisibility"):
        to_yaml(Arena(items=(Item(name="DataZone", zone_visibility=False),)), "3.x")
    with pytest.raises(ArenaError, match="mergeNextArena"):
        to_yaml(Arena(merge_next_arena=True), "3.x")


def test_fixed_arena_reads_well() -> None:
    arena = Arena(time_limit=250, items=(Item(name="Agent"), Item(name="GoodGoal")))
    text = to_yaml(fix(arena, np.random.default_rng(0)))
    assert text.isascii()
    assert set(text) <= set(string.printable)
    for field in ("timeLimit: 250", "passMark: 0.0", "blackouts: []", "randomSeed: 0"):
        assert f"    {field}\n" in text
    assert text.count("positions:") == text.count("rotations:") == 2
    assert load_text(text, "fixed.yml", strict=True).problems == ()
