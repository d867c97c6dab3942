"""Policies are measured as they are: models with `predict`, and functions of an observation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import animalcat
from animalcat import Arena, CameraSpec, ObservationSpec, RaySpec
from animalcat.arena_configs.writer import to_yaml
from animalcat.errors import AnimalcatError
from animalcat.lab.policies import ReadPolicy, read_policy

NEAR = {"near": Arena.goal(distance=3, size=3)}
FEW: dict[str, Any] = {
    "layout": "aaio",
    "max_episodes": 1,
    "repeats": 0,
    "certify": False,
    "progress": False,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("policies")


def read(source: Any, **given: Any) -> ReadPolicy:
    usual = {
        "env": None,
        "sensors": None,
        "spec": None,
        "deterministic": True,
        "repeat": 1,
        "step": None,
    }
    options = {key: given.pop(key) for key in [*given] if key not in usual}
    asked: dict[str, Any] = {**usual, **given}
    return read_policy(source, None, options, **asked)  # pyright: ignore[reportArgumentType]


class Model:
    """A recurrent model that goes on, and turns at every fifth step of an episode."""

    def __init__(self, *shape: int, **parts: int) -> None:
        box = spaces.Box(0.0, 255.0 if len(shape) == 3 else 1.0, shape, np.float32)
        ends = {"rays": (0.0, 1.0), "velocity": (-10_000.0, 10_000.0)}
        named: dict[str, Any] = {
            name: spaces.Box(*ends[name], (size,), np.float32) for name, size in parts.items()
        }
        self.observation_space = spaces.Dict(named) if parts else box
        self.weight = 1.0
        self.asked: list[tuple[Any, Any, bool, bool]] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: Any = 0
    ) -> tuple[Any, Any]:
        self.asked.append((observation, state, bool(episode_start[0]), deterministic))
        count = 0 if state is None else state
        return np.array(4 if count % 5 == 4 else 3), count + 1


def test_a_recurrent_model_plays_with_its_state_and_each_episode_begins_anew(folder: Path) -> None:
    model = Model(70)
    arenas = {**NEAR, "far": Arena.goal(distance=6, size=3)}
    options: dict[str, Any] = {**FEW, "max_episodes": 2}
    result = animalcat.measure(model, arenas, folder=folder, deterministic=False, **options)
    assert result.agent == "Model"
    steps = [episode.steps for episode in result.episodes]
    assert len(model.asked) == sum(steps)
    states = [state for _, state, _, _ in model.asked]
    assert states == [None, *range(1, steps[0]), None, *range(1, steps[1])]
    assert [start for _, _, start, _ in model.asked] == [state is None for state in states]
    assert {deterministic for *_, deterministic in model.asked} == {False}
    assert {observation.shape for observation, *_ in model.asked} == {(70,)}


def test_a_function_sees_and_does_what_it_would_in_the_arena_of_gymnasium(folder: Path) -> None:
    seen: list[Any] = []

    def policy(observation: Any) -> tuple[int, int]:
        seen.append(observation)
        return 1, len(seen) % 2

    result = animalcat.measure(
        policy, NEAR, folder=folder, sensors=("rays", "velocity"), repeat=2, **FEW
    )
    env = gymnasium.make(
        "animalcat/Arena-v0", arena=to_yaml(NEAR["near"].config), sensors=["rays", "velocity"]
    )
    observation, _ = env.reset(seed=0)
    told, over = 0.0, False
    for k, known in enumerate(seen):
        assert not over
        assert sorted(known) == ["rays", "velocity"]
        assert all((known[name] == observation[name]).all() for name in known)
        for _ in range(2):
            if not over:
                observation, reward, terminated, truncated, _ = env.step((1, (k + 1) % 2))
                told, over = told + float(reward), terminated or truncated
    assert over
    assert result.episodes[0].episode_return == pytest.approx(told)


@pytest.mark.parametrize(
    ("model", "spec", "sensors"),
    [
        (Model(70), None, "rays"),
        (Model(32, 32, 3), ObservationSpec(CameraSpec(32)), "camera"),
        (Model(1, 32, 32), ObservationSpec(CameraSpec(32, grayscale=True)), "camera"),
        (Model(velocity=3, rays=70), None, "rays, velocity"),
    ],
)
def test_what_a_model_sees_follows_from_what_it_was_trained_on(
    model: Model, spec: ObservationSpec | None, sensors: str
) -> None:
    found = read(model)
    assert found.spec == spec
    assert found.agent.fingerprint is not None
    assert found.agent.fingerprint.options["sensors"] == sensors


def test_a_model_of_an_environment_sees_what_that_shows() -> None:
    env = gymnasium.make("animalcat/Arena-v0", sensors=["rays"], rays_per_side=5)

    class Trained(Model):
        def get_env(self) -> Any:
            return env

    size = int(np.prod(env.observation_space.shape or ()))
    spec = read(Trained(size)).spec
    assert spec == ObservationSpec(rays=RaySpec(5))
    with pytest.raises(AnimalcatError, match=r"was trained on an array 154, .* rays 70") as error:
        read(Model(size))
    assert error.value.code == "OBSERVATION_MISMATCH"
    assert read(Model(size), spec=spec).agent.fingerprint is not None


@pytest.mark.parametrize(
    ("source", "given", "words"),
    [
        (3, {}, "a policy is a model with predict, .* this is of int: 3"),
        (Model(70), {"repeat": 0}, "repeat is 0; give 1 or more"),
        (Model(70), {"slots": 2}, "one policy plays one episode at a time"),
        (Model(70), {"sensors": ("camera",)}, r"give the observation_spec .* sensors="),
        (Model(69), {}, "trained on an array 69"),
        ("builtin:forward", {"repeat": 3}, "builtin:forward is an agent"),
        ("builtin:nobody", {}, "nobody"),
        (lambda: None, {}, "has no method reset"),
    ],
)
def test_what_is_no_policy_is_refused_by_a_sentence(
    source: Any, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(AnimalcatError, match=words):
        read(source, **given)


class Shifted(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Shows rays from -1 to 1."""

    def __init__(self, env: Any, by: float = 1.0) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(-1.0, 1.0, (70,), np.float32)
        self.by = by

    def observation(self, observation: Any) -> Any:
        return 2 * observation - self.by


