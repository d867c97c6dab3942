"""What all pictures share: colours that do not depend on hue alone, units, and saving."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from animalcat.files import write_whole

Floats: TypeAlias = npt.NDArray[np.float64]

INK: Final = "#22303c"
SOFT: Final = "#74808c"
PRIOR: Final = "#c3cad1"
MAIN: Final = "#0b6e99"
PAPER: Final = "#fefefe"
"""Inside of markers: the colour of the page."""
LIGHT: Final = "#ffffff"
DARK: Final = "#010101"
"""Ink on shaded cells, which are the same on every page."""
GOOD: Final = "#1b8a5a"
BAD: Final = "#c8553d"
AGENTS: Final = ("#0b6e99", "#d17a00", "#1b8a5a", "#b0457b", "#6a5acd", "#7a7a2a", "#22303c")
"""Colours of several agents, which also differ in lightness; markers differ too."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
FORMATS: Final = (".svg", ".png", ".pdf")
"""Endings of the files that can be written."""


def with_unit(name: str, unit: str) -> str:
    """A name with its unit in brackets, if it has one."""
    return f"{name} ({unit})" if unit not in ("", "1") else name


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def panels(count: int, columns: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """A figure with a number of panels.

    Args:
        count: Number of panels.
        columns: Most panels in a row.
        width: Width of a panel in inches.
        height: Height of a panel in inches.
    """
    columns = max(1, min(columns, count))
    rows = max(1, -(-count // columns))
    figure = new_figure(columns * width, rows * height)
    return figure, [figure.add_subplot(rows, columns, k + 1) for k in range(count)]


def tidy(axes: Any) -> None:
    """Take away what is not needed: the frame at the top and at the right."""
    axes.spines["top"].set_visible(False)
    axes.spines["right"].set_visible(False)
    for spine in axes.spines.values():
        spine.set_color(SOFT)
    axes.tick_params(colors=INK, labelsize=8)


def entitle(figure: Any, title: str, labels: Sequence[str] = ()) -> None:
    """Write a title, and under it what every reader has to know.

    Args:
        figure: The figure.
        title: The title.
        labels: Labels of a profile: unfinished, contradicted, not certified, privileged.
    """
    words = plain(title)
    for label in labels:
        words += f"\n{plain(label)}"
    if words:
        figure.suptitle(words, fontsize=10, color=BAD if labels else INK, wrap=True)


def plain(text: str) -> str:
    """Text that matplotlib writes as it is: a dollar sign would begin a formula."""
    return " ".join(text.split()).replace("$", r"\$")


def about(profile: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The title of a profile's picture, and the labels that belong under it."""
    source: Mapping[str, Any] = profile.get("provenance", {})
    episodes = source.get("episodes")
    count = f", {episodes} episodes" if episodes is not None else ""
    title = f"{source.get('agent', 'agent')} on {source.get('battery', 'a battery')}{count}"
    return title, [str(label) for label in profile.get("labels", [])]


def agent_styles(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Name, colour and marker of each agent."""
    for k, name in enumerate(names):
        yield name, AGENTS[k % len(AGENTS)], MARKERS[k % len(MARKERS)]


def save(figure: Figure, path: Path | str, about: str = "") -> None:
    """Write a figure, either completely or not at all; the same figure gives the same bytes.

    Args:
        figure: The figure.
        path: Where to; its ending says which form: `.svg`, `.png` or `.pdf`.
        about: Where its numbers come from, which the file keeps beside the picture.

    Raises:
        ValueError: The ending is unknown.
        OSError: It cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path}: call it {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    write_whole(path, save_bytes(figure, path.suffix, about))


def save_bytes(figure: Figure, ending: str, about: str = "") -> bytes:
    """The content of a picture's file.

    Args:
        figure: The figure.
        ending: `.svg`, `.png` or `.pdf`.
        about: Where its numbers come from, which the file keeps beside the picture.
    """
    form = ending.lower()
    buffer = io.BytesIO()
    notes: dict[str, dict[str, Any]] = {
        ".svg": {"Date": None, "Description": about or None},
        ".pdf": {"CreationDate": None, "Subject": about or None},
        ".png": {"Description": about} if about else {},
    }
    settings: Any = mpl
    drawn: Any = figure
    with (
        settings.rc_context({"svg.hashsalt": "animalcat", "svg.fonttype": "path"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # of names in any script
        drawn.savefig(buffer, format=form[1:], dpi=130, metadata=notes.get(form))
    return buffer.getvalue()
