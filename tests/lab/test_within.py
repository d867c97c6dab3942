"""`animalcat.measure`: the session of a server, without a server, a channel or another process."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import jsonschema
import numpy as np
import pytest

import animalcat
from animalcat import Arena, EpisodeInfo, Lab, Observation, Result
from animalcat.errors import AnimalcatError
from animalcat.lab import progress
from animalcat.lab.within import Within, measure
from animalcat.service.host.lock import running_server

ARENAS = {f"{d} m": Arena.goal(distance=d, size=2) for d in range(3, 36, 4)}
OPTIONS: dict[str, Any] = {
    "layout": "aaio",
    "max_episodes": 4,
    "certify": False,
    "seed": 3,
    "secret": "words",
    "progress": False,
}


class Wanderer:
    """Goes on, and now and then turns, by the seed of the episode."""

    def reset(self, info: EpisodeInfo) -> None:
        self.rng = np.random.default_rng(info.seed)

    def act(self, observation: Observation) -> int:
        return int(self.rng.choice([3, 3, 3, 4, 5]))


class Measured(NamedTuple):
    """A session of each door, and what the second one started."""

    served: Result
    here: Result
    started: list[list[str]]


@pytest.fixture
def heeded() -> Iterator[None]:
    """SIGINT interrupts, also where the shell had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with animalcat.local(tmp_path_factory.mktemp("served")) as lab:
        yield lab


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("here")


