"""Arenas as a task of inspect_ai: a session that a model plays, one sample an attempt."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from weakref import WeakValueDictionary

import numpy as np
from anyio.to_thread import run_sync
from inspect_ai import SampleSource, Task, enqueue_sample
from inspect_ai.dataset import Sample
from inspect_ai.hooks import Hooks, TaskEnd, TaskStart, hooks
from inspect_ai.log import EvalSample, HeadlineMetric, transcript
from inspect_ai.model import ChatMessageUser, ContentText, get_model
from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    scorer,
    value_to_float,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver, use_tools
from inspect_ai.tool import Tool, ToolDef, ToolError, ToolParam, ToolParams
from inspect_ai.util import LimitExceededError

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.placement import place
from animalcat.client.remote_episodes import EpisodeOpening, RemoteEpisodes, SessionOver
from animalcat.doors.inspect.logs import KEY, TRIALS, inside, trials_of
from animalcat.doors.inspect.report import METRICS
from animalcat.doors.inspect.results import PROFILE
from animalcat.doors.inspect.session import NothingCountsError
from animalcat.doors.inspect.source import write_into
from animalcat.doors.speech import Conversation, Shown, Tongue, UnreadableError, prompt, read_call
from animalcat.doors.speech.reading import TOOLS
from animalcat.doors.speech.speaking import ABOUT, LIMIT, ModelAgent, content_of, data_url
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.answers import AnswerKind, Note, read_answer
from animalcat.envs.types import Observation
from animalcat.errors import AnimalcatError
from animalcat.lab.lab import Lab, connect
from animalcat.layouts.adaptive.plan import preset_options
from animalcat.service.host.private import server_for
from animalcat.values import Episode, EpisodeHeader, Outcome, Session
from animalcat.wire.protocol import version

TRIAL: Final = f"{KEY}_trial"
"""The key under which a sample's metadata says which attempt it is."""
INPUT: Final = "A trial in an arena."
"""The input of every sample; the model is told how to act before it sees the arena."""
_OVER: Final = "The trial is over."
FAILURES: Final = 2
"""So many samples, and one for each that plays at once, may fail in a row before the task ends."""
_BUDGETS: Final = ("message", "token", "turn")
"""Limits that are a model's own doing: the trial goes on without it, and counts."""
_sources: WeakValueDictionary[str, ArenaSource] = WeakValueDictionary()
_numbers: Final = count(1)


class Trial:
    """One attempt at an episode, which a sample plays.

    Attributes:
        opening: How it began.
        talk: The conversation about it.
        seen: What was observed last.
        over: Whether it is over.
        path: Where the agent was when it was asked for actions, x and z in metres.
    """

    def __init__(self, episodes: RemoteEpisodes, opening: EpisodeOpening, tongue: Tongue) -> None:
        """Begin, at the first observation."""
        self.opening = opening
        self.talk = Conversation(tongue, opening.info)
        self.seen = opening.observation
        self.over = False
        self._episodes = episodes
        self._notes: list[Note] = []
        self._said = ""
        self.path = [_place_of(self.seen)]
        self.talk.next(self.seen)

    async def play(self, agent: ModelAgent) -> None:
        """Let an agent play to the end.

        Raises:
            LimitExceededError: inspect_ai allows it no more. Where it has said all that it may, the
                trial has gone on without it.
        """
        await agent.reset(self.opening.info)
        try:
            while not self.over:
                answer = read_answer(await agent.act(self.seen))
                await self._act(answer.actions, answer.notes)
        except LimitExceededError as error:
            if error.type in _BUDGETS:
                await self.stand_still(LIMIT)
            raise

    async def do(self, name: str, arguments: Mapping[str, Any]) -> list[Any]:
        """Do what the call of a tool asks for, and return what the model is told.

        Raises:
            ToolError: The call cannot be read; it has cost time.
        """
        if self.over:
            return content_of(Shown(_OVER, None))
        kind, why = cast("AnswerKind", "read"), ""
        try:
            self.talk.hear([] if name == "look" else [read_call(name, arguments)])
        except UnreadableError as error:
            kind, why = "unparseable", str(error)
            self.talk.mishear(why)
        called = ", ".join(f"{key}={value}" for key, value in arguments.items())
        text = f"{name}({called})"[:1000]
        if kind == "read" and text == self._said:
            kind = "repeat"
        self._said = text
        self._notes.append(Note(text, answer=kind))
        await self._carry_out()
        if why:
            raise ToolError(why)
        return content_of(Shown(_OVER, None) if self.over else self.talk.show())

    async def stand_still(self, *notes: Note) -> None:
        """Let the trial go on to its end without its agent; the notes say why."""
        self.talk.end()
        self._notes += notes
        await self._carry_out()

    async def _carry_out(self) -> None:
        while not self.over and (actions := self.talk.next(self.seen)):
            notes, self._notes = self._notes, []
            await self._act(actions, notes)

    async def _act(self, actions: bytes, notes: Sequence[Note]) -> None:
        """Take actions in a thread, so that the loop serves other samples meanwhile."""
        for note in notes:
            self._episodes.note(note)
        result = await run_sync(self._episodes.act, actions)
        self.seen, self.over = result.observation, result.ended
        self.path.append(_place_of(self.seen))


