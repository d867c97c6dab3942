"""Demands of arenas whose answers are obvious, and what must not change them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animalcat.arena_configs.features.registry import FEATURES, measure_features
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import RGB, Arena, Item, Vector3
from animalcat.arena_configs.placement import MAX_OBJECTS, Placement, place
from animalcat.arena_configs.routes import run_seconds


def thing(
    name: str,
    x: float,
    z: float,
    size: Sequence[float] | None = None,
    *,
    y: float = 0,
    yaw: float = 0,
    rgb: tuple[float, float, float] | None = None,
) -> Item:
    sizes = () if size is None else (Vector3(x=size[0], y=size[1], z=size[2]),)
    colors = () if rgb is None else (RGB(r=rgb[0], g=rgb[1], b=rgb[2]),)
    position = Vector3(x=x, y=y, z=z)
    return Item(name=name, positions=(position,), sizes=sizes, rotations=(yaw,), colors=colors)


def ball(x: float, z: float, size: float = 1.0, name: str = "GoodGoal", y: float = 0) -> Item:
    return thing(name, x, z, (size, size, size), y=y)


def wall(x: float, z: float, *size: float, y: float = 0, yaw: float = 0) -> Item:
    return thing("Wall", x, z, size, y=y, yaw=yaw, rgb=(100, 100, 100))


def place_all(
    *items: Item, time_limit: int = 250, pass_mark: float = 0, blackouts: tuple[int, ...] = ()
) -> Placement:
    arena = Arena(time_limit=time_limit, pass_mark=pass_mark, items=items, blackouts=blackouts)
    placement = place(arena, np.random.default_rng(0))
    assert not placement.skipped
    return placement


def values(*items: Item, **settings: object) -> dict[str, float]:
    return measure_features(place_all(*items, **settings)).values  # type: ignore[arg-type]


AGENT = thing("Agent", 20, 5)
FENCE = wall(20, 20, 40, 3, 0.5)


def near(expected: float, share: float = 0.01) -> object:
    return pytest.approx(expected, rel=share, abs=0.02)


class TestWay:
    @pytest.mark.parametrize(("x", "z"), [(20, 30), (33, 21), (5, 6), (38, 39)])
    def test_on_the_open_floor_it_is_straight(self, x: float, z: float) -> None:
        found = values(AGENT, ball(x, z))
        assert found["wayLength"] == pytest.approx(math.hypot(x - 20, z - 5), abs=1e-5)
        assert found["wayManhattan"] == pytest.approx(abs(x - 20) + abs(z - 5), abs=1e-5)
        assert (found["detour"], found["wayTurns"]) == (1.0, 0.0)
        assert found["wayBearing"] == pytest.approx(found["goalBearing"])

    @pytest.mark.parametrize("reach", [4.0, 8.0, 12.0])
    def test_around_a_wall(self, reach: float) -> None:
        """A thin wall in the middle: the body's centre passes half a metre from its end."""
        found = values(AGENT, wall(20, 17.5, 2 * reach, 3, 0.1), ball(20, 30))
        # Two tangents to the circle around the end of the wall, and the arc between them.
        tangent = math.sqrt(12.5**2 + reach**2 - 0.5**2)
        arc = 2 * (math.atan2(reach, 12.5) + math.asin(0.5 / math.hypot(12.5, reach)))
        expected = 2 * tangent + 0.5 * arc
        assert found["wayLength"] == near(expected)
        assert found["detour"] == near((expected - 1) / 24, 0.015)
        assert found["wayTurns"] == (1.0 if arc > math.radians(45) else 0.0)
        assert (found["wallsInWay"], found["goalSeen"]) == (1.0, 0.0)
        # Behind the wall until the way has come around it.
        assert 0.4 < found["goalSeenOnWay"] < 0.65

    @pytest.mark.parametrize(
        ("gap", "there"), [(0.9, False), (1.3, True), (2.0, True)], ids=lambda value: str(value)
    )
    def test_a_gap_must_be_as_wide_as_the_body(self, gap: float, there: bool) -> None:
        side = 20 - gap / 2
        fences = (wall(side / 2, 20, side, 3, 0.5), wall(40 - side / 2, 20, side, 3, 0.5))
        measured = measure_features(place_all(AGENT, *fences, ball(20, 30)))
        assert ("wayLength" in measured.values) is there
        if not there:
            assert measured.missing["wayLength"] == "the agent finds no safe way to any reward"

    def test_the_nearest_by_way_is_the_goal(self) -> None:
        behind = ball(20, 24, 2.0)
        found = values(AGENT, wall(20, 17, 36, 3, 0.5), behind, ball(35, 12))
        assert found["rewardSize"] == 1.0
        assert found["goalSize"] == 1.0
        nearer = values(AGENT, wall(20, 7, 36, 3, 0.5), ball(20, 9, 2.0), ball(35, 6))
        assert (nearer["rewardSize"], nearer["goalSize"]) == (2.0, 1.0)
        assert nearer["goalSide"] == 1.0

    def test_a_ramp_leads_up_and_is_needed(self) -> None:
        """A platform of 2 m: 6 m of ramp to it, which rises 2 m."""
        platform = wall(20, 30, 10, 2, 10)
        top = ball(20, 30, y=2)
        found = values(AGENT, platform, thing("Ramp", 20, 22, (4, 2, 6), yaw=180), top)
        assert (found["rampNeeded"], found["platformNeeded"]) == (1.0, 1.0)
        assert found["wayLength"] == near(14 + math.hypot(6, 2) + 5)
        assert found["wayClimb"] == near(2.0)
        assert found["platformPresence"] == 1.0
        steep = thing("Ramp", 20, 24.25, (4, 2, 1.5), yaw=180)
        assert "wayLength" not in values(AGENT, platform, steep, top)

    @pytest.mark.parametrize("x", [2.0, 20.0, 38.0])
    def test_a_ramp_is_entered_at_its_foot(self, x: float) -> None:
        """From its side, where it is higher than a step, it is a wall."""
        shelf = wall(20, 32, 40, 1, 16)
        ramp = thing("Ramp", 20, 22, (4, 1, 4), yaw=180)
        survey = Survey(
            place_all(thing("Agent", x, 22 if x != 20 else 5), shelf, ramp, ball(20, 35, y=1))
        )
        way = survey.way
        assert not isinstance(way, str)
        low = [p for p in way.points if p.y < 0.75 and abs(p.x - 20) < 2.5]
        assert min(point.z for point in low) < 21.2
        assert all(
            point.y < 0.95 for point in way.points if abs(point.x - 20) > 2.1 and point.z < 23
        )

    def test_a_tunnel_is_needed_where_walls_leave_no_other_way(self) -> None:
        tunnel = thing("CylinderTunnel", 20, 20, (6, 6, 6))
        sides = (wall(8.3, 20, 16.6, 5, 1), wall(31.7, 20, 16.6, 5, 1))
        found = values(AGENT, tunnel, *sides, ball(20, 35))
        assert (found["tunnelNeeded"], found["wayLength"]) == (1.0, near(30.0))
        assert values(AGENT, tunnel, ball(20, 35))["tunnelNeeded"] == 0.0

    def test_down_from_a_ridge_is_a_choice_for_good(self) -> None:
        """As 02-10-01 of the testbed: a ridge divides the arena, and the goal is on one side."""
        ridge = (thing("Agent", 20, 2, y=1), wall(20, 20, 1, 1, 40))
        survey = Survey(place_all(*ridge, ball(30, 30)))
        found = measure_features(survey).values
        assert (found["drops"], found["choiceWays"], found["choiceRight"]) == (1.0, 2.0, 1.0)
        both = values(
            *ridge, ball(30, 30, name="GoodGoalMulti"), ball(10, 30, name="GoodGoalMulti")
        )
        assert both["choiceWays"] == 2.0
        assert survey.choice is not None
        assert abs(survey.choice.at.x - 20) <= 1.0

    def test_blocks_are_pushed_where_there_is_no_other_way(self) -> None:
        sides = (wall(9, 20, 18, 3, 1), wall(31, 20, 18, 3, 1))
        block = thing("LightBlock", 20, 20, (3.9, 1, 1))
        found = values(AGENT, *sides, block, ball(20, 30))
        assert (found["mustPush"], found["couldPush"]) == (1.0, 1.0)
        assert found["wayLength"] == near(25.0)
        free = values(AGENT, block, ball(20, 30))
        assert (free["mustPush"], free["couldPush"]) == (0.0, 1.0)
        assert free["detour"] > 1.0

    def test_a_bad_goal_is_gone_around(self) -> None:
        found = values(AGENT, ball(20, 15, 5.0, "BadGoal"), ball(20, 30))
        # Two tangents and an arc around where the body touches it, 2.2 m from under its centre.
        assert found["detour"] == near(1.0171, 0.003)
        assert found["lavaDetour"] == 0.0  # there is no lava


