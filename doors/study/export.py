"""Writes a study as others read one: a row a round, in tables of a folder as Psych-DS asks for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from animalcat.client.async_client import AsyncClient
from animalcat.doors.study.file import PROLIFIC, Question, Study
from animalcat.doors.study.participant import (
    Agreed,
    Answered,
    DeviceFits,
    Event,
    PageLeft,
    Participant,
    SessionMade,
    Trial,
    TrialOver,
    TrialTiming,
    careless_flags,
)
from animalcat.doors.study.store import PARTICIPANTS, StudyStore, people_of, read_events
from animalcat.errors import AnimalcatError
from animalcat.machine.files import write_whole
from animalcat.outcomes import COLUMNS as OUTCOME_COLUMNS
from animalcat.outcomes import outcomes_frame, read_outcomes, write_outcomes
from animalcat.service.access.private_files import write_private
from animalcat.service.storage.artefacts import RECORDINGS
from animalcat.text.marked_yaml import load_yaml, read_text
from animalcat.wire.protocol import version

DESCRIPTION: Final = "dataset_description.json"
OUTCOMES: Final = "outcomes.csv"
"""The outcomes of all participants, as `layout fit --table` reads them."""
_OF_EPISODE: Final = (
    *("propensity", "paradigm", "return", "ended_by", "pass_mark", "score", "predicted"),
    *("reason", "weight", "backend", "layout", "battery", "played_before"),
)
"""Columns of the table of outcomes that are columns here too; every demand is one as well."""
_ASKED: Final = "q_"
"""How columns of the people begin that are answers to questions."""
_PERSON: Final = ("participant", "condition", "visit")
TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "rounds": (
        *(*_PERSON, "part", "block", "order", "arena", "outcome", "rt", "seconds", "flags"),
        *(*_OF_EPISODE, "counts", "steps", "gaps", "at", "time_elapsed", "trial_index"),
        *("trial_type", "response", "session", "episode", "attempt", "recording", "full_screen"),
        *("frames", "dropped", "late", "interval_p95"),
        *("shown_p95", "wait_p95", "key_p95", "round_trip"),
        *("keys", "blurs"),
    ),
    "keys": (*_PERSON, "part", "order", "session", "episode", "attempt", "key", "down", "ms"),
    "pages": (
        *(*_PERSON, "trial_index", "trial_type", "page", "question", "response", "right"),
        *("rt", "time_elapsed", "at"),
    ),
    "people": (
        *(*_PERSON, "person", "end", "why", "careless"),
        *("came", "last", "practised", "rounds", "passed"),
        *("consent", "width", "height", "pixel_ratio", "refresh_hz", "input", "browser"),
    ),
}
"""The tables in `data/` and their columns; demands of arenas follow in that of the rounds."""
COLUMNS: Final[Mapping[str, Sequence[str]]] = load_yaml(
    read_text(Path(__file__).with_name("codebook.yaml")), "codebook.yaml"
).data
"""Unit and meaning of the columns of all tables."""
_TIMES: Final = [name for name in TABLES["rounds"] if name in TrialTiming.__dataclass_fields__]
_DEVICE: Final = ("width", "height", "pixel_ratio", "refresh_hz", "input", "browser")


async def export_study(
    client: AsyncClient,
    home: Path,
    study: Study,
    to: Path,
    *,
    recordings: bool = True,
    update: bool = False,
) -> dict[str, Any]:
    """Write tables of a study, and return what was written, in numbers.

    Each session's profile, outcomes and recordings stand beside them. Who people are to their
    recruiters is not in it. An update takes out what is of people who have withdrawn.

    Raises:
        FileExistsError: There is something in the folder, or no export of this study to update.
        AnimalcatError: The server refuses.
    """
    if update and _study_in(to) != study.study:
        raise FileExistsError(f"{to} has no export of the study {study.study} to bring up to date")
    if not update and to.exists() and any(to.iterdir()):
        raise FileExistsError(
            f"{to} is not empty; choose another folder, or bring an export up to date by --update"
        )
    store, asked = StudyStore(home, study), dict[str, Question]()
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    sessions, copied, measured = list[str](), 0, [outcomes_frame([])]
    for one in store.participants():
        played = dict[tuple[str, int, int], dict[str, Any]]()
        for part, session in one.sessions.items():
            frame = await _session(client, session, to)
            # What was chosen and never begun was shown to nobody.
            shown = frame[(frame["steps"].fillna(0) > 0) | (frame["outcome"] != "void")]
            measured += [shown] * (part == "play")
            sessions.append(session)
            for row in _rows(frame):
                played[session, row["episode"], row["attempt"]] = row
            copied += _copy_recordings(home, session, to) if recordings else 0
        events = list(read_events(store.folder / PARTICIPANTS / f"{one.id}.jsonl"))
        own = store.study_of(one)
        asked |= {q.name: q for q in (*own.questions.before, *own.questions.after)}
        for table, row in rows_of(one, own, events, played, to):
            tables[table].append(row)
    demands = {name: None for row in tables["rounds"] for name in row if _is_demand(name)}
    more = {"rounds": demands, "people": [_ASKED + name for name in asked]}
    columns = {name: [*own, *more.get(name, ())] for name, own in TABLES.items()}
    for name, rows in tables.items():
        path = to / "data" / f"description-{name}_data.csv"
        write_whole(path, csv_of(columns[name], rows))
    write_outcomes(pd.concat(measured, ignore_index=True), to / OUTCOMES)
    book = codebook_of(columns, asked)
    write_whole(to / "codebook.csv", csv_of(["column", "unit", "meaning", "tables"], book))
    write_whole(to / DESCRIPTION, description_of(study, book))
    write_whole(to / "README.md", _readme(study))
    for path in (to / "sessions").glob("*") if update else ():
        if path.name not in sessions:
            shutil.rmtree(path)
    found = {"participants": len(tables["people"]), "rounds": len(tables["rounds"])}
    return {**found, "sessions": len(sessions), "recordings": copied}


def export_payment(home: Path, study: Study, to: Path) -> None:
    """Write who is to be paid: the recruiter's ids, and how far each came, in a file of its own."""
    store = StudyStore(home, study)
    known = {person.id: person.ids for person in people_of(store.folder)}
    rows = [{**person_row(study, one), **known.get(one.person, {})} for one in store.participants()]
    columns = [*PROLIFIC, "code", "participant", "visit", "end", "why", "came", "last", "rounds"]
    write_private(to, csv_of(columns, rows))


