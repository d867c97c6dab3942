"""Words of strangers: what the door refuses, and what printing writes out."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from animalcat.cli.shared.output import (
    complain,
    console,
    plain_column,
    print_json,
    print_rows,
    progress_console,
    remark,
    say,
    spinner,
    to_standard_output,
)
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.service.errors import ServiceError
from animalcat.service.session.notes import NoteRoom
from animalcat.service.session.turns import AnswerReader, Trust
from animalcat.service.storage.sql import SqlStore
from animalcat.service.texts import DOCUMENTS, LINES, WRITTEN_OUT, check_texts
from animalcat.text.terminals import STEERS, harmless
from animalcat.v1 import (
    access_pb2,
    campaigns_pb2,
    gateway_pb2,
    layouts_pb2,
    operations_pb2,
    results_pb2,
    sessions_pb2,
    types_pb2,
)
from animalcat.v1.gateway_pb2 import EvaluateRequest
from animalcat.values import AuditLine, Identity
from tests.client.conftest import MakeSession, Server

FILES: Final = [
    *(access_pb2, campaigns_pb2, gateway_pb2, layouts_pb2),
    *(operations_pb2, results_pb2, sessions_pb2, types_pb2),
]
METHODS: Final = [
    (f"/{service.full_name}/{method.name}", method)
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
MARK: Final = "MARK"
STRANGE: Final = (
    "".join(f"{chr(one)}{MARK}" for one in range(0x2100) if STEERS.fullmatch(chr(one)))
    + "\x1b[31m[bold]\x9b31m\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x1b\\"
)
"""Every character that steers a terminal, each before a mark, and sequences of them."""
STEERED: Final = re.compile(f"(?:{STEERS.pattern}){MARK}|\x1b\\]|\x9b")


def each(kind: Descriptor, text: str, within: tuple[str, ...] = ()) -> Iterator[Any]:
    """Messages of a kind, each with the text in another of its fields, those within it too."""
    for field in kind.fields:
        entry = field.message_type
        made: Any = GetMessageClass(kind)
        if field.type == FieldDescriptor.TYPE_STRING:
            yield field, made(**{field.name: [text] if field.is_repeated else text})
        elif entry is None or entry.full_name in within:
            continue
        elif entry.GetOptions().map_entry:
            for part, one in each(entry, text, (*within, kind.full_name)):
                value = one.value if entry.fields_by_name["value"].message_type is None else None
                yield part, made(**{field.name: {one.key: value}})
        else:
            for part, one in each(entry, text, (*within, kind.full_name)):
                yield part, made(**{field.name: [one] if field.is_repeated else one})


@pytest.mark.parametrize("text", [*"\x00\x07\r\x1b\x7f\x85\x9b\u202e\u2066\u2028", "x" * 10_000])
def test_every_text_of_a_message_is_checked(text: str) -> None:
    seen = 0
    for _, method in METHODS:
        for field, message in each(method.input_type, text):
            seen += 1
            free = field.full_name in WRITTEN_OUT
            free |= len(text) > 1 and field.full_name in DOCUMENTS | LINES
            with nullcontext() if free else pytest.raises(ServiceError, match=field.name):
                check_texts(message)
    assert seen > 100


def test_every_call_goes_through_that_door(server: Server) -> None:
    with grpc.insecure_channel(server.address) as channel:
        for path, method in METHODS:
            for field, message in each(method.input_type, "a\x1b]0;title\x07"):
                beyond = isinstance(message, EvaluateRequest) and not message.HasField("hello")
                if beyond or field.full_name in WRITTEN_OUT:
                    continue  # a frame before the hello is refused whatever it is
                with pytest.raises(grpc.RpcError) as refused:
                    call_method(channel, path, method, message)
                error: Any = refused.value
                assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, (path, message, error)
                assert "leave it out" in error.details(), (path, message, error)


def call_method(channel: grpc.Channel, path: str, method: Any, message: Message) -> Any:
    """The last answer to a call."""
    ways = ("unary", "stream")
    way = f"{ways[method.client_streaming]}_{ways[method.server_streaming]}"
    answer: Any = GetMessageClass(method.output_type)
    call = getattr(channel, way)(path, type(message).SerializeToString, answer.FromString)
    given = iter([message]) if method.client_streaming else message
    answers = call(given, timeout=30)
    return [*answers][-1:] if method.server_streaming else answers


def test_notes_are_stored_with_such_characters_written_out() -> None:
    reader = AnswerReader(Trust(), NoteRoom())
    note = types_pb2.Note(text="one\r\ntwo\t\x1b[2J\x9b\u202e")
    assert reader.read(EvaluateRequest(note=note), 0) is None
    assert [note.text for note in reader.notes] == [r"one" "\ntwo\t" r"\x1b[2J\x9b\u202e"]


def print_everything() -> None:
    """Print every message of the wire, full of strange texts, in each way that there is."""
    from rich.progress import Progress

    for file in FILES:
        for kind in file.DESCRIPTOR.message_types_by_name.values():
            whole: Any = GetMessageClass(kind)()
            for _, one in each(kind, STRANGE):
                whole.MergeFrom(one)
            if not (row := MessageToDict(whole)):
                continue
            print_json(row)
            print_rows([row], row)
            words = str(row.popitem()[1]) + STRANGE
            for way in (say, complain, remark, console().print):
                way(words)
    with spinner(STRANGE) as change, Progress(plain_column(), console=progress_console()) as bar:
        change(STRANGE * 2)
        bar.add_task(STRANGE)
    to_standard_output(STRANGE.encode(), "csv")


def test_whatever_is_printed_steers_no_terminal() -> None:
    code = "from tests.client.test_strange_words import print_everything; print_everything()"
    shown = on_terminal([sys.executable, "-c", code])
    assert not STEERED.search(shown)
    assert shown.count(rf"\x1b{MARK}") > 100
    assert "[bold]" in shown


def test_json_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({STRANGE: STRANGE})
    text = capsys.readouterr().out
    assert (harmless(text), json.loads(text)) == (text, {STRANGE: STRANGE})


def test_what_was_stored_before_there_was_a_door(server: Server, make_session: MakeSession) -> None:
    session = make_session()
    prints = AgentFingerprint("declared", STRANGE, STRANGE, {STRANGE: STRANGE}, {STRANGE: "1"})
    line = AuditLine(datetime.now(UTC), STRANGE, STRANGE, STRANGE, STRANGE, STRANGE, words=STRANGE)
    store = SqlStore.in_directory(server.home)
    try:
        store.identify(session.id, Identity(prints, (prints,), (STRANGE,), {STRANGE: STRANGE}))
        store.audit.write([line])
    finally:
        store.close()
    for words in (["session", "show", session.id], ["audit"], ["audit", "--json"]):
        command = [sys.executable, "-m", "animalcat", *words, "--server", server.address]
        shown = on_terminal(command)
        assert not STEERED.search(shown), words
        assert MARK in shown, words


def on_terminal(command: list[str]) -> str:
    """What a command prints on a terminal."""
    ours, its = pty.openpty()
    kept: list[bytes] = []
    with subprocess.Popen(
        command,
        stdin=its,
        stdout=its,
        stderr=its,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"},
    ):
        os.close(its)
        with suppress(OSError):  # when nobody has it any more
            while piece := os.read(ours, 1 << 16):
                kept.append(piece)
    os.close(ours)
    return b"".join(kept).decode(errors="replace")