class TestLava:
    def test_a_moat_is_gone_around(self) -> None:
        found = values(AGENT, thing("DeathZone", 20, 18, (16, 0.5, 4)), ball(20, 30))
        assert found["lavaStraight"] == near(5.0, 0.06)  # 4 m, and half the body on each side
        assert found["lavaShortest"] == near(found["lavaStraight"], 0.06)
        assert found["lavaDetour"] == near(found["wayLength"] - 25.0)
        assert found["lavaDetour"] > 3.0
        assert found["lavaMargin"] == 5.0

    @pytest.mark.parametrize("width", [3.0, 5.0, 9.0])
    def test_a_path_between_lava_leaves_its_margin(self, width: float) -> None:
        side = 20 - width / 2
        lava = [thing("DeathZone", x, 20, (side, 0.5, 8)) for x in (side / 2, 40 - side / 2)]
        found = values(AGENT, *lava, ball(20, 35))
        assert found["lavaMargin"] == pytest.approx((width - 1) / 2, abs=0.26)
        assert (found["lavaStraight"], found["lavaDetour"]) == (0.0, 0.0)

    def test_a_bridge_over_lava_is_a_platform_and_needed(self) -> None:
        bridge = wall(20, 20, 2, 0.6, 12)
        ramps = (
            thing("Ramp", 20, 12, (2, 0.6, 4), yaw=180),
            thing("Ramp", 20, 28, (2, 0.6, 4), yaw=0),
        )
        lava = thing("DeathZone", 20, 20, (40, 0.5, 8))
        found = values(AGENT, bridge, *ramps, lava, ball(20, 35))
        assert (found["platformNeeded"], found["rampNeeded"]) == (1.0, 1.0)
        assert (found["lavaStraight"], found["lavaShortest"]) == (0.0, 0.0)
        assert 0.5 <= found["lavaMargin"] <= 1.5

    def test_a_hot_zone_is_walked_through(self) -> None:
        found = values(AGENT, thing("HotZone", 20, 18, (40, 0.5, 6)), ball(20, 30))
        assert found["hotOnWay"] == near(7.0, 0.06)
        assert found["wayLength"] == near(25.0)


