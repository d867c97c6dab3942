"""Throws damaged inputs at everything that reads what strangers send, and counts what goes wrong.

Each input is a valid one that was mutated by a seeded generator: bytes are changed, cut, doubled
and put together with those of others. The only right answers are those that a reader documents: its
own kinds of errors, or a status of the catalogue. `fuzz_rpc` does it to a server.
"""

from __future__ import annotations

import io
import logging
import random
import resource
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from animalcat.arena_configs.families.reader import read_family
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ArenaError
from animalcat.doors.inspect.logs import count_parts
from animalcat.envs.mlagents import channels
from animalcat.envs.mlagents.arguments import parse_arguments
from animalcat.envs.mlagents.channels import ChannelError
from animalcat.envs.mlagents.handshake import VersionRefusedError, greet
from animalcat.envs.mlagents.link import ClientClosed
from animalcat.envs.mlagents.peer import ClientError, converse
from animalcat.envs.mlagents.source import config_source
from animalcat.envs.mlagents.v1 import communicator_pb2 as pb
from animalcat.outcomes import OutcomesError, outcomes_bytes, read_outcomes
from animalcat.service.batteries import feature_table
from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.errors import ServiceError
from animalcat.service.host.settings import Settings
from animalcat.service.library.layouts import own_layout
from animalcat.service.recording.reader import RecordingError, read_episode
from animalcat.service.storage.sql import DATABASE
from animalcat.service.upkeep.backup import MANIFEST
from animalcat.service.upkeep.place import DataError
from animalcat.service.upkeep.restore import restore
from animalcat.text.json_text import read_json
from benchmarks import fuzz_rpc
from benchmarks.fuzz_inputs import ARENA, MOST_MEMORY, Tally, mutate

INPUTS: Final = 100_000
QUICK: Final = 1_500
SEED: Final = 22
ROOT: Final = Path(__file__).resolve().parent.parent


def attack(
    read: Callable[[bytes], object],
    allowed: tuple[type[Exception], ...],
    seeds: Sequence[bytes],
    number: int,
    rng: random.Random,
) -> Tally:
    """Give a reader mutated inputs.

    Args:
        read: The reader.
        allowed: The errors that it documents.
        seeds: Valid inputs.
        number: How many inputs.
        rng: Of the mutations.
    """
    tally = Tally()
    for seed in seeds:
        with suppress(*allowed):  # imports and compiles what it needs
            read(seed)
    for _ in range(number):
        data = mutate(rng, seeds)
        start, accepted, wrong = time.process_time(), False, ""
        try:
            read(data)
            accepted = True
        except allowed:
            pass
        except (Exception, RecursionError) as error:  # noqa: BLE001 - this is what is looked for
            wrong = f"{type(error).__name__}: {str(error)[:120]}"
        tally.add(time.process_time() - start, accepted=accepted, wrong=wrong)
    return tally


def run(quick: bool, inputs: int | None = None) -> list[dict[str, Any]]:
    """Throw inputs at every reader and at a server; a row for each.

    Args:
        quick: Throw few.
        inputs: How many in all; None for `INPUTS`, or `QUICK`.
    """
    number = inputs or (QUICK if quick else INPUTS)
    logging.getLogger("animalcat.envs.mlagents").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        readers = _readers(Path(folder))
        share = number // (len(readers) + 2)  # the server gets two shares
        before = _peak()
        rows = [
            attack(read, allowed, seeds, share, random.Random(f"{SEED} {name}")).row(name)
            for name, (read, allowed, seeds) in readers.items()
        ]
        grown = _peak() - before
        rows.append(
            {
                "name": "growth of the process that reads",
                "value": grown / 2**20,
                "unit": "MiB",
                "target": f"at most {MOST_MEMORY >> 20}",
                "met": grown <= MOST_MEMORY,
            }
        )
        return [*rows, *fuzz_rpc.attack(Path(folder), number - share * len(readers), SEED)]


