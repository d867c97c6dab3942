"""What would close what a profile leaves open: how many more episodes, and by which command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from animalcat.layouts.adaptive.statuses import PRECISE
from animalcat.layouts.explaining.wording import is_share
from animalcat.layouts.reporting.profile import Profile, learnt
from animalcat.values import Session

_FINER: Final = 0.8
"""By what factor a target is made finer where the one that there was is reached."""


def next_steps(
    session: Session, profile: Profile, needed: Mapping[str, int | None], left: int
) -> list[dict[str, Any]]:
    """Return what would close what the profile of a finished session leaves open.

    Args:
        session: The session, with the reason of its end.
        profile: Its profile, with statuses, notes and judgement.
        needed: How many more episodes each capability is expected to take to its target, as
            `Verdict.episodes_needed`.
        left: How many arenas of the battery may still be played.

    Returns:
        JSON values, as the schema "profile" documents them; none if nothing is open.
    """
    if profile.judgement is not None and profile.judgement["standing"] == "not described":
        return [
            _step(
                "More episodes do not help, since the layout does not describe this agent. What "
                "it failed at may say what the layout lacks:",
                f"animalcat episode explain {session.id}/NUMBER",
            ),
            _step("Another layout may have a node for that:", "animalcat layout list"),
        ]
    battery = session.spec.battery
    latents = {latent.name: latent for latent in profile.layout.latents}
    unlimited = [
        node.name
        for node in profile.nodes
        if node.name in profile.notes
        and profile.notes[node.name].side == "at least"
        and not is_share(latents[node.name])  # no arena asks for more than all
        and learnt(node.sd, latents[node.name].prior.sd)
    ]
    names = [
        name
        for name, status in profile.status.items()
        if status != PRECISE and name not in unlimited
    ]
    reachable = {name: n for name in names if (n := needed.get(name)) is not None}
    beyond = [name for name in names if name not in reachable]
    steps: list[dict[str, Any]] = []
    if reachable:
        episodes = max(1, *reachable.values())
        more = f"{episodes} more episodes" if episodes > 1 else "one more episode"
        said = (
            f"To bring {_listed(list(reachable))} to the target takes at least about {more} of "
            f"the battery {battery}, as the layout expects"
        )
        command = _extension(session, episodes)
        lacking = ". The campaign that the session belongs to has the budget."
        steps.append(_step(f"{said}{':' if command else lacking}", command, episodes))
    report = f"animalcat battery report {battery}"
    if beyond:
        are = "is" if len(beyond) == 1 else "are"
        said = f"The battery {battery} is used up, and {_listed(beyond)} {are} not at the target"
        if left:
            said = (
                f"What is left of the battery {battery} cannot bring {_listed(beyond)} to the "
                "target, as the layout expects"
            )
        steps.append(_step(f"{said}. The battery's report says which arenas to add:", report))
    if unlimited:
        said = f"To find a limit of {_listed(unlimited)} takes arenas that ask for more"
        steps.append(_step(f"{said}. The battery's report says what it asks for at most:", report))
    return steps


def _step(text: str, command: str, episodes: int | None = None) -> dict[str, Any]:
    return {"text": text, "command": command, "episodes": episodes}


def _extension(session: Session, episodes: int) -> str:
    """Return the command that lets a session go on; empty where a campaign has its budget."""
    if session.allowed is not None:
        return ""
    stop = session.spec.stop
    finer = ""
    if session.episodes < stop.max_episodes:  # it ended otherwise, and would end again at once
        finer = f" --target-sd {_FINER * stop.target_sd:.2g}"
    return f"animalcat session extend {session.id} --episodes {episodes}{finer}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
