"""`animalcat layout list` and `show`: which layouts there are, and what is in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from animalcat.cli.output import fail, print_json, print_rows
from animalcat.layouts.codec import SpecificationError
from animalcat.layouts.library import LAYOUTS, load_layout, variants
from animalcat.layouts.spec import Feature, Layout, to_dict

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[
    str, typer.Argument(help="Name of a layout (see `layout list`), or a file NAME.yaml.")
]
Variant = Annotated[str, typer.Option(help="Variant of the layout; the default one if not given.")]


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


def list_layouts(as_json: Json = False) -> None:
    """List the layouts and their variants."""
    rows = [
        {
            "name": name,
            "variant": variant,
            "about": layout.about,
            "capabilities": [layout.latents[i].name for i in layout.capabilities],
            "features": list(layout.feature_names),
            "outcome": "; ".join(map(str, layout.outcomes)),
            "source": layout.source,
            "digest": layout.digest,
        }
        for name in LAYOUTS
        for variant in variants(name)
        for layout in [load_layout(name, variant)]
    ]
    print_rows(rows, ["name", "variant", "about"], as_json=as_json)


def show(
    name: Name,
    variant: Variant = "",
    as_json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Draw the graph here: FILE.svg, .png or .pdf."),
    ] = None,
) -> None:
    """Show a layout: nodes, units, priors, linking functions, what it does not cover."""
    layout = load(name, variant)
    if output is not None:
        _draw(layout, output)
    if as_json:
        print_json({**to_dict(layout), "digest": layout.digest})
    elif output is None:
        _print(layout, variants(name))


def _draw(layout: Layout, path: Path) -> None:
    from animalcat.layouts.drawing import draw_layout  # takes half a second to import

    try:
        draw_layout(layout, path)
    except OSError as error:
        fail(f"{path}: cannot be written: {error.strerror}")
    except ValueError as error:
        fail(f"{path}: {error}")


def _print(layout: Layout, known: tuple[str, ...]) -> None:
    typer.echo(f"{layout.name} ({layout.variant}): {layout.source}")
    if layout.about:
        typer.echo(layout.about)
    typer.echo(layout.digest)
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
            print_rows(rows, list(rows[0]), as_json=False, title=title)
    for outcome in layout.outcomes:
        typer.echo(f"Outcome: {outcome}")
    if layout.excludes:
        typer.echo(f"Not where there is: {', '.join(map(str, layout.excludes))}")
    typer.echo(f"Variants: {', '.join(known)}")


def _rule(feature: Feature) -> str:
    if feature.only_with:
        return f"fine where {feature.only_with} is 0"
    return "refused" if feature.if_missing is None else f"taken as {feature.if_missing:g}"
