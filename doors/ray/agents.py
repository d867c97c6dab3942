"""Agents that run where a Ray cluster has room for them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from animalcat.apart.output import AgentOutput, shown
from animalcat.apart.plan import environment
from animalcat.apart.process import how_ended
from animalcat.cli.shared.output import BAD_INPUT, FAILED, UNREACHABLE, fail
from animalcat.client import Client
from animalcat.client.credentials import CA, TOKEN, is_local
from animalcat.machine.networks import VARIABLE
from animalcat.values import Session

_CLOSE_SECONDS: Final = 15.0
_STARTS: Final = 20
"""How often an agent is started again after its node was lost; each takes seconds."""
NOTE: Final = "agents on Ray are not kept apart from the evaluator: run only what you trust"


class AgentHost:
    """The actor: one agent's process."""

    def __init__(self, command: Sequence[str], folder: str, variables: dict[str, str]) -> None:
        self._output = AgentOutput()
        self._process = subprocess.Popen(
            [sys.executable, "-P", *command],
            cwd=folder if os.path.isdir(folder) else None,
            stdin=subprocess.DEVNULL,
            stdout=self._output.writes,
            stderr=self._output.writes,
            env=environment(**variables),
        )
        self._output.begun()

    def ended(self) -> int | None:
        """The code with which it has ended; None while it runs."""
        return self._process.poll()

    def close(self) -> str:
        """End it; what it printed."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._output.wait()
        return self._output.text()


class RayAgents:
    """This command as a driver of the cluster; `close` ends all its agents."""

    def __init__(self, address: str, cpus: float, gpus: float) -> None:
        """Join the cluster; where that is not possible, the command ends with a sentence.

        Args:
            address: HOST:PORT of its head, or "auto".
            cpus: What each agent needs.
            gpus: What each agent needs.
        """
        from animalcat.doors.ray.connect import ClusterError, attach

        try:
            self.ray = attach(address)
        except ClusterError as error:
            fail(str(error), UNREACHABLE)
        self._needs = {"num_cpus": cpus, "num_gpus": gpus}

    def check(self, server: str, agents: int) -> None:
        """End the command where the agents of one campaign have no room or no way to the server.

        All of them are there at once, since any of them may be the next to play.
        """
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        for name, unit in (("CPU", "num_cpus"), ("GPU", "num_gpus")):
            there = sum(node["Resources"].get(name, 0.0) for node in nodes)
            if (wanted := agents * self._needs[unit]) > there:
                fail(
                    f"{agents} agents need {wanted:g} {name}s at once, and the cluster has "
                    f"{there:g}; add nodes, or lower agents_run.{name.lower()}s: an agent that "
                    "waits for its turn needs next to nothing"
                )
        here = str(self.ray.util.get_node_ip_address())
        others = sorted({node["NodeManagerAddress"] for node in nodes} - {here})
        if others and is_local(server):
            fail(
                f"agents on {', '.join(others)} cannot reach a server at {server}; start one that "
                "they can reach, with `animalcat serve --host`, and name it with --server"
            )

    def start(
        self, client: Client, session: Session, reference: str, *, same_agent: bool = False
    ) -> RayAgent:
        """Start an agent wherever there is room."""
        command = ["-m", "animalcat", "agent", "run", "--connect", client.address]
        command += ["--session", session.name, "--agent", reference, "--name", session.spec.agent]
        command += ["--same-agent"] if same_agent else []
        variables = passed(os.environ) | {TOKEN: client.get_ticket(session).text}
        host = self.ray.remote(AgentHost).options(**self._needs, max_restarts=0)
        make = partial(host.remote, command, os.getcwd(), variables)
        return RayAgent(self.ray, make, partial(client.dismiss_agents, session))

    def close(self) -> None:
        """Leave the cluster."""
        self.ray.shutdown()


class RayAgent:
    """One agent on the cluster; it is used like an `AgentProcess`.

    When its node is lost it is started again where there is room, and plays its episode again.
    """

    note = NOTE

    def __init__(self, ray: Any, make: Callable[[], Any], dismiss: Callable[[], object]) -> None:
        """Start it.

        Args:
            ray: The module.
            make: Makes its actor.
            dismiss: Tells the server that it is no doing of the agent's where its node was lost.
        """
        self._dismiss = dismiss
        self._code: int | None = None
        self._ray = ray
        self._make = make
        self._host = make()
        self._asked = self._host.ended.remote()
        self._again = 0
        self._ended = False
        self._closed = False
        self._output = ""

    @property
    def ended(self) -> bool:
        """Whether its process has ended; False while it waits for room."""
        if not self._ended and self._ray.wait([self._asked], timeout=0)[0]:
            try:
                code, lost = self._ray.get(self._asked), False
            except self._ray.exceptions.RayError as error:
                code, lost, self._output = FAILED, True, str(error)
            # The server may not know yet that the one that was lost is gone, and refuse another.
            refused = self._again > 0 and code == BAD_INPUT
            if self._again < _STARTS and (lost or refused):
                self._again += 1
                if lost:
                    self._dismiss()
                self._ray.kill(self._host)
                self._host = self._make()
                code = None
            self._ended, self._code = code is not None, code
            self._asked = None if self._ended else self._host.ended.remote()
        return self._ended

    @property
    def how(self) -> str:
        """How it ended, in words; see `how_ended`."""
        return how_ended(self._code)

    def close(self) -> None:
        """End it if it still runs; calling it twice is fine."""
        if self._closed:
            return
        self._closed = True
        try:
            self._output = self._ray.get(self._host.close.remote(), timeout=_CLOSE_SECONDS)
        except self._ray.exceptions.RayError as error:
            logging.getLogger(__name__).debug("an agent could not be ended in order: %s", error)
        self._ray.kill(self._host)

    def output(self) -> str:
        """The last lines that it printed."""
        return "\n".join(shown(self._output))


def passed(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what an agent elsewhere needs of an environment, to reach the server as we do."""
    return {name: environ[name] for name in (CA, VARIABLE) if name in environ}
