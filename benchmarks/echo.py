"""A bare grpc.aio server: answers every message of a stream with a fixed number of bytes.

`python -m benchmarks.echo BYTES` prints its port and serves until its input ends.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import grpc

METHOD = "/echo.Echo/Stream"


async def serve(size: int) -> None:
    """Serve until standard input ends."""
    answer = bytes(size)

    async def stream(_: Any, context: Any) -> None:
        while await context.read() is not grpc.aio.EOF:
            await context.write(answer)

    server = grpc.aio.server()
    make: Any = grpc.stream_stream_rpc_method_handler
    handler = make(stream)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("echo.Echo", {"Stream": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
