"""Folders of arena files stay hidden from agents when a session or a campaign is resumed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import animalcat
from animalcat.cli import campaign as campaigns
from animalcat.cli.session import commands, options
from animalcat.cli.shared import hidden
from animalcat.cli.shared.agent_process import Bounds

from .conftest import MakeSession, Server


@pytest.fixture
def arenas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of arena files, which stands for the battery of the server."""
    folder = tmp_path / "secret-arenas"
    folder.mkdir()
    for module in (options, campaigns):
        monkeypatch.setattr(module, "find_battery", lambda *given, **where: "navigation")
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_session_that_is_resumed_hides_the_arena_files_of_its_battery(
    server: Server, arenas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Bounds] = []

    def run_agent(client: Any, session: Any, reference: str, bounds: Bounds) -> Any:
        started.append(bounds)
        return session

    monkeypatch.setattr(commands, "run_agent", run_agent)

    def session(*words: str) -> str:
        return CliRunner().invoke(commands.app, [*words, "--server", server.address]).stdout

    table = arenas.parent / "tables" / "own.csv"
    table.parent.mkdir()
    made = ["--agent", "builtin:forward", "--battery", arenas.name, "--features", str(table)]
    name = session("create", *made, "--seed", "41").strip()
    monkeypatch.chdir("/")  # it is told where they are from anywhere
    session("resume", name)
    assert [one.hide for one in started] == [(arenas, table.parent)]
    assert (server.home / hidden.HIDDEN / f"{name}.json").exists()


def test_a_session_of_a_battery_by_name_hides_no_more(
    server: Server, client: animalcat.Client, make_session: MakeSession
) -> None:
    session = make_session()
    hidden.remember_hidden(client, [session], ())
    assert hidden.hidden_folders(client, [session]) == ()


@pytest.mark.parametrize("by_file", [True, False])
def test_a_campaign_that_is_resumed_hides_the_arena_files_of_its_battery(
    server: Server, arenas: Path, monkeypatch: pytest.MonkeyPatch, by_file: bool
) -> None:
    played: list[tuple[str, Bounds]] = []

    def play(client: Any, campaign: Any, bounds: Bounds, cluster: Any = None) -> Any:
        played.append((campaign.id, bounds))
        return campaign

    monkeypatch.setattr(campaigns, "_play", play)
    monkeypatch.setattr(campaigns, "show_campaign", lambda *given, **named: None)
    agents = ["builtin:forward", "builtin:random"]
    if by_file:
        file = arenas.parent / "campaign.yaml"
        said = {"agents": agents, "batteries": [arenas.name], "budget": 24, "seed": 42}
        file.write_text(json.dumps(said))
        words = [str(file)]
    else:
        words = [part for agent in agents for part in ("--agent", agent)]
        words += ["--battery", arenas.name, "--budget", "24", "--seed", "43"]

    def campaign(*words: str) -> None:
        done = CliRunner().invoke(campaigns.app, [*words, "--server", server.address])
        assert done.exit_code == 0, done.output

    campaign("run", *words)
    campaign("resume", played[0][0])
    assert [bounds.hide for _, bounds in played] == [(Path(arenas.name),), (arenas,)]


def test_where_the_data_directory_is_elsewhere_the_note_is_kept_here(
    server: Server,
    client: animalcat.Client,
    make_session: MakeSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    session = make_session()
    ticket = replace(client.get_ticket(session), folder="/data/of/another/machine")
    monkeypatch.setattr(hidden, "ticket_for", lambda *given: ticket)
    hidden.remember_hidden(client, [session], [tmp_path / "secret"])
    assert hidden.hidden_folders(client, [session]) == (tmp_path / "secret",)
    assert not (server.home / hidden.HIDDEN / f"{session.id}.json").exists()
