"""Four pages to open and look at: one-sided evidence, drift, interaction, and not to be read.

`python -m benchmarks.trust_pages FOLDER` simulates the four sessions, fits each by NUTS
and writes its page and its profile. With `--live` the pages are of the live posterior, in seconds.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from animalcat.bench.sessions import Player, World
from animalcat.files import write_whole
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.statuses import known_of
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.explaining.wider import with_wider
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.reporting.profile import Profile
from animalcat.layouts.simulation.synthetic import op_battery
from animalcat.service.reporting.session_page import session_page
from benchmarks.trust_agents import KNOWN


@dataclass(frozen=True)
class Page:
    """A session to be simulated for a page.

    Attributes:
        about: What it shows.
        episodes: How many episodes are played.
        policy: How instances are chosen.
        world: The layout and the battery.
        player: Who plays.
        seed: Everything follows from it.
    """

    about: str
    episodes: int
    policy: Policy
    world: Callable[[], World]
    player: Callable[[World], Player]
    seed: int = 1


def _permanence() -> World:
    return World(load_layout("object-permanence"), op_battery(0))


def _olympics() -> World:
    """Arenas as a lettuce field has them, measured by a variant whose demands reach too far."""
    g = rng(0, "page", 0)
    n = 300
    columns = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")
    values = (
        g.uniform(2, 36, n),
        g.choice([1, 2, 4, 5], n),
        g.choice([0, 0.5, 1], n),
        g.choice([-1, 0, 1], n),
    )
    instances = Instances(columns, np.column_stack(values), ("arenas",) * n)
    return World(load_layout("aaio", "scaled"), instances)


PAGES: Final[Mapping[str, Page]] = {
    "one-sided": Page(
        "16 of 16 passed: abilities are bounded from below only",
        16,
        Policy(),
        _permanence,
        lambda world: Player("passes all", np.ones(len(world.instances))),
    ),
    "drift": Page(
        "an agent that gets worse over 120 episodes", 160, Policy(), _permanence, KNOWN["drifts"]
    ),
    "interaction": Page(
        "an able agent that fails where lava and a ramp come together",
        160,
        Policy("stratified"),
        _permanence,
        KNOWN["lava-ramp"],
    ),
    "not-to-be-read": Page(
        "an agent that passes 98 %, which the printed demands cannot describe",
        100,
        Policy("random"),
        _olympics,
        lambda world: Player("passes 98 %", np.full(len(world.instances), 0.98)),
    ),
}
"""The sessions, by the name of their page."""


def made(page: Page, *, live: bool = False) -> tuple[dict[str, Any], str]:
    """Simulate a session; return its profile as JSON values and its page.

    Args:
        page: The session.
        live: Whether the profile is of the live posterior, and not of a fit by NUTS.
    """
    world = page.world()
    layout, player = world.layout, page.player(world)
    bank = Bank(
        layout,
        world.instances.features(layout),
        world.instances.paradigms,
        names=world.instances.names or tuple(f"arena-{i}" for i in range(len(world.instances))),
        outside=world.outside(),
    )
    rule = StoppingRule(page.episodes, target_sd=0.1, futility=0.0)
    learner = Learner(bank, page.policy, rule, page.seed)
    generator = rng(page.seed, "outcome", 0)
    rows: list[dict[str, Any]] = []
    failed = False
    for number in range(1, page.episodes + 1):
        choice = learner.ask(episode=number)
        assert choice is not None  # the batteries are larger than the sessions
        passed = generator.random() < player.probability(number, failed)[choice.index]
        failed = not passed
        learner.tell(choice.instance, float(passed), number)
        outcome = "success" if passed else "failure"
        rows.append(
            {
                "episode": number,
                "instance": choice.instance,
                "outcome": outcome,
                "attempt": 0,
                "counts": True,
                "reason": choice.reason,
                "predicted": choice.predicted,
                "propensity": choice.propensity,
                "paradigm": world.instances.paradigms[choice.index],
                "return": float(passed),
                "features": dict(
                    zip(layout.feature_names, bank.features[choice.index].tolist(), strict=True)
                ),
            }
        )
    about = {
        "agent": player.name,
        "battery": "simulated",
        "successes": sum(row["outcome"] == "success" for row in rows),
        "episodes": len(rows),
        "reason": learner.verdict().reason,
        "misfit": learner.misfit,
        "alarm": learner.alarm,
        "shows": page.about,
    }
    stop = learner.verdict()
    if live:
        fitted = learner.posterior.as_fit()
        profile = Profile.of_live(learner.posterior, stop.status, about)
        profile, verdict = verdict_of(learner, profile)
    else:
        data = learner.data()
        fitted = fit(FitRequest(layout, data.features, data.outcomes, page.seed))
        assert stop.facts is not None  # a rule's stopper has facts
        stop = stop.judged(fit=known_of(layout, rule, fitted.nodes, stop.facts.asked))
        profile = Profile.of_fit(fitted, stop.status, about)
        profile, verdict = verdict_of(learner, profile, fitted.flat_draws)
        profile = with_wider(profile, learner, fitted.flat_draws, page.seed)
    content = {
        **replace(profile, provenance=about).to_dict(),
        "verdict": verdict.to_dict(),
        "battery_rate": learner.battery_rate.to_dict(len(learner.bank)),
    }
    return content, session_page(content, fitted, rows, {})


def main() -> None:
    """Write the pages to the folder that is named."""
    parser = ArgumentParser("python -m benchmarks.trust_pages", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("trust-pages"))
    parser.add_argument("--live", action="store_true", help="without fits by NUTS: in seconds")
    given = parser.parse_args()
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        content, html = made(page, live=given.live)
        write_whole(folder / f"{name}.html", html.encode())
        print(f"{folder / name}.html: {page.about}")
        print(f"  {' '.join(content['verdict']['sentences'])}")
        print(f"  {content['predicts']['text']}")


if __name__ == "__main__":
    main()
