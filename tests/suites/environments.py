"""The conformance suite of environments: inherit from it and provide `make` to run it by pytest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

import numpy as np
import pytest

from animalcat.arena_configs.model import Arena, ArenaError, Item, Vector3
from animalcat.envs.replay import replay
from animalcat.envs.snapshot import Snapshot
from animalcat.envs.types import (
    ACTIONS,
    CameraSpec,
    EndedBy,
    Environment,
    ObservationSpec,
    Phase,
    RaySpec,
    Step,
)
from tests.small import (
    FORWARD,
    NOOP,
    arrays,
    goal_arena,
    lone_arena,
    play_episode,
    random_arena,
    start,
)


@runtime_checkable
class Restorable(Protocol):
    """An environment that can go back to any point of an episode."""

    def snapshot(self) -> Snapshot:
        """Take a snapshot of this point of the episode."""
        ...

    def restore(self, snapshot: Snapshot) -> Step:
        """Go to a point, and return the step that led to it."""
        ...


Make = Callable[[ObservationSpec], Environment]

SPECS = (
    ObservationSpec(rays=None),
    ObservationSpec(),
    ObservationSpec(rays=RaySpec(per_side=7, max_degrees=90.0, tags=18), decision_period=1),
    ObservationSpec(camera=CameraSpec(32), rays=None, decision_period=5),
    ObservationSpec(camera=CameraSpec(16, grayscale=True)),
)


class EnvironmentSuite:
    """What every backend promises; a backend's tests inherit it and provide the fixture `make`.

    `simulated` says whether arenas are really played; what a replay cannot do is left out. `idle`
    is the number of physics steps without action before the first observation.
    """

    simulated = True
    idle = 0

    @pytest.fixture
    def make(self) -> Make:
        """A function that makes an environment of the backend under test from a specification."""
        raise NotImplementedError("give the fixture `make`")

    @pytest.fixture
    def environment(self, make: Make) -> Iterator[Environment]:
        """An environment with rays, closed at the end."""
        environment = make(ObservationSpec())
        yield environment
        environment.close()

    @pytest.mark.parametrize("spec", SPECS, ids=str)
    def test_observations_are_what_the_spec_says(self, make: Make, spec: ObservationSpec) -> None:
        environment = make(spec)
        assert environment.spec == spec
        for step in play_episode(environment, goal_arena(), 7, _random_actions(20)):
            spec.validate(step.observation)
        environment.close()

    @pytest.mark.parametrize("spec", SPECS, ids=str)
    def test_a_spec_makes_observations_and_refuses_what_is_none(
        self, spec: ObservationSpec
    ) -> None:
        rng = np.random.default_rng(0)
        made = spec.generate(rng)
        spec.validate(made)
        assert made.velocity.tobytes() != spec.generate(rng).velocity.tobytes()
        tall = ObservationSpec(CameraSpec(77), RaySpec(per_side=9), 3).generate(rng)
        wrong: list[tuple[str, object]] = [
            ("health", 100.1),
            ("health", float("nan")),
            ("velocity", made.velocity.astype(np.float64)),
            ("position", made.position[:2]),
            ("position", np.full(3, np.inf, np.float32)),
            ("rays", tall.rays),
            ("camera", tall.camera),
        ]
        if made.rays is not None:
            wrong += [("rays", None), ("rays", made.rays + np.float32(1.0))]
        if made.camera is not None:
            wrong += [("camera", None), ("camera", made.camera.astype(np.float32))]
        for name, value in wrong:
            with pytest.raises(ValueError, match=name):
                spec.validate(made._replace(**{name: value}))

    def test_phases_run_from_first_over_mid_to_last(self, environment: Environment) -> None:
        steps = list(play_episode(environment, goal_arena(), 0, [FORWARD] * 100))
        assert [step.phase for step in steps[:2]] == [Phase.FIRST, Phase.MID]
        assert steps[-1].phase is Phase.LAST
        assert all(step.phase is Phase.MID for step in steps[1:-1])
        assert (steps[0].reward, steps[0].ended_by) == (0.0, None)
        assert all(step.ended_by is None for step in steps[:-1])
        assert all(np.isfinite(step.reward) for step in steps)

    def test_the_same_seed_and_actions_give_the_same_steps(self, make: Make) -> None:
        actions = _random_actions(60)
        one, two = (
            list(play_episode(make(SPECS[2]), random_arena(), 5, actions)) for _ in range(2)
        )
        assert_same_steps(one, two)

    def test_loading_again_gives_the_same_steps(self, environment: Environment) -> None:
        actions = _random_actions(40)
        one = list(play_episode(environment, random_arena(), 5, actions))
        list(play_episode(environment, goal_arena(), 1, actions[:9]))
        assert_same_steps(one, list(play_episode(environment, random_arena(), 5, actions)))

    def test_seeds_place_what_is_left_to_chance(self, environment: Environment) -> None:
        one, two = (environment.load(random_arena(), seed).observation for seed in (1, 2))
        assert not np.array_equal(one.position, two.position)

    def test_reaching_the_goal_ends_by_goal(self, environment: Environment) -> None:
        steps = list(play_episode(environment, goal_arena(), 0, [FORWARD] * 100))
        assert steps[-1].ended_by is EndedBy.GOAL
        assert 0.9 < sum(step.reward for step in steps) < 1.0

    def test_a_death_zone_ends_by_death(self, environment: Environment) -> None:
        arena = lone_arena("DeathZone", size=(10.0, 1.0, 4.0), z=20.0)
        steps = list(play_episode(environment, arena, 0, [FORWARD] * 100))
        assert steps[-1].ended_by is EndedBy.DEATH
        assert -1.2 < sum(step.reward for step in steps) < -1.0
        assert steps[-1].observation.health == 0.0

    def test_time_runs_out_by_time_limit(self, environment: Environment) -> None:
        steps = list(play_episode(environment, lone_arena("Wall", time_limit=20), 0, [NOOP] * 100))
        assert steps[-1].ended_by is EndedBy.TIME_LIMIT
        assert len(steps) == 1 + -(-(100 - self.idle) // environment.spec.decision_period)
        assert sum(step.reward for step in steps) == pytest.approx(-1.0, abs=1e-5)

    def test_no_step_before_an_arena_nor_after_the_end(self, environment: Environment) -> None:
        with pytest.raises(RuntimeError):
            environment.step(NOOP)
        list(play_episode(environment, lone_arena("Wall", time_limit=5), 0, [NOOP] * 50))
        with pytest.raises(RuntimeError):
            environment.step(NOOP)
        assert environment.load(goal_arena(), 0).phase is Phase.FIRST

    @pytest.mark.parametrize("action", [-1, ACTIONS, 1000])
    def test_a_wrong_action_is_refused_and_harmless(
        self, environment: Environment, action: int
    ) -> None:
        environment.load(goal_arena(), 0)
        with pytest.raises(ValueError, match=str(action)):
            environment.step(action)
        after = environment.step(FORWARD)
        environment.load(goal_arena(), 0)
        assert_same_steps([after], [environment.step(FORWARD)])

    def test_observations_own_their_arrays(self, make: Make) -> None:
        environment = make(SPECS[4])
        first = environment.load(goal_arena(), 0).observation
        kept = [array.copy() for array in arrays(first)]
        second = environment.step(FORWARD).observation
        for array, copy in zip(arrays(first), kept, strict=True):
            assert np.array_equal(array, copy)
        kept = [array.copy() for array in arrays(second)]
        for array in arrays(second):
            if array.flags.writeable:
                array[...] = 3
        environment.load(goal_arena(), 0)
        again = environment.step(FORWARD).observation
        for array, copy in zip(arrays(again), kept, strict=True):
            assert np.array_equal(array, copy)
        environment.close()

    @pytest.mark.parametrize("action", range(ACTIONS))
    def test_every_action_is_taken(self, environment: Environment, action: int) -> None:
        environment.load(goal_arena(), 0)
        assert environment.step(action).phase is Phase.MID

    def test_an_arena_that_cannot_be_built_is_refused_and_harmless(
        self, environment: Environment
    ) -> None:
        crowd = Item(name="Wall", positions=(Vector3(x=20, z=20),) * 3000)
        with pytest.raises(ArenaError, match="objects"):
            environment.load(Arena(items=(start(), crowd)), 0)
        assert environment.load(goal_arena(), 0).phase is Phase.FIRST

    def test_death_and_goal_terminate_time_truncates_and_none_is_a_fault(
        self, environment: Environment
    ) -> None:
        """Whatever an agent does, an arena ends by its own rules: a fault is the backend's."""
        deadly = lone_arena("DeathZone", size=(40.0, 1.0, 10.0), z=14.0, time_limit=60)
        ends: set[EndedBy | None] = set()
        for seed in range(6):
            for arena in (deadly, goal_arena(), lone_arena("Wall", time_limit=20)):
                actions = [FORWARD, *_random_actions(60 + seed)] if seed else [FORWARD] * 100
                *mid, last = play_episode(environment, arena, seed, actions)
                assert all(step.ended_by is None for step in mid)
                assert (last.ended_by is None) == (last.phase is not Phase.LAST)
                ends.add(last.ended_by)
        assert ends - {None} == {EndedBy.GOAL, EndedBy.DEATH, EndedBy.TIME_LIMIT}

    def test_an_episode_replays_from_its_seed_and_actions(self, make: Make) -> None:
        actions = _random_actions(50)
        steps = list(play_episode(make(ObservationSpec()), random_arena(), 8, actions))
        again = replay(make(ObservationSpec()), random_arena(), 8, bytes(actions))
        assert_same_steps(steps, list(again))

    def test_loading_in_mid_episode_starts_anew(self, environment: Environment) -> None:
        first = environment.load(goal_arena(), 3)
        environment.step(FORWARD)
        assert_same_steps([first], [environment.load(goal_arena(), 3)])

    def test_closing_twice_is_fine(self, make: Make) -> None:
        environment = make(ObservationSpec())
        environment.load(goal_arena(), 0)
        environment.close()
        environment.close()

    def test_a_restored_snapshot_goes_on_as_before(self, make: Make) -> None:
        environment = make(ObservationSpec())
        if not isinstance(environment, Restorable):
            pytest.skip("this backend has no snapshots")
        actions = _random_actions(60)
        steps = list(play_episode(environment, random_arena(), 4, actions[:30]))
        snapshot = environment.snapshot()
        onward = [environment.step(action) for action in actions[30:]]
        other = make(ObservationSpec())
        assert isinstance(other, Restorable)
        assert_same_steps([other.restore(snapshot)], steps[-1:])
        assert_same_steps([other.step(action) for action in actions[30:]], onward)


def assert_same_steps(one: list[Step], two: list[Step]) -> None:
    """Check that two episodes are bitwise the same.

    Raises:
        AssertionError: They are not.
    """
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert a[:3] == b[:3]
        assert a.observation.health == b.observation.health
        for x, y in zip(arrays(a.observation), arrays(b.observation), strict=True):
            assert x.tobytes() == y.tobytes()


def _random_actions(n: int) -> list[int]:
    return np.random.default_rng(n).integers(ACTIONS, size=n).tolist()
