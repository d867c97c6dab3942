"""What an agent's `act` returns: each plausible mistake is refused with a sentence, or is right."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pandas as pd
import pytest

import animalcat
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.limits.limited import limit_agent
from animalcat.envs.agents.limits.reference import read_reference
from animalcat.envs.answers import (
    MAX_ACTIONS,
    ActionError,
    Actions,
    Note,
    Noted,
    ReadAnswer,
    read_answer,
)
from animalcat.envs.types import Observation, ObservationSpec


class Move(enum.IntEnum):
    FORWARD = 3


class Word(enum.Enum):
    FORWARD = 3


class Pair(NamedTuple):
    move: int
    turn: int


class Tensor:
    """What a tensor library gives: an array behind `__array__`, and an index where it has one."""

    def __init__(self, value: Any, dtype: Any = np.int64) -> None:
        self.value = np.array(value, dtype)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.value

    def __index__(self) -> int:  # PyTorch has it for each tensor of one element, of booleans too
        return int(self.value.item())


class Far(Tensor):
    """A tensor on a graphics card."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


async def thinking() -> int:
    return 3


def yielding() -> Iterator[int]:
    yield 3


ONE_HOT = np.eye(9, dtype=np.int64)[3]

RIGHT: dict[str, tuple[Any, list[int]]] = {
    "integer": (3, [3]),
    "least": (0, [0]),
    "greatest": (8, [8]),
    "A8 numpy": (np.int64(3), [3]),
    "uint8": (np.uint8(3), [3]),
    "A9 0-d array": (np.array(3), [3]),
    "A23 IntEnum": (Move.FORWARD, [3]),
    "tensor": (Tensor(3), [3]),
    "pair": ((1, 0), [3]),
    "greatest pair": ((2, 2), [8]),
    "pair of numpy": ((np.int64(1), np.array(2)), [5]),
    "pair with a name": (Pair(1, 0), [3]),
    "pair of IntEnum": ((Move.FORWARD - 2, 0), [3]),
    "array": (np.array([1, 0]), [3]),
    "A31 uint8 pair": (np.array([1, 0], np.uint8), [3]),
    "tensor pair": (Tensor([0, 1]), [1]),
    "Series": (pd.Series([1, 0]), [3]),
    "A10 (1, 2)": (np.array([[1, 0]]), [3]),
    "array (n, 2)": (np.array([[1, 0], [0, 1], [2, 2]]), [3, 1, 8]),
    "square": (np.array([[1, 0], [0, 1]]), [3, 1]),
    "Actions": (Actions([3, 1, 3]), [3, 1, 3]),
    "two Actions": (Actions([1, 0]), [1, 0]),
    "Actions of both": (Actions([3, (1, 0), np.array([1, 2]), np.int8(8)]), [3, 3, 5, 8]),
    "Actions of an array": (Actions(np.array([[1, 0], [0, 1]])), [3, 1]),
    "most": (Actions([3] * MAX_ACTIONS), [3] * MAX_ACTIONS),
}

