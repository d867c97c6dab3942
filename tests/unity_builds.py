"""Builds that misbehave: the stand-in, with something about it changed."""

from __future__ import annotations

import sys
from pathlib import Path

from animalcat.envs.unity.settings import UnitySettings

STAND_IN = Path(sys.executable).with_name("animalcat-unity")

START_SECONDS = 180
"""On a machine's first run the stand-in compiles, on a busy one for minutes."""

_SCRIPT = """#!{python}
import os, sys, time
from dataclasses import replace
from animalcat.arena_configs.model import Item, Vector3
from animalcat.cli.unity import player as unity_player
from animalcat.envs.mlagents import channels, peer

read, act = channels.read_arenas, peer._action
ONCE = {once!r}  # a fault happens until this file exists
decisions = 0

def changed(change):
    def read_arenas(content):
        loaded = read(content)
        arenas = {{n: change(arena) for n, arena in loaded.config.arenas.items()}}
        return replace(loaded, config=loaded.config.model_copy(update={{"arenas": arenas}}))
    channels.read_arenas = read_arenas

def agent(arena, **values):
    items = tuple(i.model_copy(update=values) if i.name == "Agent" else i for i in arena.items)
    return arena.model_copy(update={{"items": items}})

def after(number, do):
    def action(request):
        global decisions
        decisions += 1
        if decisions > number and not (ONCE and os.path.exists(ONCE)):
            if ONCE:
                open(ONCE, "w").close()
            do()
        return act(request)
    peer._action = action

{change}
unity_player.main()
"""

CHANGES = {
    "moved": "changed(lambda a: agent(a, positions=(Vector3(x=20, z=6),)))",
    "turned": "changed(lambda a: agent(a, rotations=(70.0,)))",
    "hurried": 'changed(lambda a: a.model_copy(update={"time_limit": a.time_limit - 10}))',
    "another": 'changed(lambda a: a.model_copy(update={"items": a.items + (Item(name="GoodGoal", '
    "positions=(Vector3(x=20, z=7),), sizes=(Vector3(x=1, y=1, z=1),)),)}))",
    "dying": "after(3, lambda: os._exit(9))",
    "hanging": "after(3, lambda: time.sleep(600))",
    "stillborn": 'sys.exit("no licence for this display")',
    "silent": "time.sleep(600)",
}


def build(folder: Path, name: str, *, once: Path | None = None) -> Path:
    """An executable that is the stand-in with a change of `CHANGES`.

    Args:
        folder: Where it is written.
        name: The change.
        once: A fault happens only until this file exists; the fault makes it.
    """
    path = folder / name
    where = "" if once is None else str(once)
    path.write_text(_SCRIPT.format(python=sys.executable, change=CHANGES[name], once=where))
    path.chmod(0o755)
    return path


def settings(folder: Path, **values: object) -> UnitySettings:
    """Settings that look at nothing of this machine, with logs in a folder of the test."""
    usual: dict[str, object] = {
        "python": Path(sys.executable),
        "logs": folder,
        "builds": "kept",
        "start_seconds": START_SECONDS,
    }
    return UnitySettings.model_validate({**usual, **values})
