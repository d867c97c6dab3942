"""The command line that ML-Agents' clients give to a build, read as Animal-AI's builds read it.

Source: reference/animal-ai.md section 6.9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from animalcat.arena_configs.builds import NEWEST, Build, build_named
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec

Encoding = Literal["png", "raw"]

_ENCODINGS: Final[tuple[Encoding, ...]] = ("png", "raw")
_LOWEST_RESOLUTION: Final = 4
_HIGHEST_RESOLUTION: Final = 512
_HIGHEST_RAW_RESOLUTION: Final = 400
"""Resolution above which two raw colour images would not fit into gRPC's 4 MiB, a client's limit.
"""

_FLAGS: Final = frozenset(
    {"--useCamera", "--grayscale", "--useRayCasts", "--receiveConfiguration", "-nographics"}
    | {"-batchmode"}
)
"""Options without a value; the last three change nothing here."""
_DEFAULTS: Final[Mapping[str, int]] = {
    "--playerMode": 1,
    "--resolution": 84,
    "--raysPerSide": 2,
    "--rayMaxDegrees": 60,
    "--decisionPeriod": 3,
    "--numberOfArenas": 1,
    "--rayTags": 12,
}
"""Options with a whole number, and what Unity takes when they are missing.

`--numberOfArenas` changes nothing, as in Unity; `--rayTags` is ours.
"""
PORT: Final = "--mlagents-port"
LOG_FILE: Final = "-logfile"
_ENCODING: Final = "--cameraEncoding"
_BUILD: Final = "--build"
_LOGS: Final = "--observationLogs"
NO_LOGS: Final = "none"
"""The folder of observation logs that stands for none."""
_WORDS: Final = (PORT, LOG_FILE, _ENCODING, _BUILD, _LOGS)
"""Options with another value; the last three are ours."""


class ArgumentsError(ValueError):
    """The command line cannot be used; the message names the option."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the command line asks of a build.

    Attributes:
        spec: Specification of the observations.
        port: The client's port on this machine; None if not given.
        plays: Whether a person plays (playerMode 1) instead of the client.
        encoding: How camera images are sent.
        build: The build to play as.
        logs: Folder of the observation logs, `NO_LOGS` for none; None if not given.
    """

    spec: ObservationSpec
    port: int | None = None
    plays: bool = True
    encoding: Encoding = "png"
    build: Build = NEWEST
    logs: str | None = None


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Unknown options are ignored, as in Unity. An option of Animal-AI that is given twice is an
    error, as it is there.

    Args:
        argv: The words after the program's name.

    Raises:
        ArgumentsError: An option is given twice, or its value is not valid.
    """
    options = _options(argv)
    numbers = {name: _number(name, options.get(name), usual) for name, usual in _DEFAULTS.items()}
    encoding = options.get(_ENCODING, "png")
    if encoding not in _ENCODINGS:
        raise ArgumentsError(f"{_ENCODING} {encoding}: the encodings are {', '.join(_ENCODINGS)}")
    try:
        spec = _spec(options, numbers)
        build = build_named(options.get(_BUILD, NEWEST))
    except ValueError as error:
        raise ArgumentsError(str(error)) from None
    if encoding == "raw" and spec.camera and spec.camera.resolution > _HIGHEST_RAW_RESOLUTION:
        raise ArgumentsError(
            f"--resolution {spec.camera.resolution}: raw images have at most "
            f"{_HIGHEST_RAW_RESOLUTION} pixels a side; send PNG or less"
        )
    return Arguments(
        spec,
        _port(options.get(PORT)),
        numbers["--playerMode"] > 0,
        encoding,
        build,
        options.get(_LOGS) or None,
    )


def word_after(option: str, argv: Sequence[str]) -> str:
    """Find the word after an option, unchecked; "" without the option.

    It serves to learn where an error is to be written when the command line may be wrong.

    Args:
        option: `PORT` or `LOG_FILE`, in any case.
        argv: The words after the program's name.
    """
    return next((value for word, value in pairwise(argv) if word.lower() == option), "")


def _options(argv: Sequence[str]) -> dict[str, str]:
    """Name of every known option -> the word after it; "" for flags and at the end."""
    options: dict[str, str] = {}
    for index, word in enumerate(argv):
        # Unity's own options, which have one dash, may be written in any case.
        name = word if word.startswith("--") else word.lower()
        if name not in _FLAGS and name not in _DEFAULTS and name not in _WORDS:
            continue
        if name in options:
            raise ArgumentsError(f"{word} is given twice; Animal-AI's builds refuse that")
        takes_value = name not in _FLAGS and index + 1 < len(argv)
        options[name] = argv[index + 1] if takes_value else ""
    return options


def _number(name: str, text: str | None, usual: int) -> int:
    if not text:
        return usual
    try:
        return int(text)
    except ValueError:
        raise ArgumentsError(f"{name} {text}: that is not a whole number") from None


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    port = _number(PORT, text, 0)
    if not 0 < port < 1 << 16:
        raise ArgumentsError(f"{PORT} {text}: a port is a number from 1 to 65535")
    return port


def _spec(options: Mapping[str, str], numbers: Mapping[str, int]) -> ObservationSpec:
    side = min(max(numbers["--resolution"], _LOWEST_RESOLUTION), _HIGHEST_RESOLUTION)
    camera = CameraSpec(side, "--grayscale" in options) if "--useCamera" in options else None
    rays = None
    if "--useRayCasts" in options:
        degrees = float(numbers["--rayMaxDegrees"])
        rays = RaySpec(numbers["--raysPerSide"], degrees, numbers["--rayTags"])
    return ObservationSpec(camera, rays, numbers["--decisionPeriod"])
