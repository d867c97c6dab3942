"""The server of the client's tests."""

from tests.client.conftest import client, make_session, server

__all__ = ["client", "make_session", "server"]
