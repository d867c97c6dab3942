"""Whatever an arena asks for, the simulator plays it or says precisely why it does not."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from animalcat.arena_configs.catalogue import KINDS
from animalcat.arena_configs.checks import check_loaded
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena, ArenaError, Item, Vector3
from animalcat.arena_configs.placement import MAX_OBJECTS
from animalcat.arena_configs.writer import to_yaml
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ACTIONS, ObservationSpec
from tests.small import play_episode, start, thing

HEAD = """!ArenaConfig
arenas:
  0: !Arena
"""
AGENT = """    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
"""

lengths = st.sampled_from([-1.0, 0.0, 1e-30, 0.1, 1.0, 5.0, 40.0, 41.0, 1e6, 1e30]) | st.floats(
    -2.0, 45.0, width=32
)
vectors = st.builds(Vector3, x=lengths, y=lengths, z=lengths)
items = st.builds(
    Item,
    name=st.sampled_from([*KINDS, "Cardbox1", "Piano", ""]),
    positions=st.lists(vectors, max_size=3).map(tuple),
    rotations=st.lists(
        st.sampled_from([-1.0, 0.0, 90.0, 720.0, 1e30]) | st.floats(0.0, 360.0), max_size=3
    ).map(tuple),
    sizes=st.lists(vectors, max_size=3).map(tuple),
    delays=st.lists(st.sampled_from([0.0, -5.0, 10.0, 1e30]), max_size=2).map(tuple),
    initial_values=st.lists(st.sampled_from([0.0, -1.0, 2.0, 1e30]), max_size=2).map(tuple),
    final_values=st.lists(st.sampled_from([0.0, 5.0, -1e30]), max_size=2).map(tuple),
    change_rates=st.lists(st.sampled_from([0.0, 0.1, -0.1, 1e30]), max_size=2).map(tuple),
    frozen_agent_delays=st.lists(st.sampled_from([0.0, 0.1, -3.0, 1e30]), max_size=1).map(tuple),
)
arenas = st.builds(
    Arena,
    time_limit=st.sampled_from([-1, 0, 1, 10, 250, 10**9]),
    items=st.lists(items, max_size=6).map(tuple),
    random_seed=st.integers(0, 5),
)

ENVIRONMENT = SimEnvironment(ObservationSpec())


@given(arena=arenas, seed=st.integers(0, 3))
@example(arena=Arena(), seed=0)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_arena_that_loads_plays_or_says_why_not(arena: Arena, seed: int) -> None:
    """As written and as read back: any arena plays 20 decisions, or is refused as an arena."""
    actions = np.random.default_rng(seed).integers(ACTIONS, size=20).tolist()
    with contextlib.suppress(ArenaError):
        arena = load_text(to_yaml(arena), "made").config.first
        for step in play_episode(ENVIRONMENT, arena, seed, actions):
            ENVIRONMENT.spec.validate(step.observation)
            assert math.isfinite(step.reward)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("    timeLimit: soon\n", "timeLimit.*soon"),
        ("    passMark: .nan\n", "passMark.*(nan|finite)"),
        ("    colour: red\n", "colour: no such field"),
        ("    items: 7\n", "items"),
    ],
)
def test_an_arena_of_wrong_values_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(ArenaError, match=f"(?s)bad.yml:4.*{says}"):
        load_text(HEAD + text, "bad.yml", strict=True)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("    timeLimit: 100\n    blackouts: [50, 200]\n", "bad-blackouts"),
        ("    blackouts: [50]\n", "bad-blackouts"),
        ("    timeLimit: 100\n    blackouts: [50, 40]\n", "bad-blackouts"),
        ("    mergeNextArena: true\n", "merged-last"),
    ],
)
def test_what_the_real_build_refuses_is_an_error_of_the_check(text: str, code: str) -> None:
    loaded = load_text(HEAD + text + AGENT, "bad.yml")
    problems = check_loaded(loaded, np.random.default_rng(0), file="bad.yml")
    assert code in {problem.code for problem in problems if problem.severity == "error"}


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf", "1e400", "left"])
def test_a_place_that_is_no_finite_number_is_refused(value: str) -> None:
    with pytest.raises(ArenaError, match=r"(?s)bad\.yml.*positions"):
        load_text(HEAD + AGENT.replace("x: 20", f"x: {value}"), "bad.yml")


def test_thousands_of_objects_are_refused_with_their_number() -> None:
    crowd = Item(name="Wall", positions=(Vector3(x=1, z=1),) * (MAX_OBJECTS + 1))
    with pytest.raises(ArenaError, match=f"{MAX_OBJECTS + 2} objects.*{MAX_OBJECTS}"):
        ENVIRONMENT.load(Arena(items=(start(), crowd)), 0)


def test_a_goal_outside_the_arena_is_skipped_with_the_reason() -> None:
    environment = SimEnvironment(ObservationSpec())
    environment.load(Arena(items=(start(), thing("GoodGoal", 60, 0, 20))), 0)
    assert environment.skipped == (("GoodGoal", "it would overlap the arena's wall"),)
    assert len(environment.scene) == 0
