"""`python -m benchmarks adaptive`: simulated sessions, and the figures that are drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner

from animalcat.bench import retest, saving
from animalcat.bench.curves import bootstrap_mean, crossing, share
from animalcat.bench.sessions import (
    Player,
    Point,
    Task,
    Trajectory,
    World,
    players,
    simulate,
    use,
)
from animalcat.cli.main import build
from animalcat.layouts.adaptive.offers import DemandVectorGenerator
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.simulation.synthetic import op_battery
from animalcat.service.measuring.generation import FamilySource
from benchmarks.adaptive import section

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


def test_policies_meet_the_same_outcomes(world: World) -> None:
    """All instances played: the same posterior up to Monte Carlo error, in whatever order."""
    player = players(world, 1)[0]
    ours, random = (simulate(Task("small", player, p, 1, (40,))) for p in (Policy(), None))
    np.testing.assert_allclose(ours.points[0].mean, random.points[0].mean, atol=0.05)


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


def test_no_session_begins_when_the_time_is_up() -> None:
    (row,) = section("alarm", quick=True, most=-1.0)
    assert row == {"name": "alarm: no round of sessions was done in 0 s"}


def test_a_section_without_quick_rounds_says_that_it_is_left_out() -> None:
    (row,) = section("misfit", quick=True)
    assert row == {"name": "misfit: not with --quick, since a round of its sessions takes longer"}


def test_repeats_draw_outcomes_anew(world: World) -> None:
    player = Player("half", np.full(40, 0.5))
    made = simulate(Task("small", player, Policy(exposures=0), 1, (60,)))
    assert made.episodes == 60


def test_a_session_stops_by_its_rule(world: World) -> None:
    player = players(world, 1)[0]
    rule = StoppingRule(max_episodes=7, target_sd=0.01, futility=0.0)
    assert simulate(Task("small", player, Policy(), 1, (40,), rule=rule)).episodes == 7


def test_an_agent_that_turns() -> None:
    player = Player("tires", np.ones(2), np.zeros(2), start=10, episodes=10)
    assert [player.probability(n)[0] for n in (1, 10, 15, 20, 99)] == [1.0, 1.0, 0.5, 0.0, 0.0]


def test_where_a_curve_crosses_a_level() -> None:
    assert crossing([10, 20, 40], [1.0, 0.5, 0.3], 0.4) == pytest.approx(30.0)
    assert crossing([10, 20], [1.0, 0.5], 0.1) == float("inf")
    assert crossing([10, 20], [1.0, 0.5], 2.0) == 10.0


def test_intervals_hold_the_value() -> None:
    mean = bootstrap_mean([0.0, 1.0, 2.0, 3.0])
    assert mean.low < mean.value == 1.5 < mean.high
    none = share([False] * 20)
    assert none.low == none.value == 0.0
    assert 0.1 < none.high < 0.2


def test_what_a_source_offers_stands_behind_the_battery() -> None:
    layout, battery = load_layout("object-permanence"), op_battery(0)
    world = World(layout, battery, DemandVectorGenerator(battery.features(layout), 50))
    assert len(world.playable) == len(battery) + 50
    layout.check_features(world.playable.features(layout))
    np.testing.assert_array_equal(
        world.playable.features(layout)[: len(battery)], battery.features(layout)
    )


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


def test_outcomes_that_cannot_be_replayed(
    tmp_path: Path, aaio: Layout, draw_instances: Draw
) -> None:
    file = tmp_path / "mine.csv"
    rows = [",".join((*aaio.feature_names, "paradigm", "me"))]
    for i, values in enumerate(draw_instances(12, 1)):
        rows.append(",".join([*map(str, values.tolist()), "ab"[i % 2], str(i % 2)]))
    file.write_text("\n".join(rows), "utf-8")
    arguments = ["bench", "adaptive", "--quick", "--json", "--outcomes", str(file)]
    missing = CliRunner().invoke(build(["bench"]), arguments)
    assert missing.exit_code == 2
    assert "--agent" in missing.stderr
    file.write_text("\n".join([*rows[:-1], rows[-1][:-1] + "7"]), "utf-8")
    wrong = CliRunner().invoke(build(["bench"]), [*arguments, "--agent", "me"])
    assert wrong.exit_code == 2
    assert "success is 1, failure 0" in wrong.stderr
    kept = CliRunner().invoke(build(["bench"]), [*arguments, "--keep", str(tmp_path)])
    assert kept.exit_code == 2
    assert "--keep" in kept.stderr


TABLE = """instance,paradigm,difficulty
a-1,,1
a-2,,3
b-1,kind,5
b-2,,1e9
"""


def test_a_table_of_a_battery_is_taken_as_far_as_the_layout_covers_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(TABLE)
    made = saving.built("mine", saving.stored(file), load_layout("one-capability"))
    assert (made.world.instances.names, made.left_out) == (("a-1", "a-2", "b-1"), 1)
    assert made.world.instances.paradigms == ("a", "a", "kind")
    use({"built": made.world})
    ours, whole = saving.tasks(made, 1)[0]
    assert [p.episodes for p in simulate(whole).points] == [1, 2, 3]
    assert [p.episodes for p in simulate(ours).points] == [1]  # 40 % of 3


def falling(per_episode: float, episodes: tuple[int, ...], capabilities: int) -> Trajectory:
    """A session in which every standard deviation falls by as much an episode, from 0.3 to 0.1."""
    points = [
        Point(
            n, (max(0.3 - per_episode * n, 0.1),) * capabilities, (0.5,) * capabilities, 0.0, False
        )
        for n in episodes
    ]
    return Trajectory("known", "any", 0, tuple(points), None, episodes[-1])


def test_shares_of_a_battery_are_of_its_whole_precision(world: World) -> None:
    battery = saving.BuiltBattery("mine", world, 0)
    capabilities, full = len(world.layout.capabilities), len(world.instances)
    grid = saving.grid_of(full)
    assert grid[-1] == full
    ours = falling(0.02, tuple(n for n in grid if n <= 24), capabilities)
    random = falling(0.005, grid, capabilities)  # 0.1 at its end: near enough from 0.11 on
    rows = saving.rows(battery, [(ours, random)] * 3)
    by_name = {row["name"].removeprefix("mine: "): row for row in rows}
    found = by_name["share of the battery to within 10 % of its SD"]
    at = np.interp(0.19, [0.02 * n for n in ours_episodes(grid)], ours_episodes(grid)) / full
    assert found["value"] == pytest.approx(at)
    assert (found["met"], found["high"]) == ("no", pytest.approx(at))  # 0.24 is more than 0.2
    four = [row["value"] for name, row in by_name.items() if name.endswith("ones, by SD")]
    assert four[-1] == pytest.approx(4.0)
    prior = saving.prior_sd(world.layout)
    left = by_name["SD after the whole battery over the prior's, all"]["value"]
    assert left == pytest.approx(0.1 / prior.mean())


def ours_episodes(grid: tuple[int, ...]) -> list[int]:
    """Where the quicker sessions are looked at while they still fall."""
    return [n for n in grid if n <= 10]


def test_who_changes_plays_the_same_in_blocks(world: World) -> None:
    use({"small": world})
    able = np.ones(len(world.instances))
    player = Player("stops", able, 0.0 * able, start=14, episodes=1)
    task = Task("small", player, None, 1, (10, 30))
    one, blocks = simulate(task), simulate(replace(task, in_blocks=True))
    for a, b in zip(one.points, blocks.points, strict=True):
        assert b.mean == pytest.approx(a.mean, abs=0.03)


def test_two_sessions_of_one_agent_are_compared(world: World) -> None:
    use({"retest": world})
    agents = players(world, 3, seed=2)
    pairs = [
        retest.play(Task("retest", agent, Policy(), k, (6,))) for k, agent in enumerate(agents)
    ]
    capabilities = len(world.layout.capabilities)
    for pair in pairs:
        assert pair.mean.shape == (2, capabilities)
        assert not np.array_equal(pair.mean[0], pair.mean[1])  # seeds differ
        assert 0.0 < pair.shared <= 1.0
    again = retest.play(Task("retest", agents[0], Policy(), 0, (6,)))
    assert np.array_equal(again.mean, pairs[0].mean)
    rows = {row["name"].removeprefix("mine: "): row for row in retest.rows_of("mine", world, pairs)}
    assert len(rows) == 2 + capabilities
    squares = [(p.mean[0] - p.mean[1]) ** 2 / (p.sd[0] ** 2 + p.sd[1] ** 2) for p in pairs]
    found = rows["mean square of difference / combined standard error"]
    assert found["value"] == pytest.approx(np.mean(squares))


def test_intervals_overlap_where_neither_lies_beyond_the_other(world: World) -> None:
    low, high = np.array([[0.0, 0.0], [0.5, 0.6]]), np.array([[0.5, 0.5], [0.9, 0.9]])
    mean = 0.5 * (low + high)
    pair = retest.Retest("any", 6, mean, np.full((2, 2), 0.3), low, high, 0.5)
    assert pair.overlap.tolist() == [1.0, 0.0]
    assert pair.z == pytest.approx(np.array([-0.45, -0.5]) / np.hypot(0.3, 0.3))
