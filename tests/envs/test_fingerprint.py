"""What an agent is beside its name: files, options and version, and what differs between two."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.fingerprint import (
    AgentFingerprint,
    differences,
    environment_changes,
    fold_digests,
    in_words,
    unknown,
)
from animalcat.envs.agents.limits.reference import read_reference
from animalcat.envs.agents.load import make_agent
from animalcat.envs.agents.watching import (
    Watch,
    agent_environment,
    as_now,
)
from animalcat.envs.surroundings import simulator_environment
from animalcat.envs.types import ObservationSpec

FILES = {"agent.py": "a1", "helper.py": "b1", "weights.npy": "c1"}
KNOWN = AgentFingerprint("computed", "agent.py:A", "1", {"lapses": "0.1"}, FILES)
SOURCE = """
import {helper}
from pathlib import Path
HERE = Path(__file__).parent

class A:
    def __init__(self):
        self.table = (HERE / "table.txt").read_text()
        (HERE / "log.txt").write_text("written by the agent")
        (HERE / "log.txt").read_text()
    def reset(self, info):
        self.weights = (HERE / "weights.bin").read_bytes()
    def act(self, observation):
        (HERE / "late.txt").read_text()
        return 0
"""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"environment": {"OMP_NUM_THREADS": "1"}}, ""),
        ({"source": "declared"}, ""),
        ({"files": FILES | {"helper.py": "b2"}}, "helper.py has other content"),
        ({"files": FILES | {"plan.py": "d1"}}, "plan.py is new"),
        ({"files": {"agent.py": "a1", "helper.py": "b1"}}, "weights.npy is not there or not read"),
        ({"files": {"agent.py": "a1", "helper.py": "b1", "../w/weights.npy": "c1"}}, ""),
        (
            {"files": FILES | {"helper.py": "c1", "weights.npy": "b1"}},
            "helper.py has other content; weights.npy has other content",
        ),
        ({"options": {"lapses": "0.2"}}, "lapses is 0.2 and was 0.1"),
        ({"options": {}}, "lapses is not given and was 0.1"),
        (
            {"options": {"lapses": "0.1", "sight": "8"}},
            "sight is 8 and was not given",
        ),
        ({"version": "2"}, "the version is 2 and was 1"),
        ({"name": "builtin:scout"}, "the agent is builtin:scout and was agent.py:A"),
        (
            {"source": "unknown", "process": "p"},
            "nothing is known of the agent, which was agent.py:A",
        ),
    ],
)
def test_what_differs_is_named(change: dict[str, object], words: str) -> None:
    assert in_words(differences(KNOWN, replace(KNOWN, **change))) == words  # pyright: ignore[reportArgumentType]


def test_an_unknown_agent_is_the_same_within_one_start_alone() -> None:
    one, other = unknown(), unknown()
    assert differences(one, one) == ()
    assert "nobody can tell" in in_words(differences(one, other))
    assert differences(AgentFingerprint(), AgentFingerprint())
    assert "before it was unknown" in in_words(differences(one, KNOWN))
    assert (one.short, one.digest) == ("unknown", "")


def test_the_digest_holds_what_the_agent_is_and_nothing_else() -> None:
    assert KNOWN.digest == replace(KNOWN, source="declared", environment={"A": "1"}).digest
    others = (
        replace(KNOWN, version="2"),
        replace(KNOWN, options={}),
        replace(KNOWN, files={**FILES, "agent.py": "x"}),
        replace(KNOWN, name="b.py:A"),
    )
    assert len({KNOWN.digest, *(other.digest for other in others)}) == 5
    assert KNOWN.short == KNOWN.digest[:8]
    assert KNOWN.short in KNOWN.words


@pytest.mark.parametrize("relative", [False, True])
def test_a_process_tells_what_its_agent_imports_and_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    helper = f"helper_{tmp_path.name}".replace("-", "_")
    for name, text in (
        ("agent.py", SOURCE.format(helper=helper)),
        (f"{helper}.py", "X = 1"),
        ("table.txt", "t"),
        ("weights.bin", "w"),
        ("late.txt", "l"),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    read = read_reference(f"{'agent.py' if relative else tmp_path / 'agent.py'}:A+lapses=0.1")
    watch = Watch(read)
    with watch:
        agent = make_agent(read)
    (tmp_path / "ours.txt").write_text("not the agent's")
    (tmp_path / "ours.txt").read_text()
    early = watch.fingerprint()
    assert set(early.files) == {"agent.py", f"{helper}.py", "table.txt"}
    with watch:
        agent.reset(EpisodeInfo(0, 0, ObservationSpec()))
    whole = watch.fingerprint()
    assert set(whole.files) == {*early.files, "weights.bin"}
    assert (whole.source, whole.name) == ("computed", "agent.py:A")
    assert whole.options == {"lapses": "0.1"}
    assert as_now(whole, read).digest == whole.digest
    (tmp_path / f"{helper}.py").write_text("X = 2")
    assert differences(whole, as_now(whole, read)) == (f"{helper}.py has other content",)
    (tmp_path / "weights.bin").unlink()
    assert len(differences(whole, as_now(whole, read))) == 2


def test_variables_that_change_something_are_kept_and_compared() -> None:
    variables = {"PYTHONHASHSEED": "0", "ANIMALCAT_AGENT_MODE": "x", "HOME": "/", "LANG": "C"}
    assert agent_environment(variables) == {"ANIMALCAT_AGENT_MODE": "x", "PYTHONHASHSEED": "0"}
    variables = {"NUMBA_DISABLE_JIT": "1", "ANIMALCAT_UNITY_TIME_SCALE": "5", "HOME": "/"}
    assert simulator_environment("sim", variables) == {"NUMBA_DISABLE_JIT": "1"}
    unity = simulator_environment("unity:auto", variables)
    assert unity == {"ANIMALCAT_UNITY_TIME_SCALE": "5"}
    assert environment_changes({}, unity) == (
        "the environment variable ANIMALCAT_UNITY_TIME_SCALE is 5 and was not set",
    )
    assert environment_changes(unity, unity) == ()


def test_very_many_files_are_one_digest_that_still_tells_them_apart() -> None:
    files = {f"data/{k}.png": str(k) for k in range(30)} | {"agent.py": "a"}
    few = fold_digests(files, 10)
    assert sorted(few) == ["agent.py", "data/* (30 files)"]
    assert fold_digests(files | {"data/7.png": "other"}, 10) != few
    assert fold_digests(files, 100) == files
    apart = {f"{k}/x": str(k) for k in range(30)}
    assert list(fold_digests(apart, 10)) == ["* (30 files)"]
