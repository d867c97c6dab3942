"""What an agent's `act` returns, which one function reads, however the agent is connected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from inspect import isasyncgen, isawaitable, isgenerator
from operator import index
from typing import Any, Final, Literal, NamedTuple, SupportsIndex, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from animalcat.envs.types import ACTIONS

TURNS: Final = 3
"""Number of moves, and of the turns that a move can be combined with: none, right, left."""

MAX_ACTIONS: Final = 100
"""Most actions in one answer."""
NOTES_USED_UP: Final = "NOTES_USED_UP"
"""Code of the error for a note beyond a budget: it is refused, but its action is taken."""

FORMS: Final = (
    f"give an integer from 0 to {ACTIONS - 1}, which is 3 x move + turn; or (move, turn), each "
    "from 0 to 2, as a tuple or an integer array of shape (2,); or several actions as "
    "animalcat.Actions([...]) or an integer array of shape (n, 2)"
)
"""The forms of an action, for whoever gave something else."""

Action: TypeAlias = int | np.integer[Any] | tuple[int, int] | npt.NDArray[np.integer[Any]]
"""One action: an integer 3 x move + turn, or (move, turn); an array (n, 2) is several of them."""


AnswerKind: TypeAlias = Literal["read", "repeat", "unparseable", "refusal", "limit", "error"]
"""What became of an answer in words.

