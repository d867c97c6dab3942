"""Pictures are drawn where one says, on the figure that is returned, and show in notebooks."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from nbclient import NotebookClient
from PIL import Image

from animalcat import plots
from animalcat.plots.results import Results, read_results

# Typed as they are used: neither says its types, and ours of matplotlib are of what we draw with.
nbformat: Any = import_module("nbformat.v4")
plt: Any = import_module("matplotlib.pyplot")

ROOT: Final = Path(__file__).resolve().parent.parent
KEPT: Final = ROOT / "docs" / "data" / "gallery"
FILES: Final = [KEPT / f"{name}.nc" for name in ("forward", "braitenberg")]
PANELS: Final[Mapping[str, int]] = {
    "forest": 4,
    "reliability": 1,
    "graph": 1,
    "comparison": 4,
}


@pytest.fixture(scope="module")
def results() -> list[Results]:
    return [read_results(path) for path in FILES]


@pytest.mark.parametrize("kind", PANELS)
def test_a_picture_is_drawn_on_given_axes(kind: str, results: list[Results]) -> None:
    """And whatever else is in that figure stays as it was."""
    draw: Callable[..., Any] = getattr(plots, kind)
    figure: Any = plt.figure(figsize=(9, 9))
    figure.suptitle("mine")
    count = PANELS[kind]
    axes = [figure.add_subplot(count, 2, 2 * k + 1) for k in range(count)]
    other = figure.add_subplot(1, 2, 2)
    try:
        given = results if kind == "comparison" else results[0]
        drawn = draw(given, ax=axes[0] if count == 1 else axes)
        assert drawn is figure
        assert all(ax.has_data() or ax.patches or ax.texts for ax in axes)
        assert not other.has_data()
        assert (figure.get_suptitle(), figure.get_supxlabel()) == ("mine", "")
    finally:
        plt.close(figure)


def test_whatever_is_known_of_an_agent_is_drawn_alike(results: list[Results]) -> None:
    """Results, their fit and their profile, in the units of readers, and pyplot knows of none."""
    before = plt.get_fignums()
    one: Any = results[0]
    drawn: list[Any] = [plots.forest(what) for what in (one, one.fitted, one.profile)]
    ticks = [[label.get_text() for ax in f.axes for label in ax.get_xticklabels()] for f in drawn]
    # A profile alone does not know what was asked, so its axes go on to what can be asked.
    assert ticks[0] == ticks[1]
    assert (ticks[0][0:2], ticks[2][-1]) == (["0", "5"], ticks[0][-1])
    assert [text for text in ticks[0] if "over" in text] == ["over 25"]
    said = [text.get_text() for ax in drawn[2].axes for text in ax.texts]
    assert any(" m\n" in text for text in said)
    assert not any("lg(" in text for text in said)
    assert plt.get_fignums() == before


def test_a_picture_shows_as_the_last_line_of_a_cell(tmp_path: Path) -> None:
    """In a fresh kernel without a magic, once; beside pyplot too, and a layout as its graph."""
    cells = [
        f"from animalcat.plots import *; what = read_results({str(FILES[0])!r})\nforest(what)",
        "forest(what).axes[0].set_title('mine');",
        "from animalcat.layouts import load_layout; load_layout('aaio')",
        "import matplotlib.pyplot as plt\ndensities(what, ['navigationAbility'])",
        "what",
    ]
    notebook: Any = nbformat.new_notebook(cells=[nbformat.new_code_cell(c) for c in cells])
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["kernelspec"] = kernel
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    first, none, layout, last, results = (cell["outputs"] for cell in notebook.cells)
    for shown in (first, last):
        (output,) = shown
        picture = Image.open(io.BytesIO(base64.b64decode(output["data"]["image/png"])))
        assert picture.size[0] > output["metadata"]["image/png"]["width"] > 300
    assert none == []
    (output,) = layout
    assert "<img" in output["data"]["text/html"]
    assert output["data"]["text/plain"].startswith("<Layout aaio (metres-15): ")
    (output,) = results
    assert "not known yet (0 to over 25 m)" in output["data"]["text/html"]
    assert output["data"]["text/plain"].startswith("builtin:forward on navigation: ")
