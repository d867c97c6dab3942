"""Reads the sessions of several persons as one group, which is compared as an agent is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from animalcat.alike import conditions_of, differing
from animalcat.lab.drawn import DrawnResults
from animalcat.layouts.calibrating.group import LEAST_PERSONS, fit_group
from animalcat.layouts.explaining.wording import scale_of
from animalcat.layouts.fitting.exports import of_export
from animalcat.layouts.inference.fit import FitData
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import Profile
from animalcat.service.reporting.comparison import MixedError, profile_of
from animalcat.wire.words import CONTRADICTED, NOT_CERTIFIED

if TYPE_CHECKING:
    from animalcat.client import Client


def group_results(
    client: Client, sessions: Sequence[str], beside: Any, *, mixed: bool = False
) -> DrawnResults:
    """Read sessions of different persons, and fit them together: the typical person of the group.

    Args:
        client: Where the sessions are.
        sessions: One of each person.
        beside: What is known of the agent that the group stands beside, by whose layout it is
            fitted.
        mixed: Whether persons that were measured with different backends or observations are taken.

    Raises:
        MixedError: They differ in that, and `mixed` was not said.
        ValueError: There are fewer than three, one has another layout or a standing alarm, or the
            agent's own session is one of them.
    """
    import pandas as pd

    if len(sessions) < LEAST_PERSONS:
        raise ValueError(f"a group takes {LEAST_PERSONS} persons at least; {len(sessions)} given")
    layout: Layout = beside.layout
    profiles = {session: dict(client.profile(session)) for session in sessions}
    for session, profile in profiles.items():
        own = profile["layout"]
        if own["digest"] != layout.digest:
            raise ValueError(
                f"session {session} was measured with layout {own['name']} ({own['variant']}, "
                f"digest {own['digest'][:12]}), and the agent with {layout.name} "
                f"({layout.variant}, digest {layout.digest[:12]}). Give sessions of one layout"
            )
        if alarm := [label for label in profile["labels"] if label.startswith(CONTRADICTED)]:
            raise ValueError(f"session {session}: {alarm[0]}. Leave it out, and say that you did")
    abouts = [profile["provenance"] for profile in (profile_of(beside), *profiles.values())]
    if abouts[0].get("session") in [about["session"] for about in abouts[1:]]:
        raise ValueError(f"the agent's own session, {abouts[0]['session']}, is one of the group")
    known = {session: conditions_of(profile["provenance"]) for session, profile in profiles.items()}
    unlike = differing(known)
    if (grave := [one for one in unlike if one.forbids("compare")]) and not mixed:
        raise MixedError(grave)
    frames = [client.outcomes(session).assign(agent=session) for session in sessions]
    table = of_export(pd.concat(frames, ignore_index=True), sessions)[0].covered([layout]).table
    persons = [
        FitData(instances.features(layout), outcomes, table.weights_of(session))
        for session in sessions
        for instances, outcomes in [table.of(session)]
    ]
    fitted, another = fit_group(layout, persons)
    features = np.concatenate([person.features for person in persons])
    passed = sum(int(person.outcomes.sum()) for person in persons)
    played: dict[str, dict[str, Any]] = {}
    for used in (used for one in abouts[1:] for used in one.get("played_with") or ()):
        known_as = json.dumps(used["versions"], sort_keys=True)
        played.setdefault(known_as, {**used, "attempts": 0})["attempts"] += used["attempts"]
    about = {
        **{key: value for key, value in abouts[1].items() if key not in ("policy", "comparison")},
        "agent": f"typical of {len(persons)} persons",
        "session": "",
        "agent_fingerprint": None,
        "sessions": [*sessions],
        "played_with": [*played.values()],
        "episodes": len(features),
        "successes": passed,
    }
    heads = Counter(label.split(":")[0] for one in profiles.values() for label in one["labels"])
    labels = [f"{head}: {count} of {len(persons)} persons" for head, count in heads.items()]
    if not fitted.converged:
        labels.append(f"{NOT_CERTIFIED}: {'; '.join(fitted.diagnostics['reasons'])}")
    labels += [one.sentence for one in unlike]
    theirs = np.resize(np.asarray(beside.draws, np.float64), another.shape)
    less = np.mean(another < theirs, axis=0).tolist()
    ranges = np.quantile(another, [0.05, 0.95], axis=0).T.tolist()
    labels += [
        f"nine of ten persons: {layout.latent_names[k]} "
        f"{scale_of(layout, k, features).interval(*ranges[k])}; {100 * less[k]:.0f} % have less of "
        "it than the agent"
        for k in layout.capabilities
    ]
    profile = {**Profile.of_fit(fitted, {}, about).to_dict(), "labels": labels}
    return DrawnResults(profile, layout, fitted.draws, features, {})