def _peak() -> int:
    """Most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


Reader = tuple[Callable[[bytes], object], tuple[type[Exception], ...], Sequence[bytes]]


def _readers(folder: Path) -> dict[str, Reader]:
    """Every reader that runs in this process: with the errors it documents, and valid inputs."""

    def texts(*patterns: str) -> list[bytes]:
        return [path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern))]

    arenas = texts("docs/examples/garden/*.y*ml", "service/batteries/shipped/**/*.yml")
    arenas.append(ARENA)
    layouts, families = texts("layouts/library/*.yaml"), texts("arena_configs/families/*.yaml")
    tables = texts("docs/examples/*.csv")
    recordings = texts("tests/service/fixtures/recordings/*.mcap") or [b"\x89MCAP0\r\n"]

    def kept(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
        def write_and_read(data: bytes) -> object:
            (folder / name).write_bytes(data)
            return read(folder / name)

        return write_and_read

    allowed_of_peer = (ArenaError, ChannelError, ClientError, ClientClosed, VersionRefusedError)
    return {
        "arenas in YAML": (
            lambda data: load_text(data.decode(errors="replace"), "fuzz"),
            (ArenaError,),
            arenas,
        ),
        "layouts in YAML": (
            lambda data: own_layout(data.decode(errors="replace")),
            (ServiceError,),
            layouts,
        ),
        "families in YAML": (
            lambda data: read_family(data.decode(errors="replace"), "fuzz"),
            (ArenaError, ValueError),
            families,
        ),
        "tables of meta-features in CSV": (
            lambda data: feature_table.read_table(data.decode(errors="replace")),
            (feature_table.TableError,),
            tables,
        ),
        "tables of outcomes in CSV": (
            partial(read_outcomes, form="csv"),
            (OutcomesError,),
            [OUTCOMES],
        ),
        "tables of outcomes in Parquet": (
            partial(read_outcomes, form="parquet"),
            (OutcomesError,),
            [outcomes_bytes(read_outcomes(OUTCOMES, "csv"), "parquet")],
        ),
        "JSON": (read_json, (ValueError,), [SAID]),
        "logs of inspect_ai": (kept("a.eval", count_parts), (Exception,), [_zipped(SAID)]),
        "backups": (
            kept("b.tar", lambda path: restore(path, Settings(home=folder / "restored"))),
            (DataError,),
            [_packed(SAID, mode) for mode in ("w:", "w:gz")],
        ),
        "recordings": (kept("0-0.mcap", read_episode), (RecordingError,), recordings),
        "side channels of ML-Agents": (_side_channels, (ArenaError, ChannelError), _messages()),
        "conversations of ML-Agents": (_converse, allowed_of_peer, _conversations()),
    }


SAID: Final = b'{"form": 1, "files": {"a": "b", "c": [1, 2.5e3, null, true, "\\u00e4"]}}'
OUTCOMES: Final = b"""instance,outcome,return,steps,goal_distance [m]
navigation-0,success,0.9,12,3.5
navigation-1,failure,-1,100,
"""


def _zipped(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("header.json", "summaries.json", "samples/1.json"):
            archive.writestr(name, content)
    return file.getvalue()


def _packed(content: bytes, mode: Any) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name in (DATABASE, f"{BATTERIES}/a/arenas/0.yaml", MANIFEST):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def _side_channels(data: bytes) -> None:
    for channel, content in channels.messages(data):
        if channel == channels.ARENAS:
            channels.read_arenas(content)


def _messages() -> list[bytes]:
    """Messages of side channels, as clients write them."""

    def message(content: bytes) -> bytes:
        return channels.ARENAS.bytes_le + len(content).to_bytes(4, "little") + content

    return [message(ARENA), message(ARENA) + message(b""), message(b"arena.yml")]


def _conversations() -> list[bytes]:
    """What a client says in one conversation, each message behind its length."""
    greeting = pb.UnityInput(
        rl_initialization_input=pb.InitializationInput(
            seed=1, communication_version="1.5.0", package_version="1.0.0"
        )
    )
    reset = pb.UnityInput(
        rl_input=pb.RlInput(command=pb.COMMAND_RESET, side_channel=_messages()[0])
    )
    acting = pb.UnityInput()
    action = acting.rl_input.agent_actions["AnimalAI?team=0"].value.add()
    action.discrete_actions.extend([1, 0])
    said = [one.SerializeToString() for one in (greeting, reset, acting, acting, reset, acting)]
    return [b"".join(len(one).to_bytes(2, "big") + one for one in said)]


class _Client:
    """A client that says what it was given, and then closes; a `handshake.Transport`."""

    def __init__(self, data: bytes) -> None:
        self._left = data

    def exchange(self, output: pb.UnityOutput | None) -> pb.UnityInput:
        """Answer with the next message that can be read at all, as gRPC would."""
        while self._left:
            length = int.from_bytes(self._left[:2], "big")
            said, self._left = self._left[2 : 2 + length], self._left[2 + length :]
            try:
                return pb.UnityInput.FromString(said)
            except Exception:  # noqa: BLE001 - gRPC refuses it before it is read here
                continue
        raise ClientClosed("the client closed its environment")

    def stop(self) -> None:
        """Nothing is waiting."""


def _converse(data: bytes) -> None:
    client = _Client(data)
    converse(client, greet(client), parse_arguments(["--useRayCasts"]), config_source)
