"""Policies as agents: models of Stable-Baselines3, and functions of a Gymnasium observation."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from gymnasium import spaces

from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.fingerprint import unknown
from animalcat.envs.agents.objects import fingerprint_of
from animalcat.envs.answers import Actions, Answer
from animalcat.envs.spaces import GymObservation, choose_sensors, observation_space, to_gym
from animalcat.envs.types import CameraSpec, Observation, ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.lab.agents import AgentSource, GivenAgent, read_agent
from animalcat.lab.wrappers import REMEDY, Wrappers, is_ours
from animalcat.values.options import SessionOptions, given_options

PolicySource: TypeAlias = "Model | Callable[[GymObservation], Any] | AgentSource"
"""What a policy may be given as."""
Boxes: TypeAlias = "Mapping[str, spaces.Box[Any]]"
"""Spaces by sensor; by "" where there is one array."""


class Model(Protocol):
    """A model that predicts actions as those of Stable-Baselines3 do."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """The action for an observation, and the state of a recurrent policy after it."""
        ...


class ReadPolicy(NamedTuple):
    """A policy that is to be measured.

    Attributes:
        agent: Plays it.
        spec: What it sees; None for what the options and the session's default say.
    """

    agent: GivenAgent
    spec: ObservationSpec | None


class PolicyAgent:
    """Plays a policy: gives it observations as `animalcat/Arena-v0` does, and takes its actions."""

    def __init__(
        self,
        decide: _Function | _Model,
        sensors: Sequence[str] | None,
        repeat: int,
        wrappers: Wrappers | None = None,
    ) -> None:
        """Wrap a policy.

        Args:
            decide: The policy.
            sensors: What of an observation it is given; None for all.
            repeat: For how many decisions an action holds.
            wrappers: What stands between it and the arena; None: nothing.
        """
        self._decide = decide
        self._sensors = sensors
        self._repeat = repeat
        self._wrappers = wrappers
        self._shown: tuple[str, ...] = ()

    def reset(self, info: EpisodeInfo) -> None:
        """Begin an episode."""
        self._shown = choose_sensors(info.observation_spec, self._sensors)
        self._decide.begin(info)
        if self._wrappers is not None:
            self._wrappers.begin(info.seed, self._decide)

    def act(self, observation: Observation) -> Answer:
        """Decide."""
        decide = self._decide if self._wrappers is None else self._wrappers.act
        action = decide(to_gym(observation, self._shown))
        return action if self._repeat == 1 else Actions([action] * self._repeat)


def read_policy(
    source: PolicySource,
    name: str | None,
    options: SessionOptions,
    *,
    env: Any,
    sensors: Sequence[str] | None,
    spec: ObservationSpec | None,
    deterministic: bool,
    repeat: int,
    step: int | None,
) -> ReadPolicy:
    """Read a policy or an agent.

    Args:
        source: What `animalcat.measure` takes.
        name: What its sessions call it; None for its class or function.
        options: Those of the session.
        env: What a policy was trained in, with all wrappers; None for what a model says.
        sensors: What a policy is given of an observation; None for what it was trained on.
        spec: What it sees; None for what it was trained on.
        deterministic: Whether a model takes its likeliest action.
        repeat: For how many decisions an action holds.
        step: After how many steps of training it is; None where nobody says.

    Raises:
        AnimalcatError: It is neither, or it was trained on other observations.
    """
    if (agent := _agent_of(source, name, options.get("slots") or 1)) is not None:
        if sensors is not None or repeat != 1 or env is not None:
            raise AnimalcatError(
                f"env, sensors and repeat are for policies, and {agent.name} is an agent, which "
                "sees everything and may answer Actions([...])",
                "INVALID_REQUEST",
            )
        return ReadPolicy(_at(agent, step), spec)
    if (options.get("slots") or 1) > 1:
        raise AnimalcatError(
            "slots: one policy plays one episode at a time; leave slots out", "INVALID_REQUEST"
        )
    if repeat < 1:
        raise AnimalcatError(f"repeat is {repeat}; give 1 or more decisions", "INVALID_REQUEST")
    policy, said = cast("Any", source), {"repeat": str(repeat)}
    decide: _Model | _Function
    if callable(getattr(policy, "predict", None)):
        decide, trained = _Model(policy, deterministic), _spaces(policy)
        said["deterministic"] = str(deterministic)
    elif callable(policy):
        decide, trained = _Function(policy), _spaces(None)
    else:
        raise AnimalcatError(
            f"a policy is a model with predict, a function of an observation, or an agent with "
            f"reset(info) and act(observation); this is of {type(source).__name__}: {source!r:.60}",
            "INVALID_REQUEST",
        )
    wrappers = _wrappers(policy, env, trained)
    if spec is None and not {"camera", "decision_period", "privileged"} & options.keys():
        spec = _spec_of_pictures(trained) if wrappers is None else wrappers.spec
    shown = given_options(SessionOptions, options, spec).get("observation_spec")
    if wrappers is None:
        sensors = _sensors_of_model(policy, trained, sensors, shown or ObservationSpec())
    else:
        sensors = _sensors_of_wrappers(wrappers, sensors, shown or ObservationSpec())
    known = fingerprint_of(policy)
    if wrappers is not None and wrappers.names:
        said["wrappers"] = f"{', '.join(wrappers.names)} {(wrappers.digest or '')[:16]}"
        if wrappers.digest is None:
            known = unknown(known.name, said["wrappers"])
    if known.known:
        said["sensors"] = "all" if sensors is None else ", ".join(sensors)
        known = replace(known, options={**known.options, **said})
    called = name or str(getattr(policy, "__name__", type(policy).__name__)).strip("<>")
    around = wrappers if wrappers is not None and wrappers.names else None
    player = PolicyAgent(decide, sensors, repeat, around)
    return ReadPolicy(_at(GivenAgent(called, "", player, known, policy), step), spec)


def _agent_of(source: PolicySource, name: str | None, slots: int) -> GivenAgent | None:
    """The agent that is meant; None where it is a policy."""
    if isinstance(source, str | os.PathLike):
        return _load_agent(os.fspath(source), name)
    made: Any = source
    known = isinstance(source, type | GivenAgent) or callable(getattr(source, "act", None))
    if known or (callable(made) and not hasattr(made, "predict") and _makes_agents(made)):
        return read_agent(made, name, slots)
    return None


def _at(agent: GivenAgent, step: int | None) -> GivenAgent:
    """An agent after some steps of training, which its name and its fingerprint say."""
    if step is None:
        return agent
    known = agent.fingerprint
    if known is not None and known.known:
        known = replace(known, options={**known.options, "step": str(step)})
    return agent._replace(name=f"{agent.name}-{step}", fingerprint=known)


def _load_agent(reference: str, name: str | None) -> GivenAgent:
    """The agent of a reference, loaded into this process."""
    from animalcat.envs.agents.load import AgentLoadError, load_agent

    read = read_agent(reference, name)
    try:
        agent = load_agent(read.reference)
    except AgentLoadError as error:
        raise AnimalcatError(str(error), "INVALID_REQUEST") from error
    return GivenAgent(read.name, "", agent, fingerprint_of(agent), agent)


def _makes_agents(source: Callable[..., Any]) -> bool:
    """Whether a function takes nothing, and so makes agents and decides on no observation."""
    try:
        parameters = inspect.signature(source).parameters.values()
    except (TypeError, ValueError):
        return False
    takes = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return not any(one.kind in (*takes, inspect.Parameter.VAR_POSITIONAL) for one in parameters)


class _Function:
    """A function of an observation."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def begin(self, info: EpisodeInfo) -> None:
        """Reset its memory, if it has one."""
        reset = getattr(self._function, "reset", None)
        if callable(reset):
            reset(info)

    def __call__(self, seen: GymObservation) -> Any:
        """Decide."""
        return self._function(seen)


