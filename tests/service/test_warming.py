"""Compiling ahead by using what is compiled on first use."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.service.host import warming


def test_the_doctor_warms_all_that_is_kept_and_says_how_long_each_took() -> None:
    done = CliRunner().invoke(build(["doctor"]), ["doctor", "--warm", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert {row["item"] for row in rows} == {
        "simulator with rays",
        "simulator with a camera",
        "layouts",
        "sampler",
    }
    assert all(row["seconds"] >= 0 for row in rows)


def test_what_cannot_be_used_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "parts", lambda: [warming.Part("no such part", lambda: None)])
    with pytest.raises(RuntimeError, match=r"(?s)no such part: .*StopIteration"):
        list(warming.compile_all())
