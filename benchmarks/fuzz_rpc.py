"""Throws damaged messages at every call of a server, and at the stream of an agent."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

import animalcat
from animalcat.service.host.lock import running_server
from animalcat.service.host.private import server_for
from animalcat.v1 import (
    access_pb2,
    campaigns_pb2,
    gateway_pb2,
    layouts_pb2,
    operations_pb2,
    results_pb2,
    sessions_pb2,
    sessions_pb2_grpc,
)
from benchmarks.fuzz_inputs import ARENA, MOST_MEMORY, SPECIAL, Tally, mutate

FILES: Final = (
    *(access_pb2, campaigns_pb2, gateway_pb2, layouts_pb2, operations_pb2, results_pb2),
    sessions_pb2,
)
TOO_LATE: Final = "Internal error from Core"
"""What gRPC's own client says of a frame that it could not send, as the call had ended."""
FRESH: Final = 200
"""After so many messages there is a new session, as some of them cancel or delete it."""
AT_ONCE: Final = 4
"""Calls under way at once."""
CALL_SECONDS: Final = 10.0
WATCH_SECONDS: Final = (0.05, 0.05, 0.05, 0.5)
"""How long a stream of answers is listened to; those that watch have no end."""
DEPTH: Final = 4
"""How deep made messages are nested."""
HARMLESS: Final = frozenset(
    code
    for code in grpc.StatusCode
    if code not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
)
SKIPPED: Final = frozenset({"BuildBattery"})
"""Calls that are asked to work for minutes, and do."""


def attack(folder: Path, number: int, seed: int) -> list[dict[str, Any]]:
    """Start a server, throw messages at it, and look whether it still serves.

    Args:
        folder: Where its data are to be.
        number: How many messages.
        seed: Of the messages.
    """
    home = folder / "home"
    arenas = folder / "arenas"
    arenas.mkdir()
    for k in range(4):
        (arenas / f"navigation-{k}.yaml").write_bytes(ARENA.replace(b"z: 6", b"z: %d" % (6 + k)))
    with server_for(None, home) as address, animalcat.connect(address) as client:
        client.import_battery(arenas, "small")
        names = ["", "", "batteries/small", "small", "fuzz", "aaio"]
        holder = running_server(home)
        assert holder is not None, "the private server holds its directory"
        before = _memory(holder.pid)
        tallies = asyncio.run(_throw(address, number, random.Random(f"{seed} rpc"), names))
        grown = _memory(holder.pid) - before
        client.list_sessions()  # it still serves
    rows = [tally.row(f"{name} of the server") for name, tally in tallies.items()]
    rows.append(
        {
            "name": "growth of the server",
            "value": grown / 2**20,
            "unit": "MiB",
            "target": f"at most {MOST_MEMORY >> 20}",
            "met": grown <= MOST_MEMORY,
        }
    )
    return rows


def make_message(
    rng: random.Random, kind: Descriptor, names: list[str], depth: int = DEPTH
) -> Message:
    """Return a message whose fields are set at random, partly to names that exist."""
    message: Any = GetMessageClass(kind)()
    for one in kind.fields:
        if rng.random() < 0.4:
            continue
        entry = one.message_type
        if entry is not None and entry.GetOptions().map_entry:
            continue
        count = rng.choice((1, 1, 2, 5)) if one.is_repeated else 1
        for _ in range(count):
            if entry is not None:
                if depth == 0:
                    continue
                inner = make_message(rng, entry, names, depth - 1)
                if one.is_repeated:
                    getattr(message, one.name).add().CopyFrom(inner)
                else:
                    getattr(message, one.name).CopyFrom(inner)
            elif one.is_repeated:
                getattr(message, one.name).append(_value(rng, one, names))
            else:
                setattr(message, one.name, _value(rng, one, names))
    return message


def _value(rng: random.Random, one: FieldDescriptor, names: list[str]) -> Any:
    if one.enum_type is not None:
        return rng.choice(one.enum_type.values).number
    if one.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((*SPECIAL, ARENA))
    match one.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            special = rng.choice(SPECIAL).decode(errors="ignore")
            return rng.choice([*names, *names, special])
        case FieldDescriptor.CPPTYPE_BOOL:
            return rng.random() < 0.5
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return rng.choice((0.0, -1.0, 0.5, 1e30, float("nan"), float("inf")))
        case FieldDescriptor.CPPTYPE_INT32 | FieldDescriptor.CPPTYPE_INT64:
            return rng.choice((0, 1, -1, 2**31 - 1, -(2**31)))
        case _:  # whole numbers without a sign
            return rng.choice((0, 1, 7, 2**31, 2**32 - 1))


