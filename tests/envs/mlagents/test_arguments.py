"""The command line of a build."""

from __future__ import annotations

import pytest
from animalai.environment import AnimalAIEnvironment

from animalcat.envs.mlagents.arguments import (
    LOG_FILE,
    Arguments,
    ArgumentsError,
    parse_arguments,
    word_after,
)
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec


def test_what_animalai_gives_is_what_it_asked_for() -> None:
    given = AnimalAIEnvironment.executable_args(
        useCamera=True,
        resolution=36,
        grayscale=True,
        useRayCasts=True,
        raysPerSide=5,
        rayMaxDegrees=90,
        decisionPeriod=5,
    )
    head = ["-nographics", "-batchmode", "--mlagents-port", "5007", "-logFile", "/x/Player-2.log"]
    spec = ObservationSpec(CameraSpec(36, grayscale=True), RaySpec(5, 90.0), 5)
    assert parse_arguments([*head, *given]) == Arguments(spec, 5007, plays=False)
    assert word_after(LOG_FILE, [*head, *given]) == "/x/Player-2.log"


def test_what_is_missing_is_as_in_unity() -> None:
    assert parse_arguments([]) == Arguments(ObservationSpec(None, None, 3), None, plays=True)
    spec = parse_arguments(["--useCamera", "--useRayCasts"]).spec
    assert spec == ObservationSpec(CameraSpec(84), RaySpec(2, 60.0, 12), 3)
    assert parse_arguments(["--useCamera", "--resolution"]).spec.camera == CameraSpec(84)


def test_our_own_options() -> None:
    arguments = parse_arguments(["--useRayCasts", "--rayTags", "18", "--cameraEncoding", "raw"])
    assert arguments.spec.rays == RaySpec(tags=18)
    assert arguments.encoding == "raw"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--resolution", "36", "--resolution", "36"], "--resolution is given twice"),
        (["--useCamera", "--useCamera"], "--useCamera is given twice"),
        (["--decisionPeriod", "3.5"], "--decisionPeriod 3.5: that is not a whole number"),
        (["--decisionPeriod", "21"], "decision_period 21"),
        (["--useRayCasts", "--raysPerSide", "51"], "per_side 51 is out of range"),
        (["--useRayCasts", "--rayTags", "13"], "13 ray tags"),
        (["--mlagents-port", "x"], "--mlagents-port x"),
        (["--mlagents-port", "70000"], "--mlagents-port 70000"),
        (["--cameraEncoding", "jpeg"], "the encodings are png, raw"),
        (["--useCamera", "--resolution", "500", "--cameraEncoding", "raw"], "at most 400"),
    ],
)
def test_what_cannot_be_is_named(words: list[str], message: str) -> None:
    with pytest.raises(ArgumentsError, match=message):
        parse_arguments(words)
