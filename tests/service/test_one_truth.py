"""One truth by every route: played sessions are the same evidence however they come to a fit.

Equal digests are equal rows with equal weights, so posteriors differ by Monte Carlo error alone.
The routes are the functions that the commands call before they fit; one command fits as well.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytest_asyncio

from animalcat.cli.layout.table import outcomes_on_arenas
from animalcat.cli.shared.arena_outcomes import on_battery
from animalcat.cli.shared.earlier_outcomes import EarlierOutcomes, of_file, of_sessions
from animalcat.client import connect
from animalcat.lab.drawn import DrawnResults, drawn_results
from animalcat.lab.received import receive_battery
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.fitting.exports import of_export
from animalcat.layouts.inference.evidence import evidence_digest, evidence_of_agent
from animalcat.layouts.inference.fit import FitData, FitRequest, FitResult, fit
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import CoveredOutcomes
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import TableError, name_and_unit
from animalcat.outcomes import COLUMNS, check_outcomes, outcomes_bytes, read_outcomes
from animalcat.plots import read_results
from animalcat.service.batteries.battery import Battery
from animalcat.service.measuring.coverage import SAME_ARENA
from animalcat.v1 import sessions_pb2
from animalcat.values.profiles import without_chance
from tests.service.conftest import FILES, Service, walk
from tests.things import covered_outcomes

pytestmark = pytest.mark.asyncio(loop_scope="session")
COPIES = 6
ARENAS = [*FILES, *((f"copy{k}.yaml", FILES[4][1]) for k in range(COPIES))]
"""Arenas of which one is there under seven names: it is one item."""
EPISODES = 10
KINDS = ("plain", "repeats", "practice")
FORMS = ("csv", "parquet")


@dataclass(frozen=True)
class Played:
    """A session that was played, and what left it.

    Attributes:
        session: Its resource name.
        agent: Name of its agent.
        layout: Its layout.
        battery: Its battery, as commands receive it.
        profile: Its profile, as JSON.
        files: Its exports, by format.
        outcomes: The frame of `Client.outcomes`.
        earlier: What `battery calibrate --sessions` reads of it.
        drawn: What a comparison reads of it.
    """

    session: str
    agent: str
    layout: Layout
    battery: Battery
    profile: Mapping[str, Any]
    files: Mapping[str, bytes]
    outcomes: pd.DataFrame
    earlier: EarlierOutcomes
    drawn: DrawnResults

    @property
    def evidence(self) -> str:
        return self.profile["diagnostics"]["evidence"]

    @property
    def counted(self) -> pd.DataFrame:
        return self.outcomes[self.outcomes["outcome"].isin(["success", "failure"])]

    @property
    def rewards(self) -> str:
        """Final rewards as a table of one's own has them."""
        own = self.counted[["instance", "return"]].rename(columns={"return": self.agent})
        return own.to_csv(index=False)


def export_all(address: str, session: str) -> Played:
    """What leaves a session by every door."""
    with connect(address) as client:
        files = {form: client.export_profile(session, form) for form in (*FORMS, "json", "netcdf")}
        found = client.get_session(session)
        profile = client.profile(session)
        battery = receive_battery(client, found.spec.battery)
        return Played(
            session,
            found.spec.agent,
            load_layout(profile["layout"]["name"], profile["layout"]["variant"]),
            battery,
            profile,
            files,
            client.outcomes(session),
            of_sessions(client, [session], battery),
            drawn_results(client, session, played=True),
        )


async def play_kind(service: Service, kind: str, **more: Any) -> Played:
    """Play a session; one of practice has an outcome that is declared invalid."""
    agent = f"truth:{kind}"
    if kind == "repeats":
        more["policy"] = sessions_pb2.SelectionPolicy(exposures=0, probes=0.5)
    practice = 2 * (kind == "practice")
    fields: dict[str, Any] = {"agent": agent, "battery": "batteries/truth", "practice": practice}
    session = await service.create(EPISODES, **{**fields, **more})
    if kind == "practice":
        async with service.agent(session, agent=agent) as stream:
            await stream.receive("welcome")
            for _ in range(4):
                await stream.episode(walk)
        await service.settled(session, "WAITING", asyncio.sleep)
        await service.sessions.InvalidateEpisode(
            sessions_pb2.InvalidateEpisodeRequest(name=f"{session}/episodes/3", reason="a cat")
        )
    await service.play(session, agent=agent)
    return await asyncio.to_thread(export_all, service.running.address, session)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sessions(service: Service) -> dict[str, Played]:
    """Three sessions: a plain one, one with repeats, one with practice and an invalid outcome."""
    await service.import_files(ARENAS, "truth")
    return {kind: await play_kind(service, kind) for kind in KINDS}