class Place(NamedTuple):
    """Where a session is.

    Attributes:
        server: Host and port of its server; None for that of the data directory.
        data: The data directory; None for that of the settings.
    """

    server: str | None = None
    data: Path | None = None


class ArenaSource(SampleSource):
    """Gives a task the episodes of a session, as the service chooses them.

    The session's store is the truth: an attempt that is stored is a sample that asks no model.

    Attributes:
        key: Tells it from others in this process.
        tongue: How the model is told what it perceives.
        session: The session, once it is begun.
        profile: Its profile, once it is over.
        trials: Which arenas its attempts were, once it is over.
    """

    def __init__(self, spec: Mapping[str, Any], tongue: Tongue, at_once: int, place: Place) -> None:
        """Prepare it; the session begins with the task.

        Args:
            spec: What `Client.create_session` is given, but for the agent.
            tongue: How the model is told what it perceives, and how it answers.
            at_once: How many episodes play at once.
            place: Where the session is.
        """
        self.key = f"arena-{next(_numbers)}"
        self.tongue = tongue
        self.session: Session | None = None
        self.profile: dict[str, Any] | None = None
        self.trials: dict[str, Any] = {}
        self._spec = dict(spec)
        self._at_once = at_once
        self._place = place
        self._failed = 0
        self._task = self._model = ""
        self._trials: dict[tuple[str, int], tuple[int, Trial]] = {}
        self._seats: dict[int, RemoteEpisodes] = {}
        self._attempts: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._open = ExitStack()
        self._client: Lab | None = None
        _sources[self.key] = self

    @property
    def client(self) -> Lab:
        """A connection to the session's server."""
        assert self._client is not None, "the task has begun"
        return self._client

    def begin(self, task: str, model: str) -> None:
        """Take note of the task; tried again, it has the same id and goes on with its session."""
        self._task, self._model = task, model
        self.session = self.profile = self._client = None
        self._failed = 0
        self._trials.clear()
        self._seats.clear()
        self._attempts.clear()

    def trial(self, sample: str | int | None, epoch: int) -> Trial | None:
        """The trial of a sample; None where it is stored already."""
        found = self._trials.get((str(sample), epoch))
        return None if found is None else found[1]

    async def next_samples(self) -> list[Sample] | None:
        """Called while nothing runs: begins the session, and ends the task when that is over."""
        if self.session is not None:
            await run_sync(self.finish)  # before the metrics of the task are computed
            return None
        known = await run_sync(self._begin_session)
        for number, attempt in known:
            self._enqueue(number, attempt)
        begun = [await self._follow(seat) for seat in range(self._at_once)]
        return [] if known or any(begun) else None

    async def sample_complete(self, sample: EvalSample) -> list[Sample] | None:
        """Go on with the next episode in the seat of one that is over.

        Raises:
            NothingCountsError: One sample after another has failed.
        """
        self._failed = self._failed + 1 if sample.error is not None else 0
        if sample.error is not None and self._failed >= self._at_once + FAILURES:
            await run_sync(self.finish)
            raise NothingCountsError(
                f"the last {self._failed} samples failed, which says nothing about the model: "
                f"{sample.error.message}. Fix that, and go on with `inspect eval-retry LOG`: what "
                "was measured is kept"
            )
        return await self._go_on(str(sample.id), sample.epoch)

    async def sample_abandoned(self, sample: Sample, epoch: int) -> list[Sample] | None:
        """Go on after an operator has cancelled an episode."""
        return await self._go_on(str(sample.id), epoch)

    async def _go_on(self, sample: str, epoch: int) -> None:
        found = self._trials.pop((sample, epoch), None)
        if found is not None:
            seat, trial = found
            if not trial.over:  # an error or an operator ended the sample: the attempt is void
                await run_sync(partial(self._seats.pop(seat).close, dismissed=True))
            await self._follow(seat)

    async def _follow(self, seat: int) -> bool:
        """Begin the next episode of a seat; whether there is one."""
        opened = await run_sync(self._next, seat)
        if opened is None:
            return False
        episodes, opening = opened
        number = opening.info.episode
        attempt = self._attempts[number]
        self._attempts[number] += 1
        self._trials[str(number), attempt + 1] = seat, Trial(episodes, opening, self.tongue)
        self._enqueue(number, attempt)
        return True

    def _enqueue(self, number: int, attempt: int) -> None:
        metadata = {TRIAL: {"source": self.key, "episode": number, "attempt": attempt}}
        sample = Sample(id=str(number), input=INPUT, target="success", metadata=metadata)
        enqueue_sample(sample, epoch=attempt + 1)

    def stored(self, number: int, attempt: int) -> Episode | None:
        """An attempt as it is stored; None if it is not, or is not over."""
        with self._lock:
            assert self.session is not None
            for episode in self.client.iter_episodes(self.session, newest_first=True):
                if (episode.number, episode.attempt) == (number, attempt):
                    return episode if episode.outcome is not None else None
        return None

    def explained(self, number: int) -> dict[str, Any]:
        """Why an episode was chosen and ended as it did."""
        with self._lock:
            assert self.session is not None
            return self.client.explain_episode(self.session, number)

    def top_view(self, number: int, path: Sequence[tuple[float, float]]) -> str:
        """The arena of an episode from above, and the way of the agent, as a data URL.

        Empty if there is no arena to draw, or nothing to draw with.
        """
        try:
            from animalcat.maps.moving import draw_walk
        except ImportError:  # Pillow comes with the server
            return ""
        with self._lock:
            assert self.session is not None
            header = next(self.client.stream_episode(self.session, number))
        assert isinstance(header, EpisodeHeader)  # a recording begins with it
        try:
            arena = load_text(header.arena_yaml, header.instance).config.first
            things = place(arena, np.random.default_rng(0)).objects
        except ArenaError:  # an instance of a table has demands and no arena
            return ""
        return data_url(draw_walk(things, path))

    def finish(self) -> dict[str, Any] | None:
        """Make the profile, and leave the server; None if the session never began."""
        if self.session is None or self.profile is not None:
            return self.profile
        self.profile = self.client.profile(self.session)
        self.trials = trials_of(self.client.outcomes(self.session))
        for seat in self._seats.values():
            seat.close(dismissed=True)
        self._seats.clear()
        self._open.close()
        return self.profile

    def _begin_session(self) -> list[tuple[int, int]]:
        """Begin the session, or go on with it; number and attempt of what is stored of it."""
        address = self._open.enter_context(server_for(self._place.server, self._place.data))
        client = self._client = self._open.enter_context(connect(address))
        agent = f"llm:{self._model}+{self.tongue}"
        battery = client.battery(self._spec["battery"]).id
        spec: dict[str, Any] = {**self._spec, "battery": battery}
        session = self.session = client.create_session(
            agent=agent, request_id=f"inspect-{self._task}", **spec
        )
        known: list[tuple[int, int]] = []
        for episode in client.iter_episodes(session):
            self._attempts[episode.number] = episode.attempt + 1
            if episode.outcome is not None:
                known.append((episode.number, episode.attempt))
        return known

    def _next(self, seat: int) -> tuple[RemoteEpisodes, EpisodeOpening] | None:
        """Begin the next episode of a seat; None if there is none."""
        assert self.session is not None
        try:
            if seat not in self._seats:
                options = {**self.tongue.options, "door": "inspect_ai"}
                known = AgentFingerprint.declared(
                    f"llm:{self._model}", version=version(), options=options
                )
                self._seats[seat] = RemoteEpisodes(
                    self.client.address, self.session, fingerprint=known
                )
            episodes = self._seats[seat]
            return episodes, episodes.begin()
        except SessionOver:
            return None
        except AnimalcatError as error:
            if error.code == "SESSION_OVER":  # it was, before this seat was taken
                return None
            raise


