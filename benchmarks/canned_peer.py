"""The quickest build there can be: it answers a client with one message made beforehand.

`python -m benchmarks.canned_peer OPTIONS`, with the options of a build.
"""

from __future__ import annotations

import sys
from typing import Any

import grpc

from animalcat.bench.simulator import arena
from animalcat.envs.mlagents.arguments import parse_arguments
from animalcat.envs.mlagents.encoding import Encoder
from animalcat.envs.mlagents.handshake import greeting
from animalcat.envs.mlagents.link import METHOD
from animalcat.envs.mlagents.peer import BEHAVIOUR, introduction
from animalcat.envs.mlagents.v1 import communicator_pb2 as pb
from animalcat.envs.sim.environment import SimEnvironment


def main() -> None:
    """Be a build in which nothing ever changes, until the client closes."""
    arguments = parse_arguments(sys.argv[1:])
    options = (("grpc.enable_http_proxy", 0),)
    with grpc.insecure_channel(f"localhost:{arguments.port}", options=options) as channel:
        exchange: Any = channel.unary_unary  # untyped for bytes
        call = exchange(METHOD)  # bytes both ways: nothing is decoded
        step = SimEnvironment(arguments.spec).load(arena(), 0)
        told = pb.UnityOutput(rl_initialization_output=introduction())
        info = told.rl_output.agent_infos[BEHAVIOUR].value.add()
        Encoder(channels_first=True).write(step, info)
        call(_message(greeting()))
        call(_message(None))
        frame, end = _message(told), pb.UnityMessage(header=pb.Header(status=400))
        while call(frame) != end.SerializeToString():
            pass


def _message(output: pb.UnityOutput | None) -> bytes:
    message = pb.UnityMessage(header=pb.Header(status=200), unity_output=output)
    return message.SerializeToString()


if __name__ == "__main__":
    main()
