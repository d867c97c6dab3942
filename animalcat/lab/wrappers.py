"""What stands between an arena and a policy as it trains stands there too as it is measured.

The wrappers of the training's environment are copied, and within the copy a session stands for the
arena. So whatever they do to observations and actions is done by their own code, and nothing of the
training is touched. That code asks for steps, and so does a session; hence it has a thread.
"""

from __future__ import annotations

import copy
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, cast

import gymnasium
import numpy as np

from animalcat.envs.agents.objects import digest_content
from animalcat.envs.spaces import GymObservation
from animalcat.envs.types import ObservationSpec
from animalcat.errors import AnimalcatError

REMEDY: Final = (
    "hand over what it was trained in as env=: an environment of this process in the same wrappers "
    "with their statistics, such as VecNormalize.load('statistics.pkl', DummyVecEnv([make])); or "
    "gymnasium.make('animalcat/Arena-v0', ...) alone where there were none"
)
"""What to do where nobody can say what a model saw."""
_IDLE: Final = frozenset(
    {
        *("Monitor", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics"),
        *("RecordVideo", "RenderCollection", "HumanRendering", "TimeLimit", "Autoreset"),
        *("NormalizeReward", "TransformReward", "VecMonitor", "VecCheckNan", "VecVideoRecorder"),
    }
)
"""Wrappers of Gymnasium and Stable-Baselines3 that change neither what is seen nor what is done."""
_LINKS: Final = frozenset({"env", "venv", "class_attributes", "_cached_spec"})
"""Attributes of wrappers that are no content of theirs."""


class Wrappers:
    """The wrappers of an environment, around a session.

    Attributes:
        spec: What the arena shows.
        sensors: What of it the wrappers are given.
        arena_space: The space of that.
        space: The space of what the policy is given.
        names: The wrappers that change something, outermost first.
        digest: SHA-256 of their code and content; None if that cannot be read.
    """

    def __init__(self, env: Any) -> None:
        """Copy the wrappers of an environment of Gymnasium, or of several of Stable-Baselines3.

        Raises:
            AnimalcatError: It is no environment of ours, or its wrappers cannot be copied.
        """
        many, inner, one, base = _walk(env)
        told = _ArenaTold.of(base)
        if told is None or isinstance(env, gymnasium.vector.VectorEnv):
            raise AnimalcatError(
                "env is one animalcat/Arena-v0, or several as Stable-Baselines3 has them, with or "
                f"without wrappers; this is {env!r:.200}",
                "INVALID_REQUEST",
            )
        self.spec, self.sensors, self.arena_space, actions = told
        self.space = env.observation_space
        if many and type(many[0]).__name__ == "VecTransposeImage":
            del many[0]  # a model turns pictures by itself
        self._session = _Session(self.arena_space, actions)
        copies: list[Any] = []
        chain: Any = self._session
        for wrapper in reversed(one):
            chain = _copy_around(wrapper, "env", chain, copies)
        if any(not _is_idle(wrapper) for wrapper in many):
            chain = _Many(chain, env.num_envs, inner.observation_space)
        for wrapper in reversed(many):
            chain = _copy_around(wrapper, "venv", chain, copies)
        self._chain, self._thread = chain, cast("threading.Thread | None", None)
        self.names = tuple(made.__class__.__name__ for made in reversed(copies))
        self._session.seen = _map_arrays(np.zeros_like, self.arena_space.sample())
        _reset(chain)  # so that they hold nothing of an episode of the training
        self.digest = digest_content([(made.__class__, _content(made)) for made in copies])
        weakref.finalize(self, _Session.end, self._session)

    def begin(self, seed: int, decide: Callable[[Any], Any]) -> None:
        """Begin an episode of a policy."""
        session = self._session
        session.end()
        if self._thread is not None:
            self._thread.join()
        session.seed, session.asked, session.answered = seed, SimpleQueue(), SimpleQueue()
        self._thread = threading.Thread(
            target=_play, args=(session, self._chain, decide), daemon=True
        )
        self._thread.start()

    def act(self, seen: GymObservation) -> Any:
        """What the policy, behind the wrappers, does on an observation of the arena."""
        self._session.asked.put((seen,))
        answer = self._session.answered.get()
        if isinstance(answer, _Failure):
            raise answer.error
        return answer


def is_ours(env: Any) -> bool:
    """Whether an environment is of arenas, with or without wrappers."""
    return _ArenaTold.of(_walk(env)[3]) is not None


class _ArenaTold(NamedTuple):
    """What an arena says of itself, also one in another process."""

    spec: ObservationSpec
    sensors: tuple[str, ...]
    space: gymnasium.Space[Any]
    actions: gymnasium.Space[Any]

    @classmethod
    def of(cls, base: Any) -> _ArenaTold | None:
        """What it says; None if it is none of ours.

        Raises:
            AnimalcatError: It is in another process, and in wrappers there.
        """
        names = ("observation_spec", "sensors", "observation_space", "action_space")
        apart = _has(base, "remotes")
        try:
            if apart:
                told = [base.get_attr(name, indices=[0])[0] for name in names]
            else:
                told = [getattr(base, name) for name in names]
        except Exception:  # noqa: BLE001  whatever an environment of somebody else raises
            return None
        if not isinstance(told[0], ObservationSpec):
            return None
        if apart:
            around = str(base.env_method("__str__", indices=[0])[0]).partition("ArenaEnv")[0]
            if there := [name for name in re.findall(r"\w+", around) if name not in _IDLE]:
                raise AnimalcatError(
                    f"{', '.join(there)} changes what the model sees or does, in processes of its "
                    f"own, from which it cannot be taken along: {REMEDY}",
                    "OBSERVATION_MISMATCH",
                )
        return cls(*told)


class _Failure(NamedTuple):
    """What a policy or a wrapper raised."""

    error: BaseException


class _OverError(BaseException):
    """The episode is over, and wrappers are to let it through."""


class _Session(gymnasium.Env[Any, Any]):
    """Stands for the arena within the wrappers: what it is asked for comes from the session.

    It gives no rewards, which an agent is not told, and no end, since it is not asked after one.
    """

    def __init__(self, space: Any, actions: Any) -> None:
        self.observation_space, self.action_space = space, actions
        self.asked: SimpleQueue[tuple[GymObservation] | None] = SimpleQueue()
        self.answered: SimpleQueue[Any] = SimpleQueue()
        self.seen: Any = None
        self.seed = 0

    def take(self) -> Any:
        """Wait for what the arena shows next."""
        if (asked := self.asked.get()) is None:
            raise _OverError
        self.seen = asked[0]
        return self.seen

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=self.seed)
        return self.seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.answered.put(action)
        return self.take(), 0.0, False, False, {}

    def end(self) -> None:
        """End the episode's thread, if there is one."""
        self.asked.put(None)


