"""Nothing that an agent is given can be tested against a guess of the session's seed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest
import xarray as xr

from animalcat.layouts.inference.arviz_data import documents_of
from animalcat.layouts.inference.randomness import rng
from animalcat.service.access.secret import FILE, ServerSecret
from animalcat.service.access.tokens import FOLDER, TokenError
from animalcat.service.ids import session_id
from animalcat.service.rpc.asked import asked_spec
from animalcat.v1 import results_pb2
from tests.service.conftest import Service, walk

Start = Callable[[Path], Any]

SEED, EPISODES = 17, 3


@dataclass(frozen=True)
class Played:
    """A session, what its agent was given, and what it was not to know."""

    session: str
    agent_seeds: tuple[int, ...]
    arenas: tuple[str, ...]


async def play_out(service: Service, **spec: Any) -> Played:
    session = await service.create(EPISODES, seed=SEED, **spec)
    seeds: list[int] = []
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        for _ in range(EPISODES):
            begun = await stream.receive("episode_start")
            seeds.append(begun.agent_seed)
            await stream.rest_of(begun, walk)
    arenas = tuple(episode.instance for episode in await service.list_episodes(session))
    return Played(session, tuple(seeds), arenas)


async def guess_seeds(service: Service, known: Played) -> list[int]:
    """The seeds that agree with a session's id, or with an agent's first seed.

    Whoever tries knows everything but the seed: battery, layout, policy and this code.
    """
    spec = asked_spec((await service.get(known.session)).spec)
    found: list[int] = []
    for seed in range(2 * SEED):
        guess = replace(spec, seed=seed, secret="")
        named = known.session == f"sessions/{session_id(guess)}"
        seeded = int(rng(seed, "agent", 0).integers(2**63)) == known.agent_seeds[0]
        found += [seed] if named or seeded else []
    return found


@pytest.mark.asyncio(loop_scope="session")
async def test_a_guess_of_the_seed_cannot_be_tested(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start(tmp_path / "open") as service:  # with no secret the way is known to work
        known = await play_out(service)
        assert await guess_seeds(service, known) == [SEED]
    monkeypatch.delenv("ANIMALCAT_SECRET")
    async with start(tmp_path / "one") as service:
        one = await play_out(service)
        assert await guess_seeds(service, one) == []
        same = await service.create(EPISODES, seed=SEED)  # the same request once more
        assert same == f"{one.session}-2"
        request = results_pb2.GetProfileRequest(name=f"{one.session}/profile")
        profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
        files = {
            form: await service.exported(one.session, number)
            for form, number in results_pb2.ProfileFormat.items()
        }
    secret = profile["provenance"]["secret"]
    parquet = pd.read_parquet(io.BytesIO(files.pop("PROFILE_FORMAT_OUTCOMES_PARQUET")))
    told = [
        parquet.to_csv(),
        *(files[form].decode() for form in files if files[form][:1] != b"\x89"),
    ]
    opened = cast("Any", xr).load_dataset
    for form in ("PROFILE_FORMAT_NETCDF", "PROFILE_FORMAT_DRAWS"):
        (tmp_path / form).write_bytes(files[form])
        data = opened(tmp_path / form, group="constant_data", engine="h5netcdf")
        told.append(json.dumps(documents_of(data)))
    for text in told:  # exports go anywhere
        assert secret not in text
        assert '"seed"' not in text.partition('"provenance"')[2].partition('"versions"')[0]
    assert len(secret) == 32
    async with start(tmp_path / "two") as service:
        two = await play_out(service)
        again = await play_out(service, secret=secret)
    assert len({known.session, one.session, two.session}) == 3
    assert not set(one.agent_seeds) & {*known.agent_seeds, *two.agent_seeds}
    assert again == one  # a secret that is given restores the session on another server


@pytest.mark.parametrize("torn", [b"", b"cut", bytes(32)])
def test_a_secret_that_was_cut_is_not_taken(tmp_path: Path, torn: bytes) -> None:
    ServerSecret(tmp_path)
    file = tmp_path / FOLDER / FILE
    assert len(file.read_bytes()) == 32
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(torn)
    with pytest.raises(TokenError, match=f"{FILE} holds .* Restore the file"):
        ServerSecret(tmp_path)
