"""Explains single episodes of a session, by the posterior that knows all of its outcomes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from animalcat.arena_configs.instance import Instance
from animalcat.envs.types import PHYSICS_STEP, EndedBy
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.explaining.session import Standing, explain_of, standing_of
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import Code, ServiceError
from animalcat.service.measuring.kept_fits import keep_standing, load_standing, told_digest
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.errors import readable
from animalcat.service.storage.listing import EpisodeFilter
from animalcat.service.storage.sql import SqlStore
from animalcat.text import names
from animalcat.values import Episode, Session

log = logging.getLogger(__name__)


MANY: Final = 1000
"""From more outcomes on, what explains the episodes of a session that is over is kept on disk."""


class Known(NamedTuple):
    """What explains the episodes of a session.

    Attributes:
        measurement: Its measurement, which may not have been told anything.
        standing: What all of its attempts told.
    """

    measurement: Measurement
    standing: Standing


def explained_episode(
    session: Session,
    layout: Layout,
    battery: Battery,
    attempts: Sequence[Episode],
    number: int,
    attempt: int | None,
    known: Callable[[], Known] | None = None,
) -> dict[str, Any]:
    """Explain why an episode ended as it did, as JSON values of the schema "episode_explain".

    Args:
        session: The session.
        layout: Its layout.
        battery: The battery that it chooses from.
        attempts: All of its attempts; those at this episode are enough with `read_known`.
        number: Number of the episode.
        attempt: Which attempt at it; None for the one that counts, or else the last.
        known: Gives what all of the attempts tell; by default it is worked out.

    Raises:
        ServiceError: There is no such episode, or it has no outcome that counts.
    """
    tried = [e for e in attempts if e.number == number and attempt in (None, e.attempt)]
    if not tried:
        numbers = sorted({e.number for e in attempts})
        there = f"it has {numbers[0]} to {numbers[-1]}" if numbers else "it has none yet"
        raise ServiceError(
            Code.UNKNOWN_EPISODE, f"session {session.id} has no such episode: {there}"
        )
    episode = next((e for e in tried if e.counts), tried[-1])
    if not episode.counts:
        outcome = "still open" if episode.outcome is None else episode.outcome.name.lower()
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"episode {number} is {'invalid' if episode.invalid else outcome} and does not count, "
            "so the posterior says nothing of it; name one that was passed or failed",
        )
    first = layout.outcomes[0]
    if first.source not in {"success", *episode.outcomes}:
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"nothing was observed of outcome {first.name!r} in episode {number}, so there is "
            "nothing to explain; name another episode",
        )
    measurement, standing = known() if known else _tell_attempts(session, layout, battery, attempts)
    measurement.learn(episode.decision)
    instance = _instance_of(battery, episode)
    found = explain_of(
        measurement.learner,
        episode.decision.instance,
        measurement.share(episode),
        words_of_end(episode, instance, layout, session.spec.observation_spec.decision_period),
        standing,
        episode.decision.played_before,
    )
    return {
        "episode": names.episode_name(session.id, number, episode.attempt),
        "predicted": episode.decision.predicted,
        "contradicted": standing.misfit,
        **found.to_dict(),
    }


def _tell_attempts(
    session: Session, layout: Layout, battery: Battery, attempts: Sequence[Episode]
) -> Known:
    """Tell a new measurement all attempts of a session."""
    measurement = Measurement(session.spec, battery, layout)
    for one in attempts:
        measurement.learn(one.decision)
    for one in sorted((e for e in attempts if e.counts), key=lambda e: e.number):
        measurement.tell(one)
    return Known(measurement, standing_of(measurement.learner))


class Explainer:
    """Explains episodes, and keeps what explains them for as long as nothing else was stored since.

    Who asks for one episode of a session often asks for the next, so that what was told last stays
    in memory. Of a long session that is over it is kept on disk as well. What is kept was told
    exactly what is stored now, or it is told again. It may be used by several threads.
    """

    def __init__(self, store: SqlStore, files: Artefacts) -> None:
        """Keep nothing yet.

        Args:
            store: Has the sessions.
            files: Keeps files of sessions.
        """
        self._store = store
        self._files = files
        self._lock = threading.Lock()
        self._kept: tuple[str, Known] | None = None

    def explained(
        self, session: Session, layout: Layout, battery: Battery, number: int, attempt: int | None
    ) -> dict[str, Any]:
        """Explain an episode; see `explained_episode`."""
        store = self._store
        tried = store.episodes(session.id, EpisodeFilter(number=number))
        attempts = readable(tried or store.episodes(session.id))

        def read_known() -> Known:
            return self._load_known(session, layout, battery)

        with self._lock:
            return explained_episode(
                session, layout, battery, attempts, number, attempt, read_known
            )

    def _load_known(self, session: Session, layout: Layout, battery: Battery) -> Known:
        told = told_digest(session, self._store.last_told(session.id))
        if self._kept is not None and self._kept[0] == told:
            return self._kept[1]
        standing = load_standing(self._files, session.id, told)
        if standing is not None:
            known = Known(Measurement(session.spec, battery, layout), standing)
        else:
            known = _tell_attempts(
                session, layout, battery, readable(self._store.episodes(session.id))
            )
            if session.over:
                keep_explanation(self._store, self._files, session, known.measurement.learner)
        self._kept = told, known
        return known


def keep_explanation(store: SqlStore, files: Artefacts, session: Session, learner: Learner) -> None:
    """Keep what explains the episodes of a session that is over, if telling them takes long.

    A learner that was restarted from draws, by a certificate, is not what telling gives.

    Args:
        store: Has the session.
        files: Keeps its files.
        session: The session.
        learner: What was told all of its outcomes.
    """
    if learner.n <= MANY or learner.reseeded:
        return
    told = told_digest(session, store.last_told(session.id))
    try:
        keep_standing(files, session.id, standing_of(learner), told)
    except OSError as error:  # it can be told again
        log.warning("session %s: what explains its episodes is not kept: %s", session.id, error)


def words_of_end(
    episode: Episode, instance: Instance | None, layout: Layout, decision_period: int
) -> str:
    """Return how an episode ended, in a sentence; empty if that is not known.

    What killed an agent is not recorded. It is told where the arena has such a thing, and whether
    the layout knows it.

    Args:
        episode: The episode.
        instance: What was played; None if that is not known.
        layout: The layout.
        decision_period: Physics steps of a decision.
    """
    seconds = f"after {episode.steps * decision_period * PHYSICS_STEP:.2g} s"
    if episode.cause:
        return f"It was ended {seconds}: {episode.cause}."
    if episode.ended_by is EndedBy.GOAL:
        return f"It reached a goal that ended the episode {seconds}."
    if episode.ended_by is EndedBy.TIME_LIMIT:
        return f"It ran out of time {seconds}."
    if episode.ended_by is not EndedBy.DEATH:
        return ""
    deadly = [one for one in _DEADLY if instance and instance.features.get(one.feature)]
    where = f" {' or '.join(one.where for one in deadly)}" if deadly else ""
    lacking = [
        one.name
        for one in deadly
        if not any(name.lower().startswith(one.stem) for name in layout.feature_names)
    ]
    unknown = f"; this layout has no node for {' or '.join(lacking)}" if lacking else ""
    return f"It died{where} {seconds}{unknown}."


class _Deadly(NamedTuple):
    """What can kill an agent.

    Attributes:
        name: What it is called.
        where: Where the agent then died.
        feature: The feature that counts such things in an arena.
        stem: How the names of features begin that are about it.
    """

    name: str
    where: str
    feature: str
    stem: str


_DEADLY: Final = (
    _Deadly("lava", "in lava", "lava", "lava"),
    _Deadly("hot zones", "in a hot zone", "hotZones", "hot"),
    _Deadly("bad goals", "by a bad goal", "badGoals", "bad"),
)


def _instance_of(battery: Battery, episode: Episode) -> Instance | None:
    """Return the instance that was played: one of the battery's, or one that was made."""
    if episode.decision.made is not None:
        return episode.decision.made.instance
    row = battery.index.get(episode.decision.instance)
    return None if row is None else battery.instances[row]