def arena(
    battery: str = "basics",
    layout: str = "",
    *,
    tongue: str | Sequence[str] = "tools",
    preset: str = "",
    max_episodes: int = 0,
    seed: int = 0,
    at_once: int = 1,
    server: str = "",
    data: str = "",
    **options: Any,
) -> Task:
    """Make a task in which a model plays arenas of a battery, each chosen for what it tells.

        inspect eval animalcat/arena --model openai/gpt-4o -T battery=basics -T tongue=script

    Every sample is an attempt at an episode. The log has the profile, and the metric `accuracy` is
    the estimated share of the battery that the model passes, with its interval.

    With tools, another solver may take the place of ours: it finds go, turn, wait and look among
    the tools of a sample, and `arena_tools` makes them for one that is given its tools.

    A limit of messages, tokens or turns leaves the model standing still, and the episode counts.
    What ends by a limit of time or cost, an error or an operator is void.

    Args:
        battery: A battery of the server, or a family that is built if it is not there.
        layout: Name or file of a layout; by default that of the battery.
        tongue: How the model is told what it perceives, and how it answers; -T makes a list of
            what has commas.
        preset: "quick", "standard" or "thorough".
        max_episodes: The most episodes; 0 for what the preset says.
        seed: Seed of all randomness.
        at_once: How many episodes play at once.
        server: Host and port of a server; by default a private one on the data directory.
        data: The data directory; by default that of the settings.
        **options: Other options of a session, as `Client.create_session` has them.

    Raises:
        ValueError: The tongue or the preset is none.
    """
    spoken = Tongue.of(tongue if isinstance(tongue, str) else ",".join(map(str, tongue)))
    spec: dict[str, Any] = {**preset_options(preset), **options, "seed": seed}
    spec |= {"max_episodes": max_episodes} if max_episodes else {}
    spec |= {"slots": at_once} if at_once > 1 else {}
    if spoken.picture:
        spec.setdefault("camera", spoken.picture)
    place = Place(server or None, Path(data) if data else None)
    source = ArenaSource({"battery": battery, "layout": layout, **spec}, spoken, at_once, place)
    return Task(
        name=f"arena-{battery.removeprefix('batteries/')}",
        dataset=source,
        setup=[introduce(), use_tools(arena_tools())] if spoken.form == "tools" else None,
        solver=speak(source.key),
        scorer=outcome(source.key),
        headline_metric=HeadlineMetric(metric="accuracy"),
        fail_on_error=False,
        continue_on_fail=True,
        metadata={KEY: {"arena": source.key, "tongue": dict(spoken.options)}},
    )