def _study_in(folder: Path) -> str:
    """Whose export a folder has; empty if it has none."""
    try:
        return str(json.loads((folder / DESCRIPTION).read_bytes()).get("alternateName", ""))
    except (OSError, ValueError, AttributeError):
        return ""


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
    """Whether a column of the rounds is a meta-feature."""
    return name not in OUTCOME_COLUMNS and name not in TABLES["rounds"]


def person_row(study: Study, one: Participant) -> dict[str, Any]:
    """Return what is told of a participant at one visit."""
    return {
        "participant": one.id,
        "person": one.person,
        "visit": one.visit,
        "condition": one.condition,
        "end": str(one.stage),
        "why": one.why,
        "careless": " ".join(careless_flags(study, one)),
        "came": one.arrived.isoformat(),
        "last": one.changed.isoformat(),
        "practised": len(one.practised),
        "rounds": one.trials,
        "passed": one.passed,
        "consent": one.consent[0],
        "session": one.sessions.get("play", ""),
        **({} if one.device is None else {name: getattr(one.device, name) for name in _DEVICE}),
    }


def rows_of(
    one: Participant,
    study: Study,
    events: list[Event],
    played: Mapping[tuple[str, int, int], Mapping[str, Any]],
    to: Path,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a participant, each with its table."""
    began = next((e.at for e in events if isinstance(e, Agreed)), events[0].at)
    own = person_row(study, one)
    answers = dict[str, Any]()
    before, sessions, block, index = began, dict[str, str](), 0, 0
    orders = {"practice": 0, "play": 0}
    for event in events:
        common: dict[str, Any] = {
            **{name: own[name] for name in _PERSON},
            "at": event.at.isoformat(),
            "time_elapsed": round(1000 * (event.at - began).total_seconds()),
            "rt": round(1000 * (event.at - before).total_seconds()),
        }
        rows = list[tuple[str, dict[str, Any]]]()
        match event:
            case SessionMade():
                sessions[event.part] = event.session
            case TrialOver():
                place: dict[str, Any] = {
                    **common,
                    "part": event.part,
                    "block": block,
                    "order": orders[event.part],
                    "session": sessions[event.part],
                    "episode": event.trial.episode,
                    "attempt": event.trial.attempt,
                }
                key = (place["session"], event.trial.episode, event.trial.attempt or 0)
                rows = [("rounds", _round_row(event.trial, place, played.get(key, {}), to))]
                orders[event.part] += event.trial.outcome == "played"
                for name, down, ms in event.trial.keys:
                    yield "keys", {**place, "key": name, "down": down, "ms": ms}
            case _:
                rows = [("pages", {**common, **row}) for row in _page_rows(event, study)]
                answers |= {
                    _ASKED + row["question"]: row["response"]
                    for _, row in rows
                    if row.get("question")
                }
                block += isinstance(event, PageLeft) and event.kind == "rested"
        before = event.at
        for table, row in rows:
            yield table, {**row, "trial_index": index}
            index += 1
    yield "people", {**own, **answers}


def _page_rows(event: Event, study: Study) -> Iterator[dict[str, Any]]:
    """Yield the rows of a page that was left."""
    match event:
        case Agreed():
            said = f"version {event.version}, sha256 {event.digest}"
            yield {"trial_type": "consent", "response": said}
        case DeviceFits():
            yield {"trial_type": "device", "response": event.input}
        case Answered():
            asked = zip(study.asked(event.stage), event.answers, strict=False)
            for k, (question, said) in enumerate(asked):
                right = None if question.right is None else question.is_right(said)
                row = {"trial_type": "question", "page": k, "question": question.name}
                yield {**row, "response": said, "right": right}
        case PageLeft(kind="read"):
            yield {"trial_type": "instructions", "page": event.page}
        case PageLeft(kind="rested" | "technical"):
            yield {"trial_type": "break" if event.kind == "rested" else event.kind}
        case _:
            pass


def _round_row(
    trial: Trial, place: Mapping[str, Any], known: Mapping[str, Any], to: Path
) -> dict[str, Any]:
    passed = {True: "success", False: "failure", None: trial.outcome}[trial.passed]
    name = f"{trial.episode}-{trial.attempt}.mcap"
    recording = Path("sessions", place["session"], RECORDINGS, name)
    timing = trial.timing
    return {
        **known,
        **place,
        "trial_type": "round",
        "response": passed,
        "arena": known.get("instance"),
        "outcome": passed,
        "counts": place["part"] == "play" and trial.outcome == "played",
        "seconds": trial.seconds,
        "steps": trial.steps,
        "gaps": " ".join(f"{gap:g}" for gap in trial.gaps),
        "flags": " ".join(trial.flags),
        "recording": recording.as_posix() if (to / recording).exists() else "",
        **({} if timing is None else {name: getattr(timing, name) for name in _TIMES}),
        "rt": None if timing is None else timing.first_key,
    }


def csv_of(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return rows as CSV with these columns."""
    said = [
        {k: str(v).lower() if isinstance(v, bool) else v for k, v in row.items()} for row in rows
    ]
    frame = pd.DataFrame(said, columns=list(columns), dtype=object)  # integers stay as they are
    return frame.to_csv(index=False, lineterminator="\n").encode()


def codebook_of(
    columns: Mapping[str, Iterable[str]], asked: Mapping[str, Question]
) -> list[dict[str, str]]:
    """Return a row for every column of some tables, with the questions that there are."""
    found = list[dict[str, str]]()
    known = {**COLUMNS, **{_ASKED + name: ("", one.about) for name, one in asked.items()}}
    for name in dict.fromkeys(name for own in columns.values() for name in own):
        unit = name.partition(" [")[2].removesuffix("]")
        unit, meaning = known.get(name) or (
            ("", "As in the table of outcomes of animalcat; see its docs/exports.md.")
            if name in _OF_EPISODE
            else (unit, "What the arena demands; see docs/demands.md of animalcat.")
        )
        tables = " ".join(table for table, own in columns.items() if name in own)
        found.append({"column": name, "unit": unit, "meaning": meaning, "tables": tables})
    return found


def description_of(study: Study, book: Iterable[Mapping[str, str]]) -> bytes:
    """Return what Psych-DS wants to know of a data set, as JSON."""
    told = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": study.title,
        "alternateName": study.study,
        "description": f"The study {study.study}: people play arenas of Animal-AI, and animalcat "
        "measures what they can do.",
        "schemaVersion": "Psych-DS 1.0.0",
        "variableMeasured": [
            {"@type": "PropertyValue", "name": row["column"], "description": row["meaning"]}
            | ({"unitText": row["unit"]} if row["unit"] else {})
            for row in book
        ],
        "version": version(),
        "identifier": study.digest,
    }
    return json.dumps(told, indent=1).encode()


def _readme(study: Study) -> bytes:
    return f"""\
# {study.title}

Written by animalcat {version()} from the study {study.study}, version {study.digest}.

- `data/` has a table of the rounds, one of the keys, one of the other pages, and one of the people.
- `codebook.csv` says what each column means, and its unit.
- `sessions/` has, for each session, its profile, its outcomes and its recordings.
- `{OUTCOMES}` has the outcomes of all rounds but those of practice, for `animalcat layout fit`.

Whoever withdrew before this was written is not in it. Whoever withdraws later is taken out of it by
`animalcat study export {study.study} FOLDER --update`.
""".encode()
