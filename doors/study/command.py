"""`animalcat study`: check, run, follow, export and rehearse studies with people."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.output import BAD_INPUT, fail, print_json, print_rows, say
from animalcat.cli.shared.progress import operation_progress, progress
from animalcat.cli.shared.remote import client_for, data_folder
from animalcat.client import Client
from animalcat.doors.study.file import WORDS, Study, read_study
from animalcat.doors.study.store import STUDIES, StudyError, StudyStore, kept_study, tombstones
from animalcat.service.host.private import await_server
from animalcat.service.web.serving import Pages
from animalcat.text.marked_yaml import YamlError

app = typer.Typer(
    help="Check, run, follow, export and rehearse studies with people.", no_args_is_help=True
)

SERVER_SECONDS = 30.0
"""How long a server that was started apart may take to come back."""

File = Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="The study file.")]
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Listen at this address.")]
Port = Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="Port; 0: any free one.")]
_URL = "The public address, where a proxy that speaks HTTPS stands before it."
Url = Annotated[str, typer.Option(metavar="URL", help=_URL)]
Name = Annotated[str, typer.Argument(metavar="STUDY", help="The study's id.")]


@contextmanager
def _or_fail() -> Generator[None]:
    """Let a study's own errors end the command with their sentence."""
    try:
        yield
    except (StudyError, YamlError, FileExistsError) as error:
        fail(str(error), BAD_INPUT)


def _read(file: Path) -> Study:
    with _or_fail():
        return read_study(file)


def _kept_place(name: str) -> tuple[Path, Study]:
    home = data_folder()
    with _or_fail():
        return home, kept_study(home, name)


def _check(study: Study) -> None:
    """Say what a study file means."""
    told: dict[str, Any] = {
        "study": study.study,
        "title": study.title,
        "digest": study.digest,
        "consent": {"version": study.consent.version, "sha256": study.consent.digest},
        "who": study.who.by,
        "codes": len(study.who.codes),
        "visits": study.who.visits,
        "conditions": {c.name: c.weight for c in study.conditions},
        "steps": _steps(study),
        "left_out": _left_out(study),
        "english": [] if study.language[:2] == "en" else sorted(WORDS.keys() - study.words.keys()),
    }
    if common().as_json:
        print_json(told)
        return
    say(f"{study.title} ({study.study}), consent {study.consent.version}")
    for k, step in enumerate(told["steps"], 1):
        say(f"{k:3}. {step}")
    for condition in study.conditions:
        say(f"condition {condition.name}, weight {condition.weight:g}")
    for where, gaps in told["left_out"].items():
        say(f"{where}: {gaps}")
    if english := told["english"]:
        say(f"words of the pages that are still English: {', '.join(english)}")


def _left_out(study: Study) -> dict[str, str]:
    """What the layout leaves out of each battery that counts, in words, by what is played."""
    from animalcat.lab.received import receive_battery
    from animalcat.service.errors import ServiceError
    from animalcat.service.library.layouts import layout_on
    from animalcat.service.measuring.coverage import coverage

    found = dict[str, str]()
    with client_for() as client:
        stored = {battery.id for battery in client.list_batteries()}
        plays = [study.measured(c.name) for c in study.conditions] or [study.play]
        for name, asked, variant in sorted({(p.battery, p.layout, p.variant) for p in plays}):
            if name not in stored:
                found[f"battery {name}"] = "it is not built yet, so what is left out is not known"
                continue
            battery = receive_battery(client, name)
            try:
                layout = layout_on(battery, asked, variant)
                gaps = coverage(layout, battery).gaps
            except (ServiceError, ValueError) as error:
                fail(f"battery {name}: {error}", BAD_INPUT)
            found[f"arenas of {name} that the layout {layout.name} leaves out"] = gaps or "none"
    return found


