"""Nothing of the screen leaves the machine: the hook in conftest.py watches all of its tests."""

from __future__ import annotations

import socket

import pytest


def test_the_network_is_forbidden_to_the_screen() -> None:
    with pytest.raises(AssertionError, match="uses the network"):
        socket.create_connection(("localhost", 9))