@pytest.fixture(params=KINDS)
def played(request: pytest.FixtureRequest, sessions: dict[str, Played]) -> Played:
    return sessions[request.param]


def digest(played: Played, found: CoveredOutcomes, agent: str = "") -> str:
    return evidence_of_agent(played.layout, found.table, agent or played.agent)


def by_table(played: Played, frame: pd.DataFrame, agent: str = "") -> str:
    """The evidence of a frame that was changed, written and read again."""
    text = outcomes_bytes(check_outcomes(frame), "csv").decode()
    return digest(played, covered_outcomes(text, [], [played.layout]), agent)


@pytest.fixture
def written_files(played: Played, tmp_path: Path) -> Mapping[str, Path]:
    """The exports as files."""
    for form, content in played.files.items():
        (tmp_path / f"session.{form}").write_bytes(content)
    return {form: tmp_path / f"session.{form}" for form in played.files}


async def test_exports_hold_the_evidence_of_the_profile(
    played: Played, written_files: Mapping[str, Path]
) -> None:
    assert json.loads(played.files["json"])["diagnostics"]["evidence"] == played.evidence
    for form in FORMS:
        found = covered_outcomes(written_files[form], [], [played.layout])
        assert digest(played, found) == played.evidence, form
        pd.testing.assert_frame_equal(read_outcomes(written_files[form]), played.outcomes)
    direct, _ = of_export(played.outcomes, [])
    assert digest(played, direct.covered([played.layout])) == played.evidence
    results = read_results(played.files["netcdf"])
    assert results.fitted.data is not None
    assert results.fitted.data.digest == played.evidence
    assert results.profile["diagnostics"]["evidence"] == played.evidence
    assert played.drawn.profile == played.profile
    assert results.profile == without_chance(played.profile)
    assert np.array_equal(played.drawn.draws, results.draws)
    assert np.array_equal(played.drawn.features, results.features)
    assert played.drawn.passed == results.passed
    assert played.drawn.layout == results.layout
    told = played.counted.sort_values("episode").reset_index(drop=True)
    netcdf = results.table.sort_values("episode").reset_index(drop=True)
    for column in ("session", "agent", "arena", "weight", "decision_period", "camera", "cause"):
        assert netcdf[column].tolist() == told[column].fillna("").tolist(), column


async def test_the_counts_are_those_of_the_profile(played: Played) -> None:
    about = played.profile["provenance"]
    passed = int((played.counted["outcome"] == "success").sum())
    assert (len(played.counted), passed) == (about["episodes"], about["successes"])
    firsts = played.counted.drop_duplicates("instance")
    rate = played.profile["battery_rate"]
    assert rate["played"] == len(firsts)
    assert rate["passed"] == (firsts["outcome"] == "success").sum()
    found = covered_outcomes(played.files["csv"].decode(), [], [played.layout])
    left = len(played.outcomes) - about["episodes"]
    assert found.coverage(played.agent) == {"covered": EPISODES, "of": EPISODES, "left_out": {}}
    assert [note for note in found.notes if note.startswith(f"left out {left} of ")] or not left
    lowered = int((played.counted["weight"] < 1.0).sum())
    assert [note for note in found.notes if note.startswith(f"{lowered} row")] or not lowered


async def test_final_rewards_on_arena_files_are_the_same_evidence(
    sessions: dict[str, Played], tmp_path: Path
) -> None:
    folder = arenas(tmp_path)
    for kind in ("plain", "practice"):
        one = sessions[kind]
        found = by_rewards(one, folder, one.rewards)
        assert digest(one, found) == one.evidence, kind


def arenas(folder: Path) -> Path:
    """The files of the battery."""
    made = folder / "arenas"
    made.mkdir()
    for name, content in ARENAS:
        (made / name).write_bytes(content)
    return made


def by_rewards(played: Played, folder: Path, rewards: str) -> CoveredOutcomes:
    table = folder.with_suffix(".csv")
    table.write_text(rewards)
    return outcomes_on_arenas(
        (played.layout.name, played.layout.variant), folder, table, None, [], "returns"
    )[0]


