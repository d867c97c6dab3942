"""Simulated sessions, and what `python -m benchmarks saving` and `coverage` make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import build_family
from animalcat.service.measuring.generation import FamilySource
from benchmarks import coverage, saving
from benchmarks.sessions import (
    Task,
    World,
    players,
    simulate,
    use,
)
from benchmarks.synthetic import op_battery

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]


@pytest.fixture
def world(aaio: Layout, draw_instances: Draw) -> World:
    paradigms = tuple("ab"[i % 2] for i in range(40))
    made = World(aaio, Instances(aaio.feature_names, draw_instances(40, 1), paradigms))
    use({"small": made})
    return made


def test_a_session_follows_from_its_task(world: World) -> None:
    player = players(world, 1)[0]
    task = Task("small", player, Policy(), 3, (5, 20), held_out=True)
    first, second = simulate(task), simulate(task)
    assert first == second
    assert [p.episodes for p in first.points] == [5, 20]
    assert len(first.inside) == len(world.layout.latents)
    assert all(0.0 < p.brier < 1.0 for p in first.points)


@pytest.mark.parametrize("variant", ["trials", "score"])
def test_policies_meet_the_same_counts_and_scores(variant: str) -> None:
    layout = load_layout("one-capability", variant)
    features = spread(layout, 30, np.random.default_rng(0))
    world = World(layout, Instances(layout.feature_names, features))
    use({"small": world})
    player = players(world, 1)[0]
    ours, random = (simulate(Task("small", player, p, 1, (30,))) for p in (Policy(), None))
    np.testing.assert_allclose(ours.points[0].mean, random.points[0].mean, atol=0.05)
    assert ours.points[0].sd[0] < 0.2


def test_a_session_stops_by_its_rule(world: World) -> None:
    player = players(world, 1)[0]
    rule = StoppingRule(max_episodes=7, target_sd=0.01, futility=0.0)
    assert simulate(Task("small", player, Policy(), 1, (40,), rule=rule)).episodes == 7


def test_two_stages_know_what_one_session_on_the_same_outcomes_knows(world: World) -> None:
    held, apart = coverage.two_stages(world, players(world, 1)[0], 1)
    assert len(held) == len(world.layout.latents)
    assert apart == [0.0] * len(held)


def test_sentences_on_agents_even_over_the_ranges_stand_beside_those_of_the_prior() -> None:
    layout = load_layout("object-permanence")
    cells = op_battery(0)
    small = World(layout, cells.rows(np.arange(0, len(cells), 20)))
    use({"op": small})
    rounds = coverage.sentence_tasks({"op": small}, 3)
    played = [[simulate(replace(task, rule=StoppingRule(15))) for task in one] for one in rounds]
    even, prior = (np.array([one[k].player.theta for one in rounds]) for k in (0, 1))
    share = [node.prior.span for node in layout.latents[:7]]
    assert np.mean(even[:, :7] / share) < 0.7 < np.mean(prior[:, :7] / share)
    np.testing.assert_array_equal(even[:, 7:], prior[:, 7:])
    said = [one[1].sentences for one in played]
    rows = coverage.sentence_rows({"op": small}, played)
    assert [row["name"] for row in rows] == [
        "op: false of a limit, without a note",
        "op: leans on its prior",
    ]
    assert rows[1]["value"] == pytest.approx(np.mean([s.leans for one in said for s in one]))
    assert 0.0 <= rows[0]["low"] <= rows[0]["value"] <= rows[0]["high"] <= 1.0


def test_a_policy_that_asks_gets_what_the_source_offers(world: World) -> None:
    """The fixture's random battery is far from the best; a repeatable source has better."""
    more = World(world.layout, world.instances, FamilySource("navigation"))
    use({"small": world, "more": more})
    player = players(more, 1)[0]
    plain, same, asking = (
        simulate(Task(name, player, policy, 1, (12, 50), held_out=True))
        for name, policy in (
            ("small", Policy()),
            ("more", Policy()),
            ("more", Policy(generate=True)),
        )
    )
    assert same == plain  # who is not asked changes nothing
    assert (plain.episodes, asking.episodes) == (32, 50)
    assert np.mean(asking.points[-1].sd) < np.mean(plain.points[0].sd)


def test_a_battery_is_taken_as_far_as_the_layout_covers_it(tmp_path: Path) -> None:
    made = saving.build_battery(
        "mine", build_family("navigation", 24, 0, tmp_path), load_layout("aaio")
    )
    assert len(made.world.instances) + made.left_out == 24
    assert made.left_out > 0
    use({"built": made.world})
    ours, whole = saving.tasks(made, 1)[0]
    full = len(made.world.instances)
    assert simulate(whole).points[-1].episodes == full
    assert simulate(ours).points[-1].episodes <= 0.4 * full
