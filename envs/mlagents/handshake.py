"""The handshake with a client. It is light, since the client waits with a time-out.

Source: reference/animal-ai.md section 6.3.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final, Protocol

from animalcat.envs.mlagents.v1 import communicator_pb2 as pb

_COMMUNICATION_VERSION: Final = "1.5.0"
_PACKAGE_VERSION: Final = "4.0.0"
"""Version of com.unity.ml-agents in Animal-AI 4.3.1; clients only log it."""

logger = logging.getLogger(__name__)


class Transport(Protocol):
    """What a conversation needs of a `ClientConnection`."""

    def exchange(self, output: pb.UnityOutput | None) -> pb.UnityInput:
        """Send a message and wait for the answer."""
        ...

    def stop(self) -> None:
        """Tell the client that there is nothing more to come."""
        ...


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """What a client says about itself.

    Attributes:
        seed: Seed of all randomness, a 32-bit number.
        package_version: Version of its mlagents_envs.
    """

    seed: int
    package_version: str

    @property
    def channels_first(self) -> bool:
        """Whether it takes images as (C, H, W); before 1.0 it is (H, W, C) (section 6.8)."""
        return not self.package_version.startswith("0.")


class VersionRefusedError(Exception):
    """The client speaks another version of the protocol; the message says which."""


def greet(connection: Transport) -> ClientIdentity:
    """Exchange versions with the client, and learn who it is.

    A refusal is logged before the client is told, because the client then kills its build.

    Args:
        connection: The connected client.

    Returns:
        The client's identity; the client now waits for the next message without a time-out.

    Raises:
        ClientClosed: The client closed its environment.
        ClientGoneError: The client is gone.
        VersionRefusedError: It speaks another version of the protocol.
    """
    told = connection.exchange(greeting()).rl_initialization_input
    if _major(told.communication_version) != _major(_COMMUNICATION_VERSION):
        refusal = VersionRefusedError(
            f"the client speaks version {told.communication_version!r} of ML-Agents' protocol, "
            f"this is version {_COMMUNICATION_VERSION}: use mlagents-envs 0.30 to 1.x"
        )
        logger.error("%s", refusal)
        connection.stop()
        raise refusal
    logger.info("client: mlagents-envs %s, seed %d", told.package_version, told.seed)
    return ClientIdentity(told.seed, told.package_version)


def greeting() -> pb.UnityOutput:
    """The first message of a build, with its version and capabilities."""
    return pb.UnityOutput(
        rl_initialization_output=pb.InitializationOutput(
            name="AcademySingleton",
            communication_version=_COMMUNICATION_VERSION,
            package_version=_PACKAGE_VERSION,
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
