"""What limits a scripted participant in a browser is found in the profile, and nothing else."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from animalcat.doors.study.file import Study
from tests.doors.study.scripted import Scripted, import_open
from tests.doors.study.test_study import command, running, store_session, trials
from tests.web.chromium import PROGRAM, browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="there is no Chromium"),
    pytest.mark.timeout(900),
]
Write = Callable[..., Study]
STAMINA: Final = 14
"""Decisions that the limited one walks in a round, after which it glides a little."""
REACH: Final = 12.0
"""Metres that it comes by that in the simulator; 13 if the key goes up a decision late."""
ROUNDS: Final = 12


def measured(study: Study, file: Path, home: Path, stamina: float) -> Mapping[str, Any]:
    """The estimates of a participant, by capability, after the study."""
    with running(file, home) as server, browser() as opened:
        page = opened()
        page.size(900, 900)
        Scripted(page, stamina).take_part(server.link)
        assert not page.problems, page.problems
    assert len(trials(home, study)) == ROUNDS
    words = ("profile", "show", store_session(home, study), "--data", str(home), "--json")
    told = subprocess.run(command(*words), check=True, capture_output=True, text=True).stdout
    return json.loads(told)["nodes"]


def test_a_limit_is_found_through_the_browser(written: Write, tmp_path: Path) -> None:
    home = import_open(tmp_path)
    found = dict[str, Mapping[str, Any]]()
    for name, stamina in (("able", float("inf")), ("tired", STAMINA)):
        study = written(
            ("finding-things", name),
            ("practice: {passes: 1, of: 2, most: 3}\n", ""),
            ("blocks: {trials: 2, minutes: 0, break_seconds: 0}", "blocks: {minutes: 0}"),
            (
                "play: {battery: tiny, max_episodes: 4, camera: 32}",
                f"play: {{battery: open, layout: aaio, variant: by-way, max_episodes: {ROUNDS}, "
                "target_sd: 0, futility: 0, seed: 1, certify: false, camera: 128}",
            ),
        )
        found[name] = measured(study, tmp_path / "study.yaml", home, stamina)
    able, tired = (found[name]["navigationAbility"]["hdi"] for name in ("able", "tired"))
    assert tired[0] < REACH < tired[1] < able[0]
    able, tired = (found[name]["visualAbility"]["hdi"] for name in ("able", "tired"))
    assert tired[1] > able[0], "what it sees is told low, and it is not"
