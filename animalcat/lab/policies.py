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
from animalcat.envs.agents.objects import fingerprint_of
from animalcat.envs.answers import Actions, Answer
from animalcat.envs.spaces import GymObservation, choose_sensors, observation_space, to_gym
from animalcat.envs.types import CameraSpec, Observation, ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.lab.agents import AgentSource, GivenAgent, read_agent
from animalcat.values.options import SessionOptions, given_options

PolicySource: TypeAlias = "Model | Callable[[GymObservation], Any] | AgentSource"
"""What a policy may be given as."""


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
        self, decide: _Function | _Model, sensors: Sequence[str] | None, repeat: int
    ) -> None:
        """Wrap a policy.

        Args:
            decide: The policy.
            sensors: What of an observation it is given; None for all.
            repeat: For how many decisions an action holds.
        """
        self._decide = decide
        self._sensors = sensors
        self._repeat = repeat
        self._shown: tuple[str, ...] = ()

    def reset(self, info: EpisodeInfo) -> None:
        """Begin an episode."""
        self._shown = choose_sensors(info.observation_spec, self._sensors)
        self._decide.begin(info)

    def act(self, observation: Observation) -> Answer:
        """Decide."""
        action = self._decide(to_gym(observation, self._shown))
        return action if self._repeat == 1 else Actions([action] * self._repeat)


def read_policy(
    source: PolicySource,
    name: str | None,
    options: SessionOptions,
    *,
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
        sensors: What a policy is given of an observation; None for what it was trained on.
        spec: What it sees; None for what it was trained on.
        deterministic: Whether a model takes its likeliest action.
        repeat: For how many decisions an action holds.
        step: After how many steps of training it is; None where nobody says.

    Raises:
        AnimalcatError: It is neither, or it was trained on other observations.
    """
    if (agent := _agent_of(source, name, options.get("slots") or 1)) is not None:
        if sensors is not None or repeat != 1:
            raise AnimalcatError(
                f"sensors and repeat are for policies, and {agent.name} is an agent, which sees "
                "everything and may answer Actions([...])",
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
        spec = spec or _observation_of_training(policy, options)
        sensors = _sensors_of_model(policy, sensors, given_options(SessionOptions, options, spec))
        decide, known = _Model(policy, deterministic), fingerprint_of(policy)
        said["deterministic"] = str(deterministic)
    elif callable(policy):
        decide, known = _Function(policy), fingerprint_of(policy)
    else:
        raise AnimalcatError(
            f"a policy is a model with predict, a function of an observation, or an agent with "
            f"reset(info) and act(observation); this is of {type(source).__name__}: {source!r:.60}",
            "INVALID_REQUEST",
        )
    if known.known:
        said["sensors"] = "all" if sensors is None else ", ".join(sensors)
        known = replace(known, options={**known.options, **said})
    called = name or str(getattr(policy, "__name__", type(policy).__name__)).strip("<>")
    player = PolicyAgent(decide, sensors, repeat)
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


def _observation_of_training(model: Any, options: SessionOptions) -> ObservationSpec | None:
    """What the model's own environment shows, or else what its spaces tell; None if neither."""
    if {"camera", "decision_period", "privileged"} & options.keys():
        return None
    with suppress(Exception):  # no environment, or one of somebody else
        shown = model.get_env().get_attr("observation_spec")[0]
        if isinstance(shown, ObservationSpec):
            return shown
    for shape in _shapes(model).values():
        if len(shape) == 3:
            channels, side = min(shape), max(shape)
            return ObservationSpec(CameraSpec(side, grayscale=channels == 1))
    return None


def _shapes(model: Any) -> Mapping[str, tuple[int, ...]]:
    """The shapes of what a model observes by sensor; by "" where it is one array."""
    space = getattr(model, "observation_space", None)
    if isinstance(space, spaces.Dict):
        parts = cast("Mapping[str, Any]", cast("Any", space).spaces)
        return {name: part.shape or () for name, part in parts.items()}
    return {"": space.shape or ()} if isinstance(space, spaces.Box) else {}


def _sensors_of_model(
    model: Any, sensors: Sequence[str] | None, asked: Mapping[str, Any]
) -> tuple[str, ...] | None:
    """The sensors that a model was trained on.

    Raises:
        AnimalcatError: What the session shows is nothing that it was trained on.
    """
    shapes = _shapes(model)
    spec: ObservationSpec = asked.get("observation_spec") or ObservationSpec()
    there = choose_sensors(spec)
    if not shapes:
        return tuple(sensors) if sensors is not None else None
    shown = {name: cast("spaces.Box", observation_space(spec, (name,))).shape for name in there}
    wanted = tuple(sensors) if sensors is not None else tuple(shapes)
    if sensors is None and "" in shapes:
        wanted = tuple(name for name in there if _alike(shown[name], shapes[""]))[:1]
    if sensors is None and "" in shapes and not wanted:
        wanted = ("",)
    trained = shapes if "" not in shapes else dict.fromkeys(wanted, shapes[""])
    if wanted and all(
        name in trained and _alike(shown.get(name), trained[name]) for name in wanted
    ):
        return wanted
    raise AnimalcatError(
        f"the model was trained on {_in_words(shapes)}, and the session shows {_in_words(shown)}: "
        "give the observation_spec of its training (or camera=, decision_period=) and its sensors=",
        "OBSERVATION_MISMATCH",
    )


def _alike(shown: tuple[int, ...] | None, trained: tuple[int, ...]) -> bool:
    """Whether shapes are the same; images may have their channels first."""
    return shown == trained or (
        shown is not None and len(shown) == 3 and (shown[2], *shown[:2]) == trained
    )


def _in_words(shapes: Mapping[str, tuple[int, ...]]) -> str:
    told = [f"{name or 'an array'} {'x'.join(map(str, shape))}" for name, shape in shapes.items()]
    return ", ".join(told)