async def _throw(
    address: str, number: int, rng: random.Random, names: list[str]
) -> dict[str, Tally]:
    methods = [
        (service.full_name, method)
        for file in FILES
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
        if method.name not in SKIPPED
    ]
    tallies = {"calls": Tally(), "streams of agents": Tally()}
    left = iter(range(number))
    async with grpc.aio.insecure_channel(address) as channel:

        async def thrower() -> None:
            for k in left:
                if k % FRESH == 0:
                    names[:2] = await _session(channel)
                if k % 2:
                    service, method = rng.choice(methods)
                    name = "streams of agents" if method.name == "Evaluate" else "calls"
                else:  # the stream of an agent is one method of many, and the most exposed
                    service, method = next(m for m in methods if m[1].name == "Evaluate")
                    name = "streams of agents"
                frames = [_frame(rng, method, names) for _ in range(rng.choice((1, 1, 2, 6)))]
                if name == "streams of agents" and rng.random() < 0.7:
                    frames[0] = _hello(names)
                seconds = rng.choice(WATCH_SECONDS)
                await _call(channel, f"/{service}/", method, frames, seconds, tallies[name])

        await asyncio.gather(*(thrower() for _ in range(AT_ONCE)))
    return tallies


async def _session(channel: grpc.aio.Channel) -> list[str]:
    """Create a session that waits for its agent; its name and its id."""
    # A battery that ships with us: a message may delete the other one.
    spec = sessions_pb2.SessionSpec(agent="fuzz", battery="batteries/navigation", layout="aaio")
    stub: Any = sessions_pb2_grpc.SessionsStub(channel)
    made = await stub.CreateSession(sessions_pb2.CreateSessionRequest(spec=spec))
    return [made.session.name, made.session.name.rpartition("/")[2]]


def _frame(rng: random.Random, method: MethodDescriptor, names: list[str]) -> bytes:
    data = make_message(rng, method.input_type, names).SerializeToString()
    return mutate(rng, [data]) if rng.random() < 0.3 else data


def _hello(names: list[str]) -> bytes:
    hello = gateway_pb2.Hello(session=names[0], agent="fuzz", instance="fuzz", protocol=1)
    return gateway_pb2.EvaluateRequest(hello=hello).SerializeToString()


async def _call(
    channel: grpc.aio.Channel,
    service: str,
    method: MethodDescriptor,
    frames: list[bytes],
    seconds: float,
    tally: Tally,
) -> None:
    """Make one call of raw bytes, and count what came of it."""
    plain: Any = channel
    path = f"{service}{method.name}"
    begun, wrong, accepted = time.perf_counter(), "", False
    try:
        if method.client_streaming:
            answers = (plain.stream_stream if method.server_streaming else plain.stream_unary)(path)
            call = answers(_each(frames), timeout=CALL_SECONDS)
        else:
            answers = (plain.unary_stream if method.server_streaming else plain.unary_unary)(path)
            call = answers(frames[0], timeout=CALL_SECONDS)
        if method.server_streaming:
            await _listen(call, seconds)
        else:
            await call
        accepted = True
    except grpc.aio.AioRpcError as error:
        if error.code() not in HARMLESS and error.details() != TOO_LATE:
            wrong = f"{method.name}: {error.code().name}: {(error.details() or '')[:100]}"
    tally.add(time.perf_counter() - begun, accepted=accepted, wrong=wrong, what=method.name)


async def _each(frames: list[bytes]) -> AsyncIterator[bytes]:
    for frame in frames:
        yield frame


async def _listen(call: Any, seconds: float) -> None:
    """Read what a stream has to say within a moment, then leave it."""
    read: Callable[[], Any] = call.read
    try:
        async with asyncio.timeout(seconds):
            while await read() is not grpc.aio.EOF:
                pass
    except TimeoutError:
        pass
    finally:
        call.cancel()


def _memory(process: int) -> int:
    """Bytes of memory that a process holds."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024
