"""Whether intervals contain the true value, and how sessions of undescribed agents end.

Agents of the prior are measured until the rule stops them, with each layout, and in two stages on
halves of a battery, beside one session that was told the same. Then agents whose
capabilities are drawn evenly over their ranges stand beside those of the prior: which sentences on
limits are false, and which say that they lean on the prior. Then twelve kinds of
agents that the layout does not describe play to their own ends, beside able agents and those of the
prior: who is called precise, and who is warned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Data, Learner
from animalcat.layouts.adaptive.plan import PRESETS, Policy, StoppingRule
from animalcat.layouts.adaptive.statuses import CONFIRMED
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.machine.processes import process_pool
from animalcat.portable import arrays as portable
from benchmarks import birth
from benchmarks.agents import LayoutAgent
from benchmarks.curves import Estimate, bootstrap, row, share
from benchmarks.rounds import Rounds, Rows, keep_rounds, play
from benchmarks.sessions import WORKERS, Ints, Player, Task, Trajectory, World, players
from benchmarks.synthetic import op_battery

Floats: TypeAlias = npt.NDArray[np.float64]

RULE: Final = StoppingRule(max_episodes=60, target_sd=0.1, futility=0.01)
"""The stopping rule that intervals are checked at, where a layout has a battery of its own."""
QUICK_RULE: Final = PRESETS["quick"]
"""The same where it has none: half the episodes, since scores take long to fit."""
SPREAD: Final = (
    ("aaio", "metres-15"),
    ("melting-pot", "as-printed"),
    ("one-capability", "success"),
    ("one-capability", "trials"),
    ("one-capability", "score"),
)
"""Layouts and variants that are tried on instances spread over their features."""
SPREAD_OVER: Final = 300
ROUNDS: Final = (1000, 150.0)
"""Rounds of agents of the prior at most, and seconds after which none begins."""
QUICK_ROUNDS: Final = (6, 20.0)
SENTENCE_ROUNDS: Final = (150, 300.0)
"""The same of agents drawn evenly over the ranges, beside as many of the prior."""
STAGED: Final = (300, 3)
"""Agents of each layout that are measured in two stages, and when quick."""
STAGE: Final = StoppingRule(max_episodes=30, target_sd=0.1, futility=0.01)
END_ROUNDS: Final = (20, 360.0)
"""The same of sessions that are played to their own ends."""
QUICK_END_ROUNDS: Final = (1, 40.0)
FOUND: Final = float(np.log(1.0 / 0.03))
"""Logarithm of a kind's own likelihood ratio at which it is found: at most 0.03 are false."""
POWER: Final = 0.95
"""Share of its sessions in which a kind's own test has to find it, or nobody could."""
POOR: Final = 0.1
"""Success where an agent that is not described fails."""


def run(quick: bool, keep: Path | None = None) -> Rows:
    """Measure both.

    Args:
        quick: Few sessions.
        keep: A folder to write rows and mean curves to.
    """
    worlds = {"op": World(load_layout("object-permanence"), op_battery(0))}
    worlds |= {f"{name}, {variant}": _spread(name, variant) for name, variant in SPREAD}
    ends = {name: worlds[name] for name in ("op", "aaio, metres-15")}
    made: Rows = []
    for name, chosen, plan, tasks, rows in (
        ("coverage", worlds, (ROUNDS, QUICK_ROUNDS), coverage_tasks, coverage_rows),
        ("sentences", ends, (SENTENCE_ROUNDS, QUICK_ROUNDS), sentence_tasks, sentence_rows),
        ("ends", ends, (END_ROUNDS, QUICK_END_ROUNDS), end_tasks, end_rows),
    ):
        count, seconds = plan[quick]
        began = monotonic()
        rounds = play(name, tasks(chosen, count), chosen, seconds)
        if not rounds:
            made.append({"name": f"{name}: no round of sessions was done in {seconds:g} s"})
            continue
        found = rows(chosen, rounds)
        made += found
        if keep is not None:
            keep_rounds(keep, "coverage", name, rounds, found, monotonic() - began)
    staged = [r for name in ends for r in stage_rows(name, ends[name], STAGED[quick])]
    if keep is not None:
        birth.keep(keep / "coverage" / "stages.json", "coverage", {"rows": staged})
    return made + staged


def _spread(name: str, variant: str) -> World:
    layout = load_layout(name, variant)
    values = spread(layout, SPREAD_OVER, rng(0, "spread", 0))
    return World(layout, Instances(layout.feature_names, values))


