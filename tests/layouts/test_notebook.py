"""The notebooks of the documentation run from top to bottom and print what they have stored.

After a change that means to print something else, store it:
`python -m tests.layouts.test_notebook` runs the notebooks and writes their outputs.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import importlib
import io
import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pytest

from tests.printed import Tolerance, agrees

NOTEBOOKS: Final = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
ELSEWHERE: Final = Tolerance(share=0.3, least=0.1)
"""How far numbers may be apart where other versions print them: NUTS then draws other numbers."""

Json = dict[str, Any]


def person(prompt: str) -> str:
    """Somebody at the keyboard who knows every sum."""
    a, b = prompt.removesuffix(" = ").split("+")
    return str(int(a) + int(b))


def versions() -> dict[str, str]:
    """What the printed numbers of a fit hang on, beside the data and the seed."""
    packages = ("numba", "numpy", "nutpie", "pymc", "pytensor")
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "machine": platform.machine(),
        **{package: metadata.version(package) for package in packages},
    }


def _pictures() -> list[Json]:
    """The figures that a cell has left open, as a notebook stores them."""
    plt: Any = importlib.import_module("matplotlib.pyplot")
    outputs: list[Json] = []
    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, format="png", metadata={"Software": None})
        picture = base64.b64encode(file.getvalue()).decode("ascii")
        outputs.append(
            {"output_type": "display_data", "data": {"image/png": picture}, "metadata": {}}
        )
    plt.close("all")
    return outputs


def play(name: str) -> tuple[Json, dict[str, Any]]:
    """Run a notebook's code in the notebook's folder.

    Args:
        name: The notebook's file.

    Returns:
        The notebook with the outputs of this run, and the names that its code has defined.
    """
    notebook: Json = json.loads((NOTEBOOKS / name).read_text("utf-8"))
    names: dict[str, Any] = {"__name__": "notebook"}
    importlib.import_module("matplotlib.pyplot").close("all")  # what other tests have left open
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"{name}: {cell['id']}", "exec"), names)
        text = printed.getvalue().splitlines(keepends=True)
        stream: Json = {"output_type": "stream", "name": "stdout", "text": text}
        cell["execution_count"] = count
        cell["outputs"] = [*([stream] if text else []), *_pictures()]
    return notebook, names


def printed(notebook: Json) -> dict[str, str]:
    """What each cell has printed, and `[picture]` for every figure, by the cell's id."""
    return {
        cell["id"]: "".join(
            "".join(output["text"]) if output["output_type"] == "stream" else "[picture]\n"
            for output in cell["outputs"]
        )
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    }


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook, compares what it prints with what it has stored; gives what it defined."""

    def run(name: str) -> dict[str, Any]:
        monkeypatch.chdir(NOTEBOOKS)
        monkeypatch.setenv("MPLBACKEND", "agg")
        notebook, names = play(name)
        stored = json.loads((NOTEBOOKS / name).read_text("utf-8"))
        alike = stored["metadata"]["printed_with"].items() <= versions().items()
        tolerance = Tolerance() if alike else ELSEWHERE
        shown = printed(stored)
        for cell, seen in printed(notebook).items():
            same = agrees(shown[cell], seen, tolerance)
            assert same, f"{cell} shows\n{shown[cell]}but prints\n{seen}"
        return names

    return run


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_layout_is_designed(run: Any) -> None:
    names = run("design_a_layout.ipynb")
    assert all(fitted.converged for fits in ("fits", "mended") for fitted in names[fits].values())
    nodes = {node.name: node.mean for node in names["mended"]["oak"].nodes}
    assert nodes["tableReading"] < 0.5
    assert nodes["carelessness"] < 0.1 < 0.2 < names["fits"]["oak"].nodes[2].mean


def test_anything_is_tested(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one who forgets the third carry is found, by right or wrong, counts and scores."""
    typed: list[str] = []

    def typing(prompt: str) -> str:
        typed.append(prompt)
        return person(prompt)

    monkeypatch.setattr(builtins, "input", typing)
    names = run("test_anything.ipynb")
    nodes = {node.name: node for node in names["learner"].summary()}
    assert 1.5 < nodes["carrying"].mean < 3.5
    assert nodes["span"].mean > 5.5
    assert names["learner"].n <= 40
    assert len(typed) == names["asked"].n == 5
    assert names["asked"].data().outcomes.all()
    found = {variant: nodes["carrying"].mean for variant, nodes in names["found"].items()}
    assert 1.0 < found["tries"] < 3.5
    assert 3.0 < found["share"] < 6.0  # half of the digits are right where five are carried


@pytest.mark.parametrize(
    ("shown", "seen", "same"),
    [
        ("oak 0.45", "oak    0.46", True),
        ("oak 0.45", "oak 0.47", False),
        ("oak 0.45", "elm 0.45", False),
        ("ESS 1636", "ESS 1640", True),
        ("3 of 40", "4 of 40", False),
        ("-0.46 to 1", "+0.46 to 1", False),
        ("first\n...\nlast", "first\nother\nanother\nlast", True),
        ("first\n...\nlast", "first\nother\nlast\nmore", False),
        ("", "something", False),
    ],
)
def test_what_counts_as_the_same_output(shown: str, seen: str, *, same: bool) -> None:
    assert agrees(shown, seen) is same


def test_numbers_of_other_versions_may_be_further_apart() -> None:
    assert agrees("p 0.002, ESS 1636", "p 0.050, ESS 1500", ELSEWHERE)
    assert not agrees("p 0.002, ESS 1636", "p 0.500, ESS 1500", ELSEWHERE)
    assert not agrees("converged True", "converged False", ELSEWHERE)


def _store() -> None:
    """Run the notebooks and write what they print and draw."""
    os.environ["MPLBACKEND"] = "agg"
    os.chdir(NOTEBOOKS)
    builtins.input = person
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook, _ = play(path.name)
        notebook["metadata"]["printed_with"] = versions()
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    _store()
