"""What is to be said of a recorded episode, in words and colours that all its pictures share."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from animalcat.arena_configs.draws import draws_by_name
from animalcat.arena_configs.features.chains import chain_features
from animalcat.arena_configs.features.registry import FEATURES, read_features
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import episode_arenas
from animalcat.service.recording.reader import Recording
from animalcat.service.recording.verify import load_arena
from animalcat.v1 import results_pb2, types_pb2

RGB: TypeAlias = tuple[int, int, int]

NOTABLE: Final = 0.05
"""Rewards beyond this are pickups and zones, not the small loss of every step."""
AGENT_COLOUR: Final[RGB] = (31, 94, 168)
"""Tags of what bodies pass through."""
_COLOURS: Final[Mapping[str, RGB]] = {
    "Immovable": (140, 140, 150),
    "Movable": (176, 128, 84),
    "goodGoal": (70, 160, 70),
    "goodGoalMulti": (224, 180, 40),
    "badGoal": (200, 60, 50),
    "badGoalMulti": (200, 60, 50),
    "DeathZone": (214, 90, 70),
    "HotZone": (238, 168, 80),
    "Ramp": (196, 120, 160),
    "GrowGoal": (70, 160, 70),
    "ShrinkGoal": (70, 160, 70),
    "DecoyGoal": (140, 180, 140),
    "DecoyGoalBounce": (140, 180, 140),
}
_OTHER: Final[RGB] = (170, 160, 190)
_DEMANDS: Final = (
    "rewardDistance",
    "rewardSize",
    "rewardBehind",
    "wallsInWay",
    "lavaInWay",
    "rewards",
    "badGoals",
)
"""Demands that are shown where they apply and are not 0."""
_MOVES: Final = ("", "forward", "backward")
_TURNS: Final = ("", "right", "left")


def colour_of(tag: str) -> RGB:
    """The colour of objects with this tag."""
    return _COLOURS.get(tag, _OTHER)


def action_words(action: int) -> str:
    """An action in words, such as "forward and left"; "nothing" for 0."""
    move, turn = divmod(action, 3)
    return " and ".join(filter(None, (_MOVES[move], _TURNS[turn]))) or "nothing"


def png(image: npt.NDArray[np.uint8]) -> bytes:
    """An image as a PNG file."""
    buffer = io.BytesIO()
    plain = image[:, :, 0] if image.shape[2] == 1 else image
    Image.fromarray(plain).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def who(header: results_pb2.EpisodeHeader) -> str:
    """Which agent played what on which build, in a line."""
    versions = header.versions
    build = versions.get("unity-build") or f"animalcat {versions.get('animalcat', '?')}"
    return f"{header.agent or 'agent'} on {header.instance}, {header.backend} ({build})"


def labels(recording: Recording, anew: bool) -> list[str]:
    """What a viewer must not miss: that it is damaged, cut short, or drawn anew."""
    warnings: list[str] = []
    if recording.damage:
        warnings.append("damaged recording")
    elif recording.footer is None:
        warnings.append("cut short")
    if anew:
        warnings.append("drawn anew under other rules of motion")
    return warnings


def words_of_demands(recording: Recording) -> str:
    """The predicted outcome and the demands of the arena in words; empty where nothing is known."""
    header, words = recording.header, list[str]()
    if header.HasField("decision") and header.decision.propensity > 0.0:
        words.append(f"outcome predicted: {header.decision.predicted:.0%}")
    demands = ", ".join(_demands(recording))
    return "; ".join([*words, *([demands] if demands else [])])


def outcome_words(recording: Recording) -> str:
    """How it ended, in words."""
    footer = recording.footer
    if footer is None:
        return "it has no end"
    word = types_pb2.Outcome.Name(footer.outcome).removeprefix("OUTCOME_").lower()
    return f"{word}, return {footer.episode_return:.6g} after {footer.steps} decisions"


def _demands(recording: Recording) -> list[str]:
    """The demands of the arena in words; none where it cannot be placed."""
    try:
        arena = load_arena(recording.header)
        surveys = [
            Survey(place(part, draws_by_name("animalcat", recording.header.seed)))
            for part in episode_arenas(arena)
        ]
        parts = [read_features(survey, _DEMANDS) for survey in surveys]
        values = chain_features(parts, [survey.placement for survey in surveys]).values
    except (ArenaError, ValueError):
        return []
    units = {name: FEATURES[name].unit for name in _DEMANDS}
    return [
        f"{name} {value:.3g}{f' {units[name]}' * (units[name] not in ('', '1'))}"
        for name, value in values.items()
        if value
    ]
