"""Runs a study: its pages for participants, beside the service whose sessions they play."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from animalcat.client.async_client import AsyncClient, aconnect
from animalcat.service.access.private_files import make_private
from animalcat.service.host.lock import running_server
from animalcat.service.host.private import shown_to_own
from animalcat.service.study.file import Study
from animalcat.service.study.pages import study_part
from animalcat.service.study.playing import Seats, forget
from animalcat.service.study.store import StudyStore
from animalcat.service.web.serving import Pages, shown_at
from animalcat.service.web.visits import UsedOnDisk, Visits

LOOK_SECONDS: Final = 0.25
"""How often it is looked whether the server is still there."""
KEY: Final = "pages.key"
"""File that signs forms, so that one that was open while the server was killed is still good."""


class Where(NamedTuple):
    """Where the pages are.

    Attributes:
        host: Address to listen at.
        port: Port; 0 for any free one.
        url: The public address, as a proxy offers it; empty where browsers come directly.
        proxies: Networks of proxies whose headers are believed, with commas between.
    """

    host: str = "127.0.0.1"
    port: int = 0
    url: str = ""
    proxies: str = ""


async def run_study(
    study: Study,
    home: Path,
    address: str,
    where: Where,
    ready: Callable[[Pages], None],
) -> bool:
    """Offer the pages of a study until SIGTERM or Ctrl-C, or until the server is gone.

    Args:
        study: The study.
        home: The data directory of the server.
        address: The server.
        where: Where the pages are.
        ready: Is called once somebody may come.

    Returns:
        Whether the server is gone; with another one, rounds go on where they stood.

    Raises:
        StudyError: It runs already, or what is kept of it cannot be read.
        AnimalcatError: The server refuses.
        OSError: The port is taken.
    """
    store = StudyStore(home, study)
    store.hold()
    try:
        make_private(store.folder / KEY, secrets.token_bytes(32))
        visits = Visits((store.folder / KEY).read_bytes(), UsedOnDisk(store.folder))
        async with aconnect(address, **shown_to_own(home)) as client:
            await end_withdrawals(client, store)
            seats = Seats(store, client)
            ended = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, ended.set)
            place = (where.host, where.port)
            part = study_part(store, seats)
            async with shown_at([part], visits, place, where.url, where.proxies) as pages:
                ready(pages)
                waiting = [asyncio.create_task(w) for w in (ended.wait(), until_gone(home))]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in waiting:
                    task.cancel()
                await seats.stop()
                return not ended.is_set()
    finally:
        store.close()


async def until_gone(home: Path) -> None:
    """Wait until the server of a data directory is gone, or another one is there."""
    before = running_server(home)
    while before is not None and running_server(home) == before:
        await asyncio.sleep(LOOK_SECONDS)


async def end_withdrawals(client: AsyncClient, store: StudyStore) -> None:
    """Go on with withdrawals that were interrupted."""
    for stone in store.unfinished():
        for session in stone.sessions:
            await forget(client, session)
        store.end_withdrawal(stone)


async def withdraw_person(address: str, home: Path, study: Study, person: str) -> int:
    """Erase a person, whether or not the study runs at the moment.

    Args:
        address: The server.
        home: Its data directory.
        study: The study.
        person: Id of the person, of one of their participants, or what their recruiter calls them.

    Returns:
        How many sessions were erased.

    Raises:
        WithdrawnError: There is nobody of this name.
        AnimalcatError: The server refuses.
    """
    store = StudyStore(home, study)
    for name in ("PROLIFIC_PID", "code"):
        person = store.known({name: person}) or person
    stone = store.begin_withdrawal(person)
    async with aconnect(address, **shown_to_own(home)) as client:
        for session in stone.sessions:
            await forget(client, session)
    store.end_withdrawal(stone)
    return len(stone.sessions)


def link_of(study: Study, url: str) -> str:
    """Return the link that participants are given."""
    query = (
        "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
        if study.who.by == "prolific"
        else ""
    )
    return f"{url}/study/{study.study}{query}"
