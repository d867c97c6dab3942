"""What a session found out, as one object: its profile, outcomes, posterior, episodes, pictures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from animalcat.errors import AnimalcatError
from animalcat.lab.episodes import Episodes, Explanation, LabEpisode
from animalcat.lab.profile import Profile
from animalcat.text.showing import table_html, table_text
from animalcat.values import Session, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from animalcat.client import Client
    from animalcat.lab.drawn import DrawnResults
    from animalcat.lab.pictures import Pictures
    from animalcat.plots.results import Results
    from animalcat.service.reporting.comparison import Comparison

FORMATS: Final[Mapping[str, str]] = {
    ".json": "json",
    ".html": "html",
    ".csv": "csv",
    ".parquet": "parquet",
    ".nc": "netcdf",
}
"""What is written to a file, by its ending."""


class Result:
    """What a session found out about its agent.

    At the end of a notebook's cell it shows the capabilities in readers' units, the verdict, and
    what is not known. What it needs from the server is asked for when it is first used.

    Attributes:
        lab: Where the session is kept.
    """

    def __init__(self, lab: Client, session: Session) -> None:
        """Make the result of a session, also of one that goes on.

        Args:
            lab: Where it is kept.
            session: The session.
        """
        self.lab = lab
        self._session = session

    @property
    def session(self) -> Session:
        """The session, as it stood when the result was made or `refresh` was called."""
        return self._session

    @property
    def id(self) -> str:
        """The session's id, which every command takes."""
        return self._session.id

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return self._session.spec.agent

    def refresh(self) -> Result:
        """The same session as it stands now."""
        return Result(self.lab, self.lab.get_session(self.id))

    @cached_property
    def profile(self) -> Profile:
        """The cognitive profile: certified by a full fit once the session is finished."""
        where = getattr(self.lab, "where", "")  # a lab has it, and no client
        return Profile(self.lab.profile(self._session), where)

    @property
    def verdict(self) -> Verdict:
        """What the profile says in words at its end."""
        return self.profile.verdict

    def to_frame(self) -> pd.DataFrame:
        """The capabilities in the units in which they are read; see `Profile.to_frame`."""
        return self.fit.to_frame()

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """One row an attempt: demands with their units, outcome, propensity and prediction.

        The columns are those of `animalcat.outcomes`.
        """
        return self.lab.outcomes(self._session)

    @cached_property
    def fit(self) -> Results:
        """The posterior's draws with the outcomes that they rest on, for `animalcat.plots`."""
        from animalcat.plots.results import received_results

        return received_results(self.lab, self._session)

    def drawn(self, *, played: bool = False) -> DrawnResults:
        """The posterior's draws with the profile, for comparisons.

        Args:
            played: Whether to read what was played as well, and what came of it.
        """
        from animalcat.lab.drawn import drawn_results

        return drawn_results(self.lab, self._session, played=played)

    @cached_property
    def posterior(self) -> Any:
        """The posterior for ArviZ: `InferenceData`, or a `DataTree` where ArviZ has that.

        Variables are in the layout's scales, and each capability in readers' units stands beside it
        as NAME [UNIT]. Of very many episodes, predictions and log likelihood keep some of the
        draws, which the attribute `draws_kept` says.
        """
        import arviz

        library: Any = arviz
        with TemporaryDirectory() as folder:
            path = Path(folder) / "posterior.nc"
            self.lab.save_profile(self._session, path, "netcdf")
            data = library.from_netcdf(path)
            return data.load() or data if hasattr(data, "load") else data

    @cached_property
    def episodes(self) -> Episodes:
        """What was played, by the number of the episode."""
        attempts = self.lab.episodes(self._session)
        return Episodes([LabEpisode.of(attempt, self.lab) for attempt in attempts])

    def explain(self, episode: int) -> Explanation:
        """Why an episode ended as it did.

        Args:
            episode: Its number.
        """
        return self.episodes[episode].explain()

    @property
    def plot(self) -> Pictures:
        """Its pictures: `result.plot.forest()`, `.posterior()` and others."""
        from animalcat.lab.pictures import Pictures

        return Pictures(self.profile, lambda: self.fit)

    def compare(self, *others: Result, mixed: bool = False, margin: float = 0.1) -> Comparison:
        """Put agents side by side: ranks, and differences with their intervals.

        Args:
            *others: Results of other agents, or of the same one at another time.
            mixed: Compare them also where layouts, backends or observations differ.
            margin: Largest difference of success rates that counts as alike.

        Raises:
            AnimalcatError: They cannot be compared.
        """
        from animalcat.layouts.adaptive.paired import FAMILY
        from animalcat.plots.given import number_agents
        from animalcat.service.reporting.comparison import MixedError, compare

        for other in others:
            if not isinstance(other, Result):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise AnimalcatError(
                    f"compare takes results, as lab.measure gives them; this is of "
                    f"{type(other).__name__}",
                    "INVALID_REQUEST",
                )
        results = [self, *others]
        played = len(results) <= FAMILY  # of more, nobody is told who passed what
        drawn = [result.drawn(played=played) for result in results]
        named = dict(zip(number_agents([one.agent for one in drawn]), drawn, strict=True))
        try:
            return compare(named, mixed=mixed, margin=margin)
        except MixedError as error:
            raise AnimalcatError(f"{error} Say mixed=True to compare them anyway.") from None
        except ValueError as error:
            raise AnimalcatError(str(error)) from None

    def predict(self, battery: Any = None, *, top: int = 5) -> pd.DataFrame:
        """How likely the agent passes each arena of a battery.

        Args:
            battery: What `lab.battery` takes; None for the session's own.
            top: How many arenas to name, in the column `tells`, that together are most informative.

        Returns:
            One row an arena, by name: `paradigm`, `predicted` with its 90 % interval `low` to
            `high`, whether it was `played`, and its place among the most informative ones.
        """
        import pandas as pd

        from animalcat.lab.batteries import find
        from animalcat.lab.forecast import forecast_report
        from animalcat.lab.received import receive_battery

        own = f"batteries/{self.profile['provenance']['battery']}"
        known = find(self.lab, own if battery is None else battery, None)
        report = forecast_report(self.fit, known.id, receive_battery(self.lab, known.id), top)
        frame = pd.DataFrame(report["predictions"]).rename(columns={"telling": "tells"})
        frame["tells"] = frame["tells"].astype("Int64")
        return frame.set_index("instance")

    def save(self, path: str | Path) -> Path:
        """Write it to a file, whose ending says what.

        Args:
            path: .json and .html are the profile, .csv and .parquet the table of outcomes, .nc the
                posterior.

        Raises:
            AnimalcatError: The ending is none of these; it cannot be written.
        """
        target = Path(path)
        if target.suffix not in FORMATS:
            raise AnimalcatError(
                f"{target}: call it {', '.join(FORMATS)}; the ending says what is written",
                "INVALID_REQUEST",
            )
        try:
            self.lab.save_profile(self._session, target, FORMATS[target.suffix])
        except OSError as error:
            raise AnimalcatError(f"{target}: cannot be written: {error.strerror}") from None
        return target

    def __repr__(self) -> str:
        return repr(self.profile)

    def to_html(self) -> str:
        """What a notebook shows."""
        return self.profile.to_html()

    _repr_html_ = to_html


class ResultList(list[Result]):
    """Results of several sessions; at the end of a notebook's cell they show as a table."""

    def to_frame(self) -> pd.DataFrame:
        """One row a session, by its id."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=list(_LISTED)).set_index("session")

    def _rows(self) -> list[tuple[Any, ...]]:
        sessions = [result.session for result in self]
        return [
            (s.id, s.spec.agent, s.spec.battery, s.spec.layout, s.episodes, s.successes, s.state)
            for s in sessions
        ]

    def __repr__(self) -> str:
        return table_text(_LISTED, self._rows()) if self else "no results"

    def to_html(self) -> str:
        """What a notebook shows."""
        return table_html(_LISTED, self._rows(), "Results, newest first")

    _repr_html_ = to_html


_LISTED: Final = ("session", "agent", "battery", "layout", "episodes", "passed", "state")
