"""Numbers for the group's static members of one host, so that two workers there never have the same name."""

import hashlib
import socket
import sys

MAX_INSTANCES = 1_000


class InstanceNumber:
    """A number that nobody else on this host has while the process lives, whatever ends it.

    Held by a socket's name in Linux's abstract namespace: the kernel gives it up with the process, so that the one
    who comes after a kill gets the same number, and with it the killed one's partitions.
    """

    def __init__(self, number: int, held: socket.socket | None) -> None:
        self.number = number
        self._held = held

    def close(self) -> None:
        """Give the number up."""
        if self._held is not None:
            self._held.close()


def claim(name: str, first: int = 0) -> InstanceNumber:
    """The lowest free number from `first` on, of those that share `name`; where the system has no such names, `first`.

    Raises:
        OSError: all are taken.
    """
    if sys.platform != "linux":
        return InstanceNumber(first, None)
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    for number in range(first, first + MAX_INSTANCES):
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(f"\0faultline-{digest}-{number}")
        except OSError:
            held.close()
        else:
            return InstanceNumber(number, held)
    raise OSError(f"{MAX_INSTANCES} members of {name} run on this host")