@solver
def speak(source: str) -> Solver:
    """Play a trial: the model is shown what it perceives, and asked, until the trial is over.

    Args:
        source: Key of the source of the samples.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        made = _sources[source]
        trial = made.trial(state.sample_id, state.epoch)
        if trial is not None:
            agent = ModelAgent(get_model(), made.tongue)
            try:
                await trial.play(agent)
            finally:
                state.messages = agent.messages
        state.completed = True
        return state

    return solve


@solver
def introduce() -> Solver:
    """Tell a solver of others what to do, and show it the arena."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        trial = _trial_of(state)
        if trial is not None:
            first = ContentText(text=prompt(trial.talk.tongue, trial.opening.info))
            state.messages = [ChatMessageUser(content=[first, *content_of(trial.talk.show())])]
        return state

    return solve


def arena_tools() -> list[Tool]:
    """The tools by which a solver of others plays the task `arena`: go, turn, wait and look."""

    def make_tool(name: str, arguments: Sequence[str]) -> Tool:
        about, most = ABOUT[name]

        async def execute(**given: Any) -> Any:
            # Tools have no public way to the state of the sample that they are called in.
            state: TaskState = inside("solver._task_state", "sample_state")()
            trial = _trial_of(state)
            if trial is None:
                raise ToolError(_OVER)
            told = await trial.do(name, given)
            state.completed = state.completed or trial.over
            return told

        properties = {
            one: ToolParam(type="number", description=f"{one}, {most}") for one in arguments
        }
        parameters = ToolParams(properties=properties, required=list(arguments))
        return ToolDef(execute, name=name, description=about, parameters=parameters).as_tool()

    return [make_tool(name, TOOLS.get(name, ())) for name in ABOUT]