class _Model:
    """A model with `predict`, and its state within an episode."""

    def __init__(self, model: Model, deterministic: bool) -> None:
        self._model = model
        self._deterministic = deterministic
        self._state: Any = None
        self._starts = True
        self._chance = _Chance()

    def begin(self, info: EpisodeInfo) -> None:
        """Forget the episode before."""
        self._state, self._starts = None, True
        self._chance.begin(info.seed)

    def __call__(self, seen: GymObservation) -> Any:
        """Decide."""
        with self._chance.drawing():
            action, self._state = self._model.predict(
                seen,
                state=self._state,
                episode_start=np.array([self._starts]),
                deterministic=self._deterministic,
            )
        self._starts = False
        return action


class _Chance:
    """PyTorch's stream of chance within an episode; that of the training stands still meanwhile."""

    def __init__(self) -> None:
        self._torch: Any = sys.modules.get("torch")
        self._stream: Any = None

    def begin(self, seed: int) -> None:
        """Begin the stream of a seed."""
        if self._torch is not None:
            self._stream = self._torch.Generator().manual_seed(seed).get_state()

    @contextmanager
    def drawing(self) -> Generator[None]:
        """Let what is drawn in the block come from the stream."""
        if self._torch is None:
            yield
            return
        before = self._torch.get_rng_state()
        self._torch.set_rng_state(self._stream)
        try:
            yield
        finally:
            self._stream = self._torch.get_rng_state()
            self._torch.set_rng_state(before)


