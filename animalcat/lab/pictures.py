"""The pictures of a result, as `animalcat profile plot` draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from animalcat.plots.results import Results


class Pictures:
    """The pictures of one result: each method draws one, into axes of your own if you give some.

    `animalcat.plots` has the same functions, and those of several agents.
    """

    def __init__(self, profile: Mapping[str, Any], fit: Callable[[], Results]) -> None:
        """Draw nothing yet.

        Args:
            profile: The profile.
            fit: Gives the posterior's draws, with the outcomes that they rest on.
        """
        self._profile, self._fit = profile, fit

    def forest(self, ax: Any = None) -> Any:
        """Every capability with its interval."""
        return self._draw("forest", self._profile, ax=ax)

    def posterior(self, ax: Any = None) -> Any:
        """The density of every node beside that of its prior."""
        return self._draw("densities", self._fit(), ax=ax)

    def trajectory(self, ax: Any = None) -> Any:
        """How estimates went from episode to episode."""
        return self._draw("trajectory", self._fit(), ax=ax)

    def characteristic(self, ax: Any = None) -> Any:
        """Success by each demand, as predicted and as seen."""
        return self._draw("characteristic", self._fit(), ax=ax)

    def reliability(self, ax: Any = None) -> Any:
        """Whether predictions came true, as they were made before each episode."""
        return self._draw("reliability", self._fit(), ax=ax)

    def graph(self, ax: Any = None) -> Any:
        """The layout as a graph, with what is known of every node."""
        from animalcat import plots

        return plots.graph(self._fit(), ax=ax)

    def _draw(self, name: str, *given: Any, ax: Any) -> Any:
        from animalcat import plots

        return getattr(plots, name)(*given, ax=ax)

    def __repr__(self) -> str:
        return f"<pictures: {', '.join(name for name in dir(self) if not name.startswith('_'))}>"