REFUSED: dict[str, tuple[Any, str]] = {
    "A1": (np.bool_(True), "booleans"),
    "A2": (True, "action True is refused: a boolean is not an action"),
    "False": (False, "a boolean is not an action"),
    "A3": (9, "9 is not in 0 to 8"),
    "A4": (-1, "-1 is not in 0 to 8"),
    "300": (300, "300 is not in"),
    "numpy 9": (np.int64(9), "9 is not in 0 to 8"),
    "huge": (2**70, "not in 0 to 8"),
    "A5": (3.0, "action 3.0 is refused: a float is not an action, not even a whole one"),
    "numpy float": (np.float32(3), "floats"),
    "A6": ("3", "text and bytes"),
    "A7": (None, "act returned nothing"),
    "A11": (ONE_HOT, "int(np.argmax(...))"),
    "one-hot list": (ONE_HOT.tolist(), "a list could be"),
    "one-hot tuple": (tuple(ONE_HOT.tolist()), "this tuple has 9 items"),
    "one-hot row": (ONE_HOT[None], "shape (1, 9)"),
    "A12": (np.array([1.0, 0.0]), "floats"),
    "A13": ((3, 0), "move 3 is not in 0 to 2"),
    "turn": ((1, -1), "turn -1 is not in 0 to 2"),
    "array turn": (np.array([1, 3]), "turn 3 is not in 0 to 2"),
    "A14": ([1, 0], "a list could be one pair or several actions"),
    "[]": ([], "a list could be"),
    "[3]": ([3], "a list could be"),
    "[3] * 10": ([3] * 10, "a list could be"),
    "A15": ([[1, 0]], "a list could be"),
    "list of pairs": ([(1, 0), (1, 1)], "a list could be"),
    "A16": ((np.array([1, 0]), None), "give its first part alone"),
    "predict, flat": ((np.array(3), None), "give its first part alone"),
    "predict, recurrent": ((np.array([1, 0]), (np.zeros(4),)), "give its first part alone"),
    "A17": (Tensor([1.0, 0.0], np.float32), "floats"),
    "boolean tensor": (Tensor(True, np.bool_), "booleans"),
    "tensor of one": (Tensor([3]), "shape (1,)"),
    "far tensor": (Far(3), "can't convert cuda:0"),
    "A18": ({"action": 3}, "a dictionary is not an action"),
    "A19": (yielding(), "it is a generator"),
    "range": (range(3, 4), "range is not a type of action"),
    "A22": (np.linspace(-1, 1, 9), "int(np.argmax(...))"),
    "A24": ({1, 2}, "a set has no order"),
    "A25": (b"\x03", "text and bytes"),
    "bytearray": (bytearray(b"\x03"), "text and bytes"),
    "memoryview": (memoryview(b"\x03"), "text and bytes"),
    "A30": (np.ones((3, 2)), "floats"),
    "A32": ((True, False), "a boolean is not an action"),
    "boolean array": (np.array([True, False]), "booleans"),
    "half a boolean": ((1, np.bool_(False)), "booleans"),
    "A33": (np.array([3]), "shape (1,)"),
    "(n,)": (np.array([3, 1, 3]), "shape (3,)"),
    "A34": ((1, 0, 0), "this tuple has 3 items"),
    "(3,)": ((3,), "this tuple has 1 items"),
    "()": ((), "this tuple has 0 items"),
    "pair of floats": ((1.0, 0.0), "a float"),
    "pair of pairs": (((1, 0), (1, 1)), "the parts of a pair are integers"),
    "empty array": (np.zeros((0, 2), int), "there is no action in it"),
    "no array": (np.zeros(0, int), "shape (0,)"),
    "long array": (np.ones((MAX_ACTIONS + 1, 2), int), "it has 101 actions"),
    "row of (n, 2)": (np.array([[1, 0], [3, 0]]), "move 3 is not in"),
    "objects": (np.array([1, 0], object), "type object"),
    "text array": (np.array("3"), "text"),
    "dates": (np.timedelta64(3), "type timedelta64"),
    "masked": (np.ma.array([1, 0], mask=[False, True]), "masked"),
    "complex": (3 + 0j, "a float"),
    "Enum": (Word.FORWARD, "Word is not a type of action"),
    "class": (Actions, "type is not a type of action"),
    "function": (len, "not a type of action"),
    "Noted list": (Noted([3], Note("one")), "a list could be"),  # pyright: ignore
    "Noted text": (Noted(3, "one"), "its note is not an animalcat.Note"),  # pyright: ignore
    "Noted twice": (Noted(Noted(3, Note()), Note()), "once"),  # pyright: ignore
    "a word": ("forward", "text and bytes"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_an_action_means_one_thing(name: str) -> None:
    answer, numbers = RIGHT[name]
    note = Note("a remark")
    assert read_answer(answer) == ReadAnswer(bytes(numbers))
    assert read_answer(Noted(answer, note)) == ReadAnswer(bytes(numbers), (note,))


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused_with_the_right_forms(name: str) -> None:
    answer, words = REFUSED[name]
    with pytest.raises(ActionError) as caught:
        read_answer(answer)
    text = str(caught.value)
    assert words in text
    for form in ("an integer from 0 to 8", "(move, turn)", "Actions([...])", "shape (n, 2)"):
        assert form in text
    assert len(text) < 600


def test_a_coroutine_is_refused_where_nobody_awaits_it() -> None:
    """A26; who plays a session awaits it, as tests/client/test_async_client.py has it."""
    coroutine = thinking()
    with pytest.raises(ActionError, match="a coroutine that nobody awaited"):
        read_answer(coroutine)
    coroutine.close()


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        pytest.param([], "Actions([]) is refused: there is no action in it", id="A20"),
        pytest.param([3] * (MAX_ACTIONS + 1), "it has 101 actions", id="A21"),
        ([3, 9], "9 is not in 0 to 8"),
        ([3, True], "a boolean is not an action"),
        ([3, 3.0], "a float is not an action"),
        ([[1, 0]], "a list could be"),
        ([(1, 3)], "turn 3 is not in 0 to 2"),
        ([np.array([[1, 0]])], "an item of several actions is one action"),
        ([Actions([3])], "Actions is not a type of action"),
        ((1, 0), "several actions come as a list"),
        (np.array([1, 0]), "several actions come as a list"),
        (np.array([3, 3, 3]), "shape (3,)"),
        (b"\x03\x03", "several actions come as a list"),
        ({3, 4}, "several actions come as a list"),
        (yielding(), "several actions come as a list"),
        (3, "several actions come as a list"),
    ],
)
def test_several_actions_are_checked_where_they_are_made(actions: Any, words: str) -> None:
    with pytest.raises(ActionError) as caught:
        Actions(actions)
    assert words in str(caught.value)
    assert "Please give an integer" in str(caught.value)


