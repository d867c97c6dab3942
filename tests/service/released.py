"""Small files of every version, and what they mean; `python -m tests.service.released` makes them.

It makes those of the version that stands in pyproject.toml, until that has its tag: from then on
they stay as that version wrote them, and every later one has to read them (docs/stability.md).
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pandas as pd
from google.protobuf import json_format
from pydantic import BaseModel

import animalcat as ac
from animalcat import data
from animalcat.arena_configs.batteries.reader import read_recipe
from animalcat.arena_configs.batteries.sizing import full_counts
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.library import load_family_file
from animalcat.arena_configs.loader import load_config
from animalcat.layouts.library import load_layout
from animalcat.outcomes import read_outcomes
from animalcat.plots import read_results
from animalcat.service.ids import session_id
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify
from animalcat.v1 import sessions_pb2
from animalcat.values import SessionSpec
from animalcat.wire import codec
from tests.service.test_ids import RICH

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = Path(__file__).parent / "fixtures" / "released"
MEANING: Final = "meaning.json"
PLAYED: Final = 3
"""Episodes of the session in the store, which is not over."""
WRITTEN: Final = {
    "arena.yaml": "yard.yaml",
    "family.yaml": "screen.yaml",
    "layout.yaml": "sums.yaml",
    "recipe.yaml": "three-cups.yaml",
}
"""Files as people write them, and the examples of the documentation that they are."""


def make(folder: Path) -> None:
    """Write the files of today's version, and what they mean."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, example in WRITTEN.items():
        shutil.copy(ROOT / "docs" / "examples" / example, folder / name)
    (folder / "session.json").write_text(
        json_format.MessageToJson(codec.encode(RICH), preserving_proto_field_name=True) + "\n"
    )
    shutil.copy(ROOT / "protos" / "wire.binpb.gz", folder)
    shutil.copy(ROOT / "animalcat" / "references" / "random@basics.nc.gz", folder / "profile.nc.gz")
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "store"
        with ac.local(store) as lab:
            arenas = {f"{d} m": ac.Arena.goal(distance=d, angle=4) for d in (3, 9, 20, 33)}
            lab.battery(arenas, name="goals")
            session = lab.create_session(
                agent="walker", battery="goals", layout="aaio", max_episodes=4, certify=False
            )
            play(lab, session.id, PLAYED)
            lab.save_profile(session.id, folder / "profile.json", "json")
            for form in ("csv", "parquet"):
                lab.save_profile(session.id, Path(place) / f"outcomes.{form}", form)
        shutil.copy(Path(place) / "outcomes.csv", folder)
        packed = gzip.compress((Path(place) / "outcomes.parquet").read_bytes(), mtime=0)
        (folder / "outcomes.parquet.gz").write_bytes(packed)
        data.backup(store, folder / "store.tar.gz")
    text = json.dumps(meaning(folder), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / MEANING).write_text(text + "\n", "utf-8")


def play(lab: ac.Lab, session: str, episodes: int) -> None:
    """Play some episodes, walking straight on."""
    env = ac.RemoteEnv(lab.address, session, flat_actions=True, same_agent=True)
    for _ in range(episodes):
        env.reset()
        ended = False
        while not ended:
            _, _, terminated, truncated, _ = env.step(3)
            ended = terminated or truncated
    env.close()


def meaning(folder: Path) -> dict[str, Any]:
    """What today's code reads in the files of a version, as JSON values."""
    message = json_format.Parse(
        (folder / "session.json").read_text("utf-8"), sessions_pb2.SessionSpec()
    )
    spec = codec.decode(SessionSpec, message)
    drawn = generate(load_family_file(folder / "family.yaml"), 2, np.random.default_rng(1))
    recipe = read_recipe((folder / "recipe.yaml").read_text("utf-8"), "recipe.yaml")
    profile = read_results(gzip.decompress((folder / "profile.nc.gz").read_bytes()))
    packed = gzip.decompress((folder / "outcomes.parquet.gz").read_bytes())
    return json.loads(
        json.dumps(
            {
                "arena": plain(load_config(folder / "arena.yaml").config),
                "family": [plain(one.arena) for one in drawn],
                "layout": load_layout(folder / "layout.yaml").digest,
                "outcomes": rows(read_outcomes(folder / "outcomes.csv")),
                "outcomes.parquet": rows(read_outcomes(packed, "parquet")),
                "profile": {
                    "nodes": profile.profile["nodes"],
                    "means": profile.fitted.draws.mean((0, 1)).tolist(),
                },
                "profile.json": json.loads((folder / "profile.json").read_text("utf-8"))["nodes"],
                "recipe": [recipe.name, recipe.layout, plain(full_counts(recipe))],
                "session": {"id": session_id(spec), "spec": plain(spec)},
                "store": stored_rows(folder / "store.tar.gz"),
            },
            allow_nan=False,
        )
    )


def rows(table: pd.DataFrame) -> list[Any]:
    """What a table of outcomes says, without what it leaves empty."""
    return [plain(row.dropna().to_dict()) for _, row in table.iterrows()]


def stored_rows(backup: Path) -> dict[str, Any]:
    """What a store holds, and how its session goes on."""
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "store"
        data.restore(backup, store)
        damage = data.verify(store).damage
        with ac.local(store) as lab:
            (session,) = lab.sessions()
            before = [tell_all(one) for one in lab.episodes(session)]
            play(lab, session.id, 1)
            after = tell_all(lab.episodes(session)[-1])
        files = sorted((store / "recordings" / session.id).glob("*.mcap"))
        recordings = [recorded_bytes(file) for file in files[:PLAYED]]
    return {
        "damage": plain(damage),
        "session": [session.id, session.state, plain(session.spec)],
        "episodes": before,
        "recordings": recordings,
        "goes on": after,
    }


def tell_all(episode: Any) -> dict[str, Any]:
    """What was decided of an episode and what came of it."""
    names = ("number", "instance", "outcome", "episode_return", "steps")
    chosen = {name: getattr(episode.decision, name) for name in ("reason", "propensity")}
    return plain({name: getattr(episode, name) for name in names} | chosen)


def recorded_bytes(file: Path) -> dict[str, Any]:
    """What a recording holds, and whether the simulator plays it again as it was."""
    recording = read_episode(file)
    assert recording.footer is not None
    return {
        "arena": sha256(recording.header.arena_yaml.encode()).hexdigest(),
        "seed": recording.header.seed,
        "steps": len(recording.steps),
        "footer": json_format.MessageToDict(recording.footer),
        "difference": plain(verify(recording).difference),
    }


def plain(value: Any) -> Any:
    """A value as JSON has it; where it is another value's, by the names of its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, BaseModel):
        names = (*type(value).model_fields, *(value.model_extra or ()))
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        pairs = cast(Mapping[Any, Any], value)
        return {str(key): plain(each) for key, each in pairs.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        several = cast(Iterable[Any], value)
        each = [plain(one) for one in several]
        return sorted(each) if isinstance(value, (set, frozenset)) else each
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def main() -> int:
    """Make the files of today's version, unless it is published."""
    tag = f"v{ac.__version__}"
    known = subprocess.run(
        ["git", "tag", "--list", tag], cwd=ROOT, capture_output=True, text=True, check=True
    )
    if known.stdout.strip():
        print(f"{tag} is published: its files stay as they are", file=sys.stderr)
        return 1
    os.environ["ANIMALCAT_SECRET"] = ""  # so that ids and chance follow from seeds alone
    make(FOLDER / ac.__version__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
