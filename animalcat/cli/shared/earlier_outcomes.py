"""Reads what earlier agents did on the arenas of a battery, for `battery calibrate`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from animalcat.alike import UnlikeError, insist_poolable
from animalcat.cli.shared.arena_outcomes import battery_names, check_demands, outcomes_of_rewards
from animalcat.cli.shared.outcome_options import As
from animalcat.cli.shared.outcome_table import Outcomes, is_export
from animalcat.layouts.adaptive.pooling import ContradictionError
from animalcat.layouts.fitting.evidence import evidence_of
from animalcat.layouts.model.tables import TableError, check_alike, guess
from animalcat.outcomes import OutcomesError, feature_units, read_outcomes
from animalcat.service.batteries.battery import Battery
from animalcat.text.counts import count_of

if TYPE_CHECKING:
    import pandas as pd

    from animalcat.client import Client

Repeats: TypeAlias = Sequence[tuple[bool, float]]
"""Each repeat: whether it came out as before, and how probable its outcome was."""


@dataclass(frozen=True)
class EarlierOutcomes:
    """What earlier agents did: of several plays of an arena, the first.

    Attributes:
        outcomes: Successes and failures by agent and instance.
        repeats: What further plays say of each agent's determinism; none of final rewards.
        as_drawn: Instances that were played as the battery has drawn them.
        notes: What was left out or merged, in sentences.
    """

    outcomes: Outcomes
    repeats: Mapping[str, Repeats]
    as_drawn: Collection[str]
    notes: tuple[str, ...] = ()


def of_sessions(client: Client, sessions: Sequence[str], battery: Battery) -> EarlierOutcomes:
    """What the agents of sessions did.

    Args:
        client: A client of the server that has them.
        sessions: The sessions.
        battery: The battery that they played.

    Raises:
        TableError: A session played another battery, or an attempt is there with two outcomes.
    """
    import pandas as pd

    frames: list[pd.DataFrame] = []
    for session in sessions:
        spec = client.get_session(session).spec
        if spec.battery_digest != battery.digest:
            raise TableError(
                f"session {session} played battery {spec.battery} with another content (digest "
                f"{spec.battery_digest[:12]} instead of {battery.digest[:12]}); its arenas may be "
                "others of the same names. Give the battery that it played"
            )
        frames.append(client.outcomes(session))
    table = pd.concat(frames, ignore_index=True)
    return _firsts(table, "the sessions", set(battery.index))


def of_file(
    path: Path, battery: Battery, agents: Sequence[str] = (), taken_as: As | None = None
) -> EarlierOutcomes:
    """What the agents of a table of either form did.

    Args:
        path: Final rewards, or a table as `profile export --format csv` writes it.
        battery: The battery, with the pass marks that hold.
        agents: Agents to take; without them, all.
        taken_as: What the numbers of final rewards are.

    Raises:
        TableError: The table does not fit.
    """
    if not is_export(path):
        return EarlierOutcomes(outcomes_of_rewards(battery, path, agents, taken_as), {}, set())
    if taken_as is not None:
        raise TableError("--as goes with final rewards; it says what was passed")
    try:
        frame = read_outcomes(path)
    except (OutcomesError, OSError) as error:
        raise TableError(str(error)) from None
    named = battery_names(battery, [str(name) for name in frame["instance"].unique()])
    frame["instance"] = [named[str(name)] for name in frame["instance"]]
    same = check_demands(battery, frame.to_dict("records"), feature_units(frame), str(path))
    firsts = _firsts(frame, str(path), same)
    check_alike(firsts.outcomes, "agents")
    for agent in agents:
        if agent not in firsts.outcomes:
            known = ", ".join(firsts.outcomes) or "none"
            hint = guess(agent, [*firsts.outcomes])
            raise TableError(f"no agent {agent!r}; agents: {known}.{hint}")
    chosen = {a: own for a, own in firsts.outcomes.items() if not agents or a in agents}
    return EarlierOutcomes(chosen, firsts.repeats, same, firsts.notes)


def _firsts(table: pd.DataFrame, where: str, as_drawn: Collection[str]) -> EarlierOutcomes:
    """Of all plays of an instance the first, by session, episode and attempt.

    Raises:
        TableError: An outcome names no agent, or one attempt has two outcomes.
    """
    nameless = table["agent"].isna() & table["outcome"].isin(["success", "failure"])
    if nameless.any():
        instance = table["instance"][nameless].iloc[0]
        raise TableError(f"{where}: an outcome on {instance} names no agent")
    try:
        counted = evidence_of(table)
        unlike = insist_poolable(counted.frame)
    except (ContradictionError, UnlikeError) as error:
        raise TableError(f"{where}: {error}") from None
    outcomes: Outcomes = {}
    repeats: dict[str, list[tuple[bool, float]]] = {}
    before: dict[tuple[str, str], bool] = {}
    merged = 0
    for row in counted.frame.to_dict("records"):
        agent, instance = str(row["agent"]), str(row["instance"])
        passed = row["outcome"] == "success"
        outcomes.setdefault(agent, {}).setdefault(instance, float(passed))
        if (agent, instance) in before:
            merged += 1
            predicted = row.get("predicted")
            if isinstance(predicted, float) and predicted == predicted:
                chance = predicted if passed else 1.0 - predicted
                repeats.setdefault(agent, []).append((before[agent, instance] == passed, chance))
        before[agent, instance] = passed
    notes = [*counted.notes, *unlike]
    if merged:
        notes.append(
            f"{count_of(merged, 'further play of an arena')} by the same agent: of several "
            "the first counts, as one outcome. The others say only how random the agent is"
        )
    return EarlierOutcomes(outcomes, repeats, as_drawn, tuple(f"{where}: {note}" for note in notes))
