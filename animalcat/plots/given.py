"""What pictures are drawn of: a fit, a learner, the results of a session, a profile, or a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
import pandas as pd

from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.explaining.limits import thin_draws
from animalcat.layouts.explaining.wording import Scale
from animalcat.layouts.fitting.estimates import profile_scales, scales_of
from animalcat.layouts.fitting.fits import Fit
from animalcat.layouts.inference.fit import FitData, FitResult
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import of_kind
from animalcat.layouts.reporting.profile import Profile

Json: TypeAlias = Mapping[str, Any]
Subject: TypeAlias = Any
"""One agent: a `Fit` or another `FitResult`, a `Learner`, `Results` or whatever has them as `fit`,
a `Profile`, or a profile as JSON."""
Subjects: TypeAlias = Any
"""Several agents: subjects by name, or a list of them."""

_DRAWS: Final = 4000
_WANTED: Final = "a Fit, a Learner, or what read_results(file) returns"


class Estimated(NamedTuple):
    """What is known of one agent, as far as no draws are needed.

    Attributes:
        profile: The profile, as JSON.
        scales: How its nodes are read, by name.
    """

    profile: Json
    scales: Mapping[str, Scale]


def fit_of(what: Subject, call: str) -> FitResult:
    """The draws of what was given.

    Args:
        what: What was given.
        call: Name of the function that draws it.

    Raises:
        TypeError: It has none.
    """
    if isinstance(what, FitResult):
        return what
    if isinstance(what, Learner):
        data, posterior = what.data(), what.posterior
        draws = thin_draws(posterior.particles, posterior.weights, _DRAWS)
        known = FitData(data.features, data.outcomes, data.weights) if what.n else None
        return FitResult(what.layout, draws[None], what.summary(), posterior.diagnostics, known)
    if isinstance(found := _part(what, "fitted"), FitResult):
        return found
    if isinstance(what, Profile) or _is_profile(what):
        raise TypeError(
            f"{call}: a profile has no draws, and this picture is of them; give {_WANTED}"
        )
    raise _wrong(what, call, _WANTED)


def _is_profile(what: Any) -> bool:
    """Whether something is a profile as JSON."""
    return isinstance(what, Mapping) and "nodes" in what


def estimate_of(what: Subject, call: str) -> Estimated:
    """The profile of what was given, with what its nodes mean.

    Args:
        what: What was given.
        call: Name of the function that draws it.

    Raises:
        TypeError: It has none.
    """
    if isinstance(what, Learner):
        features = what.data().features
        return Estimated(what.profile().to_dict(), _scales(what.layout, features))
    fitted = what if isinstance(what, FitResult) else _part(what, "fitted")
    profile = _part(what, "profile", what)
    if isinstance(what, FitResult) and not isinstance(what, Fit):
        profile = Profile.of_fit(what)
    layout = None
    if isinstance(profile, Profile):
        profile, layout = profile.to_dict(), profile.layout
    if not _is_profile(profile):
        raise _wrong(what, call, f"{_WANTED}, or a profile")
    told = cast("Json", profile)
    if isinstance(fitted, FitResult):
        features = None if fitted.data is None else fitted.data.features
        return Estimated(told, _scales(fitted.layout, features))
    return Estimated(told, profile_scales(told) if layout is None else scales_of(layout))


def common_scales(agents: Sequence[Subject]) -> Mapping[str, Scale]:
    """How the nodes of a layout are read for several agents alike, whatever each of them played."""
    for what in agents:
        own = what if isinstance(what, Fit | FitResult | Learner | Profile) else None
        layout = getattr(own or _part(what, "fitted"), "layout", None)
        profile: Any = what if _is_profile(what) else _part(what, "profile")
        if isinstance(layout, Layout):
            return scales_of(layout)
        if _is_profile(profile) and (scales := profile_scales(profile)):
            return scales
    return {}


def title_of(what: Subject) -> tuple[str, list[str]]:
    """The title of a picture, and the labels that belong under it; empty where nothing is known."""
    if isinstance(what, Fit):
        unsure = "not converged: no number of it is to be relied on"
        if what.diagnostics["engine"] == "smc":
            unsure = "live, not certified"
        count = what.diagnostics["outcomes"]
        return f"{what.agent or 'agent'}, {count} outcomes", [unsure] * (not what.converged)
    profile: Any = what if _is_profile(what) else _part(what, "profile", what)
    told: Json = profile.to_dict() if isinstance(profile, Profile) else profile
    if _is_profile(told) and "instances" in told:  # what `layout fit -o` wrote
        unsure = "not converged: no number of it is to be relied on"
        title = f"{_name(told)}, {told['instances']} outcomes"
        return title, [unsure] * (not told["diagnostics"]["converged"])
    if not _is_profile(told) or not told.get("provenance"):
        return "", []
    source: Json = told["provenance"]
    episodes = source.get("episodes")
    count = f", {episodes} episodes" if episodes is not None else ""
    title = f"{source.get('agent', 'agent')} on {source.get('battery', 'a battery')}{count}"
    return title, [str(label) for label in told.get("labels", [])]


def table_of(what: object, call: str) -> pd.DataFrame:
    """The table of outcomes of what was given, with what was predicted before each episode.

    Args:
        what: What was given: such a table, or whatever has one as `table`.
        call: Name of the function that draws it.

    Raises:
        TypeError: It has none.
        ValueError: It lacks a column.
    """
    table = _part(what, "table", what)
    if not isinstance(table, pd.DataFrame):
        raise _wrong(
            what, call, "a table of outcomes: Client.outcomes(session), or read_results(file)"
        )
    if missing := [name for name in ("outcome", "predicted") if name not in table.columns]:
        raise ValueError(
            f"{call}: the table has no column {missing[0]!r}; a table of Client.outcomes(session) "
            f"or read_outcomes(file) has. Columns: {', '.join(map(str, table.columns))}"
        )
    return table


def several(what: Subjects, call: str) -> dict[str, Subject]:
    """Several agents by name.

    Args:
        what: Subjects by name, or a list of them, which are then called by their agents.
        call: Name of the function that draws them.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(what, pd.DataFrame):
        if "agent" not in what.columns:
            return {"agent": what}
        return {str(name): rows for name, rows in what.groupby("agent", sort=False)}
    if _is_profile(what) or _part(what, "profile") is not None or _part(what, "table") is not None:
        return {_name(what): what}
    if isinstance(what, Mapping):
        return {str(name): subject for name, subject in cast("Mapping[Any, Any]", what).items()}
    if isinstance(what, list | tuple):
        subjects = list(cast("Sequence[Any]", what))
        names = [_name(subject) for subject in subjects]
        return dict(zip(number_agents(names), subjects, strict=True))
    raise TypeError(
        f"{call}: this is {of_kind(what)}; give agents by name, as "
        f'{call}({{"mine": one, "other": another}}), or a list of them'
    )


