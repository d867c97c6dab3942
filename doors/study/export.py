"""Writes a study as others read one: rows as jsPsych has them, in a folder as Psych-DS asks for."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from animalcat.client.async_client import AsyncClient
from animalcat.doors.study.file import Study
from animalcat.doors.study.participant import (
    Agreed,
    Answered,
    Arrived,
    Debriefed,
    DeviceFits,
    Event,
    PageRead,
    Participant,
    Rested,
    SessionMade,
    SessionOver,
    TrialOver,
    TrialTiming,
)
from animalcat.doors.study.store import PARTICIPANTS, StudyStore, read_events
from animalcat.errors import AnimalcatError
from animalcat.machine.files import write_whole
from animalcat.outcomes import COLUMNS as OUTCOME_COLUMNS
from animalcat.outcomes import outcomes_frame, read_outcomes, write_outcomes
from animalcat.service.storage.artefacts import RECORDINGS
from animalcat.wire.protocol import version

DATA: Final = "data"
DESCRIPTION: Final = "dataset_description.json"
OUTCOMES: Final = "outcomes.csv"
"""The outcomes of all participants, as `layout fit --table` reads them."""
_OF_EPISODE: Final = (
    *("instance", "paradigm", "return", "ended_by", "pass_mark", "score", "propensity"),
    *("predicted", "reason", "weight", "backend", "layout", "battery", "played_before"),
)
"""Columns of the table of outcomes that are columns here too; every demand is one as well."""
COLUMNS: Final[Mapping[str, str]] = {
    "participant": "Random id of the participant at one visit.",
    "visit": "Which visit of the person, from 1.",
    "condition": "Condition of the study.",
    "trial_index": "Number of the row, from 0, of this participant.",
    "trial_type": "What the row is about: consent, device, instructions, questions, round, break.",
    "time_elapsed": "ms since the participant agreed to take part, or came.",
    "rt": "ms from the first frame of a round to the first key, on the participant's clock; of "
    "other rows ms since the row before.",
    "response": "What was answered: numbers of choices, or whether a round was passed.",
    "part": "practice or play.",
    "block": "Number of the block, from 0.",
    "round": "Number of the round within its part, from 0; one that is void or a fault has that of "
    "the next.",
    "session": "Session of animalcat whose agent the participant is.",
    "episode": "Number of the episode in that session.",
    "attempt": "Which attempt at that number, from 0.",
    "outcome": "success, failure, void (left for more than 5 s), or fault (of the service).",
    "counts": "Whether it is evidence in the profile.",
    "seconds": "From the first frame of a round to its end.",
    "steps": "Decisions that were taken.",
    "gaps": "Seconds of absences after which the round went on, with blanks between.",
    "flags": "Why times are not to be trusted: gap, late, dropped, blur, untimed.",
    "recording": "Path of the recording in this folder, which replays.",
    "full_screen": "Whether the round ran in full screen all the time.",
    "frames": "Frames that were sent.",
    "dropped": "Frames that were not painted.",
    "late": "Frames that were painted more than 60 ms after their decision was due.",
    "interval_mean": "Mean ms between painted frames.",
    "interval_p95": "95th percentile of that.",
    "made_p95": "95th percentile of the ms from a decision's time until its frame was sent.",
    "arrival_p95": "95th percentile of the ms from when a frame was sent to when it arrived.",
    "paint_p95": "95th percentile of the ms from when a frame was sent to when it was painted.",
    "shown_p95": "95th percentile of the ms from a decision's time until its frame was painted.",
    "wait_p95": "95th percentile of the ms from a key to the next decision.",
    "key_p95": "95th percentile of the ms from a key to the paint of the first frame it led to.",
    "round_trip": "Shortest ms to the browser and back.",
    "first_key": "The same as rt of a round.",
    "keys": "Decisions with a new key.",
    "blurs": "How often the window lost its keys or was hidden.",
}
"""Columns of the rows, and what they hold."""


async def export_study(
    client: AsyncClient, home: Path, study: Study, to: Path, *, recordings: bool = True
) -> dict[str, Any]:
    """Write a study: rows, and each session's profile, outcomes and recordings beside them.

    Who people are to their recruiters is not in it.

    Args:
        client: A client of the server.
        home: Its data directory.
        study: The study.
        to: A folder that is empty or not there.
        recordings: Whether recordings are copied too.

    Returns:
        What was written, in numbers.

    Raises:
        FileExistsError: There is something in the folder.
        AnimalcatError: The server refuses.
    """
    if to.exists() and any(to.iterdir()):
        raise FileExistsError(f"{to} is not empty; choose another folder")
    store = StudyStore(home, study)
    demands = list[str]()
    written = {"participants": 0, "rows": 0, "sessions": 0, "recordings": 0}
    every = list[tuple[Participant, list[dict[str, Any]]]]()
    measured = [outcomes_frame([])]
    for one in store.participants():
        played = dict[tuple[str, int, int], dict[str, Any]]()
        for part, session in one.sessions.items():
            frame = await _session(client, session, to)
            measured += [frame] * (part == "play")
            written["sessions"] += 1
            for row in _rows(frame):
                played[session, row["episode"], row["attempt"]] = row
                demands += [name for name in row if name not in demands and _is_demand(name)]
            if recordings:
                written["recordings"] += _copy_recordings(home, session, to)
        events = list(read_events(store.folder / PARTICIPANTS / f"{one.id}.jsonl"))
        rows = list(rows_of(one, events, played, to))
        every.append((one, rows))
        written["participants"] += 1
        written["rows"] += len(rows)
    columns = [*COLUMNS, *_OF_EPISODE, *(name for name in demands if name not in _OF_EPISODE)]
    for one, rows in every:
        person, _, visit = one.id.partition("-")
        name = f"subject-{person}_session-{visit}_data.csv"
        write_whole(to / DATA / name, csv_of(columns, rows))
    write_outcomes(pd.concat(measured, ignore_index=True), to / OUTCOMES)
    write_whole(to / DESCRIPTION, description_of(study, columns))
    write_whole(to / "README.md", _readme(study))
    return written


async def _session(client: AsyncClient, session: str, to: Path) -> pd.DataFrame:
    """Write what a session has found, and return the table of its outcomes."""
    folder = to / "sessions" / session
    table = await client.export_profile(session, "csv")
    write_whole(folder / "outcomes.csv", table)
    try:
        profile = json.dumps(await client.profile(session), indent=1).encode()
        write_whole(folder / "profile.json", profile)
    except AnimalcatError as error:  # of a session without an outcome there is none
        if error.code != "NO_PROFILE":
            raise
    return read_outcomes(table, "csv")


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    frame = table.astype(object)
    rows: list[Any] = frame.where(frame.notna(), None).to_dict("records")
    return rows


def _copy_recordings(home: Path, session: str, to: Path) -> int:
    found = sorted((home / RECORDINGS / session).glob("*.mcap"))
    for path in found:
        write_whole(to / "sessions" / session / RECORDINGS / path.name, path.read_bytes())
    return len(found)


def _is_demand(name: str) -> bool:
    """Whether a column of the table of outcomes is a meta-feature."""
    return name not in OUTCOME_COLUMNS and name not in ("labels", "state")


def rows_of(
    one: Participant,
    events: list[Event],
    played: Mapping[tuple[str, int, int], Mapping[str, Any]],
    to: Path,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a participant, an event or a round each."""
    began = next((e.at for e in events if isinstance(e, Agreed)), events[0].at)
    before, sessions, rounds, block, index = (
        began,
        dict[str, str](),
        {"practice": 0, "play": 0},
        0,
        0,
    )
    for event in events:
        common: dict[str, Any] = {
            "participant": one.id,
            "visit": one.visit,
            "condition": one.condition,
            "trial_index": index,
            "time_elapsed": round(1000 * (event.at - began).total_seconds()),
            "rt": round(1000 * (event.at - before).total_seconds()),
        }
        row: dict[str, Any] | None = None
        match event:
            case Agreed():
                said = f"version {event.version}, sha256 {event.digest}"
                row = {"trial_type": "consent", "response": said}
            case DeviceFits():
                said = (
                    f"{event.width}x{event.height}@{event.pixel_ratio:g}, "
                    f"{event.refresh_hz:.0f} Hz, {event.input}"
                )
                row = {"trial_type": "device", "response": said}
            case PageRead():
                row = {"trial_type": "instructions", "response": event.page}
            case Answered():
                row = {"trial_type": "questions", "response": json.dumps(event.answers)}
            case SessionMade():
                sessions[event.part] = event.session
            case TrialOver():
                session, trial = sessions[event.part], event.trial
                number = -1 if trial.attempt is None else trial.attempt
                known = dict(played.get((session, trial.episode, number), {}))
                passed = {True: "success", False: "failure", None: trial.outcome}[trial.passed]
                recording = Path("sessions", session, RECORDINGS, f"{trial.episode}-{number}.mcap")
                row = known | {
                    "trial_type": "round",
                    "response": passed,
                    "part": event.part,
                    "block": block,
                    "round": rounds[event.part],
                    "session": session,
                    "episode": trial.episode,
                    "attempt": trial.attempt,
                    "outcome": passed,
                    "counts": event.part == "play" and trial.outcome == "played",
                    "seconds": trial.seconds,
                    "steps": trial.steps,
                    "gaps": " ".join(f"{gap:g}" for gap in trial.gaps),
                    "flags": " ".join(trial.flags),
                    "recording": recording.as_posix() if (to / recording).exists() else "",
                }
                timing = trial.timing or TrialTiming()
                row |= {name: getattr(timing, name) for name in _TIMES} if trial.timing else {}
                common["rt"] = None if trial.timing is None else timing.first_key
                rounds[event.part] += trial.outcome == "played"
            case Rested():
                block += 1
                row = {"trial_type": "break", "response": None}
            case Arrived() | SessionOver() | Debriefed():
                pass
        before = event.at
        if row is not None:
            yield {**row, **common}
            index += 1


