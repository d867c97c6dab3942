"""The room of a Ray cluster: who waits for it gets it from those that have no use for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from animalcat.doors.ray.connect import ClusterError, RayConnection, check_room, join
from animalcat.doors.ray.pools import Needs, RayFits, RayWorkers
from animalcat.envs.patience import Patience
from animalcat.layouts.inference.fit import FitRequest
from animalcat.layouts.library import load_layout
from animalcat.service.session.room import Room
from animalcat.service.session.workers import Borrower, Loan
from animalcat.service.versions import versions
from animalcat.values.options import SPEC
from tests.doors.ray import clusters

MIB = 1 << 20
WORKER = Needs(0.25, 512 * MIB)
FIT = 1024 * MIB
LIMIT = 240
"""Seconds after which something that waits is taken to wait for ever."""


@pytest.fixture
def cluster() -> Iterator[Callable[..., str]]:
    """Makes a cluster of nodes, each given by its CPUs and MiB, and returns its address."""
    with clusters.running() as cluster:

        def make(*nodes: tuple[float, int]) -> str:
            for cpus, memory in nodes:
                clusters.add(cluster, cpus, memory * MIB)
            return str(cluster.address)

        yield make


@asynccontextmanager
async def join_it(address: str, home: Path, fit_memory: int = FIT) -> AsyncGenerator[RayConnection]:
    connection = await asyncio.to_thread(join, address, home, versions(), *WORKER, fit_memory)
    try:
        yield connection
    finally:
        await asyncio.to_thread(connection.close)


def workers_of(connection: RayConnection, most: int = 0, wait_seconds: float = 1.0) -> RayWorkers:
    return RayWorkers(connection, WORKER, Room(most), "", (), Patience(), wait_seconds)


async def take_worker(pool: RayWorkers, session: str) -> Loan:
    return await pool.take("sim", SPEC.observation_spec, Borrower(session, print))


@pytest.mark.cluster
@pytest.mark.timeout(900)
async def test_who_idles_or_rests_gives_way_to_who_waits(
    tmp_path: Path, cluster: Callable[..., str]
) -> None:
    # The head has memory and no CPU, the node CPUs and memory for one: together they have room.
    async with join_it(cluster((0, 4096), (1, 700)), tmp_path) as connection:
        pool = workers_of(connection)
        first, second = await take_worker(pool, "first"), await take_worker(pool, "second")
        await first.open()
        waiting = asyncio.create_task(second.open())
        await asyncio.sleep(0)
        first.rest()
        async with asyncio.timeout(LIMIT):
            await waiting
        assert (first.running, second.running) == (False, True)
        await pool.give_back(first)

        # Its agent left in the middle of an episode.
        third = await take_worker(pool, "third")
        waiting = asyncio.create_task(third.open())
        await asyncio.sleep(0)
        await pool.give_back(second)
        async with asyncio.timeout(LIMIT):
            await waiting
        assert [session for session, _ in pool.status().workers] == ["third"]

        # Whoever closes it goes away meanwhile.
        closing = asyncio.create_task(third.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert not third.running
        assert not pool.status().workers

        # So it is where the number of workers is what is short.
        pool = workers_of(connection, most=1, wait_seconds=LIMIT * 2)
        first, second = await take_worker(pool, "first"), await take_worker(pool, "second")
        await first.open()
        waiting = asyncio.create_task(second.open())
        await asyncio.sleep(0)
        await pool.give_back(first)
        async with asyncio.timeout(LIMIT):
            await waiting
        await second.close()


@pytest.mark.cluster
@pytest.mark.timeout(900)
async def test_a_fit_waits_for_no_host_that_has_no_place(
    tmp_path: Path, cluster: Callable[..., str]
) -> None:
    layout = load_layout("aaio")
    request = FitRequest(layout, np.empty((0, len(layout.features))), [], seed=1)
    async with join_it(cluster((1, 1600)), tmp_path) as connection:
        pool = workers_of(connection)
        fits = RayFits(pool, FIT, 2, Patience())  # there is room for one
        async with asyncio.timeout(2 * LIMIT):
            both = await asyncio.gather(fits.fit(request), fits.fit(request))
        assert [one.diagnostics["prior_only"] for one in both] == [True, True]
        await fits.close()


@pytest.mark.cluster
@pytest.mark.timeout(900)
async def test_a_worker_that_rests_gives_way_to_a_fit(
    tmp_path: Path, cluster: Callable[..., str]
) -> None:
    layout = load_layout("aaio")
    async with join_it(cluster((1, 1600)), tmp_path) as connection:
        pool = workers_of(connection)
        one, other = [await take_worker(pool, name) for name in ("one", "other")]
        await asyncio.gather(one.open(), other.open())
        other.rest()
        fits = RayFits(pool, FIT, 1, Patience())
        async with asyncio.timeout(LIMIT):
            await fits.start(layout)
        assert (one.running, other.running) == (True, False)
        await one.close()
        await fits.close()


def test_room_for_a_fit_is_beside_that_for_a_worker() -> None:
    def node(cpus: float, mib: int) -> dict[str, Any]:
        return {"Alive": True, "Resources": {"CPU": cpus, "memory": float(mib * MIB)}}

    with pytest.raises(ClusterError, match="and beside it for one fit, which needs 1024 MiB"):
        check_room([node(1, 1200)], *WORKER, FIT)
    check_room([node(1, 1536)], *WORKER, FIT)
    check_room([node(1, 600), node(0, 1024)], *WORKER, FIT)
    with pytest.raises(ClusterError, match=r"needs 0\.25 CPUs and 512 MiB; there"):
        check_room([node(0, 4096)], *WORKER, FIT)


def test_servers_of_one_data_directory_each_prove_it(tmp_path: Path) -> None:
    import ray

    one, other = (RayConnection(ray, tmp_path, {}) for _ in range(2))
    assert [Path(c.proof).read_text() for c in (one, other)] == [one.secret, other.secret]
    other.close()
    assert Path(one.proof).read_text() == one.secret
    one.close()
    assert not list(tmp_path.iterdir())