class TestTime:
    def test_the_law_of_motion(self) -> None:
        """Three physics steps at full thrust from standing still: 2.481 m/s (reference 3.3)."""
        speeds = [0.0]
        for _ in range(3):
            speeds.append(0.968 * (speeds[-1] + 1) - 0.113953)
        assert speeds[3] == pytest.approx(2.4810271, abs=1e-5)
        assert run_seconds(0.02 * sum(speeds)) == pytest.approx(0.06)
        # Far away the terminal speed of 26.689 m/s rules.
        assert run_seconds(1000.0) - run_seconds(900.0) == pytest.approx(100 / 26.689, rel=1e-3)

    @pytest.mark.parametrize(
        ("pass_mark", "allowed"), [(0.0, 24.975), (0.5, 12.475), (-1.0, 25.0), (2.0, 0.0)]
    )
    def test_what_the_pass_mark_leaves(self, pass_mark: float, allowed: float) -> None:
        measured = measure_features(place_all(AGENT, ball(20, 30), pass_mark=pass_mark))
        assert measured.values["timeAllowed"] == pytest.approx(allowed)
        share = measured.values.get("timeShare")
        if allowed:
            assert share == pytest.approx(measured.values["timeNeeded"] / allowed, abs=1e-5)
        else:
            assert measured.missing["timeShare"] == "no play can pass"
        unlimited = measure_features(place_all(AGENT, ball(20, 30), time_limit=0))
        assert unlimited.missing["timeShare"] == "no time limit"


