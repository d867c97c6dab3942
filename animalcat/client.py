"""The client: play a session, and ask a server for sessions, batteries, profiles and episodes."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

from animalcat import names
from animalcat.connection import Connection
from animalcat.envs.agents.base import Agent
from animalcat.envs.types import ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.evaluation import (
    EvaluationStream,
    EvaluationSummary,
    PlayedEpisode,
    makes_agents,
    play,
)
from animalcat.v1 import (
    campaigns_pb2,
    campaigns_pb2_grpc,
    layouts_pb2,
    layouts_pb2_grpc,
    operations_pb2,
    operations_pb2_grpc,
    results_pb2,
    results_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
)
from animalcat.wire import spec_to_proto
from animalcat.words import OPERATIONS, POLICIES, STATES

SessionLike = str | sessions_pb2.Session
"""A session's id, its resource name, or the message itself."""
OnProgress = Callable[[operations_pb2.Operation], None]
"""Is told of an operation as it goes on."""
_Number = TypeVar("_Number", bound=int)

_PAGE: Final = 500
"""Items of a list that are asked for at once."""

_FORMATS: Final = {
    "json": results_pb2.PROFILE_FORMAT_JSON,
    "html": results_pb2.PROFILE_FORMAT_HTML,
    "csv": results_pb2.PROFILE_FORMAT_OUTCOMES_CSV,
    "reanalysis": results_pb2.PROFILE_FORMAT_REANALYSIS_JSON,
}


def connect(address: str, *, wait_seconds: float = 0.0) -> Client:
    """Connect to a server.

    Args:
        address: "host:port".
        wait_seconds: How long to wait for a server that is still starting.

    Raises:
        AnimalcatError: The address is malformed, or no animalcat server answers there.
    """
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise AnimalcatError(f"address {address!r} is not HOST:PORT, such as localhost:50051")
    return Client(Connection(address, wait_seconds=wait_seconds))


