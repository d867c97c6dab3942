"""What logs of adaptive tasks are exported as, and how they are compared."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.doors.inspect import adaptive
from animalcat.doors.inspect.logs import LogError
from animalcat.doors.inspect.results import export, read_profile, read_profiles, read_results
from animalcat.layouts.inference.backend import nuts
from animalcat.outcomes import read_outcomes
from animalcat.service.reporting.comparison import MixedError, compare
from tests.doors.inspect.sums import sums
from tests.doors.inspect.test_adaptive import LAYOUT, run


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two logs of one model, which began with the same six samples."""
    folder = tmp_path_factory.mktemp("logs")
    of = {"difficulty": "length"}
    tasks = [adaptive(sums(), LAYOUT, of, stop=12, seed=seed, common=6) for seed in (1, 2)]
    return [run(task, folder).location for task in tasks]


def test_a_log_gives_a_table_a_certified_profile_and_draws(logs: list[str]) -> None:
    table = read_outcomes(export(logs[0], "csv"))
    assert list(table["episode"]) == list(range(1, 13))
    assert set(table["outcome"]) <= {"success", "failure"}
    assert table["difficulty [1]"].between(1, 10).all()
    assert (table["propensity"] > 0.0).all()
    profile = json.loads(export(logs[0], "json"))
    assert profile["diagnostics"]["engine"] == "nuts"
    live = read_profile(logs[0])
    assert live["provenance"]["session"] == Path(logs[0]).name
    for name, node in live["nodes"].items():
        assert abs(profile["nodes"][name]["mean"] - node["mean"]) < node["sd"]
    first, second = read_results(logs[0]), read_results(logs[1])
    assert not isinstance(first, dict)
    assert not isinstance(second, dict)
    assert first.draws.shape[1] == len(LAYOUT.latents)
    assert list(first.table["instance"]) == list(table["instance"])
    common = set(first.passed) & set(second.passed)
    assert len(common) >= 6
    told = " ".join(compare({"one": first, "other": second}).notes())
    assert f"of the {len(common)} arenas that both played" in told


def test_logs_with_other_demands_of_the_same_samples_are_compared_on_demand_alone(
    logs: list[str], tmp_path: Path
) -> None:
    other = run(
        adaptive(sums(), LAYOUT, lambda s: {"difficulty": s.metadata["length"] / 2}, stop=4),
        tmp_path,
    )
    profiles = {name: read_profile(name) for name in (*logs, other.location)}
    assert not any(
        one.forbids("compare") for one in compare(dict([*profiles.items()][:2])).differences
    )
    with pytest.raises(MixedError, match="The set of demands differs"):
        compare(profiles)


def test_several_logs_are_a_table_with_a_row_for_each(logs: list[str]) -> None:
    rows = read_profiles(Path(logs[0]).parent).to_dict("records")
    assert [row["log"] for row in rows] == sorted(Path(log).name for log in logs)
    words = ["--json", "profile", "show", *logs]
    shown = json.loads(CliRunner().invoke(build(words), words).output)
    for log, row in zip(logs, shown, strict=True):
        profile = read_profile(log)
        rate = profile["battery_rate"]
        assert (row["success rate"], row["low"], row["high"]) == (
            *(rate["value"], rate["low"], rate["high"]),
        )
        assert [row["predicted low"], row["predicted high"]] == rate["predicted"]
        (name,) = profile["nodes"].keys() & {*row}
        node = profile["nodes"][name]
        assert (row[name], [row[f"{name} low"], row[f"{name} high"]]) == (node["mean"], node["hdi"])
        assert (row["episodes"], row["tokens"], row["labels"]) == (12, 12 * 12, "")
        assert {**row, "log": Path(log).name} in rows
    words = ["profile", "show", *logs]
    told = CliRunner().invoke(build(words), words).output
    assert f"{shown[0]['success rate']:.0%} ({shown[0]['low']:.0%} to" in told


def test_reading_a_log_in_an_event_loop_leaves_asyncio_as_it_is(
    logs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(asyncio, "_nest_patched", raising=False)  # another test may have done it

    async def within() -> None:
        read_profile(logs[0])

    before = asyncio.Task, asyncio.run
    asyncio.run(within())
    assert (asyncio.Task, asyncio.run) == before
    assert not hasattr(asyncio, "_nest_patched")


def test_a_fit_by_nuts_asks_for_its_extra(logs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nutpie", "nutpie._lib"):
        monkeypatch.setitem(sys.modules, name, None)
    nuts.library.cache_clear()  # a fit of another test has imported it
    words = ["profile", "export", logs[0], "--format", "json", "-o", "none.json"]
    shown = CliRunner().invoke(build(words), words)
    assert shown.exit_code == 2
    assert "the posterior by NUTS needs the extra `learner` (nutpie" in shown.output


def test_what_is_no_adaptive_log_is_refused(logs: list[str], tmp_path: Path) -> None:
    plain = run(sums(3), tmp_path).location
    with pytest.raises(LogError, match="is of no adaptive task"):
        read_profile(plain)
    with pytest.raises(LogError, match="exported as json, csv, parquet, netcdf, draws, not as"):
        export(logs[0], "html")
    words = ["profile", "show", plain]
    shown = CliRunner().invoke(build(words), words)
    assert shown.exit_code == 2
    assert "is of no adaptive task, so it has no profile" in shown.output
