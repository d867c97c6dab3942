"""A campaign as people and programs read it: its sessions, profiles and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import print_json, print_table, say
from animalcat.cli.shared.remote import session_row, timestamp
from animalcat.cli.shared.table import Column
from animalcat.client import Client
from animalcat.values import Campaign, Session

if TYPE_CHECKING:
    from animalcat.service.reporting.comparison import Comparison

_SHOWN_AGENTS: Final = 8
"""Agents of a campaign that a list names."""


def campaign_json(client: Client, campaign: Campaign, margin: float) -> dict[str, Any]:
    """Return a campaign with its profiles, their comparison, and what all agents played.

    Args:
        client: To the server.
        campaign: The campaign.
        margin: Largest difference of success rates that counts as alike.
    """
    profiles, common = _profiles(client, campaign), client.common_outcomes(campaign.id)
    known = _comparison_of(profiles, common, margin)
    return {
        **campaign_row(campaign),
        "sessions": [session_row(session) for session in campaign.sessions],
        "profiles": profiles,
        "common": common,
        "comparison": known and known.to_dict(),
    }


def _profiles(client: Client, campaign: Campaign) -> dict[str, dict[str, Any]]:
    """Profiles by agent, of those that have played."""
    return {
        session.spec.agent: client.profile(session)
        for session in campaign.sessions
        if session.episodes
    }


def _comparison_of(
    profiles: dict[str, dict[str, Any]], common: dict[str, list[bool | None]], margin: float
) -> Comparison | None:
    """The agents side by side; None where there are not two."""
    # To compare needs the server extra; to list does not.
    from animalcat.service.reporting.comparison import compare

    if len(profiles) < 2:
        return None
    return compare(profiles, mixed=True, margin=margin, common=common)


def show_campaign(client: Client, campaign: Campaign, margin: float = 0.1) -> None:
    """Print what `campaign_json` returns, as tables or as JSON."""
    from animalcat.cli.shared.comparing import show_comparison
    from animalcat.cli.shared.tables import INTERVAL, profile_rows

    row = campaign_json(client, campaign, margin)
    if common().as_json:
        print_json(row)
        return
    profiles = row["profiles"]
    say(
        f"{row['campaign']} on {row['battery']}, {row['layout']}: {row['episodes']} of "
        f"{row['budget']} episodes; {'it is over' if row['over'] else 'it goes on'}"
    )
    print_table(
        [_standing(session, row["common"]) for session in campaign.sessions],
        [
            "agent",
            Column("fingerprint", 4),
            "session",
            "state",
            Column("episodes", 3),
            Column("successes", 2),
            Column("in common", 1),
        ],
    )
    for session in campaign.sessions:
        for change in session.identity.changes:
            say(f"warning: {session.spec.agent}: {change}")
    if (known := _comparison_of(profiles, row["common"], margin)) is not None:
        show_comparison(known)
        return
    for agent, profile in profiles.items():
        columns = ["capability", "estimate", INTERVAL]
        print_table(profile_rows(profile), columns, title=agent)


def agents_words(agents: Sequence[str]) -> str:
    """The agents of a campaign in a cell: all of a few, and how many more there are."""
    shown = ", ".join(agents[:_SHOWN_AGENTS])
    more = len(agents) - _SHOWN_AGENTS
    return f"{shown} and {more} more" if more > 0 else shown


def _standing(session: Session, common: dict[str, list[bool | None]]) -> dict[str, Any]:
    played = [passed for passed in common[session.spec.agent] if passed is not None]
    return session_row(session) | {"in common": f"{sum(played)} of {len(played)} passed"}


def campaign_row(campaign: Campaign) -> dict[str, Any]:
    """Return a campaign as lists and JSON show it."""
    spec = campaign.spec
    return {
        "campaign": campaign.id,
        "battery": spec.session.battery,
        "layout": spec.session.layout,
        "agents": list(spec.agents),
        "episodes": campaign.episodes,
        "budget": spec.budget,
        "over": campaign.over,
        "unreadable": campaign.unreadable,
        "created": timestamp(campaign.created),
        "owner": campaign.owner,
    }