def _steps(study: Study) -> list[str]:
    """What participants go through, a line each."""
    asked = {at: len(study.asked(at)) for at in ("before", "questions", "after")}
    steps = [f"consent, with {len(study.consent.ask)} statements to tick", "check of the device"]
    steps += [f"{asked['before']} questions"] * bool(asked["before"])
    steps += [f"instructions, page {k}" for k in range(1, len(study.instructions) + 1)]
    if study.understanding is not None:
        steps.append(f"{asked['questions']} questions, {study.understanding.tries} tries")
    if study.practice is not None:
        one = study.practice
        steps.append(
            f"practice until {one.passes} of the last {one.of} are passed, at most {one.most}"
        )
    said = ", ".join(f"{k} {v}" for k, v in study.play.options.items())
    steps.append(f"rounds of the battery {study.play.battery}{': ' if said else ''}{said}")
    trials, seconds = study.blocks.most
    limits = [f"{trials} rounds"] if trials else []
    limits += [f"{seconds / 60:g} minutes"] if seconds else []
    if limits:
        steps[-1] += f"; a break after {' or '.join(limits)}"
    steps += [f"{asked['after']} questions"] * bool(asked["after"])
    steps.append("debriefing")
    done = study.completion.done
    steps.append(f"the end{', with a link or code' if done.link or done.code else ''}")
    return steps


@app.command()
@without("--server")
def run(
    file: File,
    host: Host = "127.0.0.1",
    port: Port = 0,
    url: Url = "",
    check: Annotated[
        bool,
        typer.Option("--check", help="Only say what the file means, or what is wrong with it."),
    ] = False,
) -> None:
    """Run a study until Ctrl-C: participants come by the link that is printed.

    Their sessions are played by the server that works on the data directory, or by one that ends
    with this command. Participants who were there when it ended go on when it runs again.
    """
    from animalcat.doors.study.running import link_of, run_study

    study, home, said = _read(file), data_folder(), False
    if check:
        _check(study)
        return
    if host not in ("127.0.0.1", "localhost", "::1") and not url.startswith("https://"):
        fail(
            f"--host {host} can be reached from elsewhere, and what people do would cross the "
            "network in the clear: put a proxy that speaks HTTPS before it, and name its address "
            "with --url https://..."
        )

    def ready(pages: Pages) -> None:
        nonlocal port, said
        if said:
            return
        port, said = port or urlsplit(pages.url).port or 0, True
        link = link_of(study, pages.url)
        monitor = pages.link(f"/study/{study.study}/monitor")
        if common().as_json:
            say(json.dumps({"link": link, "monitor": monitor}))
        else:
            say(f"participants come by  {link}")
            say(f"who is where          {monitor}")
        sys.stdout.flush()

    with _or_fail():
        while True:
            with client_for() as client:
                _have_batteries(client, study)
                at = (host, port)
                if not client.run(run_study(client.aio, study, home, ready, at, url)):
                    return
                say("the server is gone; the study goes on with another one", err=True)
                await_server(home, SERVER_SECONDS)


def _have_batteries(client: Client, study: Study) -> None:
    """See that the server has what is played, and build what is shipped and was not built yet."""
    stored = {battery.id for battery in client.list_batteries()}
    for name in study.batteries:
        if name not in stored and name in client.shipped_batteries():
            with operation_progress(f"building {name}") as tell:
                client.build_battery(name, on_progress=tell)
        client.get_battery(name)  # an error that says which there are


@app.command("list")
@without("--server")
def list_(
    name: Annotated[
        str, typer.Argument(metavar="[STUDY]", help="Its participants; without it all studies.")
    ] = "",
) -> None:
    """List studies, or who of a study's participants is where."""
    if not name:
        folders = sorted((data_folder() / STUDIES).glob("*/versions"))
        print_rows([_row(f.parent) for f in folders], _COLUMNS)
        return
    from animalcat.doors.study.export import person_row

    home, study = _kept_place(name)
    rows = [person_row(study, one) for one in StudyStore(home, study).participants()]
    print_rows(rows, ("participant", "condition", "end", "rounds", "passed", "last"))


_COLUMNS = ("study", "title", "participants", "done", "withdrawn")


