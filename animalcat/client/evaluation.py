"""The agent's side of an evaluation: the stream in which the service asks and the agent acts."""

from __future__ import annotations

import asyncio
import traceback
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from inspect import isawaitable, iscoroutinefunction
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast

import grpc

from animalcat.client.stream import EvaluationStream, Welcome
from animalcat.envs.agents.base import Agent, EpisodeInfo
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.agents.objects import fingerprint_of, note_played
from animalcat.envs.agents.watching import Watch
from animalcat.envs.answers import ActionError, Answer, ReadAnswer, read_answer
from animalcat.envs.types import Observation, ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.v1 import sessions_pb2, types_pb2
from animalcat.values import Session
from animalcat.wire.codec import word

NO_ACTION: Final = "ACTION_OUT_OF_RANGE"
"""Code of the error where an agent's answer is no action."""
FAILURE_SECONDS: Final = 10.0
"""How long the service may take to store that an agent's code failed."""
MAX_FAILURE: Final = 800
"""Most characters of an error's own text that are sent."""
_OURS: Final = Path(__file__).parents[1]
"""Folder of animalcat; what links in it lead to is imported by a path in it, too."""


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    """An episode as its agent knows it.

    Attributes:
        episode: Number within the session.
        episode_return: Sum of rewards.
        steps: Decisions taken.
        truncated: Whether time ran out.
        fault: Whether the backend failed, so that the episode does not count.
        cause: "out_of_time" or "out_of_tokens" where the agent spent more than it may, so that the
            episode is a failure; else empty.
    """

    episode: int
    episode_return: float
    steps: int
    truncated: bool
    fault: bool
    cause: str = ""


@dataclass(frozen=True, slots=True)
class EvaluationSummary:
    """How an evaluation went.

    Attributes:
        session: Resource name.
        state: "finished", "cancelled" or "failed".
        counted: Episodes of the session that counted, also those before this call.
        episodes: What this call played, in order of ending.
    """

    session: str
    state: str
    counted: int
    episodes: tuple[PlayedEpisode, ...]


class AsyncAgent(Protocol):
    """An agent whose methods are coroutines, for example because it asks a model over a network.

        class Asking:
            async def reset(self, info): ...
            async def act(self, observation): return await my_model.choose(observation.rays)

    `Client.evaluate` and `AsyncClient.evaluate` take it like any other agent.
    """

    async def reset(self, info: EpisodeInfo) -> None:
        """Prepare for an episode; all randomness of the episode derives from `info.seed`."""
        ...

    async def act(self, observation: Observation) -> Answer:
        """Choose 3 x move + turn (0 to 8), or (move, turn), or `Actions` to take in order."""
        ...


AnyAgent: TypeAlias = Agent | AsyncAgent | Callable[[], Agent] | Callable[[], AsyncAgent]
"""An agent, or what makes one, such as its class."""


async def evaluate_session(
    channel: grpc.aio.Channel,
    session: Session,
    agent: AnyAgent,
    *,
    name: str | None,
    observation_spec: ObservationSpec | None,
    on_episode: Callable[[PlayedEpisode], None] | None,
    in_thread: bool,
    fingerprint: AgentFingerprint | Watch | None,
    same_agent: bool,
) -> EvaluationSummary:
    """Let an agent play a session to its end, over a stream for each of its slots.

    Args:
        channel: To the server.
        session: The session.
        agent: The agent, or what makes one.
        name: Name of the agent; None: the one that the session is for.
        observation_spec: What the agent needs to see; None: whatever the session shows.
        on_episode: Called with every episode that has ended.
        in_thread: Whether the agent of a single slot runs in a thread too.
        fingerprint: What identifies the agent, or what watches it until its first `reset` is over
            and then knows that; None: it is looked at.
        same_agent: Whether to declare that this is the session's agent even if its fingerprint
            differs.

    Raises:
        AnimalcatError: The service reports an error; the agent's answer is no action.
        Exception: Whatever the agent's code raises. If the token is an operator's, the session
            then waits until a person says what the open episode counts as; otherwise that episode
            is void.
    """
    seats = max(1, session.spec.slots or 1) if _makes_agents(agent) else 1
    first = [
        _make_agent(agent) for _ in range(seats)
    ]  # before anything is begun that could be lost
    played: list[PlayedEpisode] = []
    given = fingerprint or fingerprint_of(agent)

    def tell(episode: PlayedEpisode) -> None:
        played.append(episode)
        if on_episode is not None:
            on_episode(episode)

    async def sit(player: Agent | AsyncAgent) -> EvaluationSummary:
        known = given
        if isinstance(known, Watch) and known.settled is not None:
            known = known.settled  # it has come back
        watch = known if isinstance(known, Watch) else None
        told = known.fingerprint() if isinstance(known, Watch) else known
        stream = EvaluationStream(
            channel,
            uuid.uuid4().hex,
            told,
            follows=watch is not None,
            same_agent=same_agent,
            returns=True,
        )
        code = AgentCode()
        try:
            welcome = await stream.open(
                session.name, session.spec.agent if name is None else name, observation_spec
            )
            return await _answer_stream(
                stream,
                welcome,
                (agent, player),
                tell,
                code,
                watch,
                in_thread=in_thread or seats > 1,
            )
        finally:
            if code.failure:
                await stream.leave(FAILURE_SECONDS, failure=code.failure)
            else:  # whatever else ends it is no doing of the agent's
                await stream.leave(dismissed=True)

    sitting = [asyncio.ensure_future(sit(player)) for player in first]
    try:
        last = (await asyncio.gather(*sitting))[-1]
    finally:
        for task in sitting:
            task.cancel()
        await asyncio.gather(*sitting, return_exceptions=True)
        note_played(agent)
    return replace(last, episodes=tuple(played))