@pytest.fixture(scope="module")
def measurement(lab: Lab, folder: Path) -> Measured:
    served = lab.measure(Wanderer(), ARENAS, **OPTIONS)
    started: list[list[str]] = []

    def no_grpc(*_: object, **__: object) -> None:
        raise AssertionError("a server or a channel of gRPC")

    before = subprocess.Popen.__init__

    def note_call(self: Any, args: list[str], *rest: Any, **named: Any) -> None:
        started.append([str(part) for part in args])
        before(self, args, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("server", "insecure_channel", "secure_channel"):
            patch.setattr(grpc.aio, name, no_grpc)
        patch.setattr(subprocess.Popen, "__init__", note_call)
        here = animalcat.measure(Wanderer(), ARENAS, folder=folder, **OPTIONS)
    return Measured(served, here, started)


def test_it_is_the_session_of_a_server_to_the_last_bit(measurement: Measured) -> None:
    served, here, _ = measurement
    assert here.session.state == "finished"
    assert here.id == served.id
    both = zip(here.outcomes.items(), served.outcomes.items(), strict=True)
    assert [name for (name, ours), (_, theirs) in both if not ours.equals(theirs)] == []
    assert here.profile == served.profile
    ours, theirs = here.posterior.posterior, served.posterior.posterior
    assert list(ours.data_vars) == list(theirs.data_vars)
    assert all((ours[name].values == theirs[name].values).all() for name in ours.data_vars)
    assert [one.instance for one in here.episodes] == [one.instance for one in served.episodes]


def test_the_agent_has_no_process_and_the_profile_says_so(measurement: Measured) -> None:
    assert all("agent" not in command for command in measurement.started)
    assert measurement.here.profile["provenance"]["confinement"].startswith("not confined")
    assert measurement.here.session.identity.unconfined


def test_its_recordings_are_those_of_the_server(
    measurement: Measured, folder: Path, lab: Lab
) -> None:
    name = f"recordings/{measurement.here.id}"
    ours = sorted((folder / name).iterdir())
    assert len(ours) == OPTIONS["max_episodes"]
    theirs = Path(str(lab).removeprefix("<Lab: ").removesuffix(">")) / name
    assert [one.read_bytes() for one in ours] == [(theirs / one.name).read_bytes() for one in ours]


def test_the_directory_is_free_again_and_results_are_read_without_a_server(
    measurement: Measured, folder: Path
) -> None:
    again = Result(measurement.here.lab, measurement.here.session)
    assert running_server(folder) is None
    assert again.verdict.text
    assert again.episodes[0].explain()
    assert again.refresh().session.over
    assert running_server(folder) is None
    assert not (folder / "server.pipe").exists()


def test_a_server_opens_what_was_measured_here(measurement: Measured, folder: Path) -> None:
    with animalcat.local(folder) as lab:
        assert lab.results()[0].id == measurement.here.id
        # Of a directory that a server has, results are read by way of that.
        assert (
            Result(measurement.here.lab, measurement.here.session).profile
            == measurement.here.profile
        )
        with pytest.raises(AnimalcatError, match=r"is in use by .*lab\.close\(\)") as refused:
            animalcat.measure(Wanderer(), ARENAS, folder=folder, **OPTIONS)
    assert refused.value.code == "IN_USE"


def test_what_lasts_is_said_in_a_pipe_again_and_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for pause in ("_SOON", "_LINE_SECONDS"):
        monkeypatch.setattr(progress, pause, 0.001)
    lines: list[str] = []
    with progress.Progress() as shown:
        shown.phase("compiling")
        while len(lines) < 2:
            lines += capsys.readouterr().err.splitlines()
    assert set(lines) == {"compiling"}


class Interrupted(Wanderer):
    """Is interrupted once, in its second episode, as by the stop button."""

    once = True

    def reset(self, info: EpisodeInfo) -> None:
        super().reset(info)
        if info.episode == 1 and self.once:
            self.once = False
            signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("heeded")
def test_what_was_interrupted_goes_on_by_the_same_call(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        measure(agent, ARENAS, folder=folder, **OPTIONS)
    assert running_server(folder) is None
    assert "keeps every episode that ended; the same call goes on" in capsys.readouterr().err
    result = measure(agent, ARENAS, folder=folder, **OPTIONS)
    assert "goes on after 1 episode\n" in capsys.readouterr().err
    assert result.session.state == "finished"
    assert len(result.outcomes) == OPTIONS["max_episodes"] + 1  # with the void one


class Broken(Wanderer):
    """Fails in its second episode."""

    def reset(self, info: EpisodeInfo) -> None:
        super().reset(info)
        if info.episode == 1:
            raise ZeroDivisionError("of mine")


def test_what_an_agent_raises_comes_through_and_its_session_waits(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="of mine") as error:
        animalcat.measure(Broken(), ARENAS, folder=folder, **OPTIONS)
    assert "judge_failure" in " ".join(error.value.__notes__)
    with Within(folder) as lab:
        (session,) = lab.sessions(agent="Broken")
        assert session.unjudged == (1,)


def test_settings_of_servers_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANIMALCAT_STORE", "postgresql://nowhere")
    with pytest.raises(AnimalcatError, match="ANIMALCAT_STORE"):
        measure(Wanderer(), ARENAS, folder=tmp_path, **OPTIONS)


def test_pairs_are_played_and_compared(folder: Path) -> None:
    """Files in Python are arenas by name, and names say which is a control of which."""
    arenas = {f"a{d}": Arena.goal(distance=20 + d, size=2) for d in range(4)}
    arenas |= {f"a{d}.near": Arena.goal(distance=3 + d, size=2) for d in range(4)}
    options: dict[str, Any] = {**OPTIONS, "max_episodes": 8}
    paired = animalcat.measure(Wanderer(), arenas, folder=folder, pairs=True, **options)
    frame = paired.outcomes
    stems = frame["instance"].str.removesuffix(".near").tolist()
    assert stems[::2] == stems[1::2]
    assert frame["reason"].tolist()[1::2] == ["pair"] * 4
    assert frame["propensity"].tolist()[1::2] == [1.0] * 4
    controls = frame[frame["control"] == "near"]
    assert (
        controls["control_of"].tolist() == controls["instance"].str.removesuffix(".near").tolist()
    )
    told = paired.profile["controls"]
    assert [(row["control"], row["pairs"], row["paired"]) for row in told] == [("near", 4, True)]
    assert paired.profile.controls["says"].tolist() == [told[0]["says"]]
    schema = json.loads(
        resources.files("animalcat.schemas").joinpath("profile.schema.json").read_text()
    )
    jsonschema.validate(json.loads(json.dumps(paired.profile)), schema)
