"""Lets a session go on from an earlier one of the same agent, whose outcomes it then knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace

import numpy as np

from animalcat.alike import Conditions, conditions_of, differing
from animalcat.service.errors import Code, ServiceError
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.measuring.report import arena_of
from animalcat.text.counts import count_of
from animalcat.values import Earlier, Episode, Session, SessionSpec, SessionState


def insist_goes_on(spec: SessionSpec, other: Session) -> None:
    """Check that a session may go on from another one.

    Args:
        spec: The session that is to be created, with the digests of its battery and layout.
        other: The earlier session.

    Raises:
        ServiceError: It has not ended, or nothing counts; its layout does not describe its agent;
            nobody can tell that the agent is the same; or something else differs that changes what
            an outcome means.
    """
    who, name = other.identity, other.id
    anew = "measure the agent in a session of its own"
    if spec.against is not None:
        raise _refusal(name, "a session that compares two agents goes on from none; leave out one")
    if other.state is not SessionState.FINISHED or not other.episodes:
        why = f"it is {other.state.name.lower()}, with {count_of(other.episodes, 'episode')}"
        raise _refusal(name, f"{why}; let it end first (animalcat session resume {name})")
    if other.misfit:
        raise _refusal(name, f"its layout does not describe its agent {other.misfit}; {anew}")
    if spec.agent != other.spec.agent:
        raise _refusal(name, f"its agent is {other.spec.agent}, and this one {spec.agent}; {anew}")
    if who.fingerprint is None or not who.fingerprint.known:
        raise _refusal(
            name,
            "nothing is known of its agent, so nobody can tell whether this is the same; declare "
            "what the agent is (fingerprint=) and measure both times again",
        )
    if who.others:
        raise _refusal(name, f"its agent changed while it played; {anew}")
    for difference in differing({"mine": _conditions(spec), "theirs": _conditions(other.spec)}):
        if difference.forbids("compare"):
            mine, theirs = (difference.values[key] for key in ("mine", "theirs"))
            raise _refusal(
                name,
                f"the {difference.what} is {mine!r}, and there it is {theirs!r}; give the session "
                "the same",
            )


def insist_open(measurement: Measurement, session: str) -> None:
    """Check that something is left to measure after an earlier session.

    Raises:
        ServiceError: What that found is enough.
    """
    verdict = measurement.verdict(0.0)
    if verdict.stop:
        raise _refusal(
            session,
            f"nothing is left to measure, since {verdict.reason}; give a finer target "
            "(--target-sd), or --target-sd 0 to play on all the same",
        )


def earlier_of(session: Session, measurement: Measurement, attempts: Iterable[Episode]) -> Earlier:
    """Return what a session knows, for another one that goes on from it.

    Args:
        session: The session, which is over.
        measurement: What was measured in it.
        attempts: All its attempts.
    """
    before = session.spec.prior or Earlier()
    features, outcomes, weights = measurement.learner.data()
    table = np.column_stack([features, outcomes, weights])
    played = [arena_of(measurement.battery, e.decision) for e in attempts if e.counts or e.practice]
    return Earlier(
        session.id,
        {**before.episodes, session.id: measurement.learner.n},
        tuple(tuple(None if x != x else x for x in row) for row in table.tolist()),
        tuple(dict.fromkeys([*before.arenas, *("/".join(map(str, arena)) for arena in played)])),
    )


def _conditions(spec: SessionSpec) -> Conditions:
    layout = {
        "name": spec.layout,
        "variant": spec.layout_variant,
        "digest": spec.layout_digest,
    }
    return conditions_of(asdict(replace(spec, prior=None)), layout)


def _refusal(session: str, why: str) -> ServiceError:
    return ServiceError(Code.INVALID_REQUEST, f"prior {session}: {why}")
