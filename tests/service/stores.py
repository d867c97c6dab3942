"""Makes stores as large as years of work would leave them, without playing anything.

What is written is what playing would have left: batteries under their digests, decisions that a
learner made, outcomes, a chain whose links hold (`session show --verify` finds nothing), profiles,
and recordings if they are asked for. Decisions are those of one short measurement on each battery,
repeated with other instances, since asking a learner 300,000 times would take an hour.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, Table, create_engine, event, insert, update
from sqlalchemy.engine import Engine

from animalcat.arena_configs.loader import load_text
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.testing import FORWARD
from animalcat.envs.types import EndedBy, ObservationSpec, Phase
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.library import load_layout
from animalcat.service.batteries.battery import BATTERIES, Battery, build_family, load
from animalcat.service.batteries.drafts import Fixed
from animalcat.service.batteries.writing import write_battery
from animalcat.service.ids import campaign_id, session_id
from animalcat.service.library.layouts import layout_of, record_of
from animalcat.service.measuring.explaining import Explainer
from animalcat.service.measuring.kept_fits import keep_fit, kept_fit_key
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.measuring.report import live_profile
from animalcat.service.model import BatteryRecord, StoredCampaign
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.storage import records, schema
from animalcat.service.storage.artefacts import Artefacts, recording_path
from animalcat.service.storage.chain import BEGINNING, PROFILE, STANDING, content_digest, make_link
from animalcat.service.storage.sql import DATABASE, SqlStore, episode_values
from animalcat.service.versions import versions
from animalcat.values import (
    NOBODY,
    NOTHING,
    CampaignSpec,
    CapabilityStatus,
    Decision,
    Episode,
    EpisodeHeader,
    Outcome,
    Session,
    SessionSpec,
    SessionState,
)
from animalcat.wire.codec import encode

BEGUN: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When the first session of a store was created; each later one an hour after the one before."""
FAMILY: Final = "navigation"
"""The family that batteries take their arenas from: it was measured when animalcat was made."""
FAMILY_SIZE: Final = 450
LAYOUT: Final = "aaio"
ASKED: Final = 20
"""Decisions that the learner of a battery makes; sessions repeat them with other instances."""
ROWS: Final = 2000
"""Rows that are written at once."""
LISTED: Final = "listed"
_FAR: Final = "rewardDistance"
_BLUR_METRES: Final = 8.0
"""How far around its reach an agent passes some arenas and fails others."""
_DECISIONS: Final = 30
"""Decisions of the episode whose recording is copied."""


class Played(NamedTuple):
    """What one short measurement on a battery leaves, for sessions to repeat.

    Attributes:
        battery: The battery.
        id: Its name in the store.
        layout: The layout's name.
        variant: Its variant.
        layout_digest: Its digest.
        candidates: Instances that the layout covers, with how far their goal is in metres.
        decisions: The learner's decisions.
        profile: The profile after them.
        capabilities: How well each capability is known after them.
        fit: The posterior after them.
        recording: The bytes of a recorded episode.
    """

    battery: Battery
    id: str
    layout: str
    variant: str
    layout_digest: str
    candidates: Mapping[str, float]
    decisions: Sequence[Decision]
    profile: Mapping[str, Any]
    capabilities: tuple[CapabilityStatus, ...]
    fit: FitResult
    recording: bytes


@dataclass(frozen=True)
class _Agent:
    """What tells the agent of one session from others.

    Attributes:
        reach: How far a goal may be for it to be found, in metres.
        shift: By how much the estimates of its profile are moved, in standard deviations.
    """

    reach: float
    shift: float


