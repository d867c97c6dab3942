"""What a client shows to whom."""

from __future__ import annotations

import pytest

from animalcat.client.credentials import is_local


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("localhost:1", True),
        ("127.0.0.1:1", True),
        ("127.1.2.3:1", True),
        ("[::1]:1", True),
        ("unix:/run/a.sock", True),
        ("127.evil.example:1", False),
        ("localhost.evil.example:1", False),
        ("127.0.0.1.evil.example:1", False),
        ("10.0.0.1:1", False),
        ("[2001:db8::1]:1", False),
        ("evil.example", False),
    ],
)
def test_only_addresses_of_this_machine_are_spoken_to_in_clear(address: str, local: bool) -> None:
    """A token goes without TLS to nobody else."""
    assert is_local(address) is local
