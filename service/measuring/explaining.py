"""Explains single episodes of a session, by the posterior that knows all of its outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from animalcat import names
from animalcat.layouts.explaining.limits import as_shares
from animalcat.layouts.explaining.session import explain_of
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
) -> dict[str, Any]:
    """Explain why an episode ended as it did, as JSON values of the schema "episode_explain".

    Args:
        session: The session.
        layout: Its layout.
        battery: The battery that it chooses from.
        attempts: All of its attempts.
        number: Number of the episode.
        attempt: Which attempt at it; None for the one that counts, or else the last.

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
    measurement = Measurement(session.spec, battery, layout)
    for one in attempts:
        measurement.learn(one.decision)
    counted = sorted((e for e in attempts if e.counts), key=lambda e: e.number)
    for one in counted:
        measurement.tell(one)
    learner = measurement.learner
    data = learner.data()
    shares = as_shares(layout, learner.bank.evaluator.columns(data.features), data.outcomes)
    row = [e.number for e in counted].index(number)
    found = explain_of(learner, episode.decision.instance, float(shares[row, 0]))
    return {
        "episode": names.episode_name(session.id, number, episode.attempt),
        "predicted": episode.decision.predicted,
        "contradicted": learner.misfit,
        **found.to_dict(),
    }