async def test_one_arena_under_many_names_is_one_item_by_every_route(
    sessions: dict[str, Played], tmp_path: Path
) -> None:
    """Sessions play it once; where each name has a reward, the others are left out and counted."""
    one, folder = sessions["plain"], arenas(tmp_path)
    coverage = one.profile["provenance"]["coverage"]
    assert (coverage["covered"], coverage["left_out"]) == (len(FILES), {SAME_ARENA: COPIES})
    names = sorted(name.removesuffix(".yaml") for name, _ in ARENAS)
    rewards = "instance,me\n" + "".join(f"{name},{-k / 100}\n" for k, name in enumerate(names))
    found = by_rewards(one, folder, rewards)
    table = folder.with_suffix(".csv")
    earlier = of_file(table, one.battery, taken_as="returns")
    calibrated = on_battery(one.layout, one.battery, earlier.outcomes).outcomes
    for each in (found, calibrated):
        assert each.coverage("me") == {
            "covered": len(FILES),
            "of": len(ARENAS),
            "left_out": {SAME_ARENA: COPIES},
        }
    assert digest(one, found, "me") == digest(one, calibrated, "me")


async def test_a_calibration_reads_the_same_rows(
    played: Played, written_files: Mapping[str, Path], tmp_path: Path
) -> None:
    rewards = tmp_path / "rewards.csv"
    rewards.write_text(played.rewards)
    routes = [played.earlier, *(of_file(written_files[form], played.battery) for form in FORMS)]
    firsts = played.counted.sort_values("episode").drop_duplicates("instance")
    repeats = len(played.counted) - len(firsts)
    if repeats:  # a calibration takes the first of them, and says so
        table = of_export(firsts.assign(weight=1.0), [])[0]
        known = digest(played, table.covered([played.layout]))
        for one in routes:
            assert any(f": {repeats} further play" in note for note in one.notes)
            assert len(one.repeats[played.agent]) == repeats
    else:
        known = played.evidence
        routes.append(of_file(rewards, played.battery, taken_as="returns"))
    for one in routes:
        found = on_battery(played.layout, played.battery, one.outcomes, known=one.as_drawn)
        assert digest(played, found.outcomes) == known


async def test_python_fits_the_same_evidence(played: Played) -> None:
    """By a learner that is told the outcomes, and by a request for a fit."""
    layout, table = played.layout, of_export(played.outcomes, [])[0].covered([played.layout]).table
    features, outcomes = table.instances.features(layout), table.outcomes[0]
    request = FitRequest(layout, features, outcomes, 0, weights=table.weights_of(played.agent))
    assert FitData(features, outcomes, table.weights).digest == played.evidence
    assert evidence_digest(request.features, request.outcomes, request.weights) == played.evidence
    each = dict(zip(table.instances.names, features.tolist(), strict=True))
    bank = Bank(layout, [*each.values()], [""] * len(each), names=[*each])
    learner = Learner(bank, Policy(exposures=0))
    rows = played.counted.sort_values("episode").to_dict("records")
    for number, row in enumerate(rows):
        learner.tell(row["instance"], float(row["outcome"] == "success"), number)
    data = learner.data()
    told = evidence_digest(data.features, data.outcomes, data.weights)
    live = learner.posterior.as_fit().diagnostics["evidence"]
    assert live == told
    if (data.weights == 1.0).all():
        assert told == played.evidence
    else:  # a learner of another bank predicts, and so weighs, otherwise
        assert evidence_digest(features, outcomes) == evidence_digest(data.features, data.outcomes)


