"""`animalcat battery clinic`: what is wrong with items, by anybody's results on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from animalcat.cli.shared.command_help import OUTPUT
from animalcat.cli.shared.output import fail, print_json, print_rows, wrote
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.remote import AsJson
from animalcat.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from animalcat.layouts.checking.answers import Columns
    from animalcat.layouts.checking.clinic import Clinic, Responses

RESULTS = "Results"
ABOUT = "Items and agents"


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
        typer.Option(
            metavar="COLUMN",
            help="The column that names agents.",
            show_default="agent, person, model, subject, ...",
            rich_help_panel=RESULTS,
        ),
    ] = "",
    items: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="The column that names items.",
            show_default="instance, item, sample, task, ...",
            rich_help_panel=RESULTS,
        ),
    ] = "",
    outcome: Annotated[
        str,
        typer.Option(
            "--outcome",
            "--score",
            metavar="NAME",
            help="The column of outcomes where each row is an attempt, or the score of a log.",
            show_default="outcome, correct, score, ...",
            rich_help_panel=RESULTS,
        ),
    ] = "",
    pass_mark: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Numbers above this are successes.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    pass_marks: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE.csv",
            help="A table with columns `instance` and `pass_mark`: one mark for each item.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    demands: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE.csv",
            help="A table with a row for each item and a column for each demand.",
            rich_help_panel=ABOUT,
        ),
    ] = None,
    demand: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A demand: a column of the results or of --demands. Repeat it for several.",
            show_default="all columns of --demands; all of a log; else none",
            rich_help_panel=ABOUT,
        ),
    ] = None,
    group: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="A column of the results with the group of each agent: groups are compared.",
            rich_help_panel=ABOUT,
        ),
    ] = "",
    groups: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE.csv",
            help="A table with a column of agents and one of their groups.",
            rich_help_panel=ABOUT,
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            metavar="NAME_OR_FILE",
            help="A layout that says what the demands do to success.",
            show_default="none: difficulty is regressed on the demands",
            rich_help_panel=ABOUT,
        ),
    ] = "",
    variant: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A variant of it.",
            show_default="the usual one",
            rich_help_panel=ABOUT,
        ),
    ] = "",
    length: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="Items of the short form.",
            show_default="a third of them",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="The seed of what is left to chance.")
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="Write the page here. With --json there is a page only if this is given.",
            show_default="clinic.html",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Examine items by what any agents did on them, on arenas or on anything else.

    It names items that tell nothing (nobody or everybody passes them, or able agents pass them no
    more often), whose key seems reversed, that contradict their demands, that differ between groups
    of agents of equal ability, and twins; and says what all items together can at best tell, what a
    short form loses, and how many more agents would decide what is open. Of the alarms of each
    kind, 5 in 100 are false.
    """
    from animalcat.layouts.checking import answers
    from animalcat.layouts.checking.clinic import clinic as examine
    from animalcat.layouts.model.tables import TableError

    columns = answers.Columns(agents, items, outcome, group, tuple(demand or ()))
    try:
        given = _given(sources, columns, demands, bool(layout))
        if pass_mark is not None and pass_marks is not None:
            fail("--pass-mark is one mark for all items, and --pass-marks one for each; give one")
        if pass_marks is not None:
            table = _table(pass_marks, {"instance": str})
            if lost := {"instance", "pass_mark"} - set(table.columns):
                fail(f"{pass_marks}: no column {', '.join(sorted(lost))}")
            marks = dict(zip(table["instance"], table["pass_mark"].astype(float), strict=True))
            given = answers.with_pass_marks(given, marks)
        elif pass_mark is not None:
            given = answers.with_pass_marks(given, pass_mark)
        if groups is not None:
            given = answers.with_groups(given, _table(groups))
        chosen = None
        if layout:
            from animalcat.cli.layout.show import load

            chosen = load(layout, variant)
        with progress("examining items", wait=0.0) as tell:
            found = examine(given, layout=chosen, length=length, seed=seed, tick=tell)
    except TableError as error:
        fail(str(error))
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    path = output or (None if as_json else Path("clinic.html"))
    if path is not None:
        from animalcat.service.reporting.clinic_page import clinic_page

        try:
            write_whole(path, clinic_page(found, _titled(sources)).encode())
        except OSError as error:
            fail(f"{path}: cannot be written: {error.strerror}")
        wrote(f"clinic of {len(found.items)} items", path)