def coverage_tasks(worlds: Mapping[str, World], rounds: int) -> list[list[Task]]:
    """Per round an agent of the prior of each layout, stopped by the rule."""
    drawn = {name: players(world, rounds, seed=2) for name, world in worlds.items()}

    def session(name: str, i: int) -> Task:
        rule = RULE if name.startswith(("op", "aaio")) else QUICK_RULE
        last = (rule.max_episodes,)
        return Task(name, drawn[name][i], Policy(), 5000 + i, last, rule=rule, fallback=False)

    return [[session(name, i) for name in worlds] for i in range(rounds)]


def coverage_rows(worlds: Mapping[str, World], rounds: Rounds) -> Rows:
    """How many intervals of each layout contain the true value, and of each node."""
    made: Rows = []
    for k, (name, world) in enumerate(worlds.items()):
        inside = np.array([one[k].inside for one in rounds])
        spent = float(np.mean([one[k].episodes for one in rounds]))
        note = f"{len(rounds)} agents of the prior, stopped after {spent:.0f} episodes on average"
        pooled = bootstrap(len(inside), lambda rows, inside=inside: float(inside[rows].mean()))
        made.append({**row(f"{name}: coverage of 90 % intervals, pooled", pooled, note=note)})
        made[-1] |= {"target": "0.88 to 0.92", "met": _yes(0.88 <= pooled.value <= 0.92)}
        for i, node in enumerate(world.layout.latents):
            hits = int(inside[:, i].sum())
            found = binomtest(hits, len(inside)).proportion_ci(0.99, method="exact")
            cell = Estimate(hits / len(inside), float(found.low), float(found.high))
            made.append(row(f"{name}: coverage, {node.name}", cell))
            made[-1] |= {"target": "holds 0.90", "met": _yes(cell.low <= 0.9 <= cell.high)}
    return made


def stage_rows(name: str, world: World, agents: int) -> Rows:
    """Intervals after two stages, and how far one session on the same outcomes is from them."""
    drawn = players(world, agents, seed=4)
    with process_pool(WORKERS) as pool:
        found = [*pool.map(two_stages, [world] * agents, drawn, range(9000, 9000 + agents))]
    inside, apart = (np.array([one[k] for one in found]) for k in range(2))
    pooled = bootstrap(agents, lambda rows: float(inside[rows].mean()))
    largest = Estimate(float(abs(apart).max()), np.nan, np.nan)
    note = f"{agents} agents of the prior"
    return [
        row(f"{name}: coverage after two stages, pooled", pooled, note=note)
        | {"target": "0.88 to 0.92", "met": _yes(0.88 <= pooled.value <= 0.92)},
        row(f"{name}: two stages less one session, in SDs, largest", largest, at_most=0.1),
    ]


def two_stages(world: World, player: Player, seed: int) -> tuple[list[bool], list[float]]:
    """Measure an agent on one half of a battery, then on the other, and in one session on all.

    Returns:
        By node: whether the interval of two stages contains the true value; and how many standard
        deviations their mean is from that of one session.
    """
    generator, layout, told = rng(seed, "stages", 0), world.layout, list[str]()
    passed = generator.random(len(player.before)) < player.before
    order = generator.permutation(len(passed))

    def begin(rows: Ints, seed: int, earlier: Data | None = None) -> Learner:
        part = world.instances.rows(rows)
        paradigms, names = part.paradigms or ("",) * len(part), [str(row) for row in rows]
        bank = Bank(layout, part.features(layout), paradigms, names=names)
        return Learner(bank, Policy(), STAGE, seed, fallback=False, earlier=earlier)

    learner = None
    for rows in np.array_split(order, 2):
        learner = begin(rows, seed, learner and learner.data())
        while not learner.verdict().stop and (choice := learner.ask()) is not None:
            learner.tell(choice.instance, float(passed[int(choice.instance)]))
            told.append(choice.instance)
    assert learner is not None
    assert player.theta is not None
    whole = begin(order, seed)
    for name in told:
        whole.tell(name, float(passed[int(name)]), whole.n)
    nodes = learner.summary()
    held = [n.hdi[0] <= x <= n.hdi[1] for n, x in zip(nodes, player.theta, strict=True)]
    pairs = zip(nodes, whole.summary(), strict=True)
    return held, [(mine.mean - one.mean) / one.sd for mine, one in pairs]


