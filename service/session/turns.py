"""Reads the frames with which an agent answers, whoever receives them: the server or a worker."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from animalcat.envs.answers import MAX_ACTIONS, NOTES_USED_UP, Note
from animalcat.envs.types import ACTIONS
from animalcat.service.session.link import AgentLeftError
from animalcat.service.session.notes import NoteRoom
from animalcat.text.terminals import harmless
from animalcat.v1 import gateway_pb2, types_pb2
from animalcat.values import Cause
from animalcat.wire.codec import decode

MAX_TAKEN: Final = 1000
"""Most actions that one message may ask for, counting repetitions."""
MAX_NOTE_BYTES: Final = 4096
"""Most bytes of a note."""
MAX_NOTES: Final = 100
"""Most notes between two actions."""
MAX_FAILURE: Final = 1000
"""Most characters that are kept of how an agent's code failed."""
MAX_BAD_FRAMES: Final = 3
"""Number of bad frames in a row that ends the stream."""
_CURRENCY: Final = re.compile(r"[A-Z]{3}")


class FrameError(ValueError):
    """A frame of the agent is refused; the same question stands.

    It is no `ServiceError`, because workers import this module and have no use for gRPC.

    Attributes:
        code: Stable code of the error, one of `service.errors.Code`.
        message: What was wrong, and what to do.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


class Trust(NamedTuple):
    """Which reasons are believed of an agent that leaves; of most agents, none.

    Attributes:
        failure: That its code failed.
        dismissal: That whoever runs it took it off.
    """

    failure: bool = False
    dismissal: bool = False

    def why(self, leave: gateway_pb2.Leave) -> tuple[Cause, str]:
        """Return why an agent leaves, and what else is known of that."""
        if self.dismissal and leave.dismissed:
            return Cause.DISMISSED, ""
        if self.failure and leave.failure:
            return Cause.AGENT_FAILED, harmless(leave.failure)[:MAX_FAILURE]
        return Cause.AGENT_LEFT, ""


class AnswerReader:
    """Reads what one agent answers, and keeps its notes until an action comes with them.

    Attributes:
        notes: Notes that the agent has made since they were last taken.
        believed: What is believed of it.
        room: How much its notes may still take.
    """

    def __init__(self, believed: Trust = Trust(), room: NoteRoom | None = None) -> None:
        self.notes: list[Note] = []
        self.room = room or NoteRoom()
        self.believed = believed
        self._bad_frames = 0

    def take_notes(self) -> list[Note]:
        """Return the notes that the agent has made since the last call."""
        self.room.take()
        notes, self.notes = self.notes, []
        return notes

    def drop_notes(self) -> None:
        """Forget the notes that no answer came with, because they will be sent again."""
        self.room.drop()
        self.notes.clear()

    def read(self, frame: gateway_pb2.EvaluateRequest, done: int) -> bytes | None:
        """Read a frame that came while an observation waits for its answer.

        Args:
            frame: The frame.
            done: Number of decisions taken so far.

        Returns:
            The actions, one per byte; None if the frame was a note.

        Raises:
            FrameError: The frame is refused; `refuse` has the answer to it.
            AgentLeftError: The agent withdrew or left.
        """
        match frame.WhichOneof("frame"):
            case "action":
                actions = expand(frame.action, done)
                self._bad_frames = 0
                return actions
            case "note":
                self._note(frame.note)
                return None
            case "withdraw" if done == 0:
                raise AgentLeftError(Cause.LOOKED)
            case "leave":
                cause, detail = self.believed.why(frame.leave)
                raise AgentLeftError(cause, detail=detail)
            case _:
                raise FrameError("BAD_FRAME", "only an action or a note may be sent here")

    def refuse(self, error: FrameError) -> gateway_pb2.EvaluateResponse:
        """Return what the agent is told of a frame that is refused.

        A note beyond a budget counts as no bad frame: it is well formed, and other agents may have
        spent the budget.

        Raises:
            AgentLeftError: There were too many bad ones in a row.
        """
        self._bad_frames += error.code != NOTES_USED_UP
        if self._bad_frames >= MAX_BAD_FRAMES:
            raise AgentLeftError(Cause.BAD_FRAMES) from error
        return gateway_pb2.EvaluateResponse(
            error=types_pb2.Error(code=error.code, message=error.message)
        )

    def _note(self, note: types_pb2.Note) -> None:
        note.text = harmless(note.text.replace("\r\n", "\n"))
        size = len(note.text.encode())
        if size > MAX_NOTE_BYTES:
            raise FrameError(
                "NOTE_TOO_LONG", f"the note has more than {MAX_NOTE_BYTES} bytes; shorten it"
            )
        if len(self.notes) >= MAX_NOTES:
            raise FrameError("NOTE_TOO_LONG", f"more than {MAX_NOTES} notes at one step")
        read = note_from_proto(note)
        if why := self.room.add(size):
            raise FrameError(NOTES_USED_UP, why)
        self.notes.append(read)


def expand(action: gateway_pb2.Action, done: int) -> bytes:
    """Return the actions that a message asks for, with repetitions written out.

    Args:
        action: The message.
        done: Number of decisions taken so far, which the message must name.

    Returns:
        The actions, one per byte.

    Raises:
        FrameError: The message answers another observation, or is out of range.
    """
    actions, repeat = action.list.actions, action.list.repeat or 1
    if action.slot != 0:
        raise FrameError("ACTION_OUT_OF_RANGE", f"slot {action.slot} does not exist; give slot 0")
    if action.WhichOneof("kind") is None:
        raise FrameError(
            "ACTION_OUT_OF_RANGE",
            "the action is of a kind that sessions do not take; give a list",
        )
    if action.step != done:
        raise FrameError(
            "ACTION_STALE", f"the action answers step {action.step}; answer step {done}"
        )
    if not 1 <= len(actions) <= MAX_ACTIONS or len(actions) * repeat > MAX_TAKEN:
        raise FrameError(
            "ACTION_OUT_OF_RANGE",
            f"{len(actions)} actions, {repeat} times; give 1 to {MAX_ACTIONS} of them, "
            f"repeated to at most {MAX_TAKEN}",
        )
    if max(actions) >= ACTIONS:
        raise FrameError(
            "ACTION_OUT_OF_RANGE",
            f"action {max(actions)} is not in 0..{ACTIONS - 1}; an action is 3 x move + turn",
        )
    return actions * repeat


def note_from_proto(message: types_pb2.Note) -> Note:
    """Convert a message to a note.

    Raises:
        FrameError: Its cost is not an amount of a currency.
    """
    note = decode(Note, message)
    cost, currency = note.cost, note.currency
    if cost is None and currency:
        raise FrameError("INVALID_REQUEST", "the note has a currency but no cost; give both")
    if cost is not None and not (0.0 <= cost < math.inf and _CURRENCY.fullmatch(currency)):
        raise FrameError(
            "INVALID_REQUEST",
            f"the note's cost is {cost:g} {currency[:20]!r}; give a number of 0 or more and a "
            "currency of three capital letters, such as EUR",
        )
    return note
