"""`animalcat/Arena-v0`: Gymnasium's own checks, and what ends an episode how."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from animalcat.arena_configs.draws import UnityRandom
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ArenaError
from animalcat.envs.gym import NAVIGATION, ArenaEnv
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import EndedBy, Phase
from animalcat.envs.vector import ArenaVectorEnv

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


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("sensors", [["rays"], ["camera", "velocity"]])
def test_arenas_in_a_row_are_what_gymnasium_s_own_vector_gives(
    mode: AutoresetMode, sensors: list[str]
) -> None:
    options: dict[str, Any] = {
        "arena": [ahead("GoodGoal"), ahead("BadGoal"), ahead("Wall", 9), NAVIGATION],
        "camera": True,
        "resolution": 16,
        "sensors": sensors,
        "decision_period": 7,
        "keep_unpassable": True,
    }
    ours = gymnasium.make_vec("animalcat/Arena-v0", 3, autoreset_mode=mode, **options)
    theirs = gymnasium.make_vec(
        "animalcat/Arena-v0",
        3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **options,
    )
    assert isinstance(ours, ArenaVectorEnv)
    assert ours.metadata == theirs.metadata
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    same, kept = assert_same_answers, list[tuple[Any, Any]]()
    same(ours.reset(seed=[5, 9, 0]), theirs.reset(seed=[5, 9, 0]))  # type: ignore[arg-type]
    ours.action_space.seed(0)
    ends = Counter[str]()
    for number in range(90):
        actions = ours.action_space.sample()
        if number % 3:
            actions[:] = FORWARD
        one, other = ours.step(actions), theirs.step(actions)
        same(one, other)
        kept.append((one, deepcopy(one)))
        told = one[4].get("final_info", one[4])
        ends.update(end for end in told.get("ended_by", ()) if end)
        over = one[2] | one[3]
        if mode is AutoresetMode.DISABLED and over.any():
            same(*(envs.reset(options={"reset_mask": over}) for envs in (ours, theirs)))
    assert min(ends["goal"], ends["time_limit"], ends["death"]) > 1
    for given, copy in kept:
        same(given, copy)  # no later step writes into what an earlier one gave
    ours.close()
    theirs.close()


def assert_same_answers(one: Any, other: Any) -> None:
    """The same numbers of the same types, to the bit, all the way down."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        one, other = tuple(one.values()), tuple(other.values())
    if isinstance(one, tuple) or getattr(one, "dtype", "") == "O":
        assert len(one) == len(other)
        for mine, its in zip(one, other, strict=True):
            assert_same_answers(mine, its)
    else:
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
        assert np.array_equal(one, other)


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


def test_a_picture_is_drawn_as_it_is_asked_for_and_no_sooner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = ArenaEnv(ahead("GoodGoal"), render_mode="rgb_array")
    drawn: list[int] = []
    glance = SimEnvironment.glance

    def note_glance(self: SimEnvironment, side: int) -> Any:
        drawn.append(side)
        return glance(self, side)

    monkeypatch.setattr(SimEnvironment, "glance", note_glance)
    seen, _ = env.reset(seed=0)
    assert seen in env.observation_space
    assert "camera" not in env.observation_space
    env.step(3)
    assert drawn == []
    first, again = env.render(), env.render()
    assert first is again
    assert drawn == [256]
    camera = ArenaEnv(ahead("GoodGoal"), camera=True, resolution=256, render_mode="rgb_array")
    camera.reset(seed=0)
    camera.step(3)
    assert np.array_equal(camera.render(), first)  # pyright: ignore[reportArgumentType]


def test_lists_are_pairs_where_the_space_is_of_pairs() -> None:
    env = ArenaEnv(ahead("GoodGoal"), sensors=["position"])
    env.reset(seed=0)
    for _ in range(10):
        seen, *_ = env.step([1, 0])  # pyright: ignore[reportArgumentType]
    assert seen[2] > 10.1
    flat = ArenaEnv(ahead("GoodGoal"), flat_actions=True)
    flat.reset(seed=0)
    with pytest.raises(ValueError, match="a list could be one pair or several"):
        flat.step([1, 0])  # pyright: ignore[reportArgumentType]


def test_a_search_goes_back_to_where_it_was() -> None:
    env = gymnasium.make("animalcat/Arena-v0", arena=ahead("GoodGoal"), sensors=["rays"])
    inner = env.unwrapped
    assert isinstance(inner, ArenaEnv)
    env.reset(seed=0)
    env.step(3)
    here = inner.snapshot()
    before = [env.step(action)[0] for action in (3, 4, 3)]
    while not (ended := env.step(3))[2]:
        pass
    assert ended[4] == {"ended_by": "goal"}
    inner.restore(here)
    assert all((env.step(a)[0] == seen).all() for a, seen in zip((3, 4, 3), before, strict=True))


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
    long = ahead("GoodGoal", 250)
    short = long.replace("timeLimit: 250", "timeLimit: 1\n    pass_mark: -9")
    env = ArenaEnv([short, load_text(long, "long").config.first])
    ends = [run(env)[3]["ended_by"] for _ in range(4)]
    assert ends == ["time_limit", "goal"] * 2
    env.reset(options={"arena": (long, short)})
    assert [run(env)[3]["ended_by"] for _ in range(2)] == ["time_limit", "goal"]
    with pytest.raises(ValueError, match="the list of arenas is empty"):
        env.reset(options={"arena": []})
    with pytest.raises(ArenaError):
        ArenaEnv([short, "no: arena\n"])


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
