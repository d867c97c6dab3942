"""The agent's side of an evaluation: the stream in which the service asks and the agent acts."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable, iscoroutinefunction
from operator import index
from typing import Any, Final, Protocol, TypeAlias, cast

import grpc

from animalcat.client.direct import DirectError, DirectPlay
from animalcat.client.values import Session
from animalcat.envs.agents.base import Agent, EpisodeInfo
from animalcat.envs.types import ACTIONS, Observation, ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.protocol import PROTOCOL, server_refusal, version
from animalcat.v1 import gateway_pb2, gateway_pb2_grpc, types_pb2
from animalcat.wire import observation_from_proto, spec_from_proto, spec_to_proto
from animalcat.words import STATES, word

MAX_ACTIONS: Final = 100
"""Most actions in one answer."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """What the service says before the first episode.

    Attributes:
        session: Resource name.
        observation_spec: What observations hold.
        max_episodes: Most episodes of the session.
        episodes_done: Episodes that are over already.
        slots: Episodes that play at once.
        action_timeout_seconds: How long one action may take.
    """

    session: str
    observation_spec: ObservationSpec
    max_episodes: int
    episodes_done: int
    slots: int
    action_timeout_seconds: float


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    """An episode as its agent knows it.

    Attributes:
        episode: Number within the session.
        episode_return: Sum of rewards.
        steps: Decisions taken.
        truncated: Time ran out.
        fault: The backend failed; the episode does not count.
    """

    episode: int
    episode_return: float
    steps: int
    truncated: bool
    fault: bool


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

    async def act(self, observation: Observation) -> int | Sequence[int]:
        """Choose one action (3 x move + turn, 0 to 8), or several to be taken one by one."""
        ...


AnyAgent: TypeAlias = Agent | AsyncAgent | Callable[[], Agent] | Callable[[], AsyncAgent]
"""An agent, or what makes one, such as its class."""


class EvaluationStream:
    """The open stream of one agent process."""

    def __init__(self, channel: grpc.aio.Channel, process: str) -> None:
        """Prepare a stream.

        Args:
            channel: To the server.
            process: Unique to this process of the agent; a stream with the same one goes on where
                the last stream was cut.
        """
        self._stub = gateway_pb2_grpc.AgentGatewayStub(channel)
        self._process = process
        self._offer: gateway_pb2.Direct | None = None
        self._direct: DirectPlay | None = None
        self._takes_offers = True
        self._answered: gateway_pb2.EvaluateRequest | None = None

    async def open(self, session: str, agent: str, spec: ObservationSpec | None) -> Welcome:
        """Say hello.

        Args:
            session: Resource name; empty where exactly one session waits.
            agent: Name of the agent.
            spec: What the agent needs to see; None for whatever the session gives.

        Raises:
            AnimalcatError: The service refused.
        """
        self._call = self._stub.Evaluate()
        self._read_on()
        hello = gateway_pb2.Hello(
            session=session,
            agent=agent,
            instance=self._process,
            client_version=version(),
            protocol=PROTOCOL,
            observation_spec=spec_to_proto(spec) if spec else None,
        )
        await self._write(gateway_pb2.EvaluateRequest(hello=hello))
        frame = await self.receive()
        if frame.HasField("session_end"):
            over = frame.session_end
            raise AnimalcatError(
                f"{over.session} is {word(over.state, STATES)} already", "SESSION_OVER"
            )
        if not frame.HasField("welcome"):
            raise AnimalcatError(f"the server answered {frame.WhichOneof('frame')} to hello")
        answer = frame.welcome
        if wrong := server_refusal(answer.protocol, answer.server_version):
            raise AnimalcatError(wrong, "CLIENT_REFUSED")
        self.spec = spec_from_proto(answer.observation_spec)
        return Welcome(
            session=answer.session,
            observation_spec=self.spec,
            max_episodes=answer.max_episodes,
            episodes_done=answer.episodes_done,
            slots=answer.slots,
            action_timeout_seconds=answer.action_timeout_seconds,
        )

    async def receive(self) -> gateway_pb2.EvaluateResponse:
        """The next frame, from the service or from the worker that plays an episode directly.

        Raises:
            AnimalcatError: The service reports an error, or closed the stream.
        """
        while True:
            frame = await self._next()
            if frame.HasField("error"):
                raise AnimalcatError(frame.error.message, frame.error.code)
            if frame.HasField("episode_start"):
                wanted = self._takes_offers and frame.episode_start.HasField("direct")
                self._offer = frame.episode_start.direct if wanted else None
                self._answered = None
            elif frame.HasField("ask") and self._answered is not None:
                answer, self._answered = self._answered, None
                if answer.action.step == frame.ask.step:  # it was lost on a broken connection
                    await self._write(answer)
                    continue
            return frame

    async def act(self, slot: int, step: int, actions: bytes) -> None:
        """Answer an observation.

        Args:
            slot: Slot of the observation.
            step: Decisions taken before these.
            actions: One byte an action.
        """
        taken = gateway_pb2.ActionList(actions=actions)
        action = gateway_pb2.Action(slot=slot, step=step, list=taken)
        frame = gateway_pb2.EvaluateRequest(action=action)
        if self._offer is not None:
            offer, self._offer = self._offer, None
            try:
                self._direct = await DirectPlay.open(offer)
            except DirectError:  # ports are closed between here and there: the service relays
                self._takes_offers = False
        if self._direct is None:
            await self._write(frame)
        else:
            self._answered = frame
            self._direct.send(frame)

    def observation(self, message: types_pb2.Observation) -> Observation:
        """An observation of this stream."""
        return observation_from_proto(message, self.spec)

    def episode_info(self, start: gateway_pb2.EpisodeStart) -> EpisodeInfo:
        """What the agent may know of an episode; its time budget is in decisions."""
        return EpisodeInfo(
            episode=start.episode,
            seed=start.agent_seed,
            observation_spec=self.spec,
            time_budget_steps=-(-start.time_budget_steps // self.spec.decision_period),
        )

    async def withdraw(self, seconds: float) -> None:
        """Leave between episodes: one that was sent meanwhile is held against nobody.

        Args:
            seconds: How long the service may take to end the stream.
        """
        gone = (TimeoutError, AnimalcatError, asyncio.InvalidStateError, grpc.aio.AioRpcError)
        with contextlib.suppress(*gone):
            async with asyncio.timeout(seconds):
                withdraw = gateway_pb2.Withdraw()
                await self._write(gateway_pb2.EvaluateRequest(withdraw=withdraw))
                while True:  # until the service closes the stream
                    await self.receive()

    def cancel(self) -> None:
        """Leave; does nothing to a stream that is over."""
        if self._direct is not None:
            self._direct.close()
        self._call.cancel()

    async def _next(self) -> gateway_pb2.EvaluateResponse:
        if self._direct is not None:
            if (frame := await self._direct.receive()) is not None:
                return frame
            self._direct = None  # what comes next comes over the stream
        # gRPC ends a call whose read is cancelled, and who is interrupted may want to withdraw.
        frame = await asyncio.shield(self._incoming)
        if not isinstance(frame, gateway_pb2.EvaluateResponse):
            raise AnimalcatError("the server closed the stream before the session's end")
        if not frame.HasField("error"):
            self._read_on()
        return frame

    def _read_on(self) -> None:
        """Read ahead: once a write has failed, gRPC gives nothing but what was being read."""
        self._incoming = asyncio.ensure_future(self._call.read())
        self._incoming.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _write(self, frame: gateway_pb2.EvaluateRequest) -> None:
        try:
            await self._call.write(frame)
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
            # The service has closed the stream; what it said last is why.
            await self.receive()
            raise


async def evaluate_session(
    channel: grpc.aio.Channel,
    session: Session,
    agent: AnyAgent,
    *,
    name: str | None,
    observation_spec: ObservationSpec | None,
    on_episode: Callable[[PlayedEpisode], None] | None,
    in_thread: bool,
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
        stream = EvaluationStream(channel, uuid.uuid4().hex)
        try:
            welcome = await stream.open(
                session.name, session.spec.agent if name is None else name, observation_spec
            )
            return await _answer_stream(
                stream, welcome, agent, tell, in_thread=in_thread or seats > 1
            )
        finally:
            stream.cancel()

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
    *,
    in_thread: bool,
) -> EvaluationSummary:
    """Answer what a stream asks until the session is over.

    Args:
        stream: After its welcome.
        welcome: What it said.
        agent: The agent; for a stream of several slots what makes one, such as its class.
        on_episode: Is told of every episode that ended.
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
                answer = await asked(agents[ask.slot].act, seen)
                await stream.act(ask.slot, ask.step, action_bytes(answer))
            case "episode_start":
                start = frame.episode_start
                returns[start.slot] = 0.0
                await asked(agents[start.slot].reset, stream.episode_info(start))
                seen = stream.observation(start.observation)
                answer = await asked(agents[start.slot].act, seen)
                await stream.act(start.slot, 0, action_bytes(answer))
            case "episode_end":
                end = frame.episode_end
                total = returns[end.slot] + end.reward
                episode = PlayedEpisode(end.episode, total, end.step, end.truncated, end.fault)
                played.append(episode)
                on_episode(episode)
            case "session_end":
                over = frame.session_end
                state = word(over.state, STATES)
                return EvaluationSummary(over.session, state, over.episodes, tuple(played))
            case other:
                raise AnimalcatError(f"the server sent {other}, which this client does not know")


def action_bytes(answer: int | Sequence[int]) -> bytes:
    """An agent's answer as the wire has it.

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