class TestSight:
    def test_half_a_wall_hides_half(self) -> None:
        found = values(AGENT, wall(15, 20, 10, 3, 0.1), ball(20, 30, 4.0))
        assert found["goalSeen"] == pytest.approx(0.5, abs=0.1)
        assert found["occluders"] == 1.0

    def test_a_low_wall_hides_what_is_low(self) -> None:
        assert values(AGENT, wall(20, 20, 10, 0.3, 0.1), ball(20, 30))["goalSeen"] > 0.8
        assert values(AGENT, wall(20, 20, 10, 2, 0.1), ball(20, 30))["goalSeen"] == 0.0

    @pytest.mark.parametrize(("yaw", "seen"), [(0, 1.0), (90, 0.0)])
    def test_a_tunnel_is_looked_through_lengthwise(self, yaw: float, seen: float) -> None:
        tunnel = thing("CylinderTunnel", 20, 20, (5, 5, 10), yaw=yaw)
        assert values(AGENT, tunnel, ball(20, 30))["goalSeen"] == seen

    @pytest.mark.parametrize(
        ("blackouts", "first", "longest", "at_start"),
        [
            ((), None, 0.0, 0.0),
            ((0, 50), 0.0, 5.0, 1.0),
            ((15, 60), 1.5, 4.5, 0.0),
            ((20, 30, 40), 2.0, 21.0, 0.0),
            ((-20,), 2.0, 2.0, 0.0),
        ],
    )
    def test_when_the_light_is_out(
        self, blackouts: tuple[int, ...], first: float | None, longest: float, at_start: float
    ) -> None:
        measured = measure_features(place_all(AGENT, ball(20, 30), blackouts=blackouts))
        found = measured.values
        assert found.get("darkFrom") == (None if first is None else pytest.approx(first))
        assert found["darkLongest"] == pytest.approx(longest)
        assert found["darkAtChoice"] == at_start
        assert found["goalInView"] == 1.0 - at_start


class TestRewards:
    def test_one_that_ends_the_episode_goes_last(self) -> None:
        """The green one is near: who takes it first loses the others."""
        things = (
            ball(20, 9),
            ball(5, 30, name="GoodGoalMulti"),
            ball(35, 30, name="GoodGoalMulti"),
        )
        found = values(AGENT, *things)
        assert found["rewardsInBestOrder"] == 3.0
        # Three runs of some 27 m, at 27 m/s and with a second more to get going, each.
        assert 2.997 - found["bestReturn"] == pytest.approx(3 * 1.6 / 25, abs=0.02)
        assert found["orderGain"] == pytest.approx(found["bestReturn"] - 0.999, abs=0.03)
        order = Survey(place_all(AGENT, *things)).order
        assert not isinstance(order, str)
        assert order.best[-1].name == "GoodGoal"
        assert found["bestReturn"] <= found["greatestReturn"]

    def test_what_changes(self) -> None:
        grows = Item(
            name="GrowGoal",
            positions=(Vector3(x=20, z=30),),
            initial_values=(1.0,),
            final_values=(3.0,),
            change_rates=(0.01,),
        )
        decays = Item(
            name="DecayGoal",
            positions=(Vector3(x=5, z=30),),
            initial_values=(2.5,),
            final_values=(0.5,),
            change_rates=(-0.02,),
        )
        found = values(AGENT, grows, decays)
        assert (found["gainByWaiting"], found["lossByWaiting"]) == (near(2.0), near(2.0))
        assert found["valueRate"] == pytest.approx(-1.0)
        measured = measure_features(place_all(AGENT, grows))
        assert measured.missing["bestReturn"] == "rewards change with time"


class TestLooks:
    def test_colours_are_those_that_were_given(self) -> None:
        red = thing("Wall", 20, 20, (10, 3, 0.5), rgb=(200, 10, 20))
        blue = thing("Wall", 5, 5, (2, 3, 2), rgb=(0, 0, 250))
        found = values(AGENT, red, blue, ball(20, 30))
        rgb = ("Red", "Green", "Blue")
        assert [found[f"occluder{name}"] for name in rgb] == pytest.approx([200, 10, 20])
        assert [found[f"wall{name}"] for name in rgb] == pytest.approx([100, 5, 135])
        assert found["wallColours"] == 2.0
        assert measure_features(place_all(AGENT, ball(20, 30))).missing["wallRed"] == "no wall"

    def test_patterns(self) -> None:
        boards = [
            Item(
                name="SignBoard",
                positions=(Vector3(x=x, z=30),),
                rotations=(0.0,),
                symbol_names=(symbol,),
            )
            for x, symbol in ((5, "star"), (15, "star"), (30, "cross"))
        ]
        assert values(AGENT, *boards, ball(20, 20))["patterns"] == 2.0


@given(
    start=st.tuples(st.floats(1, 39), st.floats(1, 39), st.floats(0, 359)),
    goal=st.tuples(st.floats(2, 38), st.floats(2, 38)),
    fence=st.tuples(st.floats(5, 35), st.floats(5, 35), st.floats(1, 20), st.floats(0, 180)),
)
@settings(max_examples=25, deadline=None)
def test_whatever_stands_there_values_are_in_range(
    start: tuple[float, float, float],
    goal: tuple[float, float],
    fence: tuple[float, float, float, float],
) -> None:
    items = (
        thing("Agent", *start[:2], yaw=start[2]),
        wall(fence[0], fence[1], fence[2], 2, 0.5, yaw=fence[3]),
        ball(*goal),
    )
    measured = measure_features(place(Arena(time_limit=250, items=items), np.random.default_rng(0)))
    assert measured.values.keys() | measured.missing.keys() == FEATURES.keys()
    for name, value in measured.values.items():
        assert FEATURES[name].low <= value <= FEATURES[name].high, name
    found = measured.values
    if "wayLength" in found:
        apart = math.hypot(goal[0] - start[0], goal[1] - start[1])
        assert apart * 0.995 - 0.05 <= found["wayLength"] <= found["wayManhattan"] * 1.005 + 0.05


