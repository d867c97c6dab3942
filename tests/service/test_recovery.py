"""`animalcat bench recovery`: agents that act, adaptive sessions, and the table made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from animalcat.benchmarks import recovery
from animalcat.benchmarks.recovery import Size
from animalcat.benchmarks.recovery_agents import (
    SITES,
    interval_of_correlation,
    interval_of_share,
    weak_agents,
)
from animalcat.benchmarks.recovery_sessions import Place, Task, in_episode
from animalcat.envs.agents import EpisodeInfo, load_agent
from animalcat.envs.agents.limits import read_reference
from animalcat.envs.types import ObservationSpec
from animalcat.layouts.library import load_layout
from animalcat.service.batteries.battery import build_family


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
        text, repeats = in_episode(reference, seed)
        assert repeats
        agent.reset(EpisodeInfo(0, seed, spec))
        other: Any = load_agent(text)
        other.reset(EpisodeInfo(0, 999, spec))
        assert agent.agent.settings == other.agent.settings
        kinds.add(text)
    assert len(kinds) == 4
    assert in_episode("builtin:planner+lapses=0.1", 1) == ("builtin:planner+lapses=0.1", False)


def test_intervals_hold_what_they_are_of() -> None:
    low, high = interval_of_share(18, 20)
    assert 0.7 < low < 0.9 < high < 1.0
    assert interval_of_share(20, 20)[1] == pytest.approx(1.0)
    x = [float(k) for k in range(20)]
    assert interval_of_correlation(x, [k**2 for k in x]) == pytest.approx((1.0, 1.0, 1.0))
    noise = np.random.default_rng(0).normal(0, 4, 20)
    rho, low, high = interval_of_correlation(x, [k + n for k, n in zip(x, noise, strict=True)])
    assert low < rho < high < 1.0


def test_a_session_finds_a_short_path(tmp_path: Path) -> None:
    battery = build_family("navigation", 24, 0, tmp_path)
    place = Place(tmp_path, battery.digest, "aaio", "")
    short = place.session(Task("builtin:planner+path=4", 1, 8))
    once = place.played
    assert place.session(Task("builtin:planner+path=4", 1, 8)) == short
    assert place.played == once  # what was played is not played again
    able = place.session(Task("builtin:planner", 1, 8))
    assert able.successes > short.successes
    assert able.means["navigationAbility"] > short.means["navigationAbility"] + 0.2


@pytest.mark.slow
def test_the_table_is_made_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "WORKERS", 1)
    size = Size(0.0, 3, 1, 0.0, 2, 1, 1, 12, 500.0)
    rows = recovery.run(keep=tmp_path, sites=["aaio"], size=size)
    named = {row["name"]: row for row in rows}
    found = named["aaio: navigationAbility by path, Spearman"]
    assert found["value"] == pytest.approx(1.0)
    assert named["aaio: what smallest moves besides"]["note"] == "navigationAbility"
    assert "value" in named["aaio: single weakness has the lowest standing"]
    kept = json.loads((tmp_path / "aaio.json").read_text())
    assert kept["rows"] == rows
    assert len(kept["sessions"]) == 2 * 3 + 1 + 5 + 1


@pytest.mark.slow
def test_without_time_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "WORKERS", 1)
    rows = recovery.run(sites=["aaio"], size=Size(0.0, 3, 1, 0.0, 2, 1, 1, 12, -1.0))
    assert {row["note"] for row in rows} == {"not played: no time was left", "there are none"}
