"""Whether an agent is still what it was when its session began; nothing of it is run to see."""

from __future__ import annotations

from animalcat.cli.shared.output import fail
from animalcat.lab.agents import words_of_change
from animalcat.text.counts import count_of
from animalcat.values import Campaign, Session


def check_session(session: Session, reference: str, *, same_agent: bool) -> None:
    """End the command where a session is of another agent, and nobody says that it is the same."""
    if not same_agent and (changes := words_of_change(session, reference)):
        fail(
            f"{session.id} has {count_of(session.episodes, 'episode')} of another agent: "
            f"{changes}. Measure this one in a session of its own (animalcat session run), or say "
            "--same-agent to go on; the profile then states it"
        )


def check_campaign(campaign: Campaign, *, same_agent: bool) -> None:
    """End the command where a campaign has measured other agents than its references name now."""
    if same_agent:
        return
    for session in campaign.sessions:
        if changes := words_of_change(session, session.spec.agent):
            fail(
                f"campaign {campaign.id} has {count_of(session.episodes, 'episode')} of another "
                f"{session.spec.agent}: {changes}. Say --take {(campaign.spec.take or 1) + 1} for "
                "a new campaign, or --same-agent to go on with this one; profiles then state it"
            )