class Client:
    """A connection to a server; a context manager. For one thread at a time.

    Sessions can be given as id, resource name or message. Every method raises `AnimalcatError`
    with the server's sentence where a call fails.
    """

    def __init__(self, connection: Connection) -> None:
        """Use a connection, which `close` closes; see `connect`."""
        self.connection = connection
        channel = connection.channel
        self._batteries = sessions_pb2_grpc.BatteriesStub(channel)
        self._sessions = sessions_pb2_grpc.SessionsStub(channel)
        self._campaigns = campaigns_pb2_grpc.CampaignsStub(channel)
        self._layouts = layouts_pb2_grpc.LayoutsStub(channel)
        self._operations = operations_pb2_grpc.OperationsStub(channel)
        self._profiles = results_pb2_grpc.ProfilesStub(channel)
        self._episodes = results_pb2_grpc.EpisodesStub(channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def address(self) -> str:
        """Of the server, "host:port"."""
        return self.connection.address

    def close(self) -> None:
        """Close the connection; a session that is being played waits for its agent again."""
        self.connection.close()

    def evaluate(
        self,
        agent: Agent | Callable[[], Agent],
        session: SessionLike = "",
        *,
        name: str | None = None,
        observation_spec: ObservationSpec | None = None,
        on_episode: Callable[[PlayedEpisode], None] | None = None,
    ) -> EvaluationSummary:
        """Let an agent play a session to its end.

        Args:
            agent: Has `reset(info)` and `act(observation)`. What makes one, such as its class, lets
                a session of several slots play several episodes at once, each by an agent of its
                own in a thread of its own; an agent itself plays one slot.
            session: Which; may be empty where exactly one session waits for an agent.
            name: Of the agent; by default the one that the session is for.
            observation_spec: What the agent needs to see; a session that shows something else
                is refused. None: whatever the session shows.
            on_episode: Is told of every episode that ended.

        Raises:
            AnimalcatError: The server refuses, fails or is lost; the agent's answer is no action.
            Exception: Whatever the agent raises; its open episode is voided.
        """

        async def seat(seats: int) -> EvaluationSummary:
            stream = EvaluationStream(self.connection.channel, uuid.uuid4().hex)
            try:
                welcome = await stream.open(
                    target.name, target.spec.agent if name is None else name, observation_spec
                )
                return await play(stream, welcome, agent, tell, threads=seats > 1)
            finally:
                stream.cancel()

        async def run() -> EvaluationSummary:
            seats = max(1, target.spec.slots) if makes_agents(agent) else 1
            playing = [asyncio.ensure_future(seat(seats)) for _ in range(seats)]
            try:
                last = (await asyncio.gather(*playing))[-1]
            finally:
                for one in playing:
                    one.cancel()
                await asyncio.gather(*playing, return_exceptions=True)
            return replace(last, episodes=tuple(played))

        def tell(episode: PlayedEpisode) -> None:
            played.append(episode)
            if on_episode is not None:
                on_episode(episode)

        played: list[PlayedEpisode] = []
        target = self.find_session(session)
        return self.connection.run(run())

    def create_session(
        self,
        *,
        agent: str,
        battery: str,
        layout: str | os.PathLike[str] = "",
        layout_variant: str = "",
        max_episodes: int | None = None,
        target_sd: float | None = None,
        futility: float | None = None,
        stop: sessions_pb2.StoppingRule | None = None,
        policy: str | sessions_pb2.SelectionPolicy = "",
        random_share: float | None = None,
        seed: int | None = None,
        backend: str = "",
        observation_spec: ObservationSpec | None = None,
        action_timeout_seconds: float | None = None,
        record_pixels: bool | None = None,
        certify: bool | None = None,
        slots: int | None = None,
        request_id: str = "",
    ) -> sessions_pb2.Session:
        """Create a session that waits for its agent; the fields are those of `SessionSpec`.

        What is left out is not sent, and has the server's default; the session that comes back
        says all of it.

        Args:
            agent: Name of the agent that is to be measured.
            battery: Id or resource name.
            layout: Name of the layout, or a file of one's own (its name ends in .yaml or .yml);
                "aaio" by default.
            layout_variant: Variant of it.
            max_episodes: Most episodes; 100 by default.
            target_sd: Enough when every capability's SD is this share of its range; 0: never; 0.1
                by default.
            futility: Enough when the SD would drop by less than this share; 0: never; 0.01 by
                default.
            stop: The whole stopping rule, instead of the three before it.
            policy: How to choose instances: the name of a policy, or all of it; "variance" by
                default.
            random_share: Share of random draws, where not all of the policy is given; 0.3 by
                default.
            seed: Of the whole session; 0 by default.
            backend: What plays the arenas; "sim" by default.
            observation_spec: What the agent sees; rays by default.
            action_timeout_seconds: How long one action may take; 60 by default.
            record_pixels: Keep camera images in the recordings.
            certify: Let NUTS refits certify the live posterior, as by default.
            slots: How many episodes may be played at once; 1 by default.
            request_id: The same id again gives the same session.

        Raises:
            AnimalcatError: There is no such policy; the server refuses.
        """
        named, definition = named_layout(layout)
        if isinstance(policy, str):
            chosen = _number(policy, POLICIES, "policy") if policy else None
            policy = sessions_pb2.SelectionPolicy(random_share=random_share)
            if chosen is not None:
                policy.name = chosen
        spec = sessions_pb2.SessionSpec(
            agent=agent,
            battery=_battery_name(battery),
            layout=named,
            layout_definition=definition,
            layout_variant=layout_variant,
            policy=policy,
            stop=stop
            or sessions_pb2.StoppingRule(
                max_episodes=max_episodes, target_sd=target_sd, futility=futility
            ),
            seed=seed,
            backend=backend,
            observation_spec=spec_to_proto(observation_spec) if observation_spec else None,
            action_timeout_seconds=action_timeout_seconds,
            record_pixels=record_pixels,
            certify=certify,
            slots=slots,
        )
        request = sessions_pb2.CreateSessionRequest(spec=spec, request_id=request_id)
        return self._run(self._sessions.CreateSession, request).session

    def get_session(self, session: SessionLike) -> sessions_pb2.Session:
        """One session as it stands."""
        request = sessions_pb2.GetSessionRequest(name=session_name(session))
        return self._run(self._sessions.GetSession, request).session

    def find_session(self, session: SessionLike = "") -> sessions_pb2.Session:
        """The session that is meant; where none is named, the one that waits for an agent.

        Raises:
            AnimalcatError: There is no such session; none is named, and not exactly one waits.
        """
        if isinstance(session, sessions_pb2.Session):
            return session
        if session:
            return self.get_session(session)
        waiting = list(self.sessions(states=["waiting"]))
        if len(waiting) != 1:
            listed = ", ".join(names.parse_session(s.name) for s in waiting[:20]) or "none"
            raise AnimalcatError(
                f"no session is named, and not exactly one waits for an agent; waiting: {listed}",
                "INVALID_REQUEST",
            )
        return waiting[0]

    def list_sessions(self) -> list[sessions_pb2.Session]:
        """All sessions, newest first."""
        return list(self.sessions())

    def sessions(
        self, *, agent: str = "", battery: str = "", states: Iterable[str] = ()
    ) -> Iterator[sessions_pb2.Session]:
        """Sessions, newest first, asked for page by page.

        Args:
            agent: Only those of this agent.
            battery: Only those on this battery, by id or resource name.
            states: Only those in one of these: waiting, running, finished, cancelled, failed.

        Raises:
            AnimalcatError: There is no such state.
        """
        request = sessions_pb2.ListSessionsRequest(
            page_size=_PAGE,
            agent=agent,
            battery=_battery_name(battery) if battery else "",
            states=[_number(state, STATES, "state") for state in states],
        )
        return self._pages(self._sessions.ListSessions, request, "sessions")

    def watch_session(
        self, session: SessionLike, *, from_start: bool = False
    ) -> Iterator[sessions_pb2.WatchSessionResponse]:
        """Progress as it happens, until the session is over.

        Args:
            session: Which.
            from_start: Past episodes come first.
        """
        name = session_name(session)
        request = sessions_pb2.WatchSessionRequest(name=name, from_start=from_start)
        return self.connection.iterate(self._sessions.WatchSession, request)

    def cancel_session(self, session: SessionLike) -> sessions_pb2.Session:
        """End a session; what it learnt stays."""
        request = sessions_pb2.CancelSessionRequest(name=session_name(session))
        return self._run(self._sessions.CancelSession, request).session

    def pause_session(self, session: SessionLike) -> sessions_pb2.Session:
        """Begin no further episode of a session; what is being played is played to its end."""
        request = sessions_pb2.PauseSessionRequest(name=session_name(session))
        return self._run(self._sessions.PauseSession, request).session

    def resume_session(self, session: SessionLike) -> sessions_pb2.Session:
        """Go on with a session that was paused."""
        request = sessions_pb2.ResumeSessionRequest(name=session_name(session))
        return self._run(self._sessions.ResumeSession, request).session

    def invalidate_episode(
        self, session: SessionLike, episode: int, reason: str, attempt: int | None = None
    ) -> sessions_pb2.EpisodeSummary:
        """Declare an outcome invalid: it no longer counts, and its instance is played again.

        Args:
            session: Which; no agent may be playing it, and it must not be over.
            episode: Number within the session.
            reason: Why, in words.
            attempt: Which try; None for the one that counts.
        """
        id_ = names.parse_session(session_name(session))
        request = sessions_pb2.InvalidateEpisodeRequest(
            name=names.episode_name(id_, episode, attempt), reason=reason
        )
        return self._run(self._sessions.InvalidateEpisode, request).episode

    def delete_session(self, session: SessionLike) -> None:
        """Forget a session that is not being played, its episodes and their recordings."""
        request = sessions_pb2.DeleteSessionRequest(name=session_name(session))
        self._run(self._sessions.DeleteSession, request)

    def create_campaign(self, spec: campaigns_pb2.CampaignSpec) -> campaigns_pb2.Campaign:
        """Create a campaign of several agents, whose sessions wait for them.

        Args:
            spec: What it is to be; the same again gives the same campaign.
        """
        request = campaigns_pb2.CreateCampaignRequest(spec=spec)
        return self._run(self._campaigns.CreateCampaign, request).campaign

    def get_campaign(self, campaign: str) -> campaigns_pb2.Campaign:
        """One campaign as it stands.

        Args:
            campaign: Its id.
        """
        request = campaigns_pb2.GetCampaignRequest(name=names.campaign_name(campaign))
        return self._run(self._campaigns.GetCampaign, request).campaign

    def list_campaigns(self) -> list[campaigns_pb2.Campaign]:
        """All campaigns, newest first."""
        request = campaigns_pb2.ListCampaignsRequest(page_size=_PAGE)
        return list(self._pages(self._campaigns.ListCampaigns, request, "campaigns"))

    def end_campaign(
        self, campaign: str, on_progress: OnProgress | None = None
    ) -> campaigns_pb2.Campaign:
        """End a campaign; each of its sessions that was played has its profile.

        Args:
            campaign: Its id.
            on_progress: Is told how far it is.
        """
        request = campaigns_pb2.EndCampaignRequest(name=names.campaign_name(campaign))
        self.wait(self._run(self._campaigns.EndCampaign, request).operation, on_progress)
        return self.get_campaign(campaign)

    def delete_campaign(self, campaign: str) -> None:
        """Forget a campaign that is over; its sessions stay.

        Args:
            campaign: Its id.
        """
        request = campaigns_pb2.DeleteCampaignRequest(name=names.campaign_name(campaign))
        self._run(self._campaigns.DeleteCampaign, request)

    def operations(self, *, states: Iterable[str] = ()) -> Iterator[operations_pb2.Operation]:
        """What takes or took long, newest first.

        Args:
            states: Only those in one of these: running, done, failed, cancelled, aborted.

        Raises:
            AnimalcatError: There is no such state.
        """
        request = operations_pb2.ListOperationsRequest(
            page_size=_PAGE, states=[_number(state, OPERATIONS, "state") for state in states]
        )
        return self._pages(self._operations.ListOperations, request, "operations")

    def wait(
        self, operation: str | operations_pb2.Operation, on_progress: OnProgress | None = None
    ) -> operations_pb2.Operation:
        """Wait for the end of an operation, which goes on whether or not anybody waits.

        Args:
            operation: Its id, resource name or message.
            on_progress: Is told how far it is.

        Raises:
            AnimalcatError: It failed, was cancelled, or was aborted as the server stopped.
        """
        request = operations_pb2.WatchOperationRequest(name=_operation_name(operation))
        now = operations_pb2.Operation()
        for event in self.connection.iterate(self._operations.WatchOperation, request):
            now = event.operation
            if on_progress is not None:
                on_progress(now)
        if now.HasField("error"):
            raise AnimalcatError(now.error.message, now.error.code)
        return now

    def cancel_operation(
        self, operation: str | operations_pb2.Operation
    ) -> operations_pb2.Operation:
        """Ask an operation to stop.

        Args:
            operation: Its id, resource name or message.
        """
        request = operations_pb2.CancelOperationRequest(name=_operation_name(operation))
        return self._run(self._operations.CancelOperation, request).operation

    def profile(self, session: SessionLike) -> dict[str, Any]:
        """The profile, by the schema "profile": certified once the session is finished."""
        request = results_pb2.GetProfileRequest(name=_profile_name(session))
        return json.loads(self._run(self._profiles.GetProfile, request).profile_json)

    def export_profile(
        self, session: SessionLike, form: Literal["json", "html", "csv", "reanalysis"] = "json"
    ) -> bytes:
        """The profile as a file's content.

        "csv" is the table of outcomes, "reanalysis" success on the whole battery and the
        calibration of predictions, both weighted by propensities, as JSON.
        """
        if form not in _FORMATS:
            raise AnimalcatError(f"format {form!r}: choose from {', '.join(_FORMATS)}")
        request = results_pb2.ExportProfileRequest(
            name=_profile_name(session), format=_FORMATS[form]
        )
        return self._run(self._profiles.ExportProfile, request).content

    def episodes(self, session: SessionLike | None = None) -> list[sessions_pb2.EpisodeSummary]:
        """The episodes of a session in the order they were played, all attempts.

        Args:
            session: Which, a person's (`animalcat arena play`) too; None for those of all.
        """
        parent = names.EVERY_SESSION if session is None else session_name(session)
        request = results_pb2.ListEpisodesRequest(parent=parent, page_size=_PAGE)
        return list(self._pages(self._episodes.ListEpisodes, request, "episodes"))

    def stream_episode(
        self, session: SessionLike, episode: int, attempt: int | None = None
    ) -> Iterator[results_pb2.StreamEpisodeResponse]:
        """A recorded episode: header, steps, footer.

        Args:
            session: Which.
            episode: Number within the session.
            attempt: Which try; None for the last.
        """
        id_ = names.parse_session(session_name(session))
        request = results_pb2.StreamEpisodeRequest(name=names.episode_name(id_, episode, attempt))
        return self.connection.iterate(self._episodes.StreamEpisode, request)

    def import_battery(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        *,
        seed: int = 0,
        features: str | os.PathLike[str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> sessions_pb2.Battery:
        """Store arena files as a battery; the same content again gives the same battery.

        Args:
            path: A YAML file, or a folder of them.
            name: Of the battery; by default made from the path.
            seed: For values that the files leave to chance.
            features: A CSV file with meta-features of one's own: a column `instance`, and one for
                each feature, its unit in brackets where it has one.
            on_progress: Is told how far it is.

        Raises:
            AnimalcatError: There are no arena files at the path, or a file cannot be used.
        """
        source = Path(path)
        files = _arena_files(source)
        table = None if features is None else _content(features)

        async def frames() -> AsyncIterator[sessions_pb2.ImportBatteryRequest]:
            header = sessions_pb2.BatteryHeader(
                name=name or names.to_component(source.resolve().stem), seed=seed
            )
            yield sessions_pb2.ImportBatteryRequest(header=header)
            for relative, file in files:
                arena = sessions_pb2.ArenaFile(path=relative, content=file.read_bytes())
                yield sessions_pb2.ImportBatteryRequest(file=arena)
            if table is not None:
                yield sessions_pb2.ImportBatteryRequest(
                    table=sessions_pb2.FeatureTable(content=table)
                )

        begun = self._run(self._batteries.ImportBattery, frames()).operation
        return self.get_battery(self.wait(begun, on_progress).resource).battery

    def build_battery(
        self,
        family: str,
        instances: int | None = None,
        *,
        seed: int = 0,
        name: str = "",
        on_progress: OnProgress | None = None,
    ) -> sessions_pb2.Battery:
        """Build a battery from a family of arenas.

        Args:
            family: Name of the family, for example "navigation".
            instances: How many; 450 by default.
            seed: For the drawing.
            name: Of the battery; the family's where empty.
            on_progress: Is told how far it is.
        """
        request = sessions_pb2.BuildBatteryRequest(
            family=family, instances=instances, seed=seed, name=name
        )
        begun = self._run(self._batteries.BuildBattery, request).operation
        return self.get_battery(self.wait(begun, on_progress).resource).battery

    def delete_battery(self, battery: str) -> None:
        """Forget a battery that no session and no campaign was made with.

        Args:
            battery: Id or resource name.
        """
        request = sessions_pb2.DeleteBatteryRequest(name=_battery_name(battery))
        self._run(self._batteries.DeleteBattery, request)

    def list_batteries(self) -> list[sessions_pb2.Battery]:
        """All batteries of the server, by name."""
        request = sessions_pb2.ListBatteriesRequest(page_size=_PAGE)
        return list(self._pages(self._batteries.ListBatteries, request, "batteries"))

    def get_battery(self, battery: str) -> sessions_pb2.GetBatteryResponse:
        """One battery, with the meta-features that its instances may have.

        Args:
            battery: Id or resource name.
        """
        request = sessions_pb2.GetBatteryRequest(name=_battery_name(battery))
        return self._run(self._batteries.GetBattery, request)

    def instances(self, battery: str) -> Iterator[sessions_pb2.Instance]:
        """The instances of a battery with their meta-features, by name.

        Args:
            battery: Id or resource name.
        """
        request = sessions_pb2.ListInstancesRequest(parent=_battery_name(battery), page_size=_PAGE)
        return self._pages(self._batteries.ListInstances, request, "instances")

    def list_layouts(self) -> list[layouts_pb2.Layout]:
        """The layouts of the server without their texts, the shipped ones first."""
        request = layouts_pb2.ListLayoutsRequest(page_size=_PAGE)
        return list(self._pages(self._layouts.ListLayouts, request, "layouts"))

    def get_layout(self, layout: str, variant: str = "") -> layouts_pb2.Layout:
        """One layout with its text.

        Args:
            layout: Its digest, or the name of a shipped one.
            variant: Variant of a shipped one.
        """
        name = layout if "/" in layout else names.layout_name(layout)
        request = layouts_pb2.GetLayoutRequest(name=name, variant=variant)
        return self._run(self._layouts.GetLayout, request).layout

    def _pages(self, method: Callable[[Any], Any], request: Any, field: str) -> Iterator[Any]:
        """What a list holds, page by page."""
        while True:
            answer = self._run(method, request)
            yield from getattr(answer, field)
            request.page_token = answer.next_page_token
            if not request.page_token:
                return

    def _run(self, method: Callable[[Any], Any], request: Any) -> Any:
        async def call() -> Any:
            return await method(request)

        return self.connection.run(call())


def session_name(session: SessionLike) -> str:
    """Resource name of a session.

    Raises:
        AnimalcatError: The name is malformed.
    """
    if isinstance(session, sessions_pb2.Session):
        return session.name
    try:
        return names.session_name(names.parse_session(session) if "/" in session else session)
    except names.BadNameError as error:
        raise AnimalcatError(str(error), "INVALID_NAME") from None


def _number(word: str, words: Mapping[str, _Number], what: str) -> _Number:
    try:
        return words[word]
    except KeyError:
        valid = ", ".join(filter(None, words))
        raise AnimalcatError(f"no {what} is named {word!r}; there are: {valid}") from None


def _operation_name(operation: str | operations_pb2.Operation) -> str:
    if isinstance(operation, operations_pb2.Operation):
        return operation.name
    return operation if "/" in operation else names.operation_name(operation)


def _battery_name(battery: str) -> str:
    return battery if "/" in battery else names.battery_name(battery)


def _profile_name(session: SessionLike) -> str:
    return names.profile_name(names.parse_session(session_name(session)))


def named_layout(layout: str | os.PathLike[str]) -> tuple[str, str]:
    """How a session says its layout: by name, or by the text of a file of one's own; one is empty.

    Raises:
        AnimalcatError: The file cannot be read.
    """
    name = os.fspath(layout)
    if not name.endswith((".yaml", ".yml")):
        return name, ""
    try:
        return "", _content(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AnimalcatError(f"{name}: not UTF-8 text (byte {error.start})") from error


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise AnimalcatError(f"{path}: {error.strerror or 'cannot be read'}") from error


def _arena_files(source: Path) -> list[tuple[str, Path]]:
    """Arena files with their paths relative to the battery's folder."""
    if source.is_file():
        return [(source.name, source)]
    files = sorted(f for f in source.rglob("*") if f.suffix in (".yaml", ".yml") and f.is_file())
    if not files:
        raise AnimalcatError(f"{source}: no YAML files there")
    return [(file.relative_to(source).as_posix(), file) for file in files]
