"""What a speaker is told before it sees anything."""

from __future__ import annotations

from typing import Final

from animalcat.doors.speech.body import TURN
from animalcat.doors.speech.reading import FRAMES, GO_METRES, TURN_DEGREES, WAIT_SECONDS
from animalcat.doors.speech.tongue import Tongue
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.types import PHYSICS_STEP
from animalcat.text.counts import count_of

_WORLD: Final = (
    "You are an animal in a square arena, 40 m by 40 m, with walls around it. You see it through "
    "your own eyes. Find and touch a green ball: it is food, and ends the trial well. Yellow balls "
    "are food too, and there may be several. Red balls and red zones harm you and end the trial "
    "badly; orange zones harm you as long as you are in them. Your health falls with time. The "
    "trial is over when it is used up, so answer briefly and act."
)
_TOOLS: Final = (
    f"Act by calling tools: go(metres) goes straight ahead, or backward if it is negative, up to "
    f"{GO_METRES:g}; turn(degrees) turns you to the right, or to the left if it is negative, up to "
    f"{TURN_DEGREES:g}; wait(seconds) stands still, up to {WAIT_SECONDS:g}. look() shows again "
    "what you see, and takes no time."
)
_SCRIPT: Final = (
    "Answer by a script and nothing else: commands with semicolons between them, as in\n"
    "Think('It is to the left.');Turn(-30);Go(5)\n"
    f"Go takes metres, -{GO_METRES:g} to {GO_METRES:g}; Turn takes degrees, -{TURN_DEGREES:g} to "
    f"{TURN_DEGREES:g}, to the right above 0; Wait takes seconds, 0 to {WAIT_SECONDS:g}; Think "
    "takes a text in quotation marks, and does nothing."
)


def prompt(tongue: Tongue, info: EpisodeInfo) -> str:
    """Say what a speaker has to know before an episode.

    Args:
        tongue: How it is told what it perceives, and how it answers.
        info: What may be known of the episode.
    """
    if tongue.prompt:
        return tongue.prompt
    period = info.observation_spec.decision_period
    how = {"tools": _TOOLS, "script": _SCRIPT, "frames": _frames(period)}[tongue.form]
    parts = [_WORLD, how]
    if tongue.form != "tools":
        parts.append(f"One answer has at most {count_of(tongue.deeds, 'command')}.")
    parts.append(f"You have at most {count_of(tongue.answers, 'answer')}.")
    if info.time_budget_steps:
        seconds = info.time_budget_steps * period * PHYSICS_STEP
        parts.append(f"The trial takes {seconds:.0f} s of the arena's time at most.")
    return "\n\n".join([*parts[:2], " ".join(parts[2:])])


def _frames(period: int) -> str:
    return (
        "Answer by actions and nothing else, one a line, each with the number of frames for which "
        f"it is repeated, as in\nFORWARD 5\nThe actions are {', '.join(FRAMES)}. A frame takes "
        f"{period * PHYSICS_STEP:.2g} s; in it, a turn is {period * TURN:g}°. You gather speed "
        "as you go on, and slide a little after you stop."
    )