def blank() -> Observation:
    """What an agent sees where there is nothing."""
    zero = np.zeros(3, np.float32)
    return Observation(100.0, zero, zero, np.zeros(70, np.float32))


class Answering:
    """Answers what it was given."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def reset(self, info: EpisodeInfo) -> None: ...

    def act(self, observation: animalcat.Observation) -> Any:
        return self.answer


@pytest.fixture(scope="module")
def arenas() -> Iterator[tuple[gymnasium.Env[Any, Any], ...]]:
    """Arenas with either space of actions."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pair = gymnasium.make("animalcat/Arena-v0")
        flat = gymnasium.make("animalcat/Arena-v0", flat_actions=True)
    yield pair, flat
    pair.close()
    flat.close()


@pytest.mark.parametrize("name", RIGHT)
def test_limits_and_arenas_read_the_same(
    name: str, arenas: tuple[gymnasium.Env[Any, Any], ...]
) -> None:
    answer, numbers = RIGHT[name]
    for limit in ("lapses=0", "path=1000"):  # the second takes several one at a time
        agent = limit_agent(Answering(answer), read_reference(f"builtin:random+{limit}"))
        agent.reset(EpisodeInfo(0, 0, ObservationSpec()))
        given = bytearray()
        while len(given) < len(numbers):
            given += read_answer(agent.act(blank())).actions
        assert list(given) == numbers
    ends: list[tuple[str, float]] = []
    for env in arenas:
        env.reset(seed=3)
        seen, reward, *_ = env.step(answer)
        ends.append((repr(seen), pytest.approx(reward)))
        env.reset(seed=3)
        rewards = 0.0
        for number in numbers:
            seen, reward, *_ = env.step(np.int64(number))
            rewards += float(reward)
        ends.append((repr(seen), rewards))
    assert all(end == ends[0] for end in ends)


@pytest.mark.parametrize("name", REFUSED)
def test_limits_and_arenas_refuse_the_same(
    name: str, arenas: tuple[gymnasium.Env[Any, Any], ...]
) -> None:
    answer, words = REFUSED[name]
    agent = limit_agent(Answering(answer), read_reference("builtin:random+lapses=0"))
    agent.reset(EpisodeInfo(0, 0, ObservationSpec()))
    with pytest.raises(ActionError) as caught:
        agent.act(blank())
    assert words in str(caught.value)
    for env in () if name == "A14" else arenas:  # a pair, where the space is of pairs
        env.reset(seed=3)
        with pytest.raises(ActionError) as caught:
            env.step(answer)
        # Gymnasium's spaces of pairs read a list as a pair, so it is refused as one.
        assert words in str(caught.value) or isinstance(answer, list)
