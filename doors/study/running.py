"""Runs a study: its pages for participants, beside the service whose sessions they play."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from animalcat.client.async_client import AsyncClient
from animalcat.doors.study.file import PROLIFIC, Study
from animalcat.doors.study.pages import study_part
from animalcat.doors.study.playing import Seats, erase, warm_up
from animalcat.doors.study.store import StudyStore
from animalcat.service.access.private_files import make_private
from animalcat.service.host.lock import running_server
from animalcat.service.web.serving import Pages, show_pages_at
from animalcat.service.web.visits import UsedOnDisk, Visits

LOOK_SECONDS: Final = 0.25
"""How often it is looked whether the server is still there."""
KEY: Final = "pages.key"
"""File that signs forms, so that one that was open while the server was killed is still good."""


async def run_study(
    client: AsyncClient,
    study: Study,
    home: Path,
    ready: Callable[[Pages], None],
    at: tuple[str, int] = ("127.0.0.1", 0),
    url: str = "",
) -> bool:
    """Offer the pages of a study until SIGTERM or Ctrl-C, or until the server is gone.

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
        for stone in store.unfinished():  # of withdrawals that were interrupted
            await erase(client, store, stone)
        seats = Seats(store, client)
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        async with show_pages_at([study_part(store, seats)], visits, at, url) as pages:
            ready(pages)
            warming = asyncio.create_task(warm_up(client, study))  # while the first ones read
            waiting = [asyncio.create_task(w) for w in (ended.wait(), until_gone(home))]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in (*waiting, warming):
                task.cancel()
            await asyncio.gather(warming, return_exceptions=True)
            await seats.stop()
            return not ended.is_set()
    finally:
        store.close()


async def until_gone(home: Path) -> None:
    """Wait until the server of a data directory is gone, or another one is there."""
    before = running_server(home)
    while before is not None and running_server(home) == before:
        await asyncio.sleep(LOOK_SECONDS)


async def withdraw_person(client: AsyncClient, home: Path, study: Study, person: str) -> int:
    """Erase a person, whether or not the study runs, and return how many sessions they had.

    The name may be theirs, one of their participants', or what their recruiter calls them.

    Raises:
        WithdrawnError: There is nobody of this name.
    """
    store = StudyStore(home, study)
    for name in ("PROLIFIC_PID", "code"):
        person = store.known({name: person}) or person
    stone = store.begin_withdrawal(person)
    await erase(client, store, stone)
    return len(stone.sessions)


def link_of(study: Study, url: str) -> str:
    """Return the link that participants are given."""
    query = "&".join(f"{name}={{{{%{name}%}}}}" for name in PROLIFIC)
    return f"{url}/study/{study.study}" + (f"?{query}" if study.who.by == "prolific" else "")
