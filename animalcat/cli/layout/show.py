"""`animalcat layout show`: which layouts there are, and what is in one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import (
    fail,
    print_json,
    print_rows,
    print_table,
    say,
    to_standard_output,
    wrote,
)
from animalcat.cli.shared.remote import client_for, data_folder
from animalcat.cli.shared.table import Column
from animalcat.cli.shared.whose import Everybodys, OfOwner, owner_column, whose
from animalcat.extending import plugins
from animalcat.layouts.library import LAYOUTS, abouts, load_layout, parse_layout, variants
from animalcat.layouts.model.codec import SpecificationError

if TYPE_CHECKING:
    from animalcat import values
    from animalcat.layouts.model.spec import Feature, Layout

Name = Annotated[
    str,
    typer.Argument(
        metavar="LAYOUT", help="The name of a layout, from `layout show`, or a YAML file."
    ),
]
Variant = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="A variant of the layout.", show_default="the one that covers most"
    ),
]


def load(name: str, variant: str = "") -> Layout:
    """A layout by name or file; ends the command where there is none."""
    try:
        return load_layout(name, variant)
    except SpecificationError as error:
        fail(str(error))


def every_variant(name: str) -> list[Layout]:
    """A layout in all its variants; ends the command where there is none."""
    try:
        return [load_layout(name, variant) for variant in variants(name)]
    except SpecificationError as error:
        fail(str(error))


def _list(everybodys: bool, owner: str) -> None:
    """List the shipped layouts with their variants, those of plugins, and those of sessions."""
    if common().as_json:
        layouts = [load_layout(name, variant) for name in LAYOUTS for variant in variants(name)]
        rows = [_layout_row(layout, layout.identity, "shipped") for layout in layouts]
    else:  # no layout is made for what its text says
        rows: list[dict[str, Any]] = [
            {"name": name, "variant": variant, "from": "shipped", "about": about}
            for name in LAYOUTS
            for variant, about in abouts(name).items()
        ]
    rows += [_of_plugin(one) for one in plugins.every("layout") if one.name not in LAYOUTS]
    for kept in _stored_layouts(everybodys, owner):
        layout = parse_layout(kept.text, kept.variant)
        brought = _layout_row(layout, kept.digest, "a session brought it")
        rows.append({**brought, "owner": kept.owner})
    columns = ["name", "variant", owner_column(2), Column("from", 2), Column("about", 1)]
    print_rows(rows, columns)


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="LAYOUT", help="The name of a layout, or a YAML file.", show_default="all"
        ),
    ] = None,
    variant: Annotated[
        str,
        typer.Option(metavar="NAME", help="A variant of it.", show_default="the usual one"),
    ] = "",
    session: Annotated[
        str | None,
        typer.Option(metavar="SESSION", help="Show the layout of this session instead."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Draw the layout as a graph, as FILE.svg, FILE.png or FILE.pdf.",
        ),
    ] = None,
    everybodys: Everybodys = False,
    owner: OfOwner = "",
) -> None:
    """Show what a layout says: nodes, units, priors, linking functions, and what it leaves out.

    With --session, the YAML text that the session was made with is printed. It can be used as a
    layout file again.

    Without a name, layouts are listed: the shipped ones with their variants, those of plugins,
    whose code is not run, and those that sessions brought along, yours and those that belong to
    nobody.
    """
    if name is None and session is None:
        if variant or output is not None:
            fail("--variant and --output go with the name of a layout or a file, or --session")
        _list(everybodys, owner)
        return
    if name is not None and session is not None:
        fail("give the name of a layout or a file, or --session")
    if session is not None:
        kept = _of_session(session)
        layout, known = parse_layout(kept.text, kept.variant), (kept.variant,)
        if output is None and not common().as_json:
            to_standard_output((kept.text.removesuffix("\n") + "\n").encode(), "layout")
            return
    else:
        assert name is not None  # one of both is there
        layout, known = load(name, variant), variants(name)
    if output is not None:
        _draw(layout, output)
    if common().as_json:
        choices = [choice.variant for choice in layout.choices] or [*known[:1]]
        from animalcat.layouts.model.spec import to_dict

        print_json({**to_dict(layout), "digest": layout.digest, "choose_from": choices})
    elif output is None:
        _print(layout, known)


def _layout_row(layout: Layout, identity: str, origin: str) -> dict[str, Any]:
    return {
        "name": layout.name,
        "variant": layout.variant,
        "from": origin,
        "about": layout.about,
        "capabilities": [layout.latents[i].name for i in layout.capabilities],
        "features": list(layout.feature_names),
        "outcome": "; ".join(map(str, layout.outcomes)),
        "source": layout.source,
        "digest": layout.digest,
        "identity": identity,
    }


def _of_plugin(plugin: plugins.Plugin) -> dict[str, Any]:
    """What is known of a layout of another package before its code is run."""
    return {
        "name": plugin.name,
        "variant": "",
        "from": f"{plugin.distribution} {plugin.version}",
        "about": f"a plugin; animalcat layout show {plugin.name} says what is in it",
        "capabilities": [],
        "features": [],
        "outcome": "",
        "source": "",
        "digest": "",
        "identity": "",
    }


def _stored_layouts(everybodys: bool, owner: str) -> list[values.Layout]:
    """Layouts that sessions brought along; none where there is neither server nor data."""
    if not common().server and not data_folder().is_dir():
        return []
    with client_for() as client:
        return [
            layout
            for layout in client.list_layouts(whose(everybodys, owner), texts=True)
            if not layout.shipped
        ]


def _of_session(session: str) -> values.Layout:
    with client_for() as client:
        return client.get_layout(client.get_session(session).spec.layout_digest)


def _draw(layout: Layout, path: Path) -> None:
    from animalcat.plots import graph, save  # takes half a second to import

    try:
        save(graph(layout), path)
    except OSError as error:
        fail(f"{path}: cannot be written: {error.strerror}")
    except ValueError as error:
        fail(f"{path}: {error}")
    wrote("graph", path)


def _print(layout: Layout, known: tuple[str, ...]) -> None:
    say(
        ": ".join(
            filter(None, (f"{layout.name} ({layout.variant})".removesuffix(" ()"), layout.source))
        )
    )
    if layout.about:
        say(layout.about)
    if layout.prior_from:
        say(f"Priors: {layout.prior_from}")
    say(layout.digest)
    features = [
        {
            "feature": f.name,
            "unit": f.unit,
            "range": "0 or 1" if f.name in layout.gates else f"{f.low:g} to {f.high:g}",
            "if missing": _rule(f),
            "meaning": f.about,
        }
        for f in layout.features
    ]
    latents = [
        {"node": n.name, "kind": n.kind, "unit": n.unit, "prior": str(n.prior), "meaning": n.about}
        for n in layout.latents
    ]
    derived = [
        {"node": n.name, "unit": n.unit, "linking function": str(n.link)} for n in layout.ordered
    ]
    for title, rows in (
        ("What instances ask for", features),
        ("Cognitive profile", latents),
        ("What follows", derived),
    ):
        if rows:
            print_table(rows, list(rows[0]), title=title)
    for outcome in layout.outcomes:
        say(f"Outcome: {outcome}")
    if layout.excludes:
        say(f"Not where there is: {', '.join(map(str, layout.excludes))}")
    if layout.measures:
        say(f"It is about {', '.join(layout.measures)}.")
    if any(known):
        say(f"Variants: {', '.join(known)}")
    if layout.choices:
        names = [choice.variant for choice in layout.choices]
        say(
            f"Without --variant: {' or '.join(names)}, whichever covers more, unless the battery "
            "names one."
        )


def _rule(feature: Feature) -> str:
    if feature.counts:
        return "counted while an agent plays"
    if feature.only_with:
        return f"fine where {feature.only_with} is 0"
    return "refused" if feature.if_missing is None else f"taken as {feature.if_missing:g}"
