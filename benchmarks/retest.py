"""`python -m benchmarks retest`: do two sessions of one agent, with other seeds, agree?

The entrants of the Olympics play with their recorded outcomes. Scripted agents play every arena of
a battery once, and their sessions are played with these outcomes. Agents of the prior have chance
of their own, which is drawn anew for each session.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.reading import read_played
from animalcat.bench.retest import measured, of_battery, recorded
from animalcat.bench.saving import built
from animalcat.bench.sessions import Player
from animalcat.envs.agents import load_agent
from animalcat.layouts.library import load_layout
from animalcat.service.batteries.battery import build_family
from benchmarks.adaptive import olympics
from benchmarks.agents import RAYS, play

Rows: TypeAlias = list[dict[str, Any]]

FAMILY: Final = "navigation"
ARENAS: Final = 200
QUICK_ARENAS: Final = 20
AGENTS: Final = (
    "builtin:scout",
    "builtin:scout+path=10",
    "builtin:scout+path=20",
    "builtin:scout+lapses=0.3",
    "builtin:braitenberg",
    "builtin:braitenberg+path=12",
    "builtin:forward",
    "builtin:random",
)
"""Scripted agents: able, limited in metres, with lapses, and hopeless ones."""


def run(quick: bool = False) -> Rows:
    """Entrants, scripted agents and agents of the prior.

    Args:
        quick: Few arenas and agents.
    """
    made: Rows = []
    found = olympics()
    if found is not None:
        world, table = found
        made += recorded("entrants of the Olympics, aaio", world.layout, table)
    layout = load_layout("aaio")
    with tempfile.TemporaryDirectory() as folder:
        battery = build_family(FAMILY, QUICK_ARENAS if quick else ARENAS, 0, Path(folder))
        whole = built(f"{FAMILY}, aaio", battery, layout)
        names = whole.world.instances.names
        arenas = [
            read_played(battery.arena_yaml(battery.instances[battery.index[name]]))[0]
            for name in names
        ]
        scripted = [_scripted(name, arenas) for name in (AGENTS[:3] if quick else AGENTS)]
    made += measured(f"{FAMILY}, aaio, scripted agents", whole.world, scripted)
    return made + of_battery(whole, quick)


def _scripted(name: str, arenas: Sequence[Arena]) -> Player:
    """Let an agent play every arena once; its sessions are played with these outcomes."""
    agent = load_agent(name)
    passed = [play(agent, arena, RAYS, seed).passed for seed, arena in enumerate(arenas)]
    return Player(name, np.array(passed, np.float64))
