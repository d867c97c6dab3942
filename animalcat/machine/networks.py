"""Addresses: this machine, and networks in which frames may go without encryption."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final, TypeAlias

VARIABLE: Final = "ANIMALCAT_DIRECT_NETWORKS"
"""Variable of the environment that names them, for servers and for agents."""

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_networks(text: str, variable: str = VARIABLE) -> tuple[Network, ...]:
    """Return the networks of a setting such as "10.0.0.0/8,192.168.7.0/24".

    Args:
        text: The setting.
        variable: Its name, for the message.

    Raises:
        ValueError: One is no network.
    """
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ValueError(
            f"{variable}={text!r}: {error}; give networks with commas between, for example "
            "10.0.0.0/8"
        ) from error


def within(address: str, networks: Iterable[Network]) -> bool:
    """Return whether an address is in one of some networks; a name is in none."""
    try:
        found = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return False
    return any(found in network for network in networks)


def is_loopback(host: str) -> bool:
    """Return whether an address or a name can be reached from this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