def outcome(source: str) -> Scorer:
    """What became of the trial, as it is stored; none for a void.

    Args:
        source: Key of the source of the samples.
    """

    @scorer(metrics=[accuracy_of(source)], name="outcome")
    def made_scorer() -> Scorer:
        return score

    async def score(state: TaskState, target: Target) -> Score | None:
        made = _sources[source]
        trial = made.trial(state.sample_id, state.epoch)
        if trial is not None and not trial.over:
            await trial.stand_still()
        about = state.metadata[TRIAL]
        episode = await run_sync(made.stored, about["episode"], about["attempt"])
        if episode is None or not episode.counts:
            return None
        await _explain(made, episode, trial.path if trial is not None else [])
        spent, decision = episode.spent, episode.decision
        return Score(
            value=CORRECT if episode.outcome is Outcome.SUCCESS else INCORRECT,
            answer=str(episode.outcome),
            explanation=f"return {episode.episode_return:.6g} in {episode.steps} decisions",
            metadata={
                "instance": decision.instance,
                "predicted": decision.predicted,
                "propensity": decision.propensity,
                "reason": str(decision.reason),
                "answers": spent.answers,
                "unparseable": spent.unparseable,
                "refusals": spent.refusals,
                "cause": episode.cause,
            },
        )

    return made_scorer()


def _trial_of(state: TaskState) -> Trial | None:
    """The trial of a sample; None where it is stored already, and of samples of others."""
    about = state.metadata.get(TRIAL)
    source = _sources.get(about["source"]) if about else None
    return None if source is None else source.trial(state.sample_id, state.epoch)


async def _explain(source: ArenaSource, episode: Episode, path: list[tuple[float, float]]) -> None:
    """Note in the sample's transcript why its arena was chosen, and what came of it."""
    view = await run_sync(source.top_view, episode.number, path)
    if view:
        transcript().info(f"![The arena from above]({view})", source=KEY)
    told = await run_sync(source.explained, episode.number)
    decision = episode.decision
    transcript().info(
        {
            "instance": decision.instance,
            "reason": str(decision.reason),
            "because": decision.because,
            "predicted": decision.predicted,
            "margins": dict(decision.margins),
            "explanation": told,
        },
        source=KEY,
    )


@metric
def accuracy_of(source: str) -> Metric:
    """The estimated share of the battery that the model passes, and that of what it played.

    Args:
        source: Key of the source of the samples.
    """

    def compute(scores: list[SampleScore]) -> Value:
        passed = [value_to_float()(one.score.value) for one in scores]
        made = _sources.get(source)
        rate = ((made and made.profile) or {}).get("battery_rate", {})
        chosen = sum(passed) / len(passed) if passed else None
        found = rate.get("value"), rate.get("low"), rate.get("high"), chosen
        values = (math.nan if one is None else float(one) for one in found)
        return dict(zip(METRICS, values, strict=True))

    return cast("Metric", compute)


class ArenaHooks(Hooks):
    """Follows the tasks of arenas, and no others."""

    async def on_task_start(self, data: TaskStart) -> None:
        """Tell the source which task it is for, and which model."""
        if (source := _source_of(data.spec.metadata)) is not None:
            source.begin(data.spec.task_id, data.spec.model)

    async def on_task_end(self, data: TaskEnd) -> None:
        """Write the profile into the log."""
        if (source := _source_of(data.log.eval.metadata)) is not None:
            profile = await run_sync(source.finish)
            if profile is not None:
                await write_into(data.log, {PROFILE: profile, TRIALS: source.trials})


_hooked: Final[Any] = hooks(
    name=f"{KEY}_arena", description="Keeps the profiles of arena tasks in their logs."
)
_hooked(ArenaHooks)


def _place_of(seen: Observation) -> tuple[float, float]:
    return float(seen.position[0]), float(seen.position[2])


def _source_of(metadata: Mapping[str, Any] | None) -> ArenaSource | None:
    ours = (metadata or {}).get(KEY)
    return _sources.get(str(cast("Any", ours).get("arena"))) if isinstance(ours, dict) else None