class Repeated(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Takes each action three times, and shows the mean of what came after each."""

    def step(self, action: Any) -> Any:
        frames: list[Any] = []
        while True:
            seen, *rest = self.env.step(action)
            frames.append(seen)
            if len(frames) == 3 or rest[1] or rest[2]:
                return np.mean(frames, 0).astype(np.float32), *rest


def trained_in(**kinds: Any) -> Any:
    """A training's environment: rays, moved, in three steps, normalised, and stacked."""
    env = gymnasium.make("animalcat/Arena-v0", arena=to_yaml(NEAR["near"].config), sensors=["rays"])
    env = gymnasium.wrappers.NormalizeObservation(Repeated(Shifted(env, **kinds)))
    return gymnasium.wrappers.FrameStackObservation(env, 2)


class Stacked(Model):
    """A model that sees two frames of rays."""

    def __init__(self, env: Any) -> None:
        super().__init__()
        self.observation_space, self.env = env.observation_space, env

    def get_env(self) -> Any:
        return self.env


def test_a_model_is_measured_behind_the_wrappers_that_it_was_trained_in(folder: Path) -> None:
    # I10 of docs/design/mistakes.md
    env = trained_in()
    env.reset(seed=3)
    for _ in range(8):
        env.step((0, 1))
    statistics = env.get_wrapper_attr("obs_rms")
    kept = statistics.mean.copy()
    model = Stacked(env)
    result = animalcat.measure(model, NEAR, folder=folder, **FEW)
    known = result.session.identity.fingerprint
    assert known is not None
    words = known.options["wrappers"]
    assert words.startswith("FrameStackObservation, NormalizeObservation, Repeated, Shifted ")
    assert (statistics.mean == kept).all()  # the training's own are as they were
    assert len(model.asked) == -(-result.episodes[0].steps // 3)
    env.get_wrapper_attr("set_wrapper_attr")("update_running_mean", False)
    seen, _ = env.reset(seed=0)
    for known_frames, state, *_ in model.asked:
        assert known_frames == pytest.approx(seen, abs=1e-5)
        seen, *_ = env.step(np.array(4 if (state or 0) % 5 == 4 else 3))
    again = animalcat.measure(model, NEAR, folder=folder, **FEW)
    assert again.session.id == result.session.id
    statistics.mean = statistics.mean + 1
    assert animalcat.measure(model, NEAR, folder=folder, **FEW).session.id != result.session.id


def test_what_a_wrapper_raises_is_raised_and_nothing_waits(folder: Path) -> None:
    class Failing(Stacked):
        def predict(self, *seen: Any, **_: Any) -> Any:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        animalcat.measure(Failing(trained_in()), NEAR, folder=folder, **FEW)


class Normalised(Model):
    """A model that was saved, behind `VecNormalize`: of that it has its last observation alone."""

    _last_obs = np.full((1, 70), -2.5)


class Elsewhere(Model):
    """A model that was saved, behind `NormalizeObservation`."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(-np.inf, np.inf, (70,), np.float32)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Normalised(70), "something changed the rays .* it saw -2.5 to -2.5, .* as env=:"),
        (Elsewhere(), "something changed the rays .* it saw -inf to inf, .* as env=:"),
        (Model(280), "was trained on an array 280, .* as env=:"),
    ],
)
def test_what_something_unknown_has_changed_is_refused_with_what_to_hand_over(
    model: Model, words: str
) -> None:
    with pytest.raises(AnimalcatError, match=words) as error:
        read(model)
    assert error.value.code == "OBSERVATION_MISMATCH"
    plain = gymnasium.make("animalcat/Arena-v0", sensors=["rays"])
    if isinstance(model, Normalised):
        assert read(model, env=plain).agent.fingerprint is not None
