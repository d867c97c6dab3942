"""What speakers are told and how their answers are read, by example and in the simulator."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from animalcat.arena_configs.loader import load_text
from animalcat.doors.speech import (
    Deed,
    Doing,
    Go,
    Press,
    Said,
    Tongue,
    Turn,
    UnreadableError,
    Wait,
    picture,
    prompt,
    read,
    read_call,
    words,
)
from animalcat.doors.speech.body import Body
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.backends import make_environment
from animalcat.envs.types import CameraSpec, Environment, ObservationSpec, RaySpec, Step

SCRIPT = Tongue("script")
FRAMES = Tongue("frames")
SPEC = ObservationSpec(camera=CameraSpec(84), rays=RaySpec(1, 60.0))
ARENA = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 250
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 2}]
      rotations: [0]
    - !Item
      name: Wall
      positions: [!Vector3 {x: 20, y: 0, z: 33}]
      sizes: [!Vector3 {x: 10, y: 3, z: 1}]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Go(3)", Said((Go(3.0),))),
        ("Think('left');Turn(-30);Go(5.5)", Said((Turn(-30.0), Go(5.5)), "left")),
        ("```\nTurn( +90 )\nWait(0.5);\n```", Said((Turn(90.0), Wait(0.5)))),
        (
            "Think('I don't see it; so (perhaps)');Go(1)",
            Said((Go(1.0),), "I don't see it; so (perhaps)"),
        ),
        ('Think("a");Think("b")\nGo(0)', Said((Go(0.0),), "a b")),
    ],
)
def test_scripts_are_read(text: str, said: Said) -> None:
    assert read(text, SCRIPT) == said


def test_frames_are_read() -> None:
    deeds = (Press(3, 5), Press(2, 1), Press(6, 100))
    assert read("FORWARD 5\nTURN_LEFT, BACKWARD 100", FRAMES) == Said(deeds)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("I would go forward.", "is no command"),
        ("Go(3) or Turn(5)", "is no command"),
        ("Go(36)", "-35 to 35 metres"),
        ("Go(nan)", "takes one number"),
        ("Go(1, 2)", "takes one number"),
        ("Go(1,000)", "takes one number"),
        ("Turn()", "takes one number"),
        ("Wait(-1)", "0 to 10 seconds"),
        ("Think('so')", "thoughts alone"),
        ("Think('so", "does not end"),
        ("Go(1);" * 9, "may have 8 at most"),
        ("word " * 40_000, "more than can be read"),
        ("__import__('os').system('ls')", "is no command"),
    ],
)
def test_what_is_no_script_is_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        read(text, SCRIPT)


@pytest.mark.parametrize(
    "text", ["JUMP 3", "FORWARD five", "FORWARD 0", "FORWARD 101", "go forward"]
)
def test_what_is_no_frames_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        read(text, FRAMES)


def test_a_long_answer_is_refused_in_linear_time() -> None:
    # Quotation marks without an end are what makes a careless reader slow.
    with pytest.raises(UnreadableError, match="does not end"):
        read("Think('" + "' " * 40_000, SCRIPT)


def test_calls_are_read() -> None:
    assert read_call("go", {"metres": 3}) == Go(3.0)
    assert read_call("Go", {"metres": "2,5"}) == Go(2.5)
    assert read_call("turn", {"degrees": -90.5}) == Turn(-90.5)
    assert read_call("wait", {"seconds": 1}) == Wait(1.0)
    for name, arguments in (
        ("jump", {"metres": 3}),
        ("go", {}),
        ("go", {"metres": "far"}),
        ("go", {"metres": True}),
        ("go", {"metres": 3, "speed": 1}),
        ("go", {"metres": float("inf")}),
        ("go", {"metres": 10**400}),
        ("turn", {"degrees": 361}),
    ):
        with pytest.raises(UnreadableError):
            read_call(name, arguments)


def test_words_tell_what_is_perceived_and_nothing_more() -> None:
    step = _start_step()
    told = words(step.observation, SPEC)
    assert told == (
        "Your health is 100 of 100. You stand still. You are at x 20.0 m, z 2.0 m. What you feel "
        "to 60° on either side, from left to right: 60° left the outer wall at 22.5 m; ahead a "
        "wall or tunnel at 29.9 m; 60° right the outer wall at 22.5 m."
    )
    state = np.ones((2, 24), np.float32)
    assert words(step.observation._replace(state=state), SPEC) == told


def test_a_picture_is_a_png_of_the_size_that_was_asked_for() -> None:
    seen = _start_step().observation
    for side in (42, 84, 256):
        stored = picture(seen, side)
        assert stored is not None
        with Image.open(io.BytesIO(stored)) as image:
            assert (image.format, image.size, image.mode) == ("PNG", (side, side), "RGB")
            if side == 84:
                assert seen.camera is not None
                assert np.array_equal(np.asarray(image), seen.camera)
    assert picture(seen, 0) is None
    assert picture(seen._replace(camera=None), 84) is None


@pytest.mark.parametrize("period", [1, 10])
@pytest.mark.parametrize("metres", [3.0, -4.0])
def test_going_ends_where_it_was_asked_to(metres: float, period: int) -> None:
    spec = replace(SPEC, decision_period=period)
    environment = make_environment("sim", spec)
    start = environment.load(_arena(), 1)
    body = _body(spec)
    if metres < 0:
        start = _do(environment, start, Turn(180.0), body)[0]
    step, report = _do(environment, start, Go(metres), body)
    covered = step.observation.position[2] - start.observation.position[2]
    assert covered == pytest.approx(abs(metres), abs=0.35 * max(1.0, period / 3))
    assert report.startswith(f"You went {covered:.1f} m {'backward' if metres < 0 else 'forward'}")
    assert np.abs(step.observation.velocity[[0, 2]]).max() < 0.05


def test_what_is_in_the_way_ends_a_deed_and_is_told() -> None:
    environment, body = make_environment("sim", SPEC), _body()
    step, report = _do(environment, environment.load(_arena(), 1), Go(35.0), body)
    assert report == "You went 30.0 m forward, and something is in the way."
    step, report = _do(environment, step, Go(1.0), body)
    assert report == "You went 0.0 m forward, and something is in the way."
    assert step.ended_by is None


def test_turning_and_waiting_take_the_decisions_that_they_say() -> None:
    environment, body = make_environment("sim", SPEC), _body()
    step, report = _do(environment, environment.load(_arena(), 1), Turn(-90.0), body)
    assert report == "You turned 90° to the left."
    assert _do(environment, step, Wait(0.6), body)[1] == "You waited 0.6 s."
    assert _do(environment, step, Press(3, 2), body)[1] == "You did it for 2 of 2 frames."


def test_a_tongue_is_read_from_text_and_told_whole() -> None:
    tongue = Tongue.of("script, words=no, picture=84,history=1")
    assert tongue == Tongue("script", words=False, picture=84, history=1)
    assert Tongue.of(str(tongue)) == tongue
    assert Tongue.of("tools") == Tongue()
    assert set(tongue.options) == {
        "form", "words", "picture", "history", "deeds", "answers", "prompt",
    }  # fmt: skip
    for text, why in (
        ("mime", "no form"),
        ("script,wrods=no", "did you mean words"),
        ("script,words=off", "yes or no"),
        ("script,picture=-1", "whole number"),
        ("script,picture=2", "4 to 512"),
        ("script,words=no,picture=0", "perceives nothing"),
        ("script,history=1,history=2", "given twice"),
    ):
        with pytest.raises(ValueError, match=why):
            Tongue.of(text)


def test_a_prompt_tells_the_form_and_the_limits() -> None:
    info = EpisodeInfo(0, 1, SPEC, time_budget_steps=100)
    assert "Turn(-30);Go(5)" in prompt(SCRIPT, info)
    assert "go(metres)" in prompt(Tongue(), info)
    frames = prompt(Tongue("frames", answers=7), info)
    assert "a turn is 6°" in frames
    assert "7 answers" in frames
    assert "6 s of the arena's time" in frames
    assert prompt(Tongue(prompt="Mine."), info) == "Mine."


def _arena():
    return load_text(ARENA, "hall.yaml").config.arenas[0]


def _start_step() -> Step:
    return make_environment("sim", SPEC).load(_arena(), 1)


def _do(environment: Environment, step: Step, deed: Deed, body: Body) -> tuple[Step, str]:
    doing = Doing(deed, body)
    while step.ended_by is None and (actions := doing.next(step.observation)):
        for action in actions:
            step = environment.step(action)
    return step, doing.report()


def _body(spec: ObservationSpec = SPEC) -> Body:
    return Body(EpisodeInfo(0, 1, spec, 1250 // spec.decision_period))