def _wrappers(policy: Any, env: Any, trained: Boxes) -> Wrappers | None:
    """What a policy was trained in; None where nobody says.

    Raises:
        AnimalcatError: It cannot be taken along, or the model saw something else.
    """
    if env is None:
        with suppress(Exception):  # it has none, or is somebody else's
            env = policy.get_env()
        if env is None or not is_ours(env):
            return None
    wrappers = Wrappers(env)
    shown = _boxes(wrappers.space)
    if trained and not (
        trained.keys() == shown.keys()
        and all(_alike(shown[name].shape, box.shape) for name, box in trained.items())
    ):
        raise AnimalcatError(
            f"the model was trained on {_in_words(trained)}, and env shows {_in_words(shown)}: "
            f"{REMEDY}",
            "OBSERVATION_MISMATCH",
        )
    return wrappers


def _sensors_of_wrappers(
    wrappers: Wrappers, sensors: Sequence[str] | None, shown: ObservationSpec
) -> tuple[str, ...]:
    """The sensors that wrappers are given.

    Raises:
        AnimalcatError: The session shows others, or others are asked for.
    """
    there = choose_sensors(shown)
    asked = set(sensors or wrappers.sensors)
    if (
        asked != set(wrappers.sensors)
        or not asked <= set(there)
        or (observation_space(shown, wrappers.sensors) != wrappers.arena_space)
    ):
        told = _in_words(_boxes(observation_space(shown, sensors or there)))
        raise AnimalcatError(
            f"the policy was trained on {_in_words(_boxes(wrappers.arena_space))}, and the session "
            f"shows {told}: leave out sensors= and what says what is observed",
            "OBSERVATION_MISMATCH",
        )
    return wrappers.sensors


def _spec_of_pictures(trained: Boxes) -> ObservationSpec | None:
    """What a model sees, as far as its spaces tell; None if they do not."""
    for shape in (box.shape for box in trained.values()):
        if len(shape) == 3:
            channels, side = min(shape), max(shape)
            return ObservationSpec(CameraSpec(side, grayscale=channels == 1))
    return None


def _spaces(model: Any) -> Boxes:
    """The spaces of what a model observes by sensor; by "" where it is one array."""
    return _boxes(getattr(model, "observation_space", None))


def _boxes(space: Any) -> Boxes:
    named = isinstance(space, spaces.Dict)
    parts: Mapping[str, Any] = cast("Any", space).spaces if named else {"": space}
    return {
        name: cast("spaces.Box[Any]", part)
        for name, part in parts.items()
        if isinstance(part, spaces.Box)
    }


def _sensors_of_model(
    model: Any,
    trained: Boxes,
    sensors: Sequence[str] | None,
    spec: ObservationSpec,
) -> tuple[str, ...] | None:
    """The sensors that a model was trained on, of which nobody says in what.

    Raises:
        AnimalcatError: What the session shows is nothing that it was trained on, or something has
            changed what it saw.
    """
    if not trained:
        return tuple(sensors) if sensors is not None else None
    there = choose_sensors(spec)
    shown = {name: cast("spaces.Box[Any]", observation_space(spec, (name,))) for name in there}
    chosen = tuple(sensors) if sensors is not None else tuple(trained)
    if sensors is None and "" in trained:
        shape = trained[""].shape
        chosen = tuple(name for name in there if _alike(shown[name].shape, shape))[:1] or ("",)
    saw = trained if "" not in trained else dict.fromkeys(chosen, trained[""])
    if not chosen or not all(
        name in saw and name in shown and _alike(shown[name].shape, saw[name].shape)
        for name in chosen
    ):
        raise AnimalcatError(
            f"the model was trained on {_in_words(trained)}, and the session shows "
            f"{_in_words(shown)}: give the observation_spec of its training (or camera=, "
            f"decision_period=) and its sensors=; or {REMEDY}",
            "OBSERVATION_MISMATCH",
        )
    last: Any = getattr(model, "_last_obs", None)
    for name in chosen:
        low, high = _ends(shown[name])
        part: Any = last if "" in trained or last is None else last.get(name)
        seen = _ends(saw[name]) if part is None else (float(np.min(part)), float(np.max(part)))
        if _ends(saw[name]) != (low, high) or not low <= seen[0] <= seen[1] <= high:
            raise AnimalcatError(
                f"something changed the {name} that the model was trained on, such as "
                f"VecNormalize: it saw {seen[0]:g} to {seen[1]:g}, and the arena shows {low:g} to "
                f"{high:g}: {REMEDY}",
                "OBSERVATION_MISMATCH",
            )
    return chosen


def _ends(box: spaces.Box[Any]) -> tuple[float, float]:
    return float(box.low.min()), float(box.high.max())


def _alike(shown: tuple[int, ...] | None, trained: tuple[int, ...]) -> bool:
    """Whether shapes are the same; images may have their channels first."""
    return shown == trained or (
        shown is not None and len(shown) == 3 and (shown[2], *shown[:2]) == trained
    )


def _in_words(shown: Boxes) -> str:
    """Spaces by their names and shapes."""
    return ", ".join(
        f"{name or 'an array'} {'x'.join(map(str, box.shape))}" for name, box in shown.items()
    )
