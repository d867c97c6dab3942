"""One ray, and rays that all point ahead: ML-Agents takes both, and so does everything here."""

from __future__ import annotations

import pytest

from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.load import load_agent
from animalcat.envs.gym import ArenaEnv
from animalcat.envs.mlagents.arguments import parse_arguments
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec, RaySpec
from animalcat.wire.steps import spec_from_proto, spec_to_proto
from tests.small import goal_arena

SPECS = [RaySpec(0, 60.0), RaySpec(0, 0.0), RaySpec(2, 0.0)]


@pytest.mark.parametrize("rays", SPECS)
def test_they_see_what_the_middle_ray_sees(rays: RaySpec) -> None:
    def view_of(spec: RaySpec) -> list[list[float]]:
        step = SimEnvironment(ObservationSpec(rays=spec)).load(goal_arena(), 0)
        assert step.observation.rays is not None
        return step.observation.rays.reshape(-1, spec.tags + 2).tolist()

    middle = view_of(RaySpec())[0]
    assert view_of(rays) == [middle] * (2 * rays.per_side + 1)
    assert rays.angles == [0.0] * (2 * rays.per_side + 1)


@pytest.mark.parametrize("rays", SPECS)
@pytest.mark.parametrize("name", ["braitenberg", "scout", "braitenberg+resolution=0.5"])
def test_agents_that_come_with_us_act_on_them(rays: RaySpec, name: str) -> None:
    spec = ObservationSpec(rays=rays)
    agent, environment = load_agent(f"builtin:{name}"), SimEnvironment(spec)
    step = environment.load(goal_arena(), 0)
    agent.reset(EpisodeInfo(episode=0, seed=0, observation_spec=spec, time_budget_steps=1250))
    for _ in range(5):
        answer = agent.act(step.observation)
        assert isinstance(answer, int)
        step = environment.step(answer)
        spec.validate(step.observation)


def test_every_door_takes_them() -> None:
    asked = parse_arguments(["--useRayCasts", "--raysPerSide", "0", "--rayMaxDegrees", "0"])
    assert asked.spec.rays == RaySpec(0, 0.0)
    assert spec_from_proto(spec_to_proto(asked.spec)).rays == RaySpec(0, 0.0)
    environment = ArenaEnv(sensors=["rays"], rays_per_side=0, ray_max_degrees=0)
    try:
        observation, _ = environment.reset(options={"arena": goal_arena()}, seed=0)
        assert environment.observation_space.contains(observation)
        assert environment.observation_space.shape == (14,)
    finally:
        environment.close()


@pytest.mark.parametrize(("per_side", "degrees"), [(-1, 60.0), (51, 60.0), (2, -1.0), (2, 181.0)])
def test_what_is_no_number_of_rays_is_refused(per_side: int, degrees: float) -> None:
    with pytest.raises(ValueError, match=r"give 0 to (50|180)"):
        RaySpec(per_side, degrees)
