"""The client: play sessions of a server, and ask it for sessions, batteries, episodes and profiles.

`connect` gives a `Client` and `aconnect` an `AsyncClient`. Their `evaluate` lets an agent play, an
`AsyncAgent` too, and gives an `EvaluationSummary` of each `PlayedEpisode`.

`async_client` defines every call once; `blocking_client` has the same calls for ordinary code, on
the event loop of its own that `connection` keeps. `credentials` are what both show to a server, and
`traces` shorten what both raise. Both give values of `animalcat.values`. `evaluation` is the
agent's side of a session, over a `stream` that comes back where its connection breaks; `staying`
comes back where that fails too. `direct` is its way to the worker that simulates an episode.
`remote_episodes` turns that inside out for code that asks for the next step itself: `remote_env` is
a Gymnasium environment, `session_source` lets code for Animal-AI play a session.
"""

from animalcat.client.async_client import AsyncClient, aconnect
from animalcat.client.blocking_client import Client, connect
from animalcat.client.evaluation import AsyncAgent, EvaluationSummary, PlayedEpisode

__all__ = [
    "AsyncAgent",
    "AsyncClient",
    "Client",
    "EvaluationSummary",
    "PlayedEpisode",
    "aconnect",
    "connect",
]


def __dir__() -> list[str]:
    """What there is, for completion: the public names, and not where they live."""
    return list(__all__)
