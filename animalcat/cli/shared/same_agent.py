"""Whether an agent is still what it was when its session began; nothing of it is run to see."""

from __future__ import annotations

from animalcat.cli.shared.output import fail
from animalcat.envs.agents.fingerprint import differences, in_words
from animalcat.envs.agents.load import check_name
from animalcat.envs.agents.watching import as_now
from animalcat.values import Campaign, Session


def changed(session: Session, reference: str) -> str:
    """In what an agent differs from the one that a session has, in words; empty if in nothing.

    Args:
        session: One without episodes has no agent yet, whoever came. Only files that the agent is
            known to have read are looked at; the rest is seen when it plays.
        reference: The agent.
    """
    known = session.identity.fingerprint
    if known is None or not session.episodes + session.practised or known.source == "declared":
        return ""
    read = check_name(reference)
    changes = [
        differences(fingerprint, as_now(fingerprint, read))
        for fingerprint in (known, *session.identity.others)
    ]
    return in_words(changes[0]) if all(changes) else ""


def check_session(session: Session, reference: str, *, same_agent: bool) -> None:
    """End the command where a session is of another agent, and nobody says that it is the same."""
    if not same_agent and (changes := changed(session, reference)):
        fail(
            f"{session.id} has {session.episodes} episodes of another agent: {changes}. Measure "
            "this one in a session of its own (animalcat session run), or say --same-agent to go "
            "on; the profile then states it"
        )


def check_campaign(campaign: Campaign, *, same_agent: bool) -> None:
    """End the command where a campaign has measured other agents than its references name now."""
    if same_agent:
        return
    for session in campaign.sessions:
        if changes := changed(session, session.spec.agent):
            fail(
                f"campaign {campaign.id} has {session.episodes} episodes of another "
                f"{session.spec.agent}: {changes}. Say --take {(campaign.spec.take or 1) + 1} for "
                "a new campaign, or --same-agent to go on with this one; profiles then state it"
            )
