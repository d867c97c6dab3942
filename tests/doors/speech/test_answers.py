"""Forty answers of the kinds that real models give, and what each of them asks for."""

from __future__ import annotations

import pytest

from animalcat.doors.speech import Deed, Go, Press, Tongue, Turn, UnreadableError, Wait, read

L, R = Turn(-30.0), Turn(30.0)
SCRIPTS: list[tuple[str, tuple[Deed, ...]]] = [
    ("Think('It is to the left.');Turn(-30);Go(5)", (L, Go(5.0))),
    ("Sure! Here is my script:\n```\nTurn(-30);Go(5)\n```", (L, Go(5.0))),
    ("Here you go:\n\n```python\nTurn(-30)\nGo(5)\n```\nThis moves me closer.", (L, Go(5.0))),
    ("```Turn(-30);Go(5)```", (L, Go(5.0))),
    ("`Turn(-30);Go(5)`", (L, Go(5.0))),
    ("~~~\nTurn(-30);Go(5)\n~~~", (L, Go(5.0))),
    ("I see a green ball on the left.\n\nTurn(-30);Go(5)", (L, Go(5.0))),
    ("Turn(-30);Go(5)\n\nThis should bring me to the food.", (L, Go(5.0))),
    ("**Turn(-30); Go(5)**", (L, Go(5.0))),
    ("1. Turn(-30)\n2. Go(5)", (L, Go(5.0))),
    ("- Turn(-30)\n- Go(5)", (L, Go(5.0))),
    ("* `Turn(-30)`: face the ball\n* `Go(5)`: walk to it", (L, Go(5.0))),
    ("turn(-30); go(5)", (L, Go(5.0))),
    ("TURN(-30); GO(5); WAIT(1)", (L, Go(5.0), Wait(1.0))),
    ("Turn(-30), Go(5)", (L, Go(5.0))),
    ("Turn(-30). Go(5).", (L, Go(5.0))),
    ("Turn(-30) -> Go(5)", (L, Go(5.0))),
    ("Turn(-30) Go(5)", (L, Go(5.0))),
    ("Turn(\u221230);Go(5)", (L, Go(5.0))),
    ("Turn(\u201330);Go(5)", (L, Go(5.0))),
    ("Turn(-30°);Go(5 m)", (L, Go(5.0))),
    ("Turn(30 degrees);Go(5 metres);Wait(1 s)", (R, Go(5.0), Wait(1.0))),
    ("Turn(degrees=-30);Go(metres=5)", (L, Go(5.0))),
    ("Turn(angle: -30);Go(distance: 5)", (L, Go(5.0))),
    ("Turn(-30,0);Go(2,5)", (L, Go(2.5))),
    ("Turn(-30);Go(5.);Wait(.5)", (L, Go(5.0), Wait(0.5))),
    ("Turn(\uff0d\uff13\uff10)\uff1bGo(\uff15)", (L, Go(5.0))),
    ("Turn(-\u0663\u0660)\u061bGo(\u0665)", (L, Go(5.0))),
    ("Turn('-30');Go(\"5\")", (L, Go(5.0))),
    ("Think(\u201cIt\u2019s left\u201d);Turn(-30);Go(5)", (L, Go(5.0))),
    ("Think(it is to the left);Turn(-30);Go(5)", (L, Go(5.0))),
    ("<think>Maybe Go(9)? No.</think>\nTurn(-30);Go(5)", (L, Go(5.0))),
    ("<script>Turn(-30);Go(5)</script>", (L, Go(5.0))),
    ("Thought: the ball is left.\nAction: Turn(-30);Go(5)", (L, Go(5.0))),
    ('{"script": "Turn(-30);Go(5)"}', (L, Go(5.0))),
    ('[{"name": "turn", "arguments": {"degrees": -30}},'
     ' {"name": "go", "parameters": {"metres": 5}}]', (L, Go(5.0))),
    ('{"name": "turn", "arguments": {"degrees": "-30"}}', (L,)),
]  # fmt: skip
FRAMES: list[tuple[str, tuple[Deed, ...]]] = [
    ("Okay!\n```\nFORWARD 5\nTURN_LEFT 2\n```", (Press(3, 5), Press(2, 2))),
    ("forward 5, turn left x2", (Press(3, 5), Press(2, 2))),
    ("1. FORWARD (5)\n2. Turn-Left: 2 frames", (Press(3, 5), Press(2, 2))),
]
TALK = (
    "",
    "I would go forward.",
    "I'm sorry, but I cannot play this game.",
    "Go",
    "Turn(left)",
    "Go(five)",
    "You could use Go(metres) to walk.",
    "Go(3",
    "def Go(metres): pass",
)


@pytest.mark.parametrize(("text", "deeds"), SCRIPTS)
def test_scripts_of_real_kinds_are_read(text: str, deeds: tuple[Deed, ...]) -> None:
    assert read(text, Tongue("script")).deeds == deeds


@pytest.mark.parametrize(("text", "deeds"), FRAMES)
def test_frames_of_real_kinds_are_read(text: str, deeds: tuple[Deed, ...]) -> None:
    assert read(text, Tongue("frames")).deeds == deeds


@pytest.mark.parametrize("text", TALK)
def test_talk_is_refused_in_words_that_show_the_form(text: str) -> None:
    with pytest.raises(UnreadableError, match="for example"):
        read(text, Tongue("script"))
