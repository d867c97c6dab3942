"""The gallery's pictures are what the commands beside them make; bad input is told."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.layouts.inference.fit import FitData, FitResult
from animalcat.layouts.library import load_layout
from animalcat.plots import forest, read_results, save
from animalcat.plots.prediction import main_demands

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "gallery.md"
COMMANDS = [line for line in PAGE.read_text().splitlines() if line.startswith("animalcat ")]
FILES = [ROOT / "docs" / "data" / "gallery" / f"{name}.nc" for name in ("forward", "braitenberg")]


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(build(list(words)), list(words))
    return done.exit_code, done.stderr


@pytest.mark.parametrize("line", COMMANDS)
def test_a_picture_is_what_its_command_makes(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(line)[1:]
    kept = Path(words[-1])
    made = tmp_path / kept.name
    code, said = run(*words[:-1], str(made))
    assert code == 0, said
    with Image.open(kept) as old, Image.open(made) as new:
        assert np.allclose(old.size, new.size, atol=4)  # fonts differ by a pixel
        small = [np.asarray(one.convert("L").resize((64, 64)), float) for one in (old, new)]
    assert np.abs(small[0] - small[1]).mean() < 4.0


@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_the_same_figure_gives_the_same_file(form: str, tmp_path: Path) -> None:
    profile = dict(read_results(FILES[0]).profile)
    profile["provenance"] = {"agent": "$ a_b^c \\frac \u732b\n<b>", "battery": "b", "episodes": 3}
    profile["labels"] = ["unfinished: 3 episodes so far"]
    for name in ("a", "b"):
        save(forest(profile), tmp_path / f"{name}.{form}")
    assert (tmp_path / f"a.{form}").read_bytes() == (tmp_path / f"b.{form}").read_bytes()


def test_what_cannot_be_drawn_is_told(tmp_path: Path) -> None:
    out = str(tmp_path / "x.svg")
    files = [str(path) for path in FILES]
    for words, told in (
        ([files[0], "-o", str(tmp_path / "x.bmp")], ".svg, .png or .pdf"),
        ([files[0], "--kind", "comparison", "-o", out], "several agents"),
        ([*files, "--kind", "forest", "-o", out], "of one agent; 2 are given"),
        ([str(tmp_path / "none.nc"), "-o", out], "No such file"),
        ([str(tmp_path / "bad.nc"), "-o", out], "no netCDF file of `profile export`"),
    ):
        (tmp_path / "bad.nc").write_bytes(b"CDF, but not really")
        code, said = run("profile", "plot", *words)
        assert (code, told in said) == (2, True), said
    assert not list(tmp_path.glob("x.*"))


def test_demands_that_are_0_or_1_are_ranked_by_what_was_played() -> None:
    layout = load_layout("object-permanence")
    low = np.array([feature.low for feature in layout.features])
    features = np.tile(low, (6, 1))
    gates = [layout.feature_names.index(name) for name in sorted(layout.gates)]
    features[:, gates] = np.resize([0.0, 1.0], (6, 1))
    even = np.array([[node.prior.mean for node in layout.latents]] * 4)
    data = FitData(features, np.resize([0.0, 1.0], 6))
    fitted = FitResult(layout, even[np.newaxis], [], {}, data)
    assert set(main_demands(fitted)) == {layout.feature_names[k] for k in gates}
