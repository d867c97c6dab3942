"""`animalcat battery clinic`: what is wrong with items, by anybody's results on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.outcome_options import PassMarks, Seed
from animalcat.cli.shared.output import fail, print_json, print_table, say
from animalcat.cli.shared.progress import progress

if TYPE_CHECKING:
    from animalcat.doors.clinic.answers import Columns, Responses
    from animalcat.doors.clinic.examining import Clinic

TOLD: Final = 40
"""Items that the terminal names at most."""


def _option(metavar: str, words: str, shown: str = "", *names: str, panel: str = "Outcomes") -> Any:
    return typer.Option(
        *names, metavar=metavar, help=words, show_default=shown or True, rich_help_panel=panel
    )


def _about(metavar: str, words: str, shown: str = "") -> Any:
    return _option(metavar, words, shown, panel="Items and agents")


@without("--server", "--data")
def clinic(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS...",
            help="What agents did on items: a table, CSV or Parquet, with a row for each attempt, "
            "each item or each agent; or logs of inspect_ai (.eval), or folders of them.",
        ),
    ],
    agents: Annotated[
        str,
        _option("COLUMN", "The column that names agents.", "agent, person, model, subject, ..."),
    ] = "",
    items: Annotated[
        str, _option("COLUMN", "The column that names items.", "instance, item, sample, task, ...")
    ] = "",
    outcome: Annotated[
        str,
        _option(
            "NAME",
            "The column of outcomes where each row is an attempt, or the score of a log.",
            "outcome, correct, score, ...",
            "--outcome",
            "--score",
        ),
    ] = "",
    pass_mark: Annotated[
        float | None, _option("NUMBER", "Numbers above this are successes.")
    ] = None,
    pass_marks: PassMarks = None,
    demands: Annotated[
        Path | None,
        _about("TABLE.csv", "A table with a row for each item and a column for each demand."),
    ] = None,
    demand: Annotated[
        list[str] | None,
        _about(
            "COLUMN",
            "A demand: a column of the results or of --demands. Repeat it for several.",
            "all columns of --demands; all of a log; else none",
        ),
    ] = None,
    group: Annotated[
        str,
        _about("COLUMN", "A column of the results with the group of each agent, to compare them."),
    ] = "",
    groups: Annotated[
        Path | None, _about("TABLE.csv", "A table with columns of agents and of their groups.")
    ] = None,
    layout: Annotated[
        str,
        _about(
            "NAME_OR_FILE",
            "A layout that says what the demands do to success.",
            "none: difficulty is regressed on the demands",
        ),
    ] = "",
    variant: Annotated[str, _about("NAME", "A variant of it.", "the usual one")] = "",
    length: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", min=1, help="Items of the short form.", show_default="a third of them"
        ),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Examine items by what any agents did on them, on arenas or on anything else.

    It names items that are uninformative (nobody or everybody passes them, or able agents pass them
    no more often), whose key seems reversed, that contradict their demands, that differ between
    groups of agents of equal ability, and twins; and says what all items together can show at best,
    what a short form loses, and how many more agents would settle what is unclear. Of the alarms of
    each kind, 5 in 100 are false.
    """
    from animalcat.doors.clinic import answers
    from animalcat.doors.clinic.examining import clinic as examine
    from animalcat.layouts.model.tables import TableError, read_sheet

    if pass_mark is not None and pass_marks is not None:
        fail("--pass-mark is one mark for all items, and --pass-marks one for each; give one")
    columns = answers.Columns(agents, items, outcome, group, tuple(demand or ()))
    try:
        of_table = columns if demands is None else replace(columns, demands=())
        if all(path.suffix == ".eval" or path.is_dir() for path in sources):
            given = _of_logs(sources, of_table)
        elif len(sources) > 1:
            fail("several tables: give one table, or several logs of inspect_ai")
        else:
            given = _of_table(sources[0], of_table, every=bool(layout) and demands is None)
        if demands is not None:
            given = answers.with_demands(
                given, answers.demand_table(answers.read_table(demands), items, columns.demands)
            )
        if pass_marks is not None:
            sheet = read_sheet(pass_marks)
            marks = zip(sheet.row_names("instance"), sheet.numbers("pass_mark"), strict=True)
            given = answers.with_pass_marks(given, dict(marks))
        elif pass_mark is not None:
            given = answers.with_pass_marks(given, pass_mark)
        if groups is not None:
            given = answers.with_groups(given, answers.read_table(groups))
        chosen = None
        if layout:
            from animalcat.cli.layout.show import load

            chosen = load(layout, variant)
        with progress("examining items", wait=0.0) as tell:
            found = examine(given, layout=chosen, length=length, seed=seed, tick=tell)
    except TableError as error:
        fail(str(error))
    if common().as_json:
        print_json(found.to_dict())
    else:
        _print(found)


def _of_logs(sources: list[Path], columns: Columns) -> Responses:
    """What agents did, from logs of inspect_ai."""
    from animalcat.doors.clinic.answers import responses_of
    from animalcat.doors.inspect.logs import LogError
    from animalcat.doors.inspect.tables import COLUMNS, read_logs

    try:
        frame = read_logs(sources, columns.outcome, columns.demands or None)
    except (LogError, ImportError) as error:
        fail(str(error))
    told = tuple(str(head) for head in frame.columns if head not in COLUMNS)
    meant = replace(columns, agent="agent", item="instance", outcome="outcome", demands=told)
    given = responses_of(frame[["agent", "instance", "epoch", "outcome", *told]], meant)
    left_out = frame.attrs["left_out"].items()
    notes = [f"{count} samples are left out: {why}." for why, count in left_out]
    return replace(given, notes=(*notes, *given.notes))


def _of_table(path: Path, columns: Columns, *, every: bool) -> Responses:
    """What agents did, from a table.

    Args:
        path: The file.
        columns: Which columns mean what.
        every: Whether all meta-features of a table of outcomes are demands, if none are named.
    """
    from animalcat.doors.clinic.answers import read_table, responses_of
    from animalcat.outcomes import COLUMNS, REQUIRED

    frame = read_table(path)
    heads = [*map(str, frame.columns)]
    if {*REQUIRED, "agent"} <= {*heads}:
        if every and not columns.demands:
            columns = replace(columns, demands=tuple(head for head in heads if head not in COLUMNS))
        if "attempt" in heads:
            wanted = {*REQUIRED, "agent", "episode", "attempt", "session", columns.group}
            frame = frame[[head for head in heads if head in wanted | {*columns.demands}]]
    return responses_of(frame, columns)


def _print(found: Clinic) -> None:
    from animalcat.layouts.explaining.wording import few_of

    for sentence in found.sentences:
        say(sentence)
    for note in found.notes:
        say(f"note: {note}")
    say("")
    faulty = [item for item in found.faulty if item.discrimination is not None]
    rows = [
        {
            "item": item.item,
            "found": ", ".join(item.faults),
            "passed": f"{item.passed:.2f}",
            "in words": item.sentence,
        }
        for item in faulty[:TOLD]
    ]
    if rows:
        title = f"{len(faulty)} of {len(found.items)} items with which something is wrong"
        if len(faulty) > TOLD:
            title += f"; the first {TOLD}, and --json has all"
        print_table(rows, list(rows[0]), title=title)
    for kind, words in (("floor", "nobody"), ("ceiling", "everybody")):
        if names := [item.item for item in found.items if kind in item.kinds]:
            say(f"nearly {words} passes: {few_of(names, TOLD)}")
