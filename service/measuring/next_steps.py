"""What would close what a profile leaves open: how many more episodes, and by which command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from animalcat.layouts.adaptive.statuses import BOUNDED, PRECISE
from animalcat.layouts.reporting.profile import Profile
from animalcat.values import Session

FINER: Final = 0.8
"""By what factor a target is made finer where the one that there was is reached: by a fifth."""


def next_steps(
    session: Session,
    profile: Profile,
    needed: Mapping[str, int | None],
    left: int,
    blamed: str = "",
    narrower: Mapping[str, int | None] = {},
) -> list[dict[str, Any]]:
    """Return what would close what the profile of a finished session leaves open.

    What would narrow the node that the verdict names comes first.

    Args:
        session: The session, with the reason of its end.
        profile: Its profile, with statuses, notes and judgement.
        needed: How many more episodes each capability is expected to take to its target, as
            `StopVerdict.episodes_needed`.
        left: How many arenas of the battery may still be played.
        blamed: The node that the verdict names as what makes the agent fail; empty for none.
        narrower: How many more episodes it is expected to take to narrow each capability to `FINER`
            of what it is; None where the battery does not suffice.

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
            _step("Another layout may have a node for that:", "animalcat layout show"),
        ]
    battery = session.spec.battery
    latents = {latent.name: latent for latent in profile.layout.latents}
    bounded = {
        node.name: profile.notes[node.name].side
        for node in profile.nodes
        if node.name in profile.notes
        and node.name in profile.status
        and not latents[node.name].is_share  # no arena asks for more than all, or less than nothing
        and profile.notes[node.name].known
    }
    ended = {
        name: side
        for name, side in bounded.items()
        if profile.status[name] == BOUNDED or needed.get(name) is None
    }
    unlimited = [name for name, side in ended.items() if side == "at least"]
    unshown = [name for name, side in ended.items() if side == "at most"]
    order = sorted(profile.status, key=lambda name: name != blamed)
    unlimited.sort(key=lambda name: name != blamed)
    unshown.sort(key=lambda name: name != blamed)
    names = [
        name
        for name in order
        if profile.status[name] != PRECISE and name not in unlimited and name not in unshown
    ]
    reachable = {name: n for name in names if (n := needed.get(name)) is not None}
    beyond = [name for name in names if name not in reachable]
    steps: dict[tuple[str, ...], dict[str, Any]] = {}
    if reachable:
        episodes = max(1, *reachable.values())
        said = (
            f"To bring {_join_names(list(reachable))} to the target takes at least about "
            f"{_more(episodes)} of the battery {battery}, by the layout's prediction"
        )
        command = _extension(session, episodes, FINER * session.spec.stop.target_sd)
        steps[tuple(reachable)] = _step(f"{said}:", command, episodes)
    report = f"animalcat battery report {battery}"
    if beyond:
        are = "is" if len(beyond) == 1 else "are"
        said = (
            f"The battery {battery} is used up, and {_join_names(beyond)} {are} not at the target"
        )
        if left:
            said = (
                f"What is left of the battery {battery} cannot bring {_join_names(beyond)} to the "
                "target, by the layout's prediction"
            )
        text = f"{said}. The battery's report says what it can measure at best:"
        steps[tuple(beyond)] = _step(text, report)
    if unlimited:
        said = f"To find a limit of {_join_names(unlimited)} takes arenas that ask for more"
        text = f"{said}. The battery's report says the most that it asks for:"
        steps[tuple(unlimited)] = _step(text, report)
    if unshown:
        said = (
            f"To find what the agent has of {_join_names(unshown)} takes arenas that ask for less"
        )
        text = f"{said}. The battery's report says the least that it asks for:"
        steps[tuple(unshown)] = _step(text, report)
    found = [steps[names] for names in sorted(steps, key=lambda names: blamed not in names)]
    if not found or not blamed or any(blamed in names for names in steps):
        return found
    if blamed in profile.status:
        return [_narrowing(session, profile, blamed, narrower.get(blamed), report), *found]
    about = f"The verdict names {blamed}, for which no target is set; this is about capabilities. "
    return [{**found[0], "text": f"{about}{found[0]['text']}"}, *found[1:]]


def _narrowing(
    session: Session, profile: Profile, name: str, episodes: int | None, report: str
) -> dict[str, Any]:
    """What would narrow a capability that is at its target."""
    said = f"{name}, which the verdict names, is at its target"
    if episodes is None:
        return _step(
            f"{said}; what is left of the battery {session.spec.battery} cannot narrow it by a "
            "fifth, by the layout's prediction. The battery's report says what it can measure at "
            "best:",
            report,
        )
    episodes = max(1, episodes)
    at = profile.layout.latent_names.index(name)
    finer = min(FINER * profile.nodes[at].sd / profile.layout.latents[at].prior.span, 0.99)
    command = _extension(session, episodes, finer, again=True)
    return _step(
        f"{said}. To narrow it by a fifth takes at least about {_more(episodes)} of the battery "
        f"{session.spec.battery}, by the layout's prediction:",
        command,
        episodes,
    )


def _more(episodes: int) -> str:
    return f"{episodes} more episodes" if episodes > 1 else "one more episode"


def _step(text: str, command: str, episodes: int | None = None) -> dict[str, Any]:
    return {"text": text, "command": command, "episodes": episodes}


def _extension(session: Session, episodes: int, target: float, *, again: bool = False) -> str:
    """Return the command that lets a session go on.

    Args:
        session: The session.
        episodes: How many more.
        target: The finer target, where without one the session would end again at once.
        again: Whether the target is wanted in any case.
    """
    finer = ""
    if again or session.episodes < session.spec.stop.max_episodes:  # it ended otherwise
        finer = f" --target-sd {target:.2g}"
    return f"animalcat session resume {session.id} --episodes {episodes}{finer}"


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
