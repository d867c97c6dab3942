"""Says whether an agent that comes is the one that a session has, and keeps what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from animalcat.envs.agents.fingerprint import (
    AgentFingerprint,
    differences,
    environment_changes,
    in_words,
    together,
)
from animalcat.service.errors import Code, ServiceError
from animalcat.service.session.record import SessionRecord
from animalcat.text.counts import count_of
from animalcat.values import Identity, Session

MAX_OTHERS: Final = 20
"""Most fingerprints of the same agent that a session keeps beside the first."""
MAX_CHANGES: Final = 100_000
"""Most characters of what a session keeps of changes of its agent."""


class Arrival(NamedTuple):
    """An agent that wants to play.

    Attributes:
        fingerprint: What it is, as its process says.
        whole: Whether its first `reset` is over, or was nothing to wait for.
        same: Whether whoever connects says that it is the same agent as before.
        unconfined: Whether its process sees the evaluator.
    """

    fingerprint: AgentFingerprint
    whole: bool = True
    same: bool = False
    unconfined: bool = False


def identify_player(
    known: Identity,
    arrival: Arrival,
    simulator: Mapping[str, str],
    *,
    begun: bool,
    company: bool,
    episode: int,
) -> Identity:
    """Return who plays a session once an agent has come.

    Until an episode is over, any agent may take the session, since nothing was measured yet.

    Args:
        known: Who played it before.
        arrival: The agent.
        simulator: Environment variables that change what the simulator does now.
        begun: Whether an episode is over, here or in an earlier session that this one goes on from,
            so that only its agent may go on.
        company: Whether other processes of its agent are there, which must be the same agent.
        episode: Number of episodes that are over.

    Raises:
        ServiceError: It is another agent, or another simulator.
    """
    first = known.fingerprint
    if first is None or not (begun or company):
        return Identity(arrival.fingerprint, simulator=simulator, unconfined=arrival.unconfined)
    known = replace(known, unconfined=known.unconfined or arrival.unconfined)
    if begun and (other := environment_changes(known.simulator, simulator)):
        raise ServiceError(
            Code.SIMULATOR_CHANGED,
            f"the session has {episode} episodes, and since then {in_words(other)}, which changes "
            "what the simulator does. Start the server with the environment that it had, or create "
            "a new session",
        )

    def find_differences(fingerprint: AgentFingerprint) -> tuple[str, ...]:
        return differences(
            fingerprint, arrival.fingerprint, known_whole=begun, now_whole=arrival.whole
        )

    everyone = (first, *known.others)
    same = next(
        (fingerprint for fingerprint in everyone if not find_differences(fingerprint)), None
    )
    if same is None:
        # Of two unknown agents in two slots nobody can say more than that both have its name.
        beside = company and not first.known and not arrival.fingerprint.known
        if not arrival.same and not beside:
            raise ServiceError(
                Code.AGENT_CHANGED, _refusal(in_words(find_differences(first)), episode, begun)
            )
        why = "it was said to be the same" if arrival.same else "it plays beside the other"
        said = f"from episode {episode} on: {in_words(find_differences(first))}; {why}"
        kept = (*known.others, arrival.fingerprint) if arrival.whole else known.others
        changes = known.changes if said in known.changes else (*known.changes, said)
        _check_room(kept, changes)
        return replace(known, others=kept, changes=changes)
    changes = known.changes
    for difference in environment_changes(same.environment, arrival.fingerprint.environment):
        said = f"from episode {episode} on: {difference}"
        if not any(change.endswith(difference) for change in changes):
            changes = (*changes, said)
    _check_room(known.others, changes)
    if same is first and not begun:
        first = together(first, arrival.fingerprint, now_whole=arrival.whole)
    return replace(known, fingerprint=first, changes=changes)


def _check_room(others: Sequence[AgentFingerprint], changes: Sequence[str]) -> None:
    """Check that an agent has not changed so often that too much would be stored of it.

    Raises:
        ServiceError: It would be too much.
    """
    if len(others) > MAX_OTHERS or sum(map(len, changes)) > MAX_CHANGES:
        raise ServiceError(
            Code.AGENT_CHANGED,
            f"the agent of the session has changed too often: {MAX_OTHERS} more fingerprints and "
            f"{MAX_CHANGES:,} characters of changes are kept. Create a new session for this agent",
        )


class Identities:
    """Knows who plays one session; what it learns is stored before anything is played by it."""

    def __init__(self, record: SessionRecord, environment: Mapping[str, str]) -> None:
        """Look at a session.

        Args:
            record: The session.
            environment: Environment variables that change what its simulator does.
        """
        self._record = record
        self._environment = environment
        self._one = asyncio.Lock()

    async def meet(self, arrival: Arrival, *, company: bool) -> None:
        """Take in that an agent has come, or has become ready.

        Args:
            arrival: The agent.
            company: Whether other processes of the session's agent are there.

        Raises:
            ServiceError: It is another agent than the session's, or another simulator.
        """
        async with self._one:
            session: Session = self._record.session
            over = session.episodes + session.practised
            new = identify_player(
                session.identity,
                arrival,
                self._environment,
                begun=over > 0 or session.spec.prior is not None,
                company=company,
                episode=over,
            )
            if new != session.identity:
                await self._record.identify(new)


def _refusal(why: str, episodes: int, begun: bool) -> str:
    said = "another process plays the session, and its agent is another"
    if begun:
        said = "the session goes on from one of another agent"
    if episodes:
        said = f"the session has {count_of(episodes, 'episode')} of another agent"
    return (
        f"{said}: {why}. Create a new session for this agent (a campaign: another --take); or "
        "declare it the same agent, which the profile then states (--same-agent, "
        "same_agent=True in Python)"
    )
