"""Recorded episodes as pictures and videos, from the file alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image, ImageSequence
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.extending.installing import install
from animalcat.maps.moving import PANEL
from animalcat.service.recording.film import HEIGHT, WIDTH, film
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.video import write_video
from tests.service.recorded import RECORDING


def replay(*words: str) -> tuple[int, str, str]:
    words = ("episode", "replay", str(RECORDING), *words)
    done = CliRunner().invoke(build(list(words)), list(words))
    return done.exit_code, done.stdout, done.stderr


def test_the_film_shows_view_path_and_numbers() -> None:
    recording = read_episode(RECORDING)
    pictures = [picture.copy() for picture in film(recording)]
    assert len(pictures) == len(recording.steps)
    assert {picture.shape for picture in pictures} == {(HEIGHT, WIDTH, 3)}
    first, last = pictures[0].astype(int), pictures[-1].astype(int)
    for panel in (first[:PANEL, :PANEL], first[:PANEL, PANEL:], first[PANEL:]):
        assert np.unique(panel.reshape(-1, 3), axis=0).shape[0] > 3
    assert (first[:PANEL, PANEL:] != last[:PANEL, PANEL:]).any()  # the path has grown
    again = [picture.copy() for picture in film(recording)]
    assert all((a == b).all() for a, b in zip(pictures, again, strict=True))


def test_a_video_plays_at_the_pace_of_the_episode(tmp_path: Path) -> None:
    recording = read_episode(RECORDING)
    path = tmp_path / "\u00fc new" / "out.mp4"
    code, out, _ = replay("--video", str(path), "--json")
    assert code == 0
    (row,) = json.loads(out)
    assert row["video"] == str(path)
    with av.open(str(path)) as file:
        (stream,) = file.streams.video
        frames = list(file.decode(stream))
        rate = stream.average_rate
    assert (stream.codec.name, len(frames)) == ("h264", len(recording.steps))
    assert (frames[0].width, frames[0].height) == (WIDTH, HEIGHT)
    period = recording.header.observation_spec.decision_period
    assert float(rate or 0) == pytest.approx(50 / period, rel=0.01)
    drawn = next(film(recording)).astype(int)
    assert np.abs(frames[0].to_ndarray(format="rgb24").astype(int) - drawn).mean() < 6


def test_a_gif_needs_no_further_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    path = tmp_path / "out.gif"
    assert replay("--video", str(path), "--speed", "2")[0] == 0
    pictures = [one.copy() for one in film(read_episode(RECORDING))]
    with Image.open(path) as picture:
        assert picture.size == (WIDTH, HEIGHT)
        shown = [np.asarray(one.convert("RGB")) for one in ImageSequence.Iterator(picture)]
    assert len(shown) > 1
    every = len(pictures) // len(shown)  # no two are alike
    for one, other in zip(shown, pictures[::every], strict=False):
        wanted = Image.fromarray(other).quantize(128, Image.Quantize.FASTOCTREE).convert("RGB")
        np.testing.assert_array_equal(one, np.asarray(wanted))
    code, _, said = replay("--video", str(tmp_path / "out.mp4"))
    assert code == 2
    assert install("video") in said
    assert [one.name for one in tmp_path.glob("[!.]*")] == ["out.gif"]


@pytest.mark.parametrize("name", ["out.mp4", "out.gif"])
def test_a_video_is_written_while_it_is_drawn(name: str, tmp_path: Path) -> None:
    """A long one would not fit into memory."""
    random, written = np.random.default_rng(0), list[int]()

    def pictures() -> Iterator[np.ndarray]:
        for _ in range(40):
            yield random.integers(0, 255, (64, 64, 3), np.uint8)
            written.append(sum(one.stat().st_size for one in tmp_path.iterdir()))

    write_video(tmp_path / name, pictures(), 10.0)
    assert 0 < written[20] < written[-1] <= (tmp_path / name).stat().st_size


def test_a_video_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def break_arena():  # type: ignore[no-untyped-def]
        yield np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        raise ValueError("the arena cannot be built")

    for name in ("out.mp4", "out.gif"):
        with pytest.raises(ValueError, match="cannot be built"):
            write_video(tmp_path / name, break_arena(), 10.0)
    assert not list(tmp_path.iterdir())
