"""`benchmarks recovery`: agents that act, adaptive sessions, and the table made of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.limits.reference import read_reference
from animalcat.envs.agents.load import load_agent, make_agent
from animalcat.envs.types import ObservationSpec
from animalcat.layouts.library import load_layout
from animalcat.service.batteries.battery import build_family
from benchmarks import recovery
from benchmarks.recovery import Size
from benchmarks.recovery_agents import (
    SITES,
    weak_agents,
)
from benchmarks.recovery_outcomes import Outcomes, Strength, holds
from benchmarks.recovery_sessions import Place, Task, in_episode, reference_of

LONG_PATH, SHORT_PATH = "builtin:planner+path=24", "builtin:planner+path=16"


def test_every_agent_can_be_made_and_every_node_is_there() -> None:
    for name, site in SITES.items():
        layout = load_layout(site.layout, site.variant)
        capabilities = {layout.latents[k].name for k in layout.capabilities}
        assert {plant.node for plant in site.plants} == capabilities
        for plant in site.plants:
            assert len(plant.strengths) == 10
            planted = [plant.planted(strength) for strength in plant.strengths]
            assert planted == sorted(planted)
            for strength in plant.strengths:
                assert read_reference(plant.agent(strength)).limits
        for reference in site.impostors:
            assert read_reference(reference).limits
        drawn = weak_agents(site, 20, name)
        assert drawn == weak_agents(site, 20, name)
        assert len({agent for _, agent in drawn}) > 15


def test_what_an_agent_is_in_an_episode_is_what_it_draws() -> None:
    reference = "builtin:planner+lava-blind=0.4+ramp-shy=0.7+memory=3"
    spec = ObservationSpec(None, None, privileged=True)
    agent: Any = load_agent(reference)
    kinds = set[str]()
    for seed in range(12):
        read, repeats = in_episode(reference, seed)
        assert repeats
        agent.reset(EpisodeInfo(0, seed, spec))
        other: Any = make_agent(read)
        other.reset(EpisodeInfo(0, 999, spec))
        assert agent.agent.settings == other.agent.settings
        kinds.add(reference_of(read))
    assert len(kinds) == 4
    assert "builtin:planner+memory=3.0" in kinds
    read, repeats = in_episode("builtin:planner+lapses=0.1", 1)
    assert (reference_of(read), repeats) == ("builtin:planner+lapses=0.1", False)
    assert reference_of(read, without={"lapses"}) == "builtin:planner+lapses"
    read, repeats = in_episode("builtin:planner+lapses=0.00", 1)
    assert (reference_of(read), repeats) == ("builtin:planner", True)


def test_a_strength_tells_for_which_others_everything_is_the_same() -> None:
    questions: list[Callable[[Any], bool]] = [
        lambda one: one < 3.0,
        lambda one: operator.le(2.0, one),
        lambda one: one > 2.5,
        lambda one: operator.ge(4.0, one),
        lambda one: one == math.inf,
        lambda one: one - 0.01 > 2.4,
        lambda one: bool(operator.lt(np.float64(2.45), one)),
        bool,
    ]
    others = [0.0, 0.5, 2.0, 2.41, 2.42, 2.5, 2.6, 3.0, 3.5, 4.0, 5.0, math.inf]
    for number in range(1, 2 ** len(questions), 3):
        some = [ask for k, ask in enumerate(questions) if number >> k & 1]
        for value in others:
            strength: Any = Strength(value)
            answers = [ask(strength) for ask in some]
            assert answers == [ask(value) for ask in some]
            for other in others:
                same = answers == [ask(other) for ask in some]
                assert same or not holds(strength.asked, other)
            assert holds(strength.asked, value)
    strength = Strength(2.6)
    assert [strength > 1.0, strength > 2.0, strength < 3.0, strength < 9.0] == [True] * 4
    near = (2.0, 2.1, 2.9, 3.0)
    assert [holds(strength.asked, other) for other in near] == [False, True, True, False]


def test_outcomes_are_shared_by_a_file(tmp_path: Path) -> None:
    file = tmp_path / "played.jsonl"
    one, other = Outcomes(file), Outcomes(file)
    assert one.find("agent arena", {}) is None
    one.keep("agent arena", {}, passed=False)
    assert other.find("agent arena", {}) is False
    strength = Strength(5.0)
    assert strength > 4.0
    other.keep("agent+path arena", {"path": strength}, passed=True)
    assert one.find("agent+path arena", {"path": 4.0}) is None
    assert one.find("agent+path arena", {"path": 4.1}) is True
    whole = file.read_bytes()
    file.write_bytes(whole + b'["agent other", {}, tr')  # as while another process writes
    assert other.find("agent other", {}) is None
    file.write_bytes(whole + b'["agent other", {}, true]\n')
    assert other.find("agent other", {}) is True
    assert Outcomes().find("agent arena", {}) is None


def test_what_holds_for_another_strength_is_not_played_again(tmp_path: Path) -> None:
    battery = build_family("navigation", 24, 0, tmp_path)
    apart = [
        Place(tmp_path, battery.digest, "aaio", "").session(Task(agent, 1, 8))
        for agent in (LONG_PATH, SHORT_PATH)
    ]
    shared = tmp_path / "played.jsonl"
    one, other = (Place(tmp_path, battery.digest, "aaio", "", shared) for _ in range(2))
    assert [one.session(Task(LONG_PATH, 1, 8)), other.session(Task(SHORT_PATH, 1, 8))] == apart
    assert one.played == 8
    assert 0 < other.played < 8
    assert apart[0].successes > apart[1].successes


@pytest.mark.slow
def test_the_table_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "WORKERS", 1)
    size = Size(0.0, 3, 1, 0.0, 2, 1, 1, 12, 500.0)
    rows = recovery.run(sites=["aaio"], size=size)
    named = {row["name"]: row for row in rows}
    found = named["aaio: navigationAbility by path, Spearman"]
    assert found["value"] == pytest.approx(1.0)
    assert named["aaio: what smallest moves besides"]["note"] == "navigationAbility"
    assert "value" in named["aaio: single weakness has the lowest standing"]
    assert found["note"].startswith("3 sessions")