def insist_list(names: object, argument: str, call: str) -> None:
    """Refuse one name where a list of names is wanted.

    Raises:
        TypeError: It is one name.
    """
    if isinstance(names, str):
        raise TypeError(f"{call}: {argument} is {names!r}; give a list, as {argument}=[{names!r}]")


def number_agents(agents: Sequence[str], sources: Sequence[str] = ()) -> list[str]:
    """Names of agents; those that are there several times have their source, or else a number.

    So nobody takes the order in which files are given for that of a training.
    """
    if len({*zip(agents, sources, strict=False)}) == len(agents):
        several = Counter(agents)
        told = zip(agents, sources, strict=True)
        return [f"{agent} ({source})" if several[agent] > 1 else agent for agent, source in told]
    total, seen = Counter(agents), Counter[str]()
    named: list[str] = []
    for agent in agents:
        seen[agent] += 1
        named.append(agent if total[agent] == 1 else f"{agent} {seen[agent]}")
    return named


def _part(what: Any, name: str, otherwise: object = None) -> Any:
    """A part of what was given, or of the results that it has as `fit`.

    A column of a table is none, and neither is a method.
    """
    if isinstance(what, pd.DataFrame):
        return otherwise
    for one in (what, getattr(what, "fit", None)):
        part = getattr(one, name, None)
        if part is not None and not callable(part):
            return part
    return otherwise


def _name(what: Subject) -> str:
    name = _part(what, "agent", "")
    if not name and _is_profile(what):
        name = what.get("provenance", {}).get("agent", "") or what.get("agent", "")
    return str(name) or "agent"


def _scales(layout: Layout, features: Any) -> Mapping[str, Scale]:
    return scales_of(
        layout, np.asarray(features) if features is not None and len(features) else None
    )


def _wrong(what: object, call: str, wanted: str) -> TypeError:
    kind = type(what).__name__
    hint = {
        "DataFrame": ". Fit it first: fit(layout, df)",
        "list": ". Several agents are drawn by comparison([one, other])",
        "Layout": ". A layout alone is drawn by graph(layout)",
        "str": ". Read a file first: read_results(path)",
        "PosixPath": ". Read a file first: read_results(path)",
        "InferenceData": ". Draw ArviZ's own by arviz.plot_forest(data)",
        "DataTree": ". Draw ArviZ's own by arviz.plot_forest(data)",
    }.get(kind, "")
    return TypeError(f"{call}: this is {of_kind(what)}; give {wanted}{hint}")
