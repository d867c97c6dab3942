"""The tutorials that are pages run from top to bottom, and come out as their text says.

`tests/lab/test_first_study.py` runs the one that is a notebook.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def ran(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What each cell of a tutorial has shown, by its last line."""
    nbformat: Any = importlib.import_module("nbformat")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    text = (TUTORIALS / page).read_text("utf-8")
    cells = [nbformat.v4.new_code_cell(code) for code in CELL.findall(text)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=500, resources=where).execute()
    return {
        cell.source.strip().splitlines()[-1]: "".join(
            output.get("text") or str(output.get("data", {}).get("text/plain", ""))
            for output in cell.outputs
        )
        for cell in notebook.cells
    }


@pytest.mark.timeout(600)
def test_a_question_leads_to_a_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ran("own-test.md", tmp_path, monkeypatch)
    assert "reach" in shown['print(*battery.report(layout).summary, sep="\\n")']
    claim = shown["print(result.verdict)"]
    assert "goingAround: no ability shown" in claim
    assert "It fails mostly because of its limit in goingAround" in claim
    assert "'secret': 'tutorial'" in next(value for key, value in shown.items() if "secret" in key)
    assert (tmp_path / "study" / "walls.html").stat().st_size > 10_000


@pytest.mark.timeout(600)
def test_a_model_that_speaks_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ran("speaking-model.md", tmp_path, monkeypatch)
    talk = next(value for key, value in shown.items() if "message.role" in key)
    assert talk.startswith("USER: Your health is 100 of 100.")
    assert "ASSISTANT: Think(" in talk
    assert "of 12 episodes passed" in shown["result"]
    assert "accuracy_low" in next(value for key, value in shown.items() if "metrics" in key)


@pytest.mark.timeout(600)
def test_a_study_with_people_is_checked_and_rehearsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = ran("people.md", tmp_path, monkeypatch)
    assert "rounds of the battery navigation" in shown["!animalcat study run --check study.yaml"]
    rehearsed = next(value for key, value in shown.items() if "rehearse" in key)
    assert "6 simulated people" in rehearsed
    assert "minutes" in rehearsed