def _titled(sources: list[Path]) -> str:
    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    return f"Clinic for items: {sources[0].name}{more}"


def _given(sources: list[Path], columns: Columns, demands: Path | None, whole: bool) -> Responses:
    """What agents did, from tables or logs."""
    from animalcat.layouts.checking import answers

    own = columns if demands is None else _without_demands(columns)
    if all(path.suffix == ".eval" or path.is_dir() for path in sources):
        given = _of_logs(sources, own)
    elif len(sources) > 1:
        fail("several tables: give one table, or several logs of inspect_ai")
    else:
        given = answers.responses_of(*_of_table(sources[0], own, whole and demands is None))
    if demands is not None:
        given = answers.with_demands(given, _table(demands), columns.item, columns.demands)
    return given


def _without_demands(columns: Columns) -> Columns:
    from dataclasses import replace

    return replace(columns, demands=())


def _of_logs(sources: list[Path], columns: Columns) -> Responses:
    from dataclasses import replace

    from animalcat.inspect.logs import COLUMNS, LogError, read_logs
    from animalcat.layouts.checking import answers

    try:
        frame = read_logs(sources, columns.outcome, columns.demands or None)
    except (LogError, ImportError) as error:
        fail(str(error))
    told = tuple(str(head) for head in frame.columns if head not in COLUMNS)
    meant = answers.Columns("agent", "instance", "outcome", columns.group, told)
    notes = [
        f"{count} samples are left out: {why}." for why, count in frame.attrs["left_out"].items()
    ]
    kept = frame[["agent", "instance", "epoch", "outcome", *told]]
    given = answers.responses_of(kept, meant)
    return replace(given, notes=(*notes, *given.notes))


def _of_table(path: Path, columns: Columns, whole: bool) -> tuple[pd.DataFrame, Columns]:
    """A table and its columns; with a layout, all meta-features of outcomes are demands."""
    from dataclasses import replace

    from animalcat.outcomes import COLUMNS, REQUIRED

    frame = _table(path)
    heads = [*map(str, frame.columns)]
    if {*REQUIRED, "agent"} <= set(heads) and whole and not columns.demands:
        columns = replace(columns, demands=tuple(head for head in heads if head not in COLUMNS))
    if {*REQUIRED, "agent"} <= set(heads) and "attempt" in heads:
        kept = [head for head in ("episode", "attempt", "session") if head in heads]
        frame = frame[[*REQUIRED, "agent", *kept, *columns.demands, *filter(None, [columns.group])]]
    return frame, columns


def _table(path: Path, types: dict[str, Any] | None = None) -> pd.DataFrame:
    """The cells of a file, as text where it is CSV."""
    import pandas as pd

    from animalcat.layouts.model.tables import TableError, read_sheet

    try:
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
        sheet = read_sheet(path, units=False)
    except (TableError, ValueError, OSError) as error:
        fail(str(error) if str(path) in str(error) else f"{path}: {error}")
    heads = pd.Index(sheet.heads, dtype="object")
    return pd.DataFrame(list(sheet.rows), columns=heads, dtype=str)


def _print(found: Clinic) -> None:
    for sentence in found.sentences:
        typer.echo(sentence)
    for note in found.notes:
        typer.echo(f"note: {note}")
    typer.echo("")
    faulty = [item for item in found.faulty if item.discrimination is not None]
    rows = [
        {
            "item": item.item,
            "found": ", ".join(kind for kind in item.kinds if kind not in ("tells", "undecided")),
            "passed": f"{item.passed:.2f}",
            "in words": item.sentence,
        }
        for item in faulty[:TOLD]
    ]
    if rows:
        title = f"{len(faulty)} of {len(found.items)} items with which something is wrong"
        if len(faulty) > TOLD:
            title += f"; the first {TOLD}, and the page and --json have all"
        print_rows(rows, list(rows[0]), as_json=False, title=title)
    for kind, words in (("floor", "nobody"), ("ceiling", "everybody")):
        names = [item.item for item in found.items if kind in item.kinds]
        if names:
            more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
            typer.echo(f"nearly {words} passes: {', '.join(names[:TOLD])}{more}")


TOLD = 40
"""Items that the terminal names at most."""