def sentence_tasks(worlds: Mapping[str, World], rounds: int) -> list[list[Task]]:
    """Per round and layout an agent even over the ranges of capabilities, and one of the prior."""
    drawn = [
        (name, players(world, rounds, seed=8, flat=flat))
        for name, world in worlds.items()
        for flat in (True, False)
    ]
    last = (RULE.max_episodes,)
    return [
        [
            Task(name, who[i], Policy(), 7000 + i, last, rule=RULE, fallback=False)
            for name, who in drawn
        ]
        for i in range(rounds)
    ]


def sentence_rows(worlds: Mapping[str, World], rounds: Rounds) -> Rows:
    """Shares of what is said of limits: what is false without a note, and what has the note."""
    made: Rows = []
    for k, name in enumerate(worlds):
        flat, prior = ([one[2 * k + who].sentences for one in rounds] for who in (0, 1))
        plain = [[s.wrong for s in one if not s.leans] for one in flat]
        leans = [[s.leans for s in one] for one in prior]
        note = f"of {sum(map(len, plain))} sentences on {len(plain)} agents even over the ranges"
        title = f"{name}: false of a limit, without a note"
        made.append(row(title, _share_in(plain), at_most=0.13, note=note))
        note = f"of {sum(map(len, leans))} sentences on {len(leans)} agents of the prior"
        title = f"{name}: leans on its prior"
        made.append(row(title, _share_in(leans), at_most=0.2, note=note))
    return made


def _share_in(said: Sequence[Sequence[bool]]) -> Estimate:
    """A share of all sentences; its interval resamples agents."""
    hits, each = (np.array([f(one) for one in said]) for f in (sum, len))
    return bootstrap(len(said), lambda i: float(hits[i].sum() / max(each[i].sum(), 1)))


def _yes(met: bool) -> str:
    return "yes" if met else "no"


def agent_at(world: World, level: float, noise: float = 0.05) -> LayoutAgent:
    """An agent that the layout describes, with every capability at this share of its range."""
    values = {"capability": level, "robustness": noise, "bias": 0.0}
    theta = [
        values[node.kind] * (node.prior.span if node.kind == "capability" else 1.0)
        for node in world.layout.latents
    ]
    return LayoutAgent(world.layout, np.array(theta))


def able(world: World, level: float = 0.9, noise: float = 0.05) -> Player:
    """An agent that is near the top of every range."""
    agent = agent_at(world, level, noise)
    return Player("able", agent.probability(world.instances), theta=agent.theta)


KINDS: Final = (
    *("adds-up", "adds-softly", "adds-two", "discouraged", "gives-up", "forgets-on-the-left"),
    *("near-on-the-left", "two-by-paradigm", "green-hides-small", "tires", "learns", "ramp-far"),
)
"""Kinds of agents that the layout of object permanence does not describe: those whose difficulties
add up (of all demands in a step, of all softly, of hiding and distance), who do worse after a
failure or give up after two, who remember less or walk less far where the goal is on the left, who
are another agent in the paradigms of cups, who see no small goals behind green occluders, who tire,
who learn to remember, and who walk ramps near by alone. They were written down before any of them
was run."""


def misfits(world: World, seed: int = 0) -> list[Player]:
    """One agent of each of `KINDS`; the world is that of object permanence.

    Args:
        world: The world.
        seed: How able they are otherwise follows from it.
    """
    column = world.instances.column
    able = dict.fromkeys(world.layout.latent_names, 0.0)
    level = rng(seed, "misfits", 0).uniform(0.75, 0.95)
    for node in world.layout.latents:
        if node.kind == "capability":
            able[node.name] = level * node.prior.span
    able["noiseLevel"] = 0.04

    def but(**changed: float) -> Floats:
        theta = np.array([*(able | changed).values()])
        return LayoutAgent(world.layout, theta).probability(world.instances)

    good, left = but(), column("rightLeftPosition") < 0
    hidden = column("occluderPresence") > 0
    time, places = column("timeUnderOcc") * hidden / 4.0, column("numPositions") * hidden / 11.0
    far, small = column("goalDistance") / 56.0, 1.0 - column("goalSize") / 5.0
    apparatus = [column(f"{name}Presence") / 2.0 for name in ("lava", "ramp", "platform")]
    whole = np.sum([time, places, far, small, *apparatus], axis=0)
    middle = float(np.median(whole))
    cups = np.array([name.startswith("cup") for name in world.instances.paradigms])
    green = column("occluderGreenness") * hidden > 100
    ramp_far = (column("rampPresence") > 0) & (far > 0.45)
    kinds = {
        "adds-up": Player("", np.where(whole <= middle, 0.92, POOR)),
        "adds-softly": Player("", 0.96 * portable.expit(6.0 * (1.2 * middle - whole))),
        "adds-two": Player("", good * portable.expit(12.0 * (0.8 - time - far))),
        "discouraged": Player("", good, 0.4 * good, failures=1),
        "gives-up": Player("", good, POOR * good, failures=2),
        "forgets-on-the-left": Player("", np.where(left, but(memoryAbility=1.5), good)),
        "near-on-the-left": Player("", np.where(left, but(flatNavAbility=18.0), good)),
        "two-by-paradigm": Player(
            "", np.where(cups, good, but(flatNavAbility=22.0, lavaAbility=0.3, visualAbility=3.0))
        ),
        "green-hides-small": Player("", np.where(green, but(visualAbility=2.0), good)),
        "tires": Player("", good, but(flatNavAbility=8.0), start=0, episodes=60),
        "learns": Player("", but(memoryAbility=0.8, OPAbility=6.0), good, start=0, episodes=60),
        "ramp-far": Player("", np.where(ramp_far, POOR * good, good)),
    }
    return [replace(kinds[name], name=name) for name in KINDS]


