"""The first notebook runs unattended, and the front page's example with it."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "notebooks" / "first_study.ipynb"
QUICK = {"max_episodes=20": "max_episodes=5, certify=False", "builtin:scout": "builtin:braitenberg"}
"""What the notebook says, and what takes less time."""


def read() -> Any:
    nbformat: Any = importlib.import_module("nbformat")
    return nbformat.reads(NOTEBOOK.read_text("utf-8"), as_version=4)


def show_cell(cell: Any) -> str:
    """What a cell has shown, as text."""
    return "".join(
        output.get("text") or str(output.get("data", {}).get("text/html", ""))
        for output in cell.outputs
    )


def test_the_front_pages_example_is_in_the_notebook() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(import animalcat as ac\n.*?)```", readme, re.DOTALL)
    cells = "\n".join(cell.source for cell in read().cells if cell.cell_type == "code")
    there = {ast.dump(node) for node in ast.walk(ast.parse(cells))}
    for line in ast.parse(example).body:
        wanted = line.value if isinstance(line, ast.Expr) else line
        assert ast.dump(wanted) in there, ast.unparse(line)


@pytest.mark.timeout(600)
def test_a_first_study_runs_from_top_to_bottom(tmp_path: Path) -> None:
    notebook = read()
    for cell in notebook.cells:
        for long, quick in QUICK.items():
            cell.source = cell.source.replace(long, quick)
    cells = {cell.source: cell for cell in notebook.cells}
    assert not any(cell.get("outputs") for cell in notebook.cells)  # they are not kept
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=500, resources=where).execute()
    (report,) = (tmp_path / "study").glob("*.html")
    assert report.stat().st_size > 10_000
    result = show_cell(cells["result"])
    assert " of 5 episodes passed" in result
    assert "<video" in show_cell(cells["result.episodes[3].video()"])
    assert not [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "stream" and "Traceback" in output.text
    ]
