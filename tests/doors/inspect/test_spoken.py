"""Scripted speakers know nothing but what a model is shown, and play the battery `spoken`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from animalcat.arena_configs.families import generate
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.writer import to_yaml
from animalcat.doors.speech import Tongue
from animalcat.doors.speech.speaking import ModelAgent
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.answers import read_answer
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import CameraSpec, Observation, ObservationSpec
from animalcat.service.measuring.report import REPEATED
from benchmarks.spoken import ABLE, MALFORMED, MEMORY, PARROT, SIGHT, Task, made_rows, tasks
from benchmarks.spoken_agents import Speaker

SPEC = ObservationSpec(camera=CameraSpec(128))


def arena(paradigm: str, **fixed: Any) -> Arena:
    (made,) = generate("spoken", 1, np.random.default_rng(3), paradigm=paradigm, given=fixed)
    return load_text(to_yaml(made.arena), "spoken").config.first


def play(
    arena: Arena,
    speaker: Speaker,
    history: int = 40,
    shown: Callable[[Observation], Observation] = lambda seen: seen,
) -> tuple[float, int]:
    """The return of an episode, and how many answers it took."""
    environment = SimEnvironment(SPEC)
    agent = ModelAgent(speaker.model(), Tongue(speaker.form, picture=128, history=history))

    async def played() -> float:
        step, total = environment.load(arena, 1), 0.0
        await agent.reset(EpisodeInfo(0, 0, SPEC, time_budget_steps=600))
        while step.ended_by is None:
            for action in read_answer(await agent.act(shown(step.observation))).actions:
                step = environment.step(action)
                total += step.reward
                if step.ended_by is not None:
                    break
        return total

    total = asyncio.run(played())
    return total, sum(message.role == "assistant" for message in agent.messages)


@pytest.mark.parametrize("form", ["script", "tools"])
def test_an_able_speaker_finds_food_in_few_answers(form: Any) -> None:
    able = Speaker(form)
    near, far = (arena("in_sight", place=1, distance=metres) for metres in (6, 33))
    hidden = arena("behind_screens", place=-1, held=4)
    assert [play(one, able)[0] > 1.0 for one in (near, far, hidden)] == [True] * 3
    assert play(far, able)[1] <= 8
    assert play(hidden, able)[1] <= 12


def test_with_another_picture_a_speaker_is_fooled() -> None:
    """It goes where the picture has food, though words and world have it elsewhere."""
    right = arena("in_sight", place=1, distance=10)
    other = SimEnvironment(SPEC).load(arena("in_sight", place=-1, distance=10), 1).observation

    def swapped(seen: Observation) -> Observation:
        return seen._replace(camera=other.camera)

    assert play(right, Speaker())[0] > 1.0
    assert play(right, Speaker(), shown=swapped)[0] < 0.0


def test_limits_of_speakers_are_metres_and_pictures() -> None:
    far = arena("in_sight", place=0, distance=30)
    assert play(far, Speaker(sight=34))[0] > 1.0
    assert play(far, Speaker(sight=26))[0] < 0.0
    hidden = arena("behind_screens", place=0, held=7)
    assert play(hidden, Speaker(), history=12)[0] > 1.0
    assert play(hidden, Speaker(), history=3)[0] < 0.0


def testmade_rows_say_what_follows_each_limit() -> None:
    def found(task: Task) -> dict[str, Any]:
        means = {"sightAbility": 40.0, "memoryAbility": 18.0}
        if task.series == SIGHT:
            means["sightAbility"] = task.strength
        if task.series == MEMORY:
            means["memoryAbility"] = 1.5 * task.strength
        lost = 100 * task.strength if task.series == MALFORMED else 0
        labels = [f"96 of 100 answers {REPEATED}"]
        return {
            "means": means,
            "answers": 100,
            "unparseable": lost,
            "kind": "able",
            "labels": labels if task.series == PARROT else [],
        }

    rows = {row["name"]: row for row in made_rows({task: found(task) for task in tasks(False)})}
    assert all(row["met"] for row in rows.values())
    assert rows["able speakers are named"]["note"] == "0 of 20 sessions"
    named = {task: found(task) | {"kind": "fraudster"} for task in tasks(False)}
    assert not {row["name"]: row for row in made_rows(named)}[f"{ABLE} speakers are named"]["met"]
