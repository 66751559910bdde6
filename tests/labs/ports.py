"""Free TCP ports for the servers of tests."""

import random
import socket
from contextlib import ExitStack

# Below the ports that a system gives to outgoing connections (32768 and more on Linux), one of which
# could otherwise take a port between its choice here and the start of the server.
# Above 30000 stand the node ports of Kubernetes.
_FIRST, _LAST = 20_000, 29_999
_TRIES = 1000


def free_port() -> int:
    """Return a TCP port that is free at every address of this machine."""
    return free_ports(1)[0]


def free_row(count: int) -> int:
    """Return the first of several TCP ports in a row that are free at every address of this machine."""
    for first in random.SystemRandom().sample(range(_FIRST, _LAST + 1 - count), _TRIES):
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("", port))
            except OSError:
                continue
            return first
    raise OSError(f"no {count} TCP ports in a row are free between {_FIRST} and {_LAST}")


def free_ports(count: int) -> list[int]:
    """Return different TCP ports that are free at every address of this machine.

    Raises:
        OSError: Too few are free.

    """
    found: list[int] = []
    with ExitStack() as held:
        for port in random.SystemRandom().sample(range(_FIRST, _LAST + 1), _TRIES):
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("", port))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                return found
    raise OSError(f"fewer than {count} TCP ports are free between {_FIRST} and {_LAST}")
