"""The first words with a client: light, for a client waits for them with its time-out running.

Source: reference/animal-ai.md section 6.3.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final, Protocol

from animalcat.envs.mlagents.v1 import communicator_pb2 as pb

COMMUNICATION_VERSION: Final = "1.5.0"
PACKAGE_VERSION: Final = "4.0.0"
"""Of com.unity.ml-agents, as in Animal-AI 4.3.1; clients write it down and no more."""

logger = logging.getLogger(__name__)


class Transport(Protocol):
    """What a conversation needs of a `ClientConnection`."""

    def exchange(self, output: pb.UnityOutput | None) -> pb.UnityInput:
        """Say something and wait for the answer."""
        ...

    def stop(self) -> None:
        """Tell the client that there is nothing more to come."""
        ...


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """Who a client says that it is.

    Attributes:
        seed: Seed of everything random, a 32-bit number.
        package_version: Of its mlagents_envs.
    """

    seed: int
    package_version: str

    @property
    def channels_first(self) -> bool:
        """Whether it takes images as (C, H, W); those before 1.0 take (H, W, C) (section 6.8)."""
        return not self.package_version.startswith("0.")


class VersionRefusedError(Exception):
    """The client speaks another version of the protocol; the message says which."""


def greet(connection: Transport) -> ClientIdentity:
    """Say who this is, and hear who the client is.

    A refusal is logged before the client is told, which then kills its build.

    Args:
        connection: The client, connected.

    Returns:
        Who the client is; it now waits for a sign of life without a time-out.

    Raises:
        ClientClosed: The client closed its environment.
        ClientGoneError: The client is gone.
        VersionRefusedError: It speaks another version.
    """
    told = connection.exchange(greeting()).rl_initialization_input
    if _major(told.communication_version) != _major(COMMUNICATION_VERSION):
        refusal = VersionRefusedError(
            f"the client speaks version {told.communication_version!r} of ML-Agents' protocol, "
            f"this is version {COMMUNICATION_VERSION}: use mlagents-envs 0.30 to 1.x"
        )
        logger.error("%s", refusal)
        connection.stop()
        raise refusal
    logger.info("client: mlagents-envs %s, seed %d", told.package_version, told.seed)
    return ClientIdentity(told.seed, told.package_version)


def greeting() -> pb.UnityOutput:
    """The first message of a build: who it is."""
    return pb.UnityOutput(
        rl_initialization_output=pb.InitializationOutput(
            name="AcademySingleton",
            communication_version=COMMUNICATION_VERSION,
            package_version=PACKAGE_VERSION,
            capabilities=pb.Capabilities(
                base_rl_capabilities=True,
                concatenated_png_observations=True,
                compressed_channel_mapping=True,
                hybrid_actions=True,
                training_analytics=True,
                variable_length_observation=True,
                multi_agent_groups=True,
            ),
        )
    )


def _major(version: str) -> str:
    return version.partition(".")[0]