class _Many:
    """Stands for the several environments of a training, which all do the same here."""

    def __init__(self, env: Any, number: int, space: Any) -> None:
        self.num_envs = number
        self.observation_space, self.action_space = space, env.action_space
        self._env = env
        self._actions: Any = None

    def reset(self) -> Any:
        return self._repeated(self._env.reset()[0])

    def step_async(self, actions: Any) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        seen = self._repeated(self._env.step(self._actions[0])[0])
        number = self.num_envs
        return seen, np.zeros(number), np.zeros(number, bool), [{} for _ in range(number)]

    def _repeated(self, seen: Any) -> Any:
        return _map_arrays(lambda part: np.stack([part] * self.num_envs), seen)


def _play(session: _Session, chain: Any, decide: Callable[[Any], Any]) -> None:
    """Play an episode, until the next one begins."""
    answered = session.answered
    try:
        session.take()
        seen = _reset(chain)
        while True:
            action = decide(seen)
            if hasattr(chain, "step_async"):
                chain.step_async(np.stack([action] * chain.num_envs))
                seen = _map_arrays(lambda part: part[0], chain.step_wait()[0])
            else:
                seen = chain.step(action)[0]
    except _OverError:
        return
    except BaseException as error:  # noqa: BLE001  it is raised where the session is played
        answered.put(_Failure(error))


def _reset(chain: Any) -> Any:
    if hasattr(chain, "step_async"):
        return _map_arrays(lambda part: part[0], chain.reset())
    return chain.reset()[0]


def _map_arrays(change: Callable[[Any], Any], seen: Any) -> Any:
    """An observation whose arrays are changed."""
    if isinstance(seen, Mapping):
        return {name: change(part) for name, part in cast("Mapping[str, Any]", seen).items()}
    return change(seen)


def _copy_around(wrapper: Any, link: str, inner: Any, copies: list[Any]) -> Any:
    """A copy of a wrapper around something else, which is noted; that itself where it is idle.

    Raises:
        AnimalcatError: It cannot be copied.
    """
    if _is_idle(wrapper):
        return inner
    kind: type[Any] = wrapper.__class__
    made: Any = object.__new__(kind)
    known = {id(_held(wrapper)[link]): inner}
    try:
        for name, value in _held(wrapper).items():
            _held(made)[name] = value if name in _LINKS else copy.deepcopy(value, known)
    except Exception as error:
        raise AnimalcatError(
            f"the wrapper {type(wrapper).__name__} cannot be copied ({error}): {REMEDY}",
            "OBSERVATION_MISMATCH",
        ) from error
    _held(made)[link] = inner
    for learning in ("training", "update_running_mean"):  # statistics stay as they are
        if learning in _held(made) or hasattr(kind, learning):
            setattr(made, learning, False)
    copies.append(made)
    return made


def _content(wrapper: Any) -> dict[str, Any]:
    held = sorted(_held(wrapper).items())  # those that were loaded hold the same in another order
    return {name: value for name, value in held if name not in _LINKS}


def _is_idle(wrapper: Any) -> bool:
    kind: type[Any] = wrapper.__class__
    package = kind.__module__.partition(".")[0]
    return kind.__name__ in _IDLE and package in ("gymnasium", "stable_baselines3")


def _walk(env: Any) -> tuple[list[Any], Any, list[Any], Any]:
    """Wrappers of several environments and these, wrappers of the first of them and that."""
    many, inner = _unwrap(env, "venv")
    one, base = _unwrap(_held(inner)["envs"][0] if _has(inner, "envs") else inner, "env")
    return many, inner, one, base


def _unwrap(env: Any, link: str) -> tuple[list[Any], Any]:
    """The wrappers of an environment, outermost first, and what is in them."""
    wrappers: list[Any] = []
    while _has(env, link):
        wrappers.append(env)
        env = _held(env)[link]
    return wrappers, env


def _has(thing: object, name: str) -> bool:
    return name in _held(thing)


def _held(thing: object) -> dict[str, Any]:
    """The attributes that are an object's own; whoever writes to them writes to it."""
    return getattr(thing, "__dict__", {})