class StoreMaker:
    """Writes batteries, sessions and campaigns into a data directory that no server uses.

    Close it (or use it as a context manager) before a server opens the directory. The same calls
    write the same content, but for the id of the database and the versions of this installation.

    Args:
        data: The data directory.
        url: URL of a PostgreSQL database; empty for SQLite in the data directory.
        seed: Seed of everything random.
    """

    def __init__(self, data: Path, url: str = "", seed: int = 0) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.data = data
        self.files = Artefacts(data)
        self.store = SqlStore(url) if url else SqlStore.in_directory(data)
        self.files.set_mark(self.store.id())
        self._engine = _bulk(url or f"sqlite:///{(data / DATABASE).resolve()}")
        self._rng = np.random.default_rng(seed)
        self._versions = json.dumps(versions())
        self._family: list[Fixed] = []
        self._units: Mapping[str, str] = {}
        self._made = 0

    def __enter__(self) -> StoreMaker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()
        self.store.close()

    def battery(
        self, name: str, instances: int = FAMILY_SIZE, *, layout: str = LAYOUT, variant: str = ""
    ) -> Played:
        """Write a battery, and measure somebody on it for a moment.

        Instances are those of a shipped family. Where there are not as many, they come again with
        other time limits and demands.

        Args:
            name: Its id.
            instances: How many.
            layout: The layout by which sessions on it measure.
            variant: The layout's variant.
        """
        fixed = list(islice(self._arenas(), instances))
        digest = write_battery(fixed, self._units, self.data / BATTERIES)
        self.store.put_battery(BatteryRecord(name, digest, len(fixed)))
        battery = load(digest, self.data / BATTERIES)
        loaded = load_layout(layout, variant)
        self.store.put_layout(record_of(loaded))
        spec = SessionSpec(
            agent="somebody",
            battery=name,
            battery_digest=digest,
            layout=loaded.name,
            layout_variant=loaded.variant,
            layout_digest=loaded.identity,
        )
        measurement = Measurement(spec, battery, loaded, session="nobody")
        far = {i.name: i.features.get(_FAR, 20.0) for i in battery.instances}
        attempts: list[Episode] = []
        for number in range(ASKED):
            decision = measurement.choose(number)
            if decision is None:
                break
            passed = self._passes(_Agent(20.0, 0.0), far[decision.instance])
            attempts.append(_attempt("nobody", number, decision, passed=bool(passed)))
            measurement.tell(attempts[-1])
        session = Session("nobody", spec, SessionState.FINISHED, "the budget", BEGUN, len(attempts))
        report = live_profile(session, measurement, attempts, json.loads(self._versions))
        return Played(
            battery,
            name,
            loaded.name,
            loaded.variant,
            loaded.identity,
            {name: far[name] for name in measurement.candidates},
            [attempt.decision for attempt in attempts],
            report.profile,
            report.capabilities,
            measurement.learner.posterior.as_fit(),
            _recording(battery, attempts[0]),
        )

    def sessions(
        self,
        played: Played,
        number: int,
        episodes: int,
        *,
        over: bool = True,
        recordings: int = 0,
        fits: bool = False,
        agent: str = "",
        **spec: Any,
    ) -> list[str]:
        """Write sessions on a battery.

        Args:
            played: The battery.
            number: How many sessions.
            episodes: How many episodes each has played. Of more than the battery has instances,
                they come again.
            over: Whether they are finished, with a profile; else they wait for their agent.
            recordings: How many of its episodes have a recording (a copy of one and the same).
            fits: Whether the draws of the last fit are kept.
            agent: Name of the agent; empty for one each.
            **spec: Further fields of the specification, such as `seed` or `certify`.

        Returns:
            Their ids.
        """
        stop = StoppingRule(max_episodes=max(episodes, 1) if over else max(2 * episodes, 60))
        specs: list[SessionSpec] = []
        for _ in range(number):
            own: dict[str, Any] = {"seed": self._made, "stop": stop, "certify": False} | spec
            named = agent or f"agent-{self._made}"
            specs.append(SessionSpec(agent=named, **_measured(played), **own))
            self._made += 1
        return self._write(played, specs, episodes, over, recordings, fits)

    def explain(self, session: str) -> None:
        """Keep what explains the episodes of a session that is over, as a server does at its end.

        Everything is told for that, a thousand outcomes a second.
        """
        stored = self.store.session(session)
        assert stored is not None
        battery = load(stored.spec.battery_digest, self.data / BATTERIES)
        layout = layout_of(stored.spec, self.store)
        Explainer(self.store, self.files).explained(stored, layout, battery, 0, None)

    def campaign(
        self,
        played: Played,
        agents: int,
        episodes: int,
        *,
        over: bool = True,
        recordings: int = 0,
        fits: bool = False,
    ) -> str:
        """Write a campaign with the sessions of its agents.

        Args:
            played: The battery.
            agents: How many agents.
            episodes: How many episodes each has played; 12 are on the arenas that all play first.
            over: Whether it is over; else its sessions wait for their agents.
            recordings: As of `sessions`.
            fits: As of `sessions`.

        Returns:
            Its id.
        """
        candidates = sorted(played.candidates)
        self._made += 1
        session = SessionSpec("", seed=self._made, certify=False, **_measured(played))
        names = tuple(f"entrant-{self._made}-{k}" for k in range(agents))
        spec = CampaignSpec(names, session, max(1, agents * episodes * (1 if over else 2)))
        order = tuple(map(str, self._rng.permutation(candidates)[: spec.common]))
        campaign = campaign_id(spec)
        stop = StoppingRule(max_episodes=spec.share, target_sd=0.0, futility=0.0)
        policy = replace(session.policy, order=order)
        specs = [replace(session, agent=name, policy=policy, stop=stop) for name in names]
        sessions = self._write(played, specs, episodes, over, recordings, fits)
        when = BEGUN + timedelta(hours=self._made)
        self.store.create_campaign(StoredCampaign(campaign, spec, tuple(sessions), when))
        return campaign

    def _write(
        self,
        played: Played,
        specs: Sequence[SessionSpec],
        episodes: int,
        over: bool,
        recordings: int,
        fits: bool,
    ) -> list[str]:
        named: list[str] = []
        with self._engine.begin() as db:
            for spec in specs:
                session = session_id(spec)
                agent = _Agent(float(self._rng.uniform(5, 45)), float(self._rng.normal()))
                row = _session_row(session, spec, played, agent, over, self._made)
                links = _Links(db, session)
                db.execute(insert(schema.sessions), row)
                links.add(BEGINNING, _digest(row, ("id", "spec", "created")))
                standing = _digest(row, _STANDING)
                links.add(STANDING, standing)
                passed = self._write_episodes(
                    db, session, spec, played, agent, episodes, recordings, links, standing
                )
                counts = {"episodes": episodes, "successes": passed}
                this = schema.sessions.c.id == session
                db.execute(update(schema.sessions).where(this).values(counts))
                if over:
                    kept = self._fit(session, played, agent) if fits else ""
                    text = _profile(session, spec, played, agent)
                    profile = {"session": session, "profile": text}
                    db.execute(insert(schema.profiles), profile)
                    links.add(PROFILE, content_digest(profile), kept)
                    links.add(STANDING, standing)
                links.write()
                named.append(session)
        return named

    def _write_episodes(
        self,
        db: Connection,
        session: str,
        spec: SessionSpec,
        played: Played,
        agent: _Agent,
        episodes: int,
        recordings: int,
        links: _Links,
        standing: str,
    ) -> int:
        """Write the episodes of a session, and return how many are successes."""
        instances = np.array(sorted(played.candidates))
        chosen = np.concatenate(
            [self._rng.permutation(instances) for _ in range(-(-episodes // len(instances)))]
            or [instances[:0]]
        )[:episodes]
        order = spec.policy.order[:episodes]
        chosen[: len(order)] = order
        far = np.array([played.candidates[name] for name in chosen.tolist()])
        passes = self._passes(agent, far)
        kept = self._recordings(session, played, min(recordings, episodes))
        texts = [_split(decision) for decision in played.decisions]
        rows = _Rows(db, schema.episodes)
        blank = _blank(session, played.decisions[0], self._versions)
        for number, (name, passed) in enumerate(zip(chosen.tolist(), passes.tolist(), strict=True)):
            before, after = _LISTED if number < len(order) else texts[number % len(texts)]
            gained = 0.5 if passed else -1.0
            row = blank | {
                "number": number,
                "decision": f"{before}{json.dumps(name)}{after}",
                "outcome": (Outcome.SUCCESS if passed else Outcome.FAILURE).name,
                "episode_return": gained,
                "ended_by": (EndedBy.GOAL if passed else EndedBy.TIME_LIMIT).name,
                "outcomes": _PASSED if passed else _FAILED,
            }
            links.add(STANDING, standing)
            links.add(f"{number}-0", content_digest(row), kept if number < recordings else "")
            rows.add(row)
        rows.write()
        return int(passes.sum())

    def _recordings(self, session: str, played: Played, number: int) -> str:
        """Copy the recording for the first attempts of a session, and return its digest."""
        if not number:
            return ""
        recording_path(self.data, session, 0, 0).parent.mkdir(parents=True, exist_ok=True)
        for k in range(number):
            recording_path(self.data, session, k, 0).write_bytes(played.recording)
        return self.files.digest(f"recordings/{session}/0-0.mcap")

    def _fit(self, session: str, played: Played, agent: _Agent) -> str:
        """Keep draws for a session, and return the digest of their file."""
        fit = played.fit
        draws = fit.draws + agent.shift * fit.draws.std(axis=(0, 1), keepdims=True)
        keep_fit(self.files, session, replace(fit, draws=draws))
        return self.files.digest(kept_fit_key(session))

    def _passes(self, agent: _Agent, far: Any) -> Any:
        chance = 1.0 / (1.0 + np.exp((np.asarray(far) - agent.reach) / _BLUR_METRES))
        return self._rng.uniform(size=np.shape(far)) < chance

    def _arenas(self) -> Iterator[Fixed]:
        """Instances without end: those of the family in another order, then the same made other."""
        if not self._family:
            with tempfile.TemporaryDirectory() as folder:
                built = build_family(FAMILY, FAMILY_SIZE, 0, Path(folder))
                self._family = [Fixed(i, built.arena_yaml(i)) for i in built.instances]
                self._units = built.units
        number = 0
        while True:
            for k in self._rng.permutation(len(self._family)).tolist():
                yield _other(self._family[int(k)], number, self._rng)
                number += 1


class _Rows:
    """Rows of one table, written many at a time."""

    def __init__(self, db: Connection, table: Table) -> None:
        self._db = db
        self._table = table
        self._rows: list[Mapping[str, Any]] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a row, now or later."""
        self._rows.append(row)
        if len(self._rows) >= ROWS:
            self.write()

    def write(self) -> None:
        """Write what is still to be written."""
        if self._rows:
            self._db.execute(insert(self._table), self._rows)
            self._rows = []


class _Links:
    """The chain of one session."""

    def __init__(self, db: Connection, session: str) -> None:
        self._rows = _Rows(db, schema.chain)
        self._session = session
        self._number = 0
        self._last = ""

    def add(self, what: str, content: str, recording: str = "") -> None:
        """Add a link."""
        link = make_link(self._last, what, content, recording)
        self._rows.add({"session": self._session, "seq": self._number, **link._asdict()})
        self._number += 1
        self._last = link.digest

    def write(self) -> None:
        """Write what is still to be written."""
        self._rows.write()


_STANDING: Final = (
    *("id", "state", "reason", "capabilities", "misfit", "identity", "agent", "battery"),
    "battery_digest",
)
"""Columns of which the link on how a session stands is the digest."""


def _digest(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    return content_digest({name: row[name] for name in columns})


def _split(decision: Decision) -> tuple[str, str]:
    """The record of a decision as text, before and after the name of its instance."""
    before, _, after = json.dumps(records.DECISION.write(decision)).partition(
        json.dumps(decision.instance)
    )
    return before, after


def _attempt(session: str, number: int, decision: Decision, *, passed: bool) -> Episode:
    gained = 0.5 if passed else -1.0
    return Episode(
        session=session,
        number=number,
        attempt=0,
        decision=decision,
        agent_instance="stores",
        outcome=Outcome.SUCCESS if passed else Outcome.FAILURE,
        episode_return=gained,
        steps=60,
        ended_by=EndedBy.GOAL if passed else EndedBy.TIME_LIMIT,
        seconds=1.5,
        outcomes={"success": float(passed), "return": gained},
    )


_LISTED: Final = _split(Decision("?", 0.0, 1.0, 0.5, {}, LISTED))
_PASSED, _FAILED = (
    json.dumps(dict(_attempt("?", 0, Decision("?", 0.0, 1.0, 0.5, {}, LISTED), passed=p).outcomes))
    for p in (True, False)
)


def _blank(session: str, decision: Decision, played_with: str) -> dict[str, Any]:
    """What the rows of all attempts of a session have in common."""
    row = episode_values(_attempt(session, 0, decision, passed=True))
    return {
        name: json.dumps(value) if isinstance(value, dict | list) else value
        for name, value in row.items()
    } | {"versions": played_with}


def _measured(played: Played) -> dict[str, Any]:
    """Fields of the specification of a session on a battery."""
    return {
        "battery": played.id,
        "battery_digest": played.battery.digest,
        "layout": played.layout,
        "layout_variant": played.variant,
        "layout_digest": played.layout_digest,
    }


def _session_row(
    session: str,
    spec: SessionSpec,
    played: Played,
    agent: _Agent,
    over: bool,
    number: int,
) -> dict[str, Any]:
    known = tuple(
        replace(status, mean=status.mean + agent.shift * status.sd)
        for status in played.capabilities
    )
    state = SessionState.FINISHED if over else SessionState.WAITING
    return {
        "id": session,
        "request_id": None,
        "spec": json.dumps(records.SPEC.write(spec)),
        "state": state.name,
        "reason": "the budget of episodes is used up" if over else "",
        "created": (BEGUN + timedelta(hours=number)).replace(tzinfo=None),
        "capabilities": json.dumps(records.CAPABILITIES.write(records.Capabilities(known))),
        "misfit": "",
        "agent": spec.agent,
        "battery": spec.battery,
        "battery_digest": spec.battery_digest,
        "paused": False,
        "identity": json.dumps(records.IDENTITY.write(NOBODY)),
        "campaign": None,
        "episodes": 0,
        "successes": 0,
        "practised": 0,
        "spent": json.dumps(records.SPENT.write(NOTHING)),
    }


def _profile(session: str, spec: SessionSpec, played: Played, agent: _Agent) -> str:
    """The profile of a session as text: that of the battery, moved and under another name."""
    profile = dict(played.profile)
    about = {"session": f"sessions/{session}", "agent": spec.agent, "seed": spec.seed}
    profile["provenance"] = {**profile["provenance"], **about}
    profile["nodes"] = {name: _move_node(node, agent) for name, node in profile["nodes"].items()}
    return json.dumps(profile)


def _move_node(node: Mapping[str, Any], agent: _Agent) -> dict[str, Any]:
    """A node of a profile with another mean, unless it would not fit its range then."""
    by = agent.shift * node["sd"]
    low, high = node["range"]
    if high is not None or (low is not None and node["mean"] + by < low + node["sd"]):
        return dict(node)
    return {**node, "mean": node["mean"] + by, "hdi": [end + by for end in node["hdi"]]}


def _other(fixed: Fixed, number: int, rng: np.random.Generator) -> Fixed:
    """An instance under a name of its own; past the first of each, with another limit and goal."""
    name, again = f"arena-{number:06}", number // FAMILY_SIZE
    instance, text = fixed.instance, fixed.text
    features, limit = dict(instance.features), instance.time_limit_steps
    if again:
        old = limit // 5
        limit += 5 * again
        text = text.replace(f"timeLimit: {old}", f"timeLimit: {old + again}")
        features[_FAR] *= float(rng.uniform(0.9, 1.1))
    arena = f"arenas/{number:06}.yaml"
    own = replace(
        instance, name=name, features=features, time_limit_steps=limit, arena=arena, origin=None
    )
    return Fixed(own, text)


def _recording(battery: Battery, episode: Episode) -> bytes:
    """The bytes of a recorded episode: the agent runs ahead."""
    instance = battery.instances[battery.index[episode.instance]]
    text, spec = battery.arena_yaml(instance), ObservationSpec()
    header = EpisodeHeader(
        session=episode.session,
        number=episode.number,
        attempt=0,
        instance=instance.name,
        arena_yaml=text,
        seed=instance.seed,
        observation_spec=spec,
        backend="sim",
        versions=versions(),
        decision=episode.decision,
        agent="somebody",
        pixels=False,
        places=(),
    )
    with tempfile.TemporaryDirectory() as folder:
        recorder = EpisodeRecorder(Path(folder) / "0-0.mcap", encode(header))
        environment = SimEnvironment(spec)
        step = environment.load(load_text(text, instance.name).config.first, instance.seed)
        recorder.step(step, None)
        for _ in range(_DECISIONS):
            if step.phase is Phase.LAST:
                break
            step = environment.step(FORWARD)
            recorder.step(step, FORWARD)
        environment.close()
        recorder.finish(1)
        return recorder.path.read_bytes()


def _bulk(url: str) -> Engine:
    """A way into the database for many rows at once; JSON is given as text."""
    plain = url.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = create_engine(plain, json_serializer=str)
    if engine.dialect.name == "sqlite":

        def quick(connection: Any, _: object) -> None:
            connection.execute("PRAGMA synchronous=OFF")

        event.listen(engine, "connect", quick)
    return engine
