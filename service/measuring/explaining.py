"""Explains single episodes of a session, by the posterior that knows all of its outcomes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from animalcat import names
from animalcat.arena_configs.instance import Instance
from animalcat.envs.types import PHYSICS_STEP, EndedBy
from animalcat.layouts.explaining.session import explain_of
from animalcat.layouts.model.likelihood import as_shares
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import Code, ServiceError
from animalcat.service.measuring.measurement import Measurement
from animalcat.values import Episode, Session


def explained_episode(
    session: Session,
    layout: Layout,
    battery: Battery,
    attempts: Sequence[Episode],
    number: int,
    attempt: int | None,
    measured: Callable[[], Measurement] | None = None,
) -> dict[str, Any]:
    """Explain why an episode ended as it did, as JSON values of the schema "episode_explain".

    Args:
        session: The session.
        layout: Its layout.
        battery: The battery that it chooses from.
        attempts: All of its attempts.
        number: Number of the episode.
        attempt: Which attempt at it; None for the one that counts, or else the last.
        measured: Gives what all of the attempts tell; by default it is worked out.

    Raises:
        ServiceError: There is no such episode, or it has no outcome that counts.
    """
    tried = [e for e in attempts if e.number == number and attempt in (None, e.attempt)]
    if not tried:
        known = sorted({e.number for e in attempts})
        there = f"it has {known[0]} to {known[-1]}" if known else "it has none yet"
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
    measurement = measured() if measured else measurement_of(session, layout, battery, attempts)
    learner = measurement.learner
    data = learner.data()
    shares = as_shares(layout, learner.bank.evaluator.columns(data.features), data.outcomes)
    row = sorted(e.number for e in attempts if e.counts).index(number)
    instance = _played(battery, episode)
    found = explain_of(
        learner,
        episode.decision.instance,
        float(shares[row, 0]),
        happened(episode, instance, layout, session.spec.observation_spec.decision_period),
    )
    return {
        "episode": names.episode_name(session.id, number, episode.attempt),
        "predicted": episode.decision.predicted,
        "contradicted": learner.misfit,
        **found.to_dict(),
    }


def measurement_of(
    session: Session, layout: Layout, battery: Battery, attempts: Sequence[Episode]
) -> Measurement:
    """Return what all attempts of a session tell.

    Args:
        session: The session.
        layout: Its layout.
        battery: The battery that it chooses from.
        attempts: All of its attempts.
    """
    measurement = Measurement(session.spec, battery, layout)
    for one in attempts:
        measurement.learn(one.decision)
    for one in sorted((e for e in attempts if e.counts), key=lambda e: e.number):
        measurement.tell(one)
    return measurement


class LatestMeasurement:
    """Keeps what was told last, for as long as nothing else was stored since.

    Who asks for one episode of a session often asks for the next. What is kept was told exactly
    what is stored now, or it is told again. It may be used by several threads.
    """

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._lock = threading.Lock()
        self._kept: tuple[Session, tuple[Episode, ...], Measurement] | None = None

    def explained(
        self,
        session: Session,
        layout: Layout,
        battery: Battery,
        attempts: Sequence[Episode],
        number: int,
        attempt: int | None,
    ) -> dict[str, Any]:
        """Explain an episode; see `explained_episode`."""

        def measured() -> Measurement:
            told = tuple(attempts)
            kept = self._kept
            if kept is None or (kept[0].id, kept[0].spec) != (session.id, session.spec):
                kept = None
            if kept is None or kept[1] != told:
                made = measurement_of(session, layout, battery, attempts)
                kept = self._kept = session, told, made
            return kept[2]

        with self._lock:
            return explained_episode(session, layout, battery, attempts, number, attempt, measured)


def happened(
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
        return f"Its time was up {seconds}."
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


def _played(battery: Battery, episode: Episode) -> Instance | None:
    """Return the instance that was played: one of the battery's, or one that was made."""
    if episode.decision.made is not None:
        return episode.decision.made.instance
    row = battery.index.get(episode.decision.instance)
    return None if row is None else battery.instances[row]
