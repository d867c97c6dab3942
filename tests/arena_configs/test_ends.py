"""Every number of an arena at its ends: what loads and checks can be played, and be sent."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from animalcat.arena_configs.bounds import LARGEST, LONGEST, TIMES
from animalcat.arena_configs.checks import check_loaded
from animalcat.arena_configs.loader import OPERATIONS, fields_of, load_text
from animalcat.arena_configs.model import RGB, Arena, ArenaError, Item, Vector3
from animalcat.arena_configs.scalars import FLOAT_MAX, INT_MAX, INT_MIN
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.rules import EpisodeState
from animalcat.envs.types import ObservationSpec
from animalcat.v1 import sessions_pb2
from tests.small import play_episode

HEAD = "!ArenaConfig\narenas:\n  0: !Arena\n"
AGENT = "    - !Item\n      name: Agent\n      positions: [!Vector3 {x: 20, y: 0, z: 5}]\n"
GOAL = "    - !Item\n      name: GoodGoal\n      positions: [!Vector3 {x: 20, y: 0, z: 35}]\n"
WHERE = {
    "delays": "DecayGoal",
    "initialValues": "GrowGoal",
    "finalValues": "RipenGoal",
    "changeRates": "ShrinkGoal",
    "spawnCounts": "SpawnerTree",
    "ripenTimes": "SpawnerTree",
    "timesBetweenSpawns": "SpawnerTree",
    "doorDelays": "SpawnerContainerShort",
    "timesBetweenDoorOpens": "SpawnerContainerShort",
    "moveDurations": "SpawnerButton",
    "resetDurations": "SpawnerButton",
    "maxRewardCounts": "SpawnerButton",
    "rewardWeights": "SpawnerButton",
    "frozenAgentDelays": "Agent",
}
ZONE = (
    "    - !Item\n      name: DataZone\n      positions: [!Vector3 {x: 20, y: 0, z: 5}]\n"
    "      sizes: [!Vector3 {x: 9, y: 5, z: 9}]\n      operations: ["
)

ENVIRONMENT = SimEnvironment(ObservationSpec())


def places() -> Iterator[tuple[str, type, str]]:
    """Every field that is a number: what it is called, of which type, and an arena around it."""
    for key, field in fields_of(Arena).items():
        if field.kind in (int, float):
            value = "[NUMBER]" if field.many else "NUMBER"
            limit = f"    timeLimit: {LONGEST}\n" if key == "blackouts" else ""
            yield key, field.kind, f"{HEAD}{limit}    {key}: {value}\n    items:\n{AGENT}{GOAL}"
    for key, field in fields_of(Item).items():
        name = WHERE.get(key, "Wall")
        head = f"{HEAD}    timeLimit: 100\n    items:\n{'' if name == 'Agent' else AGENT}{GOAL}"
        item = f"{head}    - !Item\n      name: {name}\n      {key}: "
        if field.kind in (int, float):
            yield key, field.kind, f"{item}{'[NUMBER]' if field.many else 'NUMBER'}\n"
        if field.kind in (Vector3, RGB):
            tag = "!Vector3" if field.kind is Vector3 else "!RGB"
            for axis in field.kind.model_fields:
                value = f"{tag} {{{axis}: NUMBER}}"
                yield f"{key}.{axis}", float, f"{item}{f'[{value}]' if field.many else value}\n"
    for tag, operation in OPERATIONS.items():
        for key, field in fields_of(operation).items():
            if field.kind in (int, float):
                value = "[NUMBER]" if field.many else "NUMBER"
                more = ", operations: [!noneOperation {}]" if field.many else ""
                operated = f"{tag} {{{key}: {value}{more}}}]\n"
                yield f"{tag}.{key}", field.kind, f"{HEAD}    items:\n{AGENT}{GOAL}{ZONE}{operated}"


PLACES = list(places())


def refusals(text: str) -> list[tuple[int | None, str]]:
    """Lines and codes of what is out of bounds, by `arena check`."""
    try:
        loaded = load_text(text, "ends.yml")
        found = check_loaded(loaded, np.random.default_rng(0), file="ends.yml")
    except ArenaError as error:
        found = error.problems
    return [(one.line, one.code) for one in found if one.code == "too-large"]


def test_all_numbers_are_here() -> None:
    assert len(PLACES) >= 44
    assert {"timeLimit", "randomSeed", "colors.g", "!freezeAgent.freezeSteps"} <= {
        name for name, _, _ in PLACES
    }


@pytest.mark.parametrize(("name", "kind", "text"), PLACES, ids=[name for name, _, _ in PLACES])
def test_a_number_at_its_ends_plays_and_beyond_is_found(name: str, kind: type, text: str) -> None:
    alias = {key: field.attribute for key, field in fields_of(Arena).items()}
    if kind is float:
        ends, beyond = (-LARGEST, LARGEST), (2 * LARGEST, -FLOAT_MAX, 1e39, -1e300)
    elif alias.get(name) in TIMES:
        ends, beyond = (LONGEST,), (LONGEST + 1, 999_999_999, -LONGEST - 1, INT_MAX, INT_MIN - 1)
    else:
        ends, beyond = (INT_MIN, INT_MAX), (INT_MIN - 1, INT_MAX + 1, 10**30)
    for value in ends:
        written = text.replace("NUMBER", str(value))
        assert refusals(written) == []
        plays(load_text(written, "ends.yml").config.first)
    for value in beyond:
        written = text.replace("NUMBER", str(value))
        lines = [n for n, line in enumerate(written.splitlines(), 1) if str(value) in line]
        assert refusals(written) == [(lines[-1], "too-large")], value


def plays(arena: Arena) -> None:
    """Play a little, and send what a session sends of an instance."""
    for step in play_episode(ENVIRONMENT, arena, 0, [0, 3, 1]):
        ENVIRONMENT.spec.validate(step.observation)
        assert math.isfinite(step.reward)
    sessions_pb2.Instance(time_limit_steps=5 * arena.time_limit)


def test_a_limit_that_never_ends_an_episode_is_said() -> None:
    """In single precision health does not fall where a step takes too little of it."""

    def falls(limit: int) -> bool:
        episode = EpisodeState(limit, 1)
        episode.tick()
        return bool(episode.health < 100)

    def words_of(limit: int) -> list[str]:
        text = f"{HEAD}    timeLimit: {limit}\n    items:\n{AGENT}{GOAL}"
        found = check_loaded(load_text(text, "f"), np.random.default_rng(0), file="f")
        return [one.code for one in found if one.code != "left-to-chance"]

    last = next(n for n in range(5_242_000, 5_244_000) if not falls(n)) - 1
    assert (words_of(last), words_of(last + 1)) == ([], ["endless"])
    assert words_of(LONGEST) == ["endless"]
