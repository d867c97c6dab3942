"""RemoteEnv: an existing Gymnasium loop plays what the service chooses."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

import animalcat
from animalcat.envs.gym import ArenaEnv
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec

from .conftest import MakeSession, Server


def test_a_gymnasium_loop_plays_a_session(
    server: Server, client: animalcat.Client, make_session: MakeSession
) -> None:
    session = make_session(max_episodes=2)
    env = animalcat.RemoteEnv(server.address, session)
    returns: list[float] = []
    while not env.session_over:
        observation, info = env.reset()
        assert info["number"] == len(returns)
        assert observation in env.observation_space
        total, ended, steps = 0.0, False, 0
        while not ended:
            observation, reward, terminated, truncated, info = env.step(np.array([0, 1]))
            assert isinstance(reward, float)
            total, steps = total + reward, steps + 1
            ended = terminated or truncated
        assert observation in env.observation_space
        assert truncated
        assert not terminated
        returns.append(total)
    with pytest.raises(animalcat.SessionOver, match="finished after 2 episodes"):
        env.reset()
    env.close()
    stored = client.episodes(session)
    assert [e.episode_return for e in stored] == pytest.approx(returns)
    assert stored[-1].steps == steps


def test_an_episode_is_played_to_its_end(server: Server, make_session: MakeSession) -> None:
    env = animalcat.RemoteEnv(server.address, make_session(), flat_actions=True)
    with pytest.raises(animalcat.AnimalcatError, match=r"with a step of one: call reset\(\)"):
        env.note("too early")
    with pytest.raises(animalcat.AnimalcatError, match=r"call reset\(\) first"):
        env.step(3)
    first, info = env.reset()
    again, same = env.reset(seed=5)
    assert info == same
    assert isinstance(first, dict)
    assert isinstance(again, dict)
    assert all(np.array_equal(first[key], again[key]) for key in first)
    with pytest.raises(ValueError, match="0 to 8"):
        env.step(9)
    env.step(3)
    with pytest.raises(animalcat.AnimalcatError, match="episode 0 is not over"):
        env.reset()
    env.close()
    env.close()


def test_spaces_are_those_of_the_local_environment(
    server: Server, make_session: MakeSession
) -> None:
    spec = ObservationSpec(CameraSpec(21, grayscale=True), RaySpec(per_side=1))
    local = ArenaEnv(observation_spec=spec)
    session = make_session(observation_spec=spec)
    env = animalcat.RemoteEnv(server.address, session)
    assert env.observation_space == local.observation_space
    assert env.action_space == local.action_space == spaces.MultiDiscrete([3, 3])
    observation, _ = env.reset()
    assert observation in env.observation_space
    env.close()

    env = animalcat.RemoteEnv(
        server.address, session, sensors=["camera"], flat_actions=True, same_agent=True
    )
    assert env.observation_space == spaces.Box(0, 255, (21, 21, 1), np.uint8)
    assert env.action_space == spaces.Discrete(9)
    observation, _ = env.reset()
    assert isinstance(observation, np.ndarray)
    assert observation in env.observation_space
    env.close()
    with pytest.raises(ValueError, match="choose from camera, rays, health"):
        animalcat.RemoteEnv(server.address, session, sensors=["lidar"], same_agent=True)