class TestBadInput:
    def test_no_reward(self) -> None:
        measured = measure_features(place_all(AGENT))
        for name in ("wayLength", "goalSeen", "bestReturn", "occluders", "goalDistance"):
            assert measured.missing[name] == "no reward"
        assert measured.values["platformPresence"] == 0.0

    def test_no_agent(self) -> None:
        """It starts anywhere, by chance; the way is that from there."""
        assert "wayLength" in measure_features(place_all(ball(20, 30))).values

    def test_a_goal_in_a_box(self) -> None:
        box = [wall(20, 26, 9, 3, 1), wall(20, 34, 9, 3, 1)]
        box += [wall(16, 30, 1, 3, 6.9), wall(24, 30, 1, 3, 6.9)]
        measured = measure_features(place_all(AGENT, *box, ball(20, 30)))
        assert "no safe way" in measured.missing["timeNeeded"]
        assert measured.values["goalSeen"] == 0.0
        assert measured.values["goalDistance"] == near(25.0)

    def test_a_rolling_goal_that_cannot_be_reached_where_it_starts(self) -> None:
        measured = measure_features(place_all(AGENT, FENCE, ball(20, 30, name="GoodGoalBounce")))
        assert "moves from the start on" in measured.missing["wayLength"]

    @pytest.mark.timeout(60)
    def test_two_thousand_things(self) -> None:
        spots = [(x, z) for x in np.arange(0.5, 39.5, 0.87) for z in np.arange(8, 39.5, 0.7)]
        spots = spots[: MAX_OBJECTS - 2]
        crowd = Item(
            name="Wall",
            positions=tuple(Vector3(x=float(x), z=float(z)) for x, z in spots),
            sizes=(Vector3(x=0.2, y=1, z=0.2),) * len(spots),
            rotations=(0.0,) * len(spots),
        )
        measured = measure_features(place_all(AGENT, ball(20, 6.5), crowd))
        assert measured.values["obstacles"] == len(spots)
        assert measured.values["wayLength"] == near(1.5)

    @pytest.mark.timeout(60)
    def test_more_lava_than_can_be_worked_out(self) -> None:
        lava = Item(
            name="DeathZone",
            positions=(Vector3(x=20, z=20),) * 300,
            sizes=(Vector3(x=40, y=0.5, z=20),) * 300,
            rotations=(0.0,) * 300,
        )
        measured = measure_features(place_all(AGENT, ball(20, 35), lava))
        assert "no safe way" in measured.missing["wayLength"]

    @pytest.mark.timeout(60)
    def test_more_walls_than_can_be_worked_out(self) -> None:
        heights = [0.3 * k for k in range(1, 200)]
        stack = Item(
            name="Wall",
            positions=tuple(Vector3(x=20, y=y, z=19) for y in heights),
            sizes=(Vector3(x=40, y=0.2, z=26),) * len(heights),
            rotations=(0.0,) * len(heights),
        )
        measured = measure_features(place_all(AGENT, ball(20, 35), stack))
        assert "too much stands in it" in measured.missing["wayLength"]
        assert measured.values["goalDistance"] == near(30.0)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("01-05-01", {"detour": 1.0, "choiceWays": 0, "rampNeeded": 0}),
        ("02-10-01", {"choiceWays": 2, "choiceRight": 1, "drops": 1}),
        ("03-16-01", {"rampNeeded": 1, "platformNeeded": 1}),
        ("04-02-01", {"lavaPresence": 1, "rampNeeded": 0}),
        ("05-03-01", {"wayTurns": 1, "goalSeen": 0}),
    ],
)
def test_real_arenas(data_dir: Path, name: str, known: dict[str, float]) -> None:
    [path] = (data_dir / "animal-ai-competition").glob(f"{name}*")
    placement = place(load_config(path).config.first, np.random.default_rng(0))
    found = measure_features(placement).values
    assert {key: found[key] for key in known} == pytest.approx(known)
