"""`animalcat/Arena-v0`: Gymnasium's own checks, and what ends an episode how."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from animalcat.arena_configs.draws import UnityRandom
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ArenaError, ArenaWarning
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.returns import max_return
from animalcat.envs.gym import NAVIGATION, ArenaEnv
from animalcat.envs.register import register_environments
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.spaces import SENSORS
from animalcat.envs.types import CameraSpec, EndedBy, ObservationSpec, Phase

ROOT = Path(__file__).resolve().parents[2]
AHEAD = """\
!ArenaConfig
arenas:
  0: !Arena
    timeLimit: {time_limit}
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 10}}]
      rotations: [0]
    - !Item
      name: {name}
      positions: [!Vector3 {{x: 20, y: 0, z: 20}}]
      sizes: [!Vector3 {{x: 2, y: 2, z: 2}}]
"""
FORWARD = np.array([1, 0])


def ahead(name: str, time_limit: int = 250) -> str:
    return AHEAD.format(name=name, time_limit=time_limit)


def run(env: ArenaEnv, seed: int = 0) -> tuple[float, bool, bool, dict[str, Any]]:
    env.reset(seed=seed)
    total = 0.0
    for _ in range(1000):
        _, reward, terminated, truncated, info = env.step(FORWARD)
        total += reward
        if terminated or truncated:
            return total, terminated, truncated, info
    raise AssertionError("the episode has no end")


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("camera", [False, True])
@pytest.mark.parametrize("rays", [False, True])
def test_gymnasiums_checker_has_nothing_to_say(flat: bool, camera: bool, rays: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(
            "animalcat/Arena-v0",
            flat_actions=flat,
            camera=camera,
            resolution=32,
            rays=rays,
            render_mode="rgb_array",
        )
        check_env(env.unwrapped)
        env.close()


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("import animalcat, importlib.util; importlib.util.find_spec('gymnasium')", ""),
        ("", "animalcat:"),
    ],
)
def test_a_fresh_process_makes_it_beside_a_folder_called_envs(
    tmp_path: Path, before: str, name: str
) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "__init__.py").write_text("raise RuntimeError('not the project')")
    script = tmp_path / "agent.py"
    script.write_text(
        f"{before}\nimport gymnasium\n"
        f"env = gymnasium.make('{name}animalcat/Arena-v0')\n"
        "env.reset(seed=1)\n"
        "print(env.step(env.action_space.sample())[1])\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0


def test_the_client_alone_has_the_contract_and_the_agents() -> None:
    absent = ("numba", "sapien", "pydantic", "yaml", "pymc")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent}));"
        "import animalcat.envs, animalcat.envs.types;"
        "from animalcat.envs.agents.load import load_agent; load_agent('builtin:braitenberg')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


def test_vectorised() -> None:
    envs = gymnasium.make_vec(
        "animalcat/Arena-v0", num_envs=3, vectorization_mode="sync", sensors=["rays"]
    )
    observation, _ = envs.reset(seed=5)
    assert observation.shape == (3, 70)
    for _ in range(5):
        observation, *_ = envs.step(envs.action_space.sample())
    assert len(np.unique(observation, axis=0)) == 3
    envs.close()


def test_the_space_is_a_dict_of_what_is_on_or_the_one_box() -> None:
    everything = ArenaEnv(camera=True, resolution=20)
    assert isinstance(everything.observation_space, spaces.Dict)
    assert set(everything.observation_space) == set(SENSORS)
    frame = ArenaEnv(camera=True, resolution=20, grayscale=True, sensors=["camera"])
    assert frame.observation_space == spaces.Box(0, 255, (20, 20, 1), np.uint8)
    rays = ArenaEnv(sensors=["rays"], rays_per_side=3, ray_tags=18)
    assert rays.observation_space == spaces.Box(0, 1, (140,), np.float32)
    spec = ArenaEnv(observation_spec=ObservationSpec(CameraSpec(16), None))
    assert isinstance(spec.observation_space, spaces.Dict)
    assert set(spec.observation_space) == set(SENSORS) - {"rays"}
    for env in (everything, frame, rays, spec):
        observation, _ = env.reset(seed=0)
        assert observation in env.observation_space


def test_either_form_of_action_does_the_same() -> None:
    pairs, flat = ArenaEnv(sensors=["position"]), ArenaEnv(sensors=["position"], flat_actions=True)
    pairs.reset(seed=3)
    flat.reset(seed=3)
    for move, turn in [(1, 0), (1, 1), (0, 2), (2, 0), (1, 2)]:
        one, other = pairs.step(np.array([move, turn])), flat.step(3 * move + turn)
        assert np.array_equal(one[0], other[0])
    for env, bad in ((pairs, [3, 0]), (pairs, [0, -1]), (flat, 9), (flat, 1.0)):
        with pytest.raises(ValueError, match="action"):
            env.step(bad)  # type: ignore[arg-type]


def test_a_goal_terminates() -> None:
    total, terminated, truncated, info = run(ArenaEnv(ahead("GoodGoal")))
    assert (terminated, truncated, info) == (True, False, {"ended_by": "goal"})
    assert 1.8 < total < 2.0


def test_death_terminates() -> None:
    total, terminated, truncated, info = run(ArenaEnv(ahead("DeathZone"), keep_unpassable=True))
    assert (terminated, truncated, info) == (True, False, {"ended_by": "death"})
    assert total < -1


def test_time_truncates() -> None:
    total, terminated, truncated, info = run(
        ArenaEnv(ahead("Wall", time_limit=55), keep_unpassable=True)
    )
    assert (terminated, truncated, info) == (False, True, {"ended_by": "time_limit"})
    assert total == pytest.approx(-1, abs=0.01)


def test_a_fault_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    env = ArenaEnv()
    env.reset(seed=0)
    backend = env._backend
    honest = backend.step
    monkeypatch.setattr(
        backend,
        "step",
        lambda action: honest(action)._replace(phase=Phase.LAST, ended_by=EndedBy.FAULT),
    )
    with pytest.raises(RuntimeError, match="backend failed"):
        env.step(FORWARD)


def test_the_seed_decides_and_episodes_differ() -> None:
    env = ArenaEnv(sensors=["position"])
    first, info = env.reset(seed=7)
    second, _ = env.reset()
    again, same = env.reset(seed=7)
    assert np.array_equal(first, again)
    assert info == same
    assert not np.array_equal(first, second)


def test_episodes_can_start_as_those_of_animalai() -> None:
    at_rest, later = ArenaEnv(sensors=["health"]), ArenaEnv(sensors=["health"], animalai_reset=True)
    assert at_rest.reset(seed=0)[0] == 100.0
    assert later.reset(seed=0)[0] == pytest.approx(100.0 - 100.0 / (5 * 250))
    stand_in = Path(sys.executable).with_name("animalcat-unity")
    with pytest.raises(ValueError, match="only the backend"):
        ArenaEnv(backend=f"unity:{stand_in}", animalai_reset=True)


def test_with_unity_s_numbers_a_seed_stands_for_a_process() -> None:
    env = ArenaEnv(rng="unity")

    def start(seed: int | None) -> list[float]:
        observation, _ = env.reset(seed=seed)
        assert isinstance(observation, dict)
        return observation["position"].tolist()

    first, second = start(0), start(None)
    random = UnityRandom(0)
    x, z = random.uniform(0, 40), random.uniform(0, 40)
    assert [first[0], first[2]] == pytest.approx([x, z])
    assert second != first
    assert [start(0), start(None)] == [first, second]
    assert start(1) != first
    with pytest.raises(ValueError, match="how to draw"):
        ArenaEnv(rng="unity", backend="unity:/bin/true")


def test_arenas_from_file_text_and_model(tmp_path: Path) -> None:
    file = tmp_path / "arena.yml"
    file.write_text(ahead("GoodGoal"))
    model = load_text(ahead("GoodGoal"), "x").config.arenas[0]
    for arena in (file, str(file), ahead("GoodGoal"), model):
        assert run(ArenaEnv(arena))[3] == {"ended_by": "goal"}
    env = ArenaEnv(keep_unpassable=True)
    env.reset(seed=0, options={"arena": ahead("DeathZone")})
    assert run(env)[3] == {"ended_by": "death"}


def second_goal(name: str) -> str:
    """An arena with a goal, and with something else behind the agent."""
    return ahead("GoodGoal") + (
        f"    - !Item\n      name: {name}\n      positions: [!Vector3 {{x: 20, y: 0, z: 3}}]\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ahead("GodGoal"), ["arena.yml:10", "Did you mean GoodGoal?", "Add what can be earned"]),
        (ahead("Wall"), ["arena.yml:3", "no play can pass", "keep_unpassable"]),
        (ahead("GoodGoal").replace("timeLimit: 250", "passMark: 2"), ["it must exceed 2"]),
        (ahead("GoodGoal").replace("timeL", "timL"), ["arena.yml:4", "write `timeLimit`"]),
        (ahead("GoodGoal", -5), ["arena.yml:4", "-5 is negative", "Mend the file"]),
        (ahead("GoodGoal") + "    blackouts: [9, 3]\n", ["the times must increase"]),
    ],
)
def test_what_is_wrong_with_an_arena_is_raised(tmp_path: Path, text: str, words: list[str]) -> None:
    file = tmp_path / "arena.yml"
    file.write_text(text)
    env = ArenaEnv()
    for make in (lambda: ArenaEnv(file), lambda: env.reset(options={"arena": file})):
        with pytest.raises(ArenaError) as caught:
            make()
        assert all(word in str(caught.value) for word in words), caught.value
        assert caught.value.problems


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ahead("GoodGoal").replace("t: 250", "t: 0250"), ["arena.yml:4", "`0250` is 168"]),
        (second_goal("GodGoal"), ["arena.yml:14", "Did you mean GoodGoal?"]),
        (second_goal("BadGoal").replace("z: 3}", "z: 50}"), ["above 40"]),
        (
            ahead("GoodGoal") + ahead("GoodGoal").partition("arenas:\n")[2].replace("0:", "7:"),
            ["there are 2 arenas: arena 0 is played, and the other 1 are not"],
        ),
    ],
)
def test_what_is_doubtful_in_an_arena_is_said(tmp_path: Path, text: str, words: list[str]) -> None:
    file = tmp_path / "arena.yml"
    file.write_text(text)
    with pytest.warns(ArenaWarning) as caught:
        env = ArenaEnv(file)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(env)[3] == {"ended_by": "goal"}  # where it was said, it is not said again
    (said,) = caught
    assert all(word in str(said.message) for word in words), said.message


def test_an_arena_is_at_fault_only_where_each_draw_is() -> None:
    chance = ahead("GoodGoal").replace("x: 2, y: 2, z: 2", "x: -1, y: -1, z: -1")

    def marked(mark: float) -> str:
        return chance.replace("    items", f"    passMark: {mark}\n    items")

    def best(seed: int) -> float:
        return max_return(place(load_text(chance, "x").config.first, np.random.default_rng(seed)))

    returns = [best(seed) for seed in range(5)]
    assert returns[0] < max(returns)
    with pytest.warns(ArenaWarning, match="no play can pass"):
        ArenaEnv(marked((returns[0] + max(returns)) / 2))
    with pytest.raises(ArenaError, match="no play can pass"):
        ArenaEnv(marked(max(returns)))


def test_who_loads_an_arena_directly_is_told_what_is_not_simulated() -> None:
    arena = load_text(second_goal("GodGoal"), "x").config.first
    environment = SimEnvironment(ObservationSpec())
    with pytest.warns(ArenaWarning, match=r"GodGoal \(Animal-AI has no such object\)"):
        environment.load(arena, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SimEnvironment(ObservationSpec(), tell=False).load(arena, 0)


def test_render_shows_the_camera() -> None:
    env = ArenaEnv(NAVIGATION, sensors=["rays"], render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert frame is not None
    assert frame.shape == (256, 256, 3)
    gray = ArenaEnv(camera=True, resolution=20, grayscale=True, render_mode="rgb_array")
    gray.reset(seed=0)
    frame = gray.render()
    assert frame is not None
    assert frame.shape == (20, 20, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensors": ["camera"]}, "choose from rays"),
        ({"sensors": []}, "choose from"),
        ({"backend": "unreal"}, "the backends are: sim"),
        ({"render_mode": "ansi"}, "rgb_array"),
        ({"camera": True, "resolution": 3}, "give 4 to 512"),
        ({"decision_period": 0}, "give 1 to 20"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ArenaEnv(**arguments)


def test_wrong_arenas_are_named(tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match=r"nowhere\.yml"):
        ArenaEnv(tmp_path / "nowhere.yml")
    with pytest.raises(ArenaError):
        ArenaEnv("no: arena\n")
    with pytest.raises(ValueError, match="there is: arena"):
        ArenaEnv().reset(options={"arenas": 1})


def test_a_step_without_an_episode_says_how_one_is_started() -> None:
    env = ArenaEnv(ahead("GoodGoal"))
    with pytest.raises(RuntimeError, match=r"^no episode is open: call reset\(\)"):
        env.step(FORWARD)
    run(env)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"^the episode is over: call reset\(\)"):
            env.step(FORWARD)
    env.reset()
    env.step(FORWARD)
    env.close()
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        env.step(FORWARD)


def test_several_arenas_are_played_in_turn() -> None:
    short, long = ahead("GoodGoal", 1), ahead("GoodGoal", 250)
    env = ArenaEnv([short, load_text(long, "long").config.first])
    ends = [run(env)[3]["ended_by"] for _ in range(4)]
    assert ends == ["time_limit", "goal"] * 2
    env.reset(options={"arena": (long, short)})
    assert [run(env)[3]["ended_by"] for _ in range(2)] == ["time_limit", "goal"]
    with pytest.raises(ValueError, match="the list of arenas is empty"):
        env.reset(options={"arena": []})
    with pytest.raises(ArenaError):
        ArenaEnv([short, "no: arena\n"])


def test_registering_twice_is_fine() -> None:
    register_environments()
    assert "animalcat/Arena-v0" in gymnasium.registry


def test_a_window_shows_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make("animalcat/Arena-v0", render_mode="human", decision_period=20)
    assert env.metadata["render_fps"] == 2  # 0.4 s a decision, rounded
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.render()
    arena = env.unwrapped
    assert isinstance(arena, ArenaEnv)
    window = arena._window
    assert window is not None
    monkeypatch.setattr(window, "_rate", 0)  # as fast as it goes
    env.reset(seed=3)
    seen = [window.pixels()]
    for _ in range(3):
        env.step(np.array([1, 1]))
        assert env.render() is None
        seen.append(window.pixels())
    plain = ArenaEnv(render_mode="rgb_array", decision_period=20)
    plain.reset(seed=3)
    for number, pixels in enumerate(seen):
        if number:
            plain.step(np.array([1, 1]))
        frame = plain.render()
        assert frame is not None
        np.testing.assert_array_equal(pixels, frame.repeat(2, 0).repeat(2, 1))
    plain.close()
    env.close()
    env.close()
    with pytest.raises(RuntimeError, match="not open"):
        window.pixels()


def test_a_window_that_cannot_open_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "none such")
    env = ArenaEnv(render_mode="human")
    with pytest.raises(RuntimeError, match="SDL_VIDEODRIVER=dummy"):
        env.reset(seed=1)
    env.close()
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(ImportError, match=r"pip install .*\[render\]"):
        ArenaEnv(render_mode="human")