def _row(folder: Path) -> dict[str, Any]:
    """What is listed of a study."""
    home, study = _kept_place(folder.name)
    people = StudyStore(home, study).participants()
    done, gone = sum(p.stage == "done" for p in people), {s.person for s in tombstones(folder)}
    told = study.study, study.title, len(people), done, len(gone)
    return dict(zip(_COLUMNS, told, strict=True))


@app.command()
@without("--server")
def withdraw(
    name: Name,
    person: Annotated[
        str, typer.Argument(help="A participant or person of the study, a code, or a PROLIFIC_PID.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
) -> None:
    """Erase a person: trials, recordings, profile and identity. A dated tombstone remains."""
    from animalcat.doors.study.running import withdraw_person

    home, study = _kept_place(name)
    if not yes:
        typer.confirm(f"Erase all of {person} in {study.study} for good?", abort=True)
    with client_for() as client, _or_fail():
        sessions = client.run(withdraw_person(client.aio, home, study, person))
    if common().as_json:
        print_json({"study": study.study, "sessions": sessions})
        return
    say(
        f"erased, with {sessions} sessions. Exports and backups that were made before still hold "
        f"them: `animalcat study export {study.study} FOLDER --update` takes them out of an export"
    )


@app.command()
def export(
    name: Name,
    to: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that is empty or new.")],
    update: Annotated[
        bool,
        typer.Option("--update", help="Bring an export up to date, without who has withdrawn."),
    ] = False,
    payment: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the recruiter's ids and ends too, to this CSV."),
    ] = None,
    recordings: Annotated[
        bool, typer.Option("--recordings/--no-recordings", help="Copy the recordings too.")
    ] = True,
) -> None:
    """Write a study as tables in a Psych-DS folder, beside profiles and recordings."""
    from animalcat.doors.study.export import export_payment, export_study

    home, study = _kept_place(name)
    with client_for() as client, _or_fail():
        written = client.run(
            export_study(client.aio, home, study, to, recordings=recordings, update=update)
        )
        if payment is not None:
            export_payment(home, study, payment)
    if common().as_json:
        print_json({"folder": str(to), **written})
        return
    say(f"{', '.join(f'{number} {what}' for what, number in written.items())} -> {to}")


@app.command()
def rehearse(
    file: File,
    people: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="So many for each condition.")
    ] = 20,
    leave: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=0.5,
            help="The chance that somebody leaves for good within a minute, as you assume it.",
        ),
    ] = 0.01,
    seed: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="The seed of all chance.")] = 0,
) -> None:
    """Say what to expect before anybody is paid: minutes, precision and dropouts.

    Simulated people go through the study by the same rules as real ones. They are drawn from the
    layout's prior. A passed round takes half of its time limit, a failed one all of it.
    """
    from animalcat.doors.study.rehearsal import rehearsal_values
    from animalcat.doors.study.rehearsal import rehearse as let_go
    from animalcat.lab.received import receive_battery
    from animalcat.service.errors import ServiceError

    study = _read(file)
    with client_for() as client, progress("rehearsing") as tell:
        try:
            found = rehearsal_values(
                let_go(
                    study,
                    lambda name: receive_battery(client, name),
                    people,
                    leave,
                    seed,
                    lambda done, total: tell("simulated people take part", done, total),
                )
            )
        except (ServiceError, ValueError) as error:
            fail(str(error), BAD_INPUT)
    if common().as_json:
        print_json(found)
        return
    for name, row in found.items():
        low, middle, high = row["minutes"] or ("-",) * 3
        few, some, many = row["rounds"] or ("-",) * 3
        say(f"{f'condition {name}: ' if name else ''}{row['people']} simulated people")
        say(
            f"  ends     {row['done']:.0%} finish, {row['left']:.0%} leave, "
            f"{row['screened']:.0%} are screened out"
        )
        say(f"  minutes  {middle} (80 %: {low} to {high}), of those who finish")
        say(f"  rounds   {some} (80 %: {few} to {many})")
        if row["passed"] is not None:
            say(f"  passed   {row['passed']:.0%} of the rounds that count")
        for node, share in row["known"].items():
            say(f"  known    {node}: {share:.0%} of what was not known before")
