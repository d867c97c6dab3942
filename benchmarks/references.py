"""`python -m benchmarks.references`: measures the agents that others are compared with.

Each of them plays one session on each of four batteries. A file holds its profile, what it played,
its layout and draws of its posterior, as `profile export --format netcdf` writes them, thinned.
`profile compare MINE reference:scout` reads it. Sessions that a folder has already are not played
again, so an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import animalcat
from animalcat.cli.shared.profile_references import (
    FOLDER,
    PREFIX,
    REFERENCES,
    batteries,
    file_name_of,
    reference_content,
)
from animalcat.lab.policies import PolicySource

BATTERIES: Final = ("basics", "navigation", "object-permanence", "testbed")
EPISODES: Final = 40
SEED: Final = 0
SECRET: Final = "reference"
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference-profiles.md"
KEPT: Final = 250
"""Draws of each chain that are shipped."""


def measure(agent: str, battery: str, folder: Path) -> Path:
    """Measure an agent on a battery, and write the file that is shipped.

    Args:
        agent: One of `REFERENCES`.
        battery: The battery.
        folder: Where sessions are kept.
    """
    result = animalcat.measure(
        policy_source(agent),
        battery,
        folder=folder,
        name=agent,
        layout="aaio" if battery == "navigation" else "",
        max_episodes=EPISODES,
        seed=SEED,
        secret=SECRET,
        progress=False,
    )
    whole = folder / f"{result.id}.nc"
    with animalcat.local(folder) as lab:
        lab.save_profile(result.id, whole, "draws")
    written = FOLDER / file_name_of(agent, battery)
    thinned = folder / f"{result.id}-thinned.nc"
    thin(whole, thinned)
    written.write_bytes(gzip.compress(thinned.read_bytes(), 9, mtime=0))
    return written


def policy_source(agent: str) -> PolicySource:
    """What `animalcat.measure` takes for an agent: a reference, or a class with its weights."""
    source = REFERENCES[agent].agent
    return str(FOLDER / source) if source.startswith("agents.py:") else source


def thin(whole: Path, written: Path) -> None:
    """Write what is compared and drawn: of each chain every so-manyth draw, as single floats."""
    import xarray as xr

    library: Any = xr
    groups = {
        name: library.load_dataset(whole, group=name, engine="h5netcdf")
        for name in ("posterior", "sample_stats", "observed_data", "constant_data")
    }
    latents = [name for name in groups["posterior"].data_vars if not name.endswith("_read")]
    groups["posterior"] = groups["posterior"][latents]
    for name in ("posterior", "sample_stats"):
        step = max(1, groups[name].sizes["draw"] // KEPT)
        thinned = groups[name].isel(draw=slice(None, None, step))
        doubles = [key for key, each in thinned.data_vars.items() if each.dtype == "float64"]
        groups[name] = thinned.assign({key: thinned[key].astype("float32") for key in doubles})
    written.unlink(missing_ok=True)
    for name, group in groups.items():
        packed = {
            key: {"zlib": True, "complevel": 9}
            for key, each in group.data_vars.items()
            if each.ndim and each.dtype.kind in "fi"
        }
        group.to_netcdf(written, mode="a", group=name, engine="h5netcdf", encoding=packed)


def write_page() -> None:
    """Write the tables of docs/reference-profiles.md from the shipped files."""
    from animalcat.plots.results import read_results

    agents = ["| agent | what it is |", "|---|---|"]
    agents += [f"| `{name}` | {one.about} |" for name, one in REFERENCES.items()]
    rows = [
        "| battery | agent | passed | expected of the arenas that the layout covers | kind |",
        "|---|---|---|---|---|",
    ]
    for battery in BATTERIES:
        for agent in REFERENCES:
            if battery not in batteries(agent):
                continue
            profile = read_results(reference_content(f"{PREFIX}{agent}@{battery}", "")).profile
            about, rate = profile["provenance"], profile["battery_rate"]
            expected = "-"
            if rate.get("value") is not None:
                shares = (f"{100 * rate[key]:.0f}" for key in ("value", "low", "high"))
                expected = "{} % ({} to {})".format(*shares)
            rows.append(
                f"| {battery} | `{agent}` | {about['successes']} of {about['episodes']} | "
                f"{expected} | {_kind(profile['verdict'])} |"
            )
    text = PAGE.read_text("utf-8")
    for mark, lines in (("AGENTS", agents), ("TABLE", rows)):
        before, rest = text.split(f"<!-- {mark} -->\n")
        after = rest.split(f"<!-- end of {mark} -->\n")[-1]
        whole = "\n".join(lines)
        text = f"{before}<!-- {mark} -->\n{whole}\n<!-- end of {mark} -->\n{after}"
    PAGE.write_text(text, "utf-8")


def _kind(verdict: Any) -> str:
    weak = f": {verdict['weakness']}" if verdict["weakness"] else ""
    return f"{verdict['kind']}{weak} ({verdict['probability']:.2f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.references", description=__doc__)
    parser.add_argument("--agents", default=",".join(REFERENCES), help="with commas between")
    parser.add_argument("--batteries", default=",".join(BATTERIES))
    parser.add_argument("--folder", type=Path, default=Path("references"), help="of the sessions")
    parser.add_argument("--page", action="store_true", help="write the page's tables alone")
    given = parser.parse_args(arguments)
    if given.page:
        write_page()
        return
    for battery in given.batteries.split(","):
        for agent in given.agents.split(","):
            written = measure(agent, battery, given.folder)
            print(f"{written.name}: {written.stat().st_size / 1e3:.0f} kB", flush=True)
    write_page()


if __name__ == "__main__":
    main()