It was done ("read"), and had the same words as the one before in the episode ("repeat"); it could
not be read, or was a refusal; a limit of tokens, messages or answers cut it off, or kept it from
being asked; or the provider failed, which is no answer.
"""


class ActionError(ValueError):
    """What was given is no action; the text shows it, says why, and names the right forms."""


@dataclass(frozen=True, slots=True, init=False)
class Actions:
    """Several actions, which are taken one after the other.

        return Actions([3, 3, (1, 2)])

    Attributes:
        numbers: 3 x move + turn of each, a byte an action.
    """

    numbers: bytes

    def __init__(self, actions: list[Any] | npt.NDArray[np.integer[Any]]) -> None:
        """Check the actions.

        Args:
            actions: A list of 1 to `MAX_ACTIONS` items, each an integer or a pair (move, turn), or
                an integer array of shape (n, 2).

        Raises:
            ActionError: It is something else, or one of them is no action.
        """
        try:
            numbers = _several(actions)
        except _Refusal as refused:
            raise _error(f"Actions({_format_value(actions)})", refused) from None
        object.__setattr__(self, "numbers", numbers)

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"Actions({list(self.numbers)})"


@dataclass(frozen=True, slots=True)
class Note:
    """A remark of an agent at a step, and what the step cost it.

    Attributes:
        text: The remark, at most 4,096 bytes; empty where the note tells of cost alone.
        tokens_in: Tokens that a language model was given; None if not told.
        tokens_out: Tokens that the model gave; None if not told.
        cost: What that cost, 0 or more, in the currency; None if not told.
        currency: Three letters of ISO 4217, such as "EUR"; empty without a cost.
        answer: What became of an answer in words; None where nothing spoke.
    """

    text: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    currency: str = ""
    answer: AnswerKind | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """An agent's answer with a note on it, which goes into the recording beside the step.

    Attributes:
        actions: The action, or several.
        note: The note, or a tuple of several.
    """

    actions: Action | Actions
    note: Note | tuple[Note, ...]


Answer: TypeAlias = Action | Actions | Noted
"""What an agent may answer: one action, several to take in order, or either with a note."""


class ReadAnswer(NamedTuple):
    """An answer that was read: actions as bytes, and notes.

    Attributes:
        actions: 3 x move + turn of each action, a byte an action; 1 to `MAX_ACTIONS` of them.
        notes: The notes on it.
    """

    actions: bytes
    notes: tuple[Note, ...] = ()


def read_answer(answer: object) -> ReadAnswer:
    """Read what an agent answered.

    Anything that could mean two things is refused, such as a list: [1, 0] could be one pair or two
    actions, one after the other.

    Args:
        answer: Should be an `Answer`.

    Raises:
        ActionError: It is not.
    """
    noted = answer if isinstance(answer, Noted) else None
    try:
        if noted is None:
            return ReadAnswer(_numbers(answer))
        notes = noted.note if isinstance(noted.note, tuple) else (noted.note,)
        if not all(isinstance(note, Note) for note in notes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _Refusal("its note is not an animalcat.Note, as in Noted(3, Note('a remark'))")
        return ReadAnswer(_numbers(noted.actions), notes)
    except _Refusal as refused:
        raise _error(_format_value(answer), refused) from None


class _Refusal(Exception):  # noqa: N818  says why; what came is said by who asked
    """Why something is no action."""


def _numbers(answer: object) -> bytes:
    if isinstance(answer, Actions):
        return answer.numbers
    value = _plain(answer)
    return _rows(value) if isinstance(value, _Rows) else bytes((_number(value),))


def _several(actions: object) -> bytes:
    value = _plain(actions) if _is_array(actions) else actions
    if isinstance(value, _Rows):
        return _rows(value)
    if not isinstance(value, list):
        raise _Refusal("several actions come as a list, or as an integer array of shape (n, 2)")
    items = cast("list[object]", value)
    return _rows(_Rows(map(_plain, items)))


class _Rows(list["int | tuple[int, int] | _Rows"]):
    """Several actions."""


_Plain: TypeAlias = int | tuple[int, int] | _Rows
"""An integer, a pair or several actions, as Python has them and whatever their numbers."""


def _rows(rows: _Rows) -> bytes:
    if not rows:
        raise _Refusal("there is no action in it")
    if len(rows) > MAX_ACTIONS:
        raise _Refusal(f"it has {len(rows)} actions, and an answer has at most {MAX_ACTIONS}")
    return bytes(map(_number, rows))


def _number(value: _Plain) -> int:
    """The number of one action, which is an integer or a pair of them."""
    if isinstance(value, int):
        if not 0 <= value < ACTIONS:
            raise _Refusal(f"{_format_value(value)} is not in 0 to {ACTIONS - 1}")
        return value
    if isinstance(value, _Rows):
        raise _Refusal("an item of several actions is one action")
    move, turn = value
    for name, part in (("move", move), ("turn", turn)):
        if not 0 <= part < TURNS:
            raise _Refusal(f"{name} {part} is not in 0 to {TURNS - 1}")
    return TURNS * move + turn


def _plain(value: object) -> _Plain:
    if _is_array(value):
        return _of_array(value)
    if isinstance(value, tuple):
        parts = cast("tuple[object, ...]", value)
        if len(parts) != 2:
            raise _Refusal(f"a pair has two numbers, and this tuple has {len(parts)} items")
        if parts[1] is None or (_is_array(parts[0]) and np.ndim(_array(parts[0])) > 0):
            raise _Refusal(
                "it is a tuple of an action and something else, as the predict of "
                "Stable-Baselines3 returns: give its first part alone"
            )
        move, turn = map(_plain, parts)
        if not isinstance(move, int) or not isinstance(turn, int):
            raise _Refusal("the parts of a pair are integers")
        return move, turn
    if isinstance(value, bool):
        raise _Refusal("a boolean is not an action")
    try:
        return int(index(cast("SupportsIndex", value)))
    except TypeError:
        raise _Refusal(_why_not(value)) from None


def _of_array(value: object) -> _Plain:
    array = _array(value)
    if array.dtype.kind not in "iu":
        kind = {"b": "booleans", "f": "floats", "U": "text", "S": "bytes"}.get(
            array.dtype.kind, f"type {array.dtype}"
        )
        raise _Refusal(f"it is of {kind}, and actions are integers{_argmax(array)}")
    if np.ma.is_masked(value):
        raise _Refusal("some of it is masked")
    numbers = array.tolist()
    if array.ndim == 0:
        return numbers
    if array.shape == (2,):
        return (numbers[0], numbers[1])
    if array.ndim == 2 and array.shape[1] == 2:
        return _Rows(map(tuple, numbers))
    raise _Refusal(f"an array of shape {array.shape} is not an action{_argmax(array)}")


def _argmax(array: npt.NDArray[Any]) -> str:
    """What to do where it looks as if it had one number for each action."""
    if array.size != ACTIONS:
        return ""
    return f"; of {ACTIONS} scores or a one-hot give int(np.argmax(...))"


def _is_array(value: object) -> bool:
    """Whether it is an array or a scalar of NumPy, or a tensor, which can become one."""
    return hasattr(type(value), "__array__")


def _array(value: object) -> npt.NDArray[Any]:
    try:
        return np.asarray(value)
    except Exception as error:  # noqa: BLE001  whatever a tensor library raises
        raise _Refusal(f"NumPy cannot read it ({' '.join(str(error).split())})") from None


def _why_not(value: object) -> str:
    match value:
        case None:
            return "act returned nothing"
        case float() | complex():
            return "a float is not an action, not even a whole one"
        case list():
            return (
                "a list could be one pair or several actions: a pair is a tuple, and several are "
                "Actions([...])"
            )
        case str() | bytes() | bytearray() | memoryview():
            return "text and bytes are not actions"
        case Noted():
            return "a Noted goes round the whole answer, once"
        case Set():
            return "a set has no order"
        case Mapping():
            return "a dictionary is not an action: give the value in it"
        case _ if isawaitable(value):
            return "it is a coroutine that nobody awaited"
        case _ if isgenerator(value) or isasyncgen(value):
            return "it is a generator: return the action, and do not yield it"
        case _:
            return f"{type(value).__name__} is not a type of action"


def _error(shown: str, refused: _Refusal) -> ActionError:
    return ActionError(f"action {shown} is refused: {refused}. Please {FORMS}.")


def _format_value(value: object) -> str:
    """A value as it can be read in a sentence."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001  whatever the agent's own class raises
        text = object.__repr__(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
