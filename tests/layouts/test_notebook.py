"""The notebook of the documentation runs from top to bottom, and shows what its words say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "design_a_layout.ipynb"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(NOTEBOOK.parent)
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in cells:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            exec(compile(source, f"{NOTEBOOK.name}: {cell['id']}", "exec"), names)
    assert all(fitted.converged for fits in ("fits", "mended") for fitted in names[fits].values())
    nodes = {node.name: node.mean for node in names["mended"]["oak"].nodes}
    assert nodes["tableReading"] < 0.5
    assert nodes["carelessness"] < 0.1 < 0.2 < names["fits"]["oak"].nodes[2].mean
