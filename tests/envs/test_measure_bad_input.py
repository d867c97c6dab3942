"""Whatever an arena holds, every demand has a value or a reason, and measuring comes to an end."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from animalcat.arena_configs.features.definition import Reading
from animalcat.arena_configs.features.registry import FEATURES, measure_features
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena, ArenaError, Item, Vector3
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.writer import to_yaml
from animalcat.envs.measure import LONGEST, measure_playing, watch
from animalcat.service.batteries.file_features import Plan, feature_rows
from tests.envs.test_sim_bad_input import arenas
from tests.small import start, thing

PLAN = Plan(0, "animalcat", "4.x")
PLAYED = {name for name, feature in FEATURES.items() if feature.measured == "playing"}


def measure_all(*items: Item, time_limit: int = 250) -> dict[str, Reading]:
    """The value of every demand, or why there is none; values are within their ranges."""
    return check_it(Arena(time_limit=time_limit, items=items))


def check_it(arena: Arena) -> dict[str, Reading]:
    survey = Survey(place(arena, np.random.default_rng(0)))
    values, missing = measure_features(survey, *measure_playing(survey))
    assert not values.keys() & missing.keys()
    for name, value in values.items():
        assert FEATURES[name].low <= value <= FEATURES[name].high, name
    assert all(missing.values())
    found: dict[str, Reading] = {**values, **missing}
    assert found.keys() == FEATURES.keys()
    return found


@given(arena=arenas)
@settings(
    max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
def test_any_arena_is_measured_or_refused(arena: Arena) -> None:
    # Simulated time is what takes time: most of these would be watched for a minute.
    arena = arena.model_copy(update={"time_limit": min(arena.time_limit, 40) or 40})
    with contextlib.suppress(ArenaError):
        check_it(load_text(to_yaml(arena), "made").config.first)


@pytest.mark.parametrize(
    "items",
    [
        pytest.param((), id="nothing"),
        pytest.param((start(),), id="no goal"),
        pytest.param((start(), thing("BadGoal", 20, 0, 20)), id="only a bad goal"),
        pytest.param((start(), thing("SpawnerTree", 20, 0, 20)), id="only a spawner"),
    ],
)
def test_without_a_reward_nothing_is_hidden(items: tuple[Item, ...]) -> None:
    found = measure_all(*items, time_limit=30)
    assert {name: found[name] for name in PLAYED} == {
        **dict.fromkeys(PLAYED, "no reward"),
        "decoysHidden": 0.0,
    }


def test_an_agent_that_starts_inside_something() -> None:
    """The arena's own objects cannot stand in the agent, but lava may lie under it."""
    found = measure_all(start(), thing("DeathZone", 20, 0, 5), thing("GoodGoal", 20, 0, 20))
    assert found["lavaPresence"] == 1.0


def test_what_never_comes_to_rest_is_watched_for_a_limited_time() -> None:
    grows = Item(
        name="GrowGoal",
        positions=(Vector3(x=20, z=30),),
        initial_values=(0.5,),
        final_values=(5.0,),
        change_rates=(1e-6,),
    )
    survey = Survey(place(Arena(items=(start(), grows)), np.random.default_rng(0)))
    seen = watch(survey, [survey.placement.objects[0]])
    assert not seen.rested
    assert math.isclose(float(seen.seconds[-1]), LONGEST, abs_tol=0.1)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\xfe\x00\x80", id="no text"),
        pytest.param(b"- just\n- a list\n", id="no arena"),
        pytest.param(b"!ArenaConfig\narenas: {}\n", id="no arenas"),
        pytest.param(b"!ArenaConfig\narenas: {0: !Arena {timeLimit: soon}}\n", id="no number"),
    ],
)
def test_a_file_that_does_not_load_is_a_row_with_its_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.yml"
    path.write_bytes(content)
    (row,) = feature_rows(path, path.stem, PLAN)
    assert row.features is None
    assert row.error
    assert "bad.yml" in row.error
    (gone,) = feature_rows(tmp_path / "gone.yml", "gone", PLAN)
    assert gone.error