_TIMES: Final = [name for name in COLUMNS if name in TrialTiming.__dataclass_fields__]


def csv_of(columns: list[str], rows: list[dict[str, Any]]) -> bytes:
    """Return rows as CSV with these columns."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {k: str(v).lower() if isinstance(v, bool) else v for k, v in row.items()} for row in rows
    )
    return text.getvalue().encode()


def description_of(study: Study, columns: list[str]) -> bytes:
    """Return what Psych-DS wants to know of a data set, as JSON."""
    told = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": study.title,
        "description": f"The study {study.study}: people play arenas of Animal-AI, and animalcat "
        "measures what they can do. One row is a page or a round.",
        "schemaVersion": "Psych-DS 1.0.0",
        "variableMeasured": [
            {
                "@type": "PropertyValue",
                "name": name,
                "description": COLUMNS.get(name)
                or (
                    "As in the table of outcomes of animalcat."
                    if name in _OF_EPISODE
                    else "What the arena demands; see docs/demands.md of animalcat."
                ),
            }
            for name in columns
        ],
        "version": version(),
        "identifier": study.digest,
    }
    return json.dumps(told, indent=1).encode()


def _readme(study: Study) -> bytes:
    lines = [
        f"# {study.title}",
        "",
        f"Written by animalcat {version()} from the study {study.study}, version {study.digest}.",
        "",
        "- `data/` has a table for each participant and visit, with a row for each page and round.",
        "- `sessions/` has, for each session, its profile, its outcomes and its recordings.",
        f"- `{OUTCOMES}` has the outcomes of all rounds but those of practice, for",
        "  `animalcat layout fit`.",
        "",
        "Whoever withdrew before this was written is not in it. Whoever withdraws later has to be",
        "removed from it by hand: delete the files that have their id in their names.",
        "",
    ]
    return "\n".join(lines).encode()
