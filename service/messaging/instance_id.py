"""Unique numbers for the static group members on one host, so that no two workers have the same name."""

import hashlib
import socket
import sys

MAX_INSTANCES = 1_000


class InstanceNumber:
    """A number that is unique on this host while the process lives.

    It is reserved by a socket name in Linux's abstract namespace, which the kernel releases with the process. The
    successor of a killed process gets the same number, and with it the partitions.
    """

    def __init__(self, number: int, held: socket.socket | None) -> None:
        self.number = number
        self._held = held

    def close(self) -> None:
        """Release the number."""
        if self._held is not None:
            self._held.close()


def claim(name: str, first: int = 0) -> InstanceNumber:
    """Reserve the lowest free number from `first` on within the scope `name`; other systems than Linux get `first`.

    Raises:
        OSError: all numbers are in use.
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