async def _answer_stream(
    stream: EvaluationStream,
    welcome: Welcome,
    agent: tuple[AnyAgent, Agent | AsyncAgent],
    on_episode: Callable[[PlayedEpisode], None],
    code: AgentCode,
    watch: Watch | None,
    *,
    in_thread: bool,
) -> EvaluationSummary:
    """Answer what a stream asks until the session is over.

    Args:
        stream: After its welcome.
        welcome: What it said.
        agent: The agent, or what makes one, and the agent of the first slot.
        on_episode: Called with every episode that has ended.
        code: Is to know where the agent's code fails.
        watch: Sees what the agent opens until its first `reset` is over; None: nobody asks.
        in_thread: The agent thinks in a thread, so that the event loop goes on meanwhile.
    """

    async def call_agent(call: Callable[[Any], Any], argument: Any) -> Any:
        if in_thread and not iscoroutinefunction(call):
            answer = await asyncio.to_thread(_call_agent, call, argument)
        else:
            answer = _call_agent(call, argument)
        return await answer if isawaitable(answer) else answer

    async def read_slot(slot: int, seen: Observation) -> ReadAnswer:
        with code.running():
            try:
                return read_answer(await call_agent(agents[slot].act, seen))
            except ActionError as error:
                raise AnimalcatError(str(error), NO_ACTION) from error

    with code.running():
        agents = _one_a_slot(*agent, welcome.slots)
    returns = [0.0] * welcome.slots
    played: list[PlayedEpisode] = []
    while True:
        frame = await stream.receive()
        match frame.WhichOneof("frame"):
            case "ask":
                ask = frame.ask
                returns[ask.slot] += ask.reward
                seen = stream.observation(ask.observation)
                actions, notes = await read_slot(ask.slot, seen)
                await stream.act(ask.slot, ask.step, actions, notes)
            case "episode_start":
                start = frame.episode_start
                returns[start.slot] = 0.0
                with watch or nullcontext(), code.running():
                    await call_agent(agents[start.slot].reset, stream.episode_info(start))
                if watch is not None:
                    whole = watch.fingerprint()
                    watch.settled = watch.settled or whole
                    stream.identify(whole)
                    watch = None
                seen = stream.observation(start.observation)
                actions, notes = await read_slot(start.slot, seen)
                await stream.act(start.slot, 0, actions, notes)
            case "episode_end":
                end = frame.episode_end
                total = returns[end.slot] + end.reward
                cause = word(types_pb2.Cause, end.cause)
                episode = PlayedEpisode(
                    end.episode, total, end.step, end.truncated, end.fault, cause
                )
                played.append(episode)
                on_episode(episode)
            case "session_end":
                over = frame.session_end
                state = word(sessions_pb2.SessionState, over.state)
                return EvaluationSummary(over.session, state, over.episodes, tuple(played))
            case other:
                raise AnimalcatError(f"the server sent {other}, which this client does not know")


def _makes_agents(agent: AnyAgent) -> bool:
    """Whether it is what makes agents, such as a class, and no agent itself."""
    return isinstance(agent, type) or not hasattr(agent, "act")


def _make_agent(agent: AnyAgent) -> Agent | AsyncAgent:
    """The agent itself, or one that was made."""
    if _makes_agents(agent):
        return cast("Callable[[], Agent | AsyncAgent]", agent)()
    return cast("Agent | AsyncAgent", agent)


def _one_a_slot(agent: AnyAgent, first: Agent | AsyncAgent, slots: int) -> list[Agent | AsyncAgent]:
    if slots != 1 and not _makes_agents(agent):
        raise AnimalcatError(
            f"the session plays {slots} episodes at once, and an agent remembers one: "
            "pass what makes an agent, such as its class"
        )
    return [first, *(_make_agent(agent) for _ in range(slots - 1))]


def _call_agent(call: Callable[[Any], Any], argument: Any) -> Any:
    """What a method of the agent gives; what a thread cannot raise becomes an error that it can."""
    try:
        return call(argument)
    except (StopIteration, SystemExit) as error:
        raise RuntimeError(f"the agent's code raised {error!r}") from error


class AgentCode:
    """Notes how the code of an agent failed.

    Attributes:
        failure: How it failed, in words; empty: it did not.
    """

    def __init__(self) -> None:
        self.failure = ""

    @contextmanager
    def running(self) -> Generator[None]:
        """Note what is raised while the block lasts; being interrupted is no failure."""
        try:
            yield
        except Exception as error:
            self.failure = failure_words(error)
            raise
        except SystemExit as error:  # of a coroutine
            self.failure = failure_words(error)
            raise RuntimeError(f"the agent's code raised {error!r}") from error


def failure_words(error: BaseException) -> str:
    """An error of an agent's code in a line, with the place outside animalcat where it arose."""
    text = str(error) if isinstance(error, AnimalcatError) else f"{type(error).__name__}: {error}"
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    frames = traceback.extract_tb(root.__traceback__)
    theirs = [frame for frame in frames if not Path(frame.filename).is_relative_to(_OURS)]
    place = ""
    if theirs:
        last = theirs[-1]
        place = f" ({Path(last.filename).name}, line {last.lineno}, in {last.name})"
    return f"{text[:MAX_FAILURE]}{place}"