def rename_column(column: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Names of one kind become others."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        codes = {one: f"other {k}" for k, one in enumerate(frame[column].unique()[::-1])}
        return frame.assign(**{column: frame[column].map(codes)})

    return change


def in_unit(unit: str, per_metre: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """All lengths are stated in another unit."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        lengths = [c for c in frame.columns if c not in COLUMNS and name_and_unit(c)[1] == "m"]
        assert lengths
        heads = {head: f"{name_and_unit(head)[0]} [{unit}]" for head in lengths}
        scaled = frame.assign(**{head: frame[head] * per_metre for head in lengths})
        return scaled.rename(columns=heads)

    return change


CHANGES: Mapping[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "rows": lambda frame: frame.sample(frac=1.0, random_state=1, ignore_index=True),
    "columns": lambda frame: frame[[*frame.columns[::-1]]],
    "instances": rename_column("instance"),
    "sessions": rename_column("session"),
    "centimetres": in_unit("cm", 100.0),
    "kilometres": in_unit("km", 0.001),
    "pasted twice and shuffled": lambda frame: pd.concat([frame, frame]).sample(
        frac=1.0, random_state=2, ignore_index=True
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_what_tells_nothing_changes_nothing(change: str, played: Played) -> None:
    assert by_table(played, CHANGES[change](played.outcomes)) == played.evidence


async def test_names_of_agents_change_nothing(sessions: dict[str, Played]) -> None:
    """Also where several agents are in one table, whose names change places."""
    one, other = sessions["plain"], sessions["repeats"]
    both = pd.concat([one.outcomes, other.outcomes], ignore_index=True)
    swapped = both.assign(agent=both["agent"].map({one.agent: other.agent, other.agent: "new"}))
    assert by_table(one, both) == one.evidence
    assert by_table(one, both, other.agent) == other.evidence
    assert by_table(one, swapped, other.agent) == one.evidence
    assert by_table(one, swapped, "new") == other.evidence


async def test_evidence_that_differs_is_told_apart(sessions: dict[str, Played]) -> None:
    one = sessions["plain"]
    assert len({each.evidence for each in sessions.values()}) == len(KINDS)
    turned = one.outcomes.copy()
    turned.loc[0, "outcome"] = "failure" if turned["outcome"][0] == "success" else "success"
    assert by_table(one, turned) != one.evidence
    assert by_table(one, one.outcomes[1:]) != one.evidence


def close(found: Mapping[str, Any], profile: Mapping[str, Any]) -> None:
    """Nodes are equal within Monte Carlo error.

    The gate wants an effective size of 400: then the means of two runs part by 0.07 SD (one
    standard error). Three to four of these are let pass.
    """
    for name, node in profile["nodes"].items():
        mean, sd = (found["nodes"][name][key] for key in ("mean", "sd"))
        assert [mean, sd] == pytest.approx([node["mean"], node["sd"]], abs=0.25 * node["sd"]), name


def nodes_of(found: FitResult) -> Mapping[str, Any]:
    return {"nodes": {one.name: {"mean": one.mean, "sd": one.sd} for one in found.nodes}}


def fit_entry(layout: Layout, *source: str | Path) -> Mapping[str, Any]:
    """The only entry of `layout fit --json`."""
    words = [layout.name, "--variant", layout.variant, *map(str, source), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "animalcat", "layout", "fit", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)
    return entry


async def test_the_command_line_fits_the_posterior_of_the_session(
    sessions: dict[str, Played], tmp_path: Path
) -> None:
    one = sessions["repeats"]
    twice = pd.concat([one.outcomes, one.outcomes]).sample(frac=1.0, random_state=3)
    table = tmp_path / "twice.csv"
    table.write_bytes(outcomes_bytes(check_outcomes(twice), "csv"))
    entry = await asyncio.to_thread(fit_entry, one.layout, "--table", table)
    assert entry["diagnostics"]["evidence"] == one.evidence
    assert entry["instances"] == EPISODES
    assert any(note.startswith(f"{EPISODES} rows left out") for note in entry["notes"])
    close(entry, one.profile)


@pytest.mark.thorough
async def test_a_layout_of_two_outcomes_has_one_truth_too(
    service: Service, sessions: dict[str, Played]
) -> None:
    """Exported tables are fitted by success alone, so its routes are the others."""
    one = await play_kind(service, "scores", layout="navigation-speed")
    assert json.loads(one.files["json"])["diagnostics"]["evidence"] == one.evidence
    with pytest.raises(TableError, match="takes other outcomes than success"):
        covered_outcomes(one.files["csv"].decode(), [], [one.layout])
    for form in FORMS:
        frame = read_outcomes(one.files[form])
        instances = of_export(frame, [])[0].instances
        counted = frame[frame["outcome"].isin(["success", "failure"])]
        seen = {"success": counted["outcome"] == "success", **dict(counted.items())}
        outcomes = np.stack(
            [
                seen[each.source].to_numpy(np.float64, na_value=np.nan)
                for each in one.layout.outcomes
            ],
            axis=1,
        )
        assert evidence_digest(instances.features(one.layout), outcomes) == one.evidence
    results = read_results(one.files["netcdf"])
    assert results.fitted.data is not None
    assert results.fitted.data.digest == one.evidence
    data = results.fitted.data
    request = FitRequest(one.layout, data.features, data.outcomes, 7, weights=data.weights)
    found = await asyncio.to_thread(fit, request)
    assert found.diagnostics["evidence"] == one.evidence
    close(nodes_of(found), one.profile)
