"""The agent's side of an evaluation: the stream in which the service asks and the agent acts."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from inspect import isawaitable, iscoroutinefunction
from operator import index
from typing import Any, Final, Protocol, TypeAlias, cast

import grpc

from animalcat.client.stream import EvaluationStream, Welcome
from animalcat.client.values import Session
from animalcat.envs.agents.base import Agent, Answer, EpisodeInfo, Note, Noted
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.agents.watching import Watch, in_memory
from animalcat.envs.types import ACTIONS, Observation, ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.words import CAUSES, STATES, word

MAX_ACTIONS: Final = 100
"""Most actions in one answer."""


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    """An episode as its agent knows it.

    Attributes:
        episode: Number within the session.
        episode_return: Sum of rewards.
        steps: Decisions taken.
        truncated: Time ran out.
        fault: The backend failed; the episode does not count.
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
    """An agent whose thinking is a coroutine, as where it asks a model over the network.

        class Asking:
            async def reset(self, info): ...
            async def act(self, observation): return await my_model.choose(observation.rays)

    `Client.evaluate` and `AsyncClient.evaluate` take it like any other agent.
    """

    async def reset(self, info: EpisodeInfo) -> None:
        """Prepare for an episode; all randomness of the episode derives from `info.seed`."""
        ...

    async def act(self, observation: Observation) -> Answer:
        """Choose one action (3 x move + turn, 0 to 8), or several to be taken one by one."""
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
        session: Which.
        agent: The agent, or what makes one.
        name: Of the agent; None: the one that the session is for.
        observation_spec: What the agent needs to see; None: whatever the session shows.
        on_episode: Is told of every episode that ended.
        in_thread: The agent of a single slot thinks in a thread too.
        fingerprint: What the agent is; or what watches it until its first `reset` is over; None:
            unknown.
        same_agent: Whether it is the agent that the session has, whatever its fingerprint.

    Raises:
        AnimalcatError: The service reports an error; the agent's answer is no action.
        Exception: Whatever the agent raises; its open episode is voided.
    """
    seats = max(1, session.spec.slots or 1) if _makes_agents(agent) else 1
    played: list[PlayedEpisode] = []

    def tell(episode: PlayedEpisode) -> None:
        played.append(episode)
        if on_episode is not None:
            on_episode(episode)

    async def sit() -> EvaluationSummary:
        watch = fingerprint if isinstance(fingerprint, Watch) else None
        told = fingerprint.fingerprint() if isinstance(fingerprint, Watch) else fingerprint
        stream = EvaluationStream(
            channel,
            uuid.uuid4().hex,
            told or in_memory(agent),
            follows=watch is not None,
            same_agent=same_agent,
            returns=True,
        )
        try:
            welcome = await stream.open(
                session.name, session.spec.agent if name is None else name, observation_spec
            )
            return await _answer_stream(
                stream, welcome, agent, tell, watch, in_thread=in_thread or seats > 1
            )
        finally:
            await stream.leave()

    sitting = [asyncio.ensure_future(sit()) for _ in range(seats)]
    try:
        last = (await asyncio.gather(*sitting))[-1]
    finally:
        for one in sitting:
            one.cancel()
        await asyncio.gather(*sitting, return_exceptions=True)
    return replace(last, episodes=tuple(played))


async def _answer_stream(
    stream: EvaluationStream,
    welcome: Welcome,
    agent: AnyAgent,
    on_episode: Callable[[PlayedEpisode], None],
    watch: Watch | None,
    *,
    in_thread: bool,
) -> EvaluationSummary:
    """Answer what a stream asks until the session is over.

    Args:
        stream: After its welcome.
        welcome: What it said.
        agent: The agent; for a stream of several slots what makes one, such as its class.
        on_episode: Is told of every episode that ended.
        watch: Sees what the agent opens until its first `reset` is over; None: nobody asks.
        in_thread: The agent thinks in a thread, so that the event loop goes on meanwhile.
    """

    async def asked(call: Callable[[Any], Any], argument: Any) -> Any:
        if in_thread and not iscoroutinefunction(call):
            answer = await asyncio.to_thread(call, argument)
        else:
            answer = call(argument)
        return await answer if isawaitable(answer) else answer

    agents = _one_a_slot(agent, welcome.slots)
    returns = [0.0] * welcome.slots
    played: list[PlayedEpisode] = []
    while True:
        frame = await stream.receive()
        match frame.WhichOneof("frame"):
            case "ask":
                ask = frame.ask
                returns[ask.slot] += ask.reward
                seen = stream.observation(ask.observation)
                actions, notes = parts(await asked(agents[ask.slot].act, seen))
                await stream.act(ask.slot, ask.step, actions, notes)
            case "episode_start":
                start = frame.episode_start
                returns[start.slot] = 0.0
                with watch or nullcontext():
                    await asked(agents[start.slot].reset, stream.episode_info(start))
                if watch is not None:
                    stream.identify(watch.fingerprint())
                    watch = None
                seen = stream.observation(start.observation)
                actions, notes = parts(await asked(agents[start.slot].act, seen))
                await stream.act(start.slot, 0, actions, notes)
            case "episode_end":
                end = frame.episode_end
                total = returns[end.slot] + end.reward
                cause = word(end.cause, CAUSES)
                episode = PlayedEpisode(
                    end.episode, total, end.step, end.truncated, end.fault, cause
                )
                played.append(episode)
                on_episode(episode)
            case "session_end":
                over = frame.session_end
                state = word(over.state, STATES)
                return EvaluationSummary(over.session, state, over.episodes, tuple(played))
            case other:
                raise AnimalcatError(f"the server sent {other}, which this client does not know")


def parts(answer: Answer) -> tuple[bytes, tuple[Note, ...]]:
    """The actions of an agent's answer as the wire has them, and the notes on it.

    Raises:
        AnimalcatError: See `action_bytes`.
    """
    if isinstance(answer, Noted):
        return action_bytes(answer.actions), (answer.note,)
    return action_bytes(answer), ()


def action_bytes(answer: int | Sequence[int]) -> bytes:
    """An agent's actions as the wire has them.

    Raises:
        AnimalcatError: It is neither a number from 0 to 8 nor 1 to 100 of them.
    """
    try:
        actions = bytes(map(index, _several(answer)))
    except (TypeError, ValueError):
        actions = b""
    if not 1 <= len(actions) <= MAX_ACTIONS or max(actions) >= ACTIONS:
        raise AnimalcatError(
            f"the agent answered {answer!r}: give one number from 0 to {ACTIONS - 1}, "
            f"or a list of 1 to {MAX_ACTIONS} of them",
            "ACTION_OUT_OF_RANGE",
        )
    return actions


def _several(answer: Any) -> Iterable[Any]:
    """One integer, of Python, NumPy or a tensor library, as a list; anything else as it is."""
    try:
        return [index(answer)]
    except TypeError:
        return answer


def _makes_agents(agent: AnyAgent) -> bool:
    """Whether it is what makes agents, such as a class, and no agent itself."""
    return isinstance(agent, type) or not hasattr(agent, "act")


def _one_a_slot(agent: AnyAgent, slots: int) -> list[Agent | AsyncAgent]:
    if _makes_agents(agent):
        make = cast("Callable[[], Agent | AsyncAgent]", agent)
        return [make() for _ in range(slots)]
    if slots != 1:
        raise AnimalcatError(
            f"the session plays {slots} episodes at once, and an agent remembers one: "
            "pass what makes an agent, such as its class"
        )
    return [cast("Agent | AsyncAgent", agent)]
