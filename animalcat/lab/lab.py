"""Where agents are measured from Python: a private server here, or one elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from animalcat.client import AsyncClient, Client
from animalcat.client.async_client import (
    PendingConnection,
    SessionLike,
    aconnect,
)
from animalcat.client.connection import PrivateLoop
from animalcat.envs.agents.fingerprint import differences, in_words
from animalcat.envs.agents.objects import note_played
from animalcat.envs.types import ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.lab.agents import AgentSource, GivenAgent, read_agent, words_of_change
from animalcat.lab.batteries import Arenas, LabBattery, find
from animalcat.lab.campaigns import CampaignResult, agent_names, play
from animalcat.lab.progress import Progress
from animalcat.lab.result import Result, ResultList
from animalcat.layouts.adaptive.plan import preset_options
from animalcat.machine.compiling import LAYOUTS, SIMULATOR, while_compiling
from animalcat.text.counts import count_of
from animalcat.text.terminals import harmless
from animalcat.values import Session
from animalcat.values.options import CampaignOptions, SessionOptions, describe_options

if TYPE_CHECKING:
    from pandas import DataFrame

    from animalcat.apart import Bounds
    from animalcat.client.evaluation import PlayedEpisode


def local(
    folder: str | os.PathLike[str] = ".animalcat",
    *,
    allow_builds: tuple[str | os.PathLike[str], ...] = (),
    allow_plugins: tuple[str, ...] = (),
) -> Lab:
    """Measure here: with a private server, whose data is in a folder.

        with animalcat.local("study") as lab:
            result = lab.measure(MyAgent(), "navigation", max_episodes=20)

    The server ends with the block, or with this process, however that ends; in a notebook, that is
    the kernel. The stop button interrupts a cell and not the server. Where a server works on the
    folder already, as that of another notebook, it is shared. A lab that was closed opens again
    when it is used, and without `with` it stays open until `close`.

    Args:
        folder: The data directory; it is made if it is not there.
        allow_builds: Unity builds that sessions may run.
        allow_plugins: Packages whose plugins the server may run, with all that it may.

    Raises:
        AnimalcatError: The server does not start; the extra `server` is missing.
    """
    home = Path(folder).expanduser()
    if home.exists() and not home.is_dir():
        raise AnimalcatError(f"{home} is a file, and a folder is expected for the data")
    builds = tuple(Path(build).expanduser().absolute() for build in allow_builds)
    return Lab(partial(reach_private, home, builds, tuple(allow_plugins)), str(home))


def connect(
    address: str,
    *,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    wait_seconds: float = 0.0,
) -> Lab:
    """Connect to a server, to measure there what `local` measures here.

        with animalcat.connect("localhost:50051") as lab:
            print(lab.list_batteries())

    It also works in a notebook, where an event loop is running already.

    Args:
        address: "host:port".
        token: What proves who you are, or "@FILE" to read it from; a server of this machine needs
            none as a rule. None: `ANIMALCAT_TOKEN` of the environment.
        ca: How the server is known, where it speaks TLS: a file with its certificate, or the
            fingerprint "sha256:..." that it prints. None: `ANIMALCAT_CA`, or else the certificates
            that this machine trusts.
        wait_seconds: How long to wait for a server that is still starting.

    Raises:
        AnimalcatError: The address is malformed, or no animalcat server answers there.
    """
    shown = {"token": token, "ca": ca, "wait_seconds": wait_seconds}
    return Lab(partial(_reach_server, address, shown), address, option="--server")


class Lab(Client):
    """A server with what measures agents on it; `local` and `connect` make one. For one thread.

        lab = animalcat.local("study")
        battery = lab.battery({"near": Arena.goal(distance=3), "far": Arena.goal(distance=30)})
        result = lab.measure(MyAgent(), battery, layout="aaio")

    It has every call of `Client` too, which give the values of `animalcat.values`.
    """

    def __init__(
        self,
        reach: Callable[[ExitStack], PendingConnection],
        place: str,
        *,
        option: str = "--data",
        now: bool = True,
    ) -> None:
        """Connect.

        Args:
            reach: Connects; what it puts on the stack ends when the lab is closed.
            place: The data directory, or the address of a server elsewhere.
            option: How commands name it.
            now: Connect at once, and not when it is first used.
        """
        self._option = option
        self._stack = ExitStack()
        self._place = place
        self._reach_in = reach
        self._open: tuple[PrivateLoop, AsyncClient] | None = None
        if now:
            self._open_loop()

    def _reach(self) -> PendingConnection:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._reach_in(self._stack)

    @property
    def where(self) -> str:
        """The options by which a command finds what this lab has."""
        return f"{self._option} {shlex.quote(self._place)}"

    def close(self) -> None:
        """Close the connection, and end a private server that nobody else uses.

        Calling it twice is fine, and using the lab opens it again.
        """
        try:
            super().close()
        finally:
            self._stack.close()

    def battery(
        self,
        arenas: Arenas,
        name: str | None = None,
        *,
        features: DataFrame | str | os.PathLike[str] | None = None,
        seed: int = 0,
        layout: str = "",
        layout_variant: str = "",
    ) -> LabBattery:
        """The battery that is meant; it is made if it is not there.

        The same arenas again give the same battery. A name whose arenas were changed stands for the
        new ones from now on; earlier sessions keep theirs.

        Args:
            arenas: The name of a battery that is stored or comes with animalcat; a folder or file
                of arenas; YAML text; or arenas (`Arena`, YAML text, dicts, models, paths), by their
                names or in a list.
            name: Name of a battery that is made; by default that of the path, or "arenas".
            features: A table of meta-features of your own, as a pandas frame or a CSV file: its
                index, or a column `instance`, names the arenas.
            seed: For what the arenas leave to chance.
            layout: The layout that measures on it where none is asked for.
            layout_variant: Its variant.

        Raises:
            AnimalcatError: There is no such battery, or something in it is no arena.
        """
        options = {
            "features": features,
            "seed": seed or None,
            "layout": layout or None,
            "layout_variant": layout_variant or None,
        }
        given = {key: value for key, value in options.items() if value is not None}
        return find(self, arenas, name, **given)

    @describe_options(SessionOptions)
    def measure(
        self,
        agent: AgentSource,
        battery: Arenas,
        *,
        layout: Any = "",
        layout_variant: str = "",
        name: str | None = None,
        preset: str = "",
        take: int = 1,
        against: Result | SessionLike = "",
        prior: Result | SessionLike = "",
        observation_spec: ObservationSpec | None = None,
        bounds: Bounds | None = None,
        on_episode: Callable[[PlayedEpisode], None] | None = None,
        progress: bool = True,
        **options: Unpack[SessionOptions],
    ) -> Result:
        """Measure an agent: it plays until every capability is known, or a limit is reached.

        Called again with the same agent, battery and options, it goes on where it was interrupted,
        or gives the result that there is. Which one it does is said, and so is what has changed in
        an agent for which a new session begins.

        Args:
            agent: An object with `reset(info)` and `act(observation)`, its class, or a function
                that makes one: it plays in this process. Or a reference such as "builtin:scout",
                "plugin:NAME" or "agent.py:MyAgent", or the path of a file with one agent: it plays
                in a process of its own that sees nothing of the evaluator.
            battery: What `battery` takes.
            layout: Name of the layout, a file, YAML text, or a layout of `animalcat.layouts`. By
                default the one that the battery names, and "aaio" where it names none.
            layout_variant: Variant of it.
            name: What the agent is called; by default by its class or reference.
            preset: A ready-made rule: "quick" (at most 30 episodes), "standard" (100) or "thorough"
                (400). Options change parts of it.
            take: Which session of all with the same agent, battery and options; 2 begins another.
            against: Another agent's result or session: play the arenas that were drawn for it, in
                the same order, until the two are told apart.
            prior: An earlier result or session of the same agent: what it has found is known from
                the start.
            observation_spec: What the agent sees; rays by default. Options change parts of it.
            bounds: Within what a process of the agent's own plays; see `animalcat.apart`.
            on_episode: Is told of every episode that ended, of an agent in this process.
            progress: Show how far it is.
            **options: The options below.

        Raises:
            AnimalcatError: Something is not what it should be; the server refuses, fails or is
                lost; the agent ended before its session.
            Exception: Whatever an agent in this process raises. The session is then paused until
                `judge_failure` says what the open episode counts as.
            TypeError: There is no such option.
        """
        given = read_agent(agent, name, options.get("slots") or 1)
        if not isinstance(take, int) or take < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise AnimalcatError(f"take is {take!r}; give a whole number from 1", "INVALID_REQUEST")
        with Progress(shown=progress) as shown:
            shown.phase(while_compiling("reading the arenas", SIMULATOR))
            stored = find(self, battery, None)
            shown.phase(while_compiling("making the session", LAYOUTS))
            session = self._session(
                given,
                stored,
                layout,
                layout_variant,
                preset,
                take,
                against,
                prior,
                observation_spec,
                options,
            )
            shown.know(session)
            if not session.over:
                session = self._play(given, session, bounds, on_episode, shown)
                shown.know(session)
        return Result(self, session)

    @describe_options(CampaignOptions)
    def campaign(
        self,
        agents: Mapping[str, AgentSource] | Sequence[AgentSource],
        battery: Arenas,
        budget: int,
        *,
        layout: Any = "",
        layout_variant: str = "",
        observation_spec: ObservationSpec | None = None,
        bounds: Bounds | None = None,
        progress: bool = True,
        **options: Unpack[CampaignOptions],
    ) -> CampaignResult:
        """Measure several agents by as many episodes each, and compare them at the end.

        All of them play the same random arenas first. The same call again goes on with the same
        campaign.

        Args:
            agents: Agents as `measure` takes them, by their names or in a list.
            battery: What `battery` takes.
            budget: Episodes of all agents together; each plays an equal share of them.
            layout: As in `measure`.
            layout_variant: Variant of the layout.
            observation_spec: What the agents see; rays by default.
            bounds: Within what processes of agents play; see `animalcat.apart`.
            progress: Show how far it is.
            **options: The options below.

        Raises:
            AnimalcatError: Something is not what it should be; the server refuses, fails or is
                lost; an agent ended before its session.
            Exception: Whatever an agent in this process raises.
            TypeError: There is no such option.
        """
        if isinstance(agents, Mapping):
            given = [read_agent(agent, name) for name, agent in agents.items()]
        else:
            given = [read_agent(agent, None) for agent in agents]
        names = agent_names(given)
        with Progress(shown=progress) as shown:
            shown.phase(while_compiling("reading the arenas", SIMULATOR))
            stored = find(self, battery, None)
            shown.phase(while_compiling("making the campaign", LAYOUTS))
            begun = self.create_campaign(
                agents=names,
                battery=stored.id,
                budget=budget,
                layout=layout,
                layout_variant=layout_variant,
                observation_spec=observation_spec,
                **options,
            )
            if not begun.over:
                from animalcat.apart import Bounds

                begun = play(self, begun, given, bounds or Bounds(), shown)
        return CampaignResult(self, begun)

    def resume(
        self,
        session: Result | SessionLike,
        agent: AgentSource,
        *,
        episodes: int = 0,
        target_sd: float | None = None,
        same_agent: bool = False,
        bounds: Bounds | None = None,
        on_episode: Callable[[PlayedEpisode], None] | None = None,
        progress: bool = True,
    ) -> Result:
        """Go on with a session where it stopped, also with one that was finished.

        Args:
            session: Which.
            agent: The agent, as `measure` takes it; the session refuses another one.
            episodes: Play so many more than were played, at most; 0 for the budget that it has.
            target_sd: From now on a capability is known when its standard deviation is this share
                of its range; None for as it is.
            same_agent: Say that it is the agent that the session has, whatever its fingerprint; the
                profile states it.
            bounds: As in `measure`.
            on_episode: As in `measure`.
            progress: Show how far it is.

        Raises:
            AnimalcatError: It is another agent; the server refuses, fails or is lost.
            Exception: Whatever an agent in this process raises.
        """
        stored = self.get_session(session.session if isinstance(session, Result) else session)
        given = read_agent(agent, stored.spec.agent)
        if not same_agent and (
            changes := words_of_change(stored, given.fingerprint or given.reference)
        ):
            raise AnimalcatError(
                f"{stored.id} has {count_of(stored.episodes, 'episode')} of another agent: "
                f"{changes}. Measure this one in a session of its own, or say same_agent=True; the "
                "profile then states it",
                "INVALID_REQUEST",
            )
        if episodes or target_sd is not None:
            most = stored.episodes + episodes if episodes else 0
            stored = self.extend_session(stored, most, target_sd)
        if stored.paused:
            stored = self.resume_session(stored)
        with Progress(shown=progress) as shown:
            shown.know(stored)
            if not stored.over:
                stored = self._play(given, stored, bounds, on_episode, shown, same_agent=same_agent)
                shown.know(stored)
        return Result(self, stored)

    def result(self, session: SessionLike) -> Result:
        """What a session found out, also one that goes on.

        Args:
            session: The session, its id or its resource name.
        """
        return Result(self, self.get_session(session))

    def results(self, *, agent: str = "", battery: str = "") -> ResultList:
        """What all sessions found out that have ended, newest first.

        Args:
            agent: Only those of this agent.
            battery: Only those on this battery.
        """
        ended = self.sessions(agent=agent, battery=battery, states=["finished"])
        return ResultList(Result(self, session) for session in ended)

    def _session(
        self,
        given: GivenAgent,
        battery: LabBattery,
        layout: Any,
        variant: str,
        preset: str,
        take: int,
        against: Result | SessionLike,
        prior: Result | SessionLike,
        observation_spec: ObservationSpec | None,
        options: SessionOptions,
    ) -> Session:
        """The session of a call: a new one, or the one that the same call began before."""
        try:
            asked: dict[str, Any] = {**preset_options(preset), **options}
        except ValueError as error:
            raise AnimalcatError(str(error), "INVALID_REQUEST") from None
        if given.reference:
            from animalcat.envs.agents.limits.reference import is_privileged, pictures_of

            if is_privileged(given.reference):
                asked.setdefault("privileged", True)
            if observation_spec is None and (side := pictures_of(given.reference)):
                asked.setdefault("camera", side)
        rival, earlier = (o.session if isinstance(o, Result) else o for o in (against, prior))
        known = given.fingerprint
        identity = "" if known is None else known.digest or known.process
        same = [given.name, identity, battery.digest, _text_of(layout), variant, take]
        same += [repr(observation_spec), repr(rival and _id(rival)), repr(sorted(asked.items()))]
        same += [_id(earlier)] if earlier else []
        session = self.create_session(
            agent=given.name,
            battery=battery.id,
            layout=layout,
            layout_variant=variant,
            against=rival,
            prior=earlier,
            observation_spec=observation_spec,
            request_id=hashlib.sha256(json.dumps(same).encode()).hexdigest(),
            **asked,
        )
        if session.over:
            _say(
                f"{session.id} was {session.state} before, and this is its result; "
                f"take={take + 1} measures again"
            )
        elif session.episodes + session.practised:
            _say(f"{session.id} goes on after {count_of(session.episodes, 'episode')}")
        else:
            if changes := self._changes(given, battery, session):
                _say(f"{session.id} is a new session: {changes}")
            for warning in self.profile(session)["provenance"]["coverage"]["warnings"]:
                _say(warning)
        return session

    def _changes(self, given: GivenAgent, battery: LabBattery, session: Session) -> str:
        """In what an agent differs from the one of its name that was measured last, in words."""
        if given.fingerprint is None:
            return ""
        for earlier in self.sessions(agent=given.name, battery=battery.id):
            known = earlier.identity.fingerprint
            if earlier.id != session.id and known is not None:
                return in_words(differences(known, given.fingerprint))
        return ""

    def _play(
        self,
        given: GivenAgent,
        session: Session,
        bounds: Bounds | None,
        on_episode: Callable[[PlayedEpisode], None] | None,
        shown: Progress,
        *,
        same_agent: bool = False,
    ) -> Session:
        if given.player is None:
            from animalcat.apart import Bounds, run_agent

            within = replace(bounds or Bounds(), same_agent=same_agent)
            return run_agent(self, session, given.reference, within, shown.tell)
        self.run(_playing(self.aio, given, session, on_episode, shown, same_agent))
        return self.get_session(session)

    def __repr__(self) -> str:
        return f"<Lab: {self._place}>"


async def _playing(
    client: AsyncClient,
    given: GivenAgent,
    session: Session,
    on_episode: Callable[[PlayedEpisode], None] | None,
    shown: Progress,
    same_agent: bool,
) -> None:
    """Let an agent play, and follow its session meanwhile."""
    import asyncio

    async def follow() -> None:
        async for event in client.watch_session(session):
            shown.tell(event)

    following = asyncio.ensure_future(follow())
    try:
        assert given.player is not None, "an agent of this process"
        await client.evaluate(
            given.player,
            session,
            on_episode=on_episode,
            in_thread=False,
            fingerprint=given.fingerprint,
            same_agent=same_agent,
        )
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        note_played(given.source)


def _text_of(layout: Any) -> str:
    """A layout as what tells it apart: its text, or its name."""
    if hasattr(layout, "to_yaml"):
        return str(layout.to_yaml())
    name = str(layout)
    path = Path(name) if "\n" not in name else None
    return path.read_text("utf-8") if path is not None and path.is_file() else name


def _id(session: SessionLike) -> str:
    return session.id if isinstance(session, Session) else session


def _say(words: str) -> None:
    print(harmless(words), file=sys.stderr, flush=True)


def _reach_server(address: str, shown: dict[str, Any], stack: ExitStack) -> PendingConnection:
    return aconnect(address, **shown)


def reach_private(
    home: Path, builds: tuple[Path, ...], plugins: tuple[str, ...], stack: ExitStack
) -> PendingConnection:
    """Connect to the server of a data directory, which is started if there is none."""
    from animalcat.extending.installing import needing

    with needing("animalcat.local", "server"):
        from animalcat.service.host.private import proof_for_own, server_for
    address = stack.enter_context(server_for(None, home, builds, plugins))
    return aconnect(address, **proof_for_own(home))
