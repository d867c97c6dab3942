"""A study whose process, or whose server, is killed at named moments, once each.

`python -m tests.doors.study.dying STRUCK study run ...` is `animalcat study run ...`. Each moment
is written to the file STRUCK before the blow. Every participant comes to it; the first one is met.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

from animalcat.client.async_client import AsyncClient
from animalcat.doors.study.participant import Event, Participant, SessionOver, TrialOver
from animalcat.doors.study.playing import Seat
from animalcat.doors.study.rounds import Round, RoundFile
from animalcat.doors.study.store import StudyStore
from animalcat.service.host.lock import running_server

MOMENTS: Final = {
    "a session of practice is made and not stored": "study",
    "a session of play is made and not stored": "server",
    "round 1 is open without a step": "study",
    "round 2 is at step 6": "study",
    "round 3 is at step 6": "server",
    "round 4 is over and not stored": "study",
    "round 5 is over and not stored": "server",
    "round 6 is stored and nobody was told": "study",
    "round 7 is next": "server",
    "play is over and that is not stored": "study",
}
"""Which process is killed when; rounds are those of play, from 0."""


def main() -> None:
    """Run a command of animalcat that is struck."""
    struck, *words = sys.argv[1:]
    file, home = Path(struck), Path(words[words.index("--data") + 1])

    def come_to(moment: str) -> None:
        known = file.read_text().splitlines() if file.exists() else []
        if moment in MOMENTS and moment not in known:
            file.write_text("\n".join([*known, moment]) + "\n")
            holder = running_server(home)
            assert holder is not None
            server = MOMENTS[moment] == "server"
            os.kill(holder.pid if server else os.getpid(), signal.SIGKILL)

    make, append, add, ready = (
        *(AsyncClient.create_session, StudyStore.append),
        *(RoundFile.add, Seat._is_ready),  # pyright: ignore[reportPrivateUsage]
    )

    async def making(self: AsyncClient, **options: Any) -> Any:
        made = await make(self, **options)
        part = options.get("request_id", "").rpartition(" ")[2]
        come_to(f"a session of {part} is made and not stored")
        return made

    def appending(self: StudyStore, participant: str, event: Event) -> Participant:
        rounds = isinstance(event, TrialOver) and event.part == "play"
        number = event.trial.episode if isinstance(event, TrialOver) else 0
        if rounds:
            come_to(f"round {number} is over and not stored")
        if isinstance(event, SessionOver):
            come_to(f"{event.part} is over and that is not stored")
        then = append(self, participant, event)
        if rounds:
            come_to(f"round {number} is stored and nobody was told")
        return then

    def adding(self: RoundFile, now: Round, *, anew: bool = False) -> None:
        add(self, now, anew=anew)
        come_to(
            f"round {now.episode} is {'open without a step' if anew else f'at step {now.step}'}"
        )

    async def being_ready(self: Seat, **what: int) -> Any:
        come_to(f"round {what['number'] - 1} is next")
        return await ready(self, **what)

    AsyncClient.create_session = making  # pyright: ignore[reportAttributeAccessIssue]
    StudyStore.append, RoundFile.add = appending, adding
    Seat._is_ready = being_ready  # pyright: ignore

    from animalcat.cli.main import main as run

    sys.argv = ["animalcat", *words]
    run()


if __name__ == "__main__":
    main()
