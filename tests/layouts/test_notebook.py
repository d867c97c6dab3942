"""A notebook of the documentation runs from top to bottom and prints what it has stored.

After a change that means to print something else, store it:
`python -m tests.layouts.test_notebook` runs the notebook and writes its outputs.
"""

from __future__ import annotations

import importlib
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pytest
from nbclient import NotebookClient

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


def play(name: str, check: str = "") -> Json:
    """Run a notebook in the notebook's folder, in a kernel of its own, as Jupyter does.

    Args:
        name: The notebook's file.
        check: Code that is run in the same kernel at its end, and fails where something is wrong.

    Returns:
        The notebook with the outputs of this run.
    """
    stored: Json = json.loads((NOTEBOOKS / name).read_text("utf-8"))
    nbformat: Any = importlib.import_module("nbformat")
    notebook = nbformat.reads(json.dumps(stored), as_version=4)
    if check:
        notebook.cells.append(nbformat.v4.new_code_cell(check))
    where = {"metadata": {"path": str(NOTEBOOKS)}}
    NotebookClient(notebook, timeout=900, coalesce_streams=True, resources=where).execute()
    played = json.loads(nbformat.writes(notebook))["cells"]
    for cell, seen in zip(stored["cells"], played, strict=False):
        if cell["cell_type"] == "code":
            cell |= {key: seen[key] for key in ("execution_count", "outputs")}
    return stored


def printed(notebook: Json) -> dict[str, str]:
    """What each cell has printed and shown as text, `[picture]` for a figure, by the cell's id."""
    return {
        cell["id"]: "".join(map(_text, cell["outputs"]))
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    }


def _text(output: Json) -> str:
    if output["output_type"] == "stream":
        return "".join(output["text"])
    data: Json = output["data"]
    return "[picture]\n" if "image/png" in data else "".join([*data["text/plain"], "\n"])


def run(name: str, check: str = "") -> None:
    """Run a notebook, and compare what it shows with what it has stored."""
    notebook = play(name, check)
    stored = json.loads((NOTEBOOKS / name).read_text("utf-8"))
    alike = stored["metadata"]["printed_with"].items() <= versions().items()
    tolerance = Tolerance() if alike else ELSEWHERE
    shown = printed(stored)
    for cell, seen in printed(notebook).items():
        same = agrees(shown[cell], seen, tolerance)
        assert same, f"{cell} shows\n{shown[cell]}but prints\n{seen}"


def test_anything_is_tested() -> None:
    """The one who forgets the third carry is found, by right or wrong, counts and scores."""
    run(
        "test_anything.ipynb",
        """
nodes = {node.name: node for node in learner.summary()}
assert 1.5 < nodes["carrying"].mean < 3.5
assert nodes["span"].mean > 5.5
assert learner.n <= 40
assert asked.n == 5
assert asked.data().outcomes.all()
carrying = {variant: nodes["carrying"].mean for variant, nodes in found.items()}
assert 1.0 < carrying["tries"] < 3.5
assert 3.0 < carrying["share"] < 6.0  # half of the digits are right where five are carried
""",
    )


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
    """Run the notebooks that keep what they print and draw, and write it."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if "printed_with" not in json.loads(path.read_text("utf-8"))["metadata"]:
            continue  # tests/lab/test_first_study.py runs it
        notebook = play(path.name)
        notebook["metadata"]["printed_with"] = versions()
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    _store()
