"""The nodes of a posterior as readers read them: as a table, and as a notebook shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.seen import sum_up_episodes
from animalcat.layouts.adaptive.signs import wrong_way_round
from animalcat.layouts.explaining.faked import find_cues
from animalcat.layouts.explaining.flat import flat_posteriors
from animalcat.layouts.explaining.kinds import PlayedEpisodes
from animalcat.layouts.explaining.limits import thin_draws
from animalcat.layouts.explaining.notes import notes
from animalcat.layouts.explaining.session import played_episodes
from animalcat.layouts.explaining.verdict import DRAWS
from animalcat.layouts.explaining.wording import Scale, plain_scale, scale_of, words_of
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitData
from animalcat.layouts.library import LAYOUTS, load_layout
from animalcat.layouts.model.spec import Layout, SpecificationError
from animalcat.layouts.model.units import NOT_KNOWN
from animalcat.layouts.reporting.profile import Profile
from animalcat.text.showing import line_html, stacked_html, table_html, table_text

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]

COLUMNS: Final = ("kind", "estimate", "low", "high", "unit", "status", "note")
"""Columns of a table of estimates, whose rows are called as the nodes are."""
_SHOWN: Final = ("node", "what it means", "90 % interval", "status", "note")


def scales_of(layout: Layout, features: Floats | None = None) -> dict[str, Scale]:
    """How the nodes of a layout are read, by name.

    Args:
        layout: The layout.
        features: (instances, features) of what was played, which decides between several demands.
    """
    return {node.name: scale_of(layout, k, features) for k, node in enumerate(layout.latents)}


def profile_scales(profile: Mapping[str, Any]) -> dict[str, Scale]:
    """How the nodes of a profile in JSON are read; empty where its layout is not at hand."""
    told: Mapping[str, Any] = profile.get("layout") or {}
    if told.get("name") not in LAYOUTS:
        return {}
    try:
        layout = load_layout(str(told["name"]), str(told.get("variant") or ""))
    except SpecificationError:  # it had this variant once
        return {}
    return scales_of(layout) if layout.digest == told.get("digest") else {}


def with_words(profile: Profile, draws: Floats, played: PlayedEpisodes) -> Profile:
    """Add to a profile what its estimates mean, and what must be known beside them.

    Args:
        profile: The profile.
        draws: (draws, latents) of the same posterior; they weigh the same.
        played: What was played.
    """
    layout, features = profile.layout, np.asarray(played.features, np.float64)
    scales = [*scales_of(layout, features if len(features) else None).values()]
    evaluator = Evaluator(layout)
    columns = evaluator.columns(played.features)
    shares = played.shares(layout, columns)
    seen = sum_up_episodes(layout, evaluator.touched(columns), shares)
    cues = find_cues(evaluator, draws, played, columns, shares)
    data = FitData(features, np.asarray(played.outcomes, np.float64), played.weights)
    flat = flat_posteriors(layout, draws, scales, data)
    noted = notes(layout, list(profile.nodes), draws, seen, scales, cues, flat)
    words = {
        node.name: words_of(
            node,
            scale,
            noted[node.name],
            known=noted[node.name].known,
        )
        for node, scale in zip(profile.nodes, scales, strict=True)
    }
    return replace(profile, words=words, notes=noted)


def estimates_frame(
    nodes: Mapping[str, Mapping[str, Any]], scales: Mapping[str, Scale]
) -> pd.DataFrame:
    """The nodes of a profile as a table, in the units in which they are read.

    Args:
        nodes: Nodes by name, as `Profile.nodes_dict` returns them and profiles in JSON have them.
        scales: How they are read, by name; of others the unit alone is known.

    Returns:
        A row for each node, with the columns `COLUMNS`. The estimate is the posterior mean, and
        the ends are those of the 90 % interval; all are missing where next to nothing was learnt.
    """
    import pandas as pd

    rows = [_row(node, scales.get(name)) for name, node in nodes.items()]
    index = pd.Index(list(nodes), name="node", dtype="object")
    return pd.DataFrame(rows, index=index, columns=list(COLUMNS))


def _row(node: Mapping[str, Any], known: Scale | None) -> tuple[Any, ...]:
    scale = known or plain_scale(str(node.get("unit") or ""))
    low, high = sorted(map(scale.convert, node["hdi"])) if node["known"] else (np.nan, np.nan)
    said = scale.convert(node["mean"]) if node["known"] else np.nan
    status = node["status"] or ("" if node["known"] else NOT_KNOWN)
    return node["kind"], said, low, high, scale.unit, status, node["note"]


def nodes_text(nodes: Mapping[str, Mapping[str, Any]], title: str) -> str:
    """The nodes of a profile in words, as a small table of text.

    Args:
        nodes: Nodes by name, as `Profile.nodes_dict` returns them and profiles in JSON have them.
        title: What stands above them.
    """
    return table_text(*_filled_columns(nodes), title)


def nodes_html(
    nodes: Mapping[str, Mapping[str, Any]], title: str, remarks: Sequence[str] = ()
) -> str:
    """The same as HTML for a notebook, with sentences under it."""
    return stacked_html(table_html(*_filled_columns(nodes), title), *map(line_html, remarks))


def _filled_columns(nodes: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[list[object]]]:
    """Heads and cells, without columns in which nothing stands."""
    rows: list[list[object]] = []
    for name, node in nodes.items():
        words: Mapping[str, str] = node["words"] or {}
        said = [words.get("estimate"), words.get("interval"), node["status"], node["note"]]
        rows.append([name, *said])
    kept = [k for k in range(len(_SHOWN)) if any(row[k] for row in rows)]
    return [_SHOWN[k] for k in kept], [[row[k] for k in kept] for row in rows]


def _learnt_so_far(learner: Learner) -> tuple[Profile, str]:
    """The profile of a learner with its words, and a title."""
    posterior, played = learner.posterior, played_episodes(learner)
    draws = thin_draws(posterior.particles, posterior.weights, DRAWS)
    profile = with_words(learner.profile(), draws, played)
    verdict = learner.verdict()
    state = f"enough: {verdict.reason}" if verdict.stop else "not enough yet"
    return profile, (
        f"{learner.layout.name} after {learner.n} outcomes, of {len(learner.bank)} items; {state}"
    )


def learner_frame(learner: Learner) -> pd.DataFrame:
    """The estimates of a learner as `estimates_frame` has them."""
    profile, _ = _learnt_so_far(learner)
    features = learner.data().features
    scales = scales_of(learner.layout, features if len(features) else None)
    return estimates_frame(profile.nodes_dict(), scales)


def learner_html(learner: Learner) -> str:
    """A learner as a notebook shows it."""
    profile, title = _learnt_so_far(learner)
    misfit = learner.misfit
    said = [f"The layout does not describe whoever answers {misfit}."] * bool(misfit)
    said += [f"{note[0].upper()}{note[1:]}." for note in learner.bank.assumed]
    data = learner.data()
    said.append(wrong_way_round(learner.layout, data.features, data.outcomes, data.weights))
    return nodes_html(profile.nodes_dict(), title, [*filter(None, said)])
