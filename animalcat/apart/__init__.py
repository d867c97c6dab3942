"""Runs agents apart from the evaluator: an agent sees what it is given, and nothing else.

    from animalcat.apart import Bounds, Limits, run_agent

    with animalcat.connect("localhost:50051") as client:
        session = client.create_session(agent="agent.py:Mine", battery="navigation")
        run_agent(client, session, "agent.py:Mine", Bounds(sees=(Path("weights"),)))

`run_agent` runs one until its session is over. `AgentProcess` is one process of it, for who wants
to do something meanwhile, as `follow` does. `Bounds` say what it may and sees, with its `Limits`
and `Permission`; `way` says how processes can be put apart on this machine. What goes wrong is an
`ApartError`.

`process` runs the process and `output` reads what it prints. `view` says what it sees, `plan` what
it is given and how, `confine` does so in the process itself, and `memory` ends it where it takes
too much. `etc` has the made-up users of its machine.
"""

from animalcat.apart.plan import Limits, Permission, Way, way
from animalcat.apart.process import (
    AgentProcess,
    ApartError,
    Bounds,
    check_apart,
    check_reference,
    follow,
    give_up,
    how_ended,
    run_agent,
)

__all__ = [
    "AgentProcess",
    "ApartError",
    "Bounds",
    "Limits",
    "Permission",
    "Way",
    "check_apart",
    "check_reference",
    "follow",
    "give_up",
    "how_ended",
    "run_agent",
    "way",
]


def __dir__() -> list[str]:
    """What there is, for completion: the public names, and not where they live."""
    return list(__all__)