def end_tasks(worlds: Mapping[str, World], rounds: int) -> list[list[Task]]:
    """Per round the kinds of misfit, as many able agents, and as many of priors, to their ends."""
    op, rule = worlds["op"], StoppingRule()
    fine = [able(op), Player("nearly perfect", able(op, 0.97, 0.02).before)]
    drawn = {name: players(world, 4 * rounds, seed=6) for name, world in worlds.items()}
    each = [
        [("op", one) for one in (*misfits(op, seed), *fine, *fine, *fine, *fine)]
        + [(name, one) for name in worlds for one in drawn[name][4 * seed : 4 * seed + 4]]
        for seed in range(rounds)
    ]
    return [
        [
            Task(name, player, Policy(), 5000 + 100 * seed + k, (rule.max_episodes,), rule=rule)
            for k, (name, player) in enumerate(one)
        ]
        for seed, one in enumerate(each)
    ]


def end_rows(worlds: Mapping[str, World], rounds: Rounds) -> Rows:
    """Who is called precise, who is warned, and what the check before a session ends costs."""
    kinds = len(KINDS)
    misfit, fine, drawn = (
        [t for one in rounds for t in one[k * kinds : (k + 1) * kinds]] for k in range(3)
    )
    power = {kind: np.mean([t.own > FOUND for t in misfit if t.player == kind]) for kind in KINDS}
    silent = {kind: [claims(t) for t in misfit if t.player == kind] for kind in KINDS}
    shown = [kind for kind in KINDS if power[kind] >= POWER]
    note = f"{len(rounds)} sessions of each of {len(shown)} kinds that their own test finds"
    name = "misfit: all is called precise without a warning"
    unwarned = share([one for kind in shown for one in silent[kind]])
    made: Rows = [row(name, unwarned, at_most=0.1, note=note)]
    for kind in KINDS:
        note = f"its own test finds {power[kind]:.2f}"
        made.append(row(f"misfit, {kind}: the same", share(silent[kind]), note=note))
    early = share([t.settled_at is not None for t in misfit])
    made.append(row("misfit: the same without the check", early, note=note))
    for who, ours in (("able agents", fine), (f"agents of {len(worlds)} priors", drawn)):
        note = f"{len(ours)} sessions, {sum(t.doubted for t in ours)} more doubted at their end"
        warned = share([t.warned for t in ours])
        made.append(row(f"false warning, {who}", warned, at_most=3 / 160, note=note))
        sooner = [t for t in ours if t.settled_at is not None]
        if not sooner:
            continue
        kept = [t for t in sooner if claims(t)]
        note = f"of {len(sooner)} that are without the check"
        made.append(
            row(f"still precise, {who}", share([*map(claims, sooner)]), at_least=0.8, note=note)
        )
        before = sum(t.settled_at or 0 for t in kept)
        ratio = Estimate(sum(t.episodes for t in kept) / max(before, 1), np.nan, np.nan)
        made.append(row(f"times as many episodes, {who}", ratio, at_most=1.25))
    return made


def claims(session: Trajectory) -> bool:
    """Whether a session ends since all is known, and says so."""
    return session.end in CONFIRMED and session.settled and not session.warned
